-- integer arithmetic
i8 + i8
i8 - i16
i16 * i16
i + i
i - 7
i * 3
l + i
l * 2
l - 1L
-i8
-i
-l
abs(i8)
abs(l)
i / 3
l / i
i div 3
l div i
l div -1L
i % 7
i8 % i8
l % -3
mod(i, i16)
pmod(i, 7)
pmod(i, -7)
pmod(l, i)
pmod(i8, i8)
sign(i)
try_add(i, 1)
try_add(l, l)
try_subtract(i8, i8)
try_multiply(l, i)
try_divide(i, i16)
try_mod(i, i16)
factorial(i8)
-- float arithmetic
f + f
f * f
f - d
d + d
d * 3
d - d
d / 3
d / d
d % 3
d % d
f % f
pmod(d, 3)
pmod(d, -2.5d)
pmod(f, f)
-d
-f
abs(d)
sign(d)
try_divide(d, d)
try_mod(d, f)
-- decimal arithmetic
dec + dec
dec - big
dec * big
dec * dec
dec / 3
dec / dec
dec / big
big / dec
big / big
big * big
big + big
big + whole
whole * whole
whole + 1
whole / 3
whole / big
whole div 7
whole % 1000
frac * frac
frac + frac
frac + whole
frac / whole
frac - big
dec % 3
dec % dec
big % dec
frac % dec
dec div 3
big div dec
pmod(dec, 7)
pmod(dec, -7)
-dec
-whole
abs(big)
dec + i
dec * l
dec + f
dec / i
try_add(whole, whole)
try_multiply(big, whole)
try_divide(dec, dec)
try_divide(big, 0)
sign(dec)
dec * 0.07
1 - dec
-- comparison
i = 1
i <=> null
i8 < i16
l >= i
d = d
d <=> f
d < 0.1d
d > f
f >= f
d <= 2.5
dec = 1.25
dec > big
whole < big
s = s2
s < s2
s >= 'b'
s <=> null
bin = bin
bin < X'61'
dt > '2000-01-01'
dt = ts
ts < '2024-03-10 07:00:00'
ts = tn
tn > dt
ym > interval '1' month
ds <= interval '1' day
a = array(1, 2, 3)
a < array(1, 3)
a <=> a
ad = ad
ad < array(double('nan'))
ad = array(0d, 1d)
st = struct(1, 'a')
st < struct(2, 'a')
st <=> st
b = true
b < true
b > b
greatest(i, l)
greatest(d, f, 1)
least(d, f)
greatest(s, s2)
least(dec, big, 0)
greatest(a, array(2))
least(dt, date'2000-01-01')
greatest(st, cast(struct(1, 'b') as struct<x:int,y:string>))
i in (1, 2, 3)
i in (1, null)
i in (l, i16)
s in ('abc', '')
d in (double('nan'), 0d)
i not in (1, 2)
dec in (1.25, 3)
(i, s) in ((1, 'abc'), (0, ''))
i between 0 and 12
-- logic
b and i > 0
b or i > 0
not b
b and null
b or null
i is null
s is not null
isnan(d)
isnan(f)
nanvl(d, 1)
nanvl(f, d)
coalesce(i, l, 3)
coalesce(s, 'none')
nvl(i, 0)
nullif(i, 1)
nvl2(s, i, 0)
if(i > 0, 1 / i, 0)
case when i = 0 then null when b then i / 2 else d end
case i when 1 then 'one' when 2 then 'two' end
equal_null(i, l)
b is true
b is not false
i is distinct from 1
zeroifnull(i)
nullifzero(i)
false and 1 / (i - i) = 1
coalesce(1, 1 / (i - i))
-- strings
upper(s)
lower(s)
initcap(s)
trim(s)
ltrim(s)
rtrim(s)
btrim(s, 'a ')
trim('a' from s)
trim(leading 'ab' from s)
trim(trailing s2 from s)
substring(s, 1, 2)
substring(s, 0, 2)
substring(s, -3, 2)
substring(s, -30, 28)
substring(s, 2)
substring(s, i8, 3)
substring(s, 2, i8)
substring(s, i, i)
substring(bin, 2, 1)
substring(bin, -2)
substring(bin, i8, 2)
s || s2
concat(s, i, d)
concat(bin, bin)
concat(a, a)
concat_ws(',', s, s2, null)
concat_ws(s2, s, s)
concat_ws('-', cast(a as array<string>), s)
length(s)
length(bin)
char_length(s)
octet_length(s)
octet_length(bin)
bit_length(s)
replace(s, 'a', 'xx')
replace(s, s2, '-')
replace(s, 'a')
lpad(s, 5, 'xy')
rpad(s, 5, 'xy')
lpad(s, 5, '')
lpad(s, i8, s2)
rpad(s, 3)
lpad(bin, 5, X'01')
rpad(bin, 2)
left(s, 3)
left(s, i8)
right(s, 3)
right(s, i8)
reverse(s)
reverse(a)
repeat(s, 2)
repeat(s2, i8)
space(i8)
translate(s, 'abc', 'x')
translate(s, s2, 'z')
overlay(s placing 'ZZ' from 2)
overlay(s placing 'ZZ' from 2 for 0)
overlay(s placing s2 from i8 for 1)
overlay(bin placing X'aa' from 2 for 1)
substring_index(s, '.', 1)
substring_index(s, '.', -2)
substring_index(s, s2, i8)
substring_index('aaaa', 'aa', -2)
substring_index('aaaa', 'aa', 2)
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, s2, 1)
-- search
startswith(s, 'a')
startswith(s, s2)
endswith(s, s2)
contains(s, s2)
contains(bin, X'ff')
startswith(bin, X'00')
endswith(bin, bin)
instr(s, 'b')
instr(s, s2)
locate(s2, s)
locate('a', s, 2)
locate('', s, 3)
locate(s2, s, i8)
position('b' in s)
find_in_set(s2, 'a,b,,x')
find_in_set('b', s)
levenshtein(s, s2)
-- encodings
ascii(s)
chr(i)
chr(l)
char(65)
hex(i)
hex(s)
hex(bin)
hex(l)
unhex(s)
unhex(hex(s))
unhex('abc')
bin(l)
md5(s)
sha1(s)
sha2(s, 256)
sha2(s, 0)
sha2(s, i)
sha2(bin, 512)
crc32(s)
base64(bin)
encode(s, 'utf-8')
decode(encode(s, 'utf-8'), 'UTF-8')
-- patterns
s like 'a%'
s like '%b%'
s like '_b_'
s like s2
s like 'a\\%b\\_c%'
s like ''
s like '%\\\\\\\\%'
s not like '%o%'
s ilike 'ABC%'
s ilike '%O%'
s like '%語%'
s like 'line%break'
s like 'a/%b/_c%' escape '/'
s like any ('a%', '%o%', null)
s like all ('%a%', '%b%')
s not like all ('a%', '%o%')
s not like any ('a%', '%o%')
s like all (s2, '%b%')
s rlike '^a'
s rlike '[0-9]+$'
s rlike 'line.break'
s rlike '(?s)line.break'
s rlike '(?i)ABC'
s rlike '^\\s*$'
s rlike '\\bdef\\b'
s rlike '\\p{Upper}'
s rlike '[^\\w]'
s rlike '^(?:a|b).*c$'
s rlike '\\Qa%b\\E'
regexp_replace(s, '[aeiou]', '<$0>')
regexp_replace(s, '(\\d+)', '#$1#')
regexp_replace(replace(s, '😀', 'e'), 'x*', '-')
regexp_replace(s, '(a)|(b)', '[$2]')
regexp_replace(s, 'a', '\\$')
regexp_replace(s, '^.', 'X', 3)
regexp_extract(s, '([a-z]+)(\\d+)', 2)
regexp_extract(s, '([a-z]+)(\\d+)')
regexp_extract(s, '\\d+', 0)
regexp_extract(s, '(x)|(o)', 1)
regexp_extract(s, '(a)', 5)
regexp_extract_all(s, '(\\d)(\\d)', 1)
regexp_extract_all(s, '[a-c]', 0)
regexp_count(s, '[a-z]')
regexp_substr(s, '\\d+')
regexp_instr(s, '\\d')
regexp_like(s, 'o{1,2}')
split(s, ',')
split(s, ',', 2)
split(s, '')
split(s, '', 2)
split(s, '[a-c]')
split(s, '(?=b)')
split(s, '\\.')
split(replace(s, '😀', 'e'), 'x*')
split(s, ',+', 1)
-- rounding
round(dec)
round(dec, 1)
round(dec, -1)
round(dec, -9)
round(dec, 20)
round(big, 3)
round(big, -28)
round(whole, -38)
round(frac, 2)
round(d)
round(d, 2)
round(d, -2)
round(d, 310)
round(f, 1)
round(f)
round(i, -1)
round(i8, -1)
round(i8, -3)
round(l, -2)
round(l, -19)
round(l, 3)
bround(dec, 1)
bround(d)
bround(d, 1)
bround(i, -1)
bround(f, 1)
floor(d)
floor(f)
floor(dec)
floor(big)
floor(i)
floor(l)
floor(whole)
floor(dec, 1)
floor(dec, -1)
floor(l, -1)
ceil(d)
ceil(f)
ceil(dec)
ceil(frac)
ceil(dec, 1)
ceil(dec, -3)
ceil(i8, 1)
ceil(big, 5)
rint(d)
rint(f)
-- transcendental
sqrt(d)
sqrt(i)
cbrt(d)
power(d, 2)
power(d, 0.5d)
power(d, d)
power(2, i8)
power(d, -1)
power(-2.5d, i8)
exp(d)
exp(i8)
expm1(d)
ln(d)
ln(i)
log(d)
log(2, d)
log(d, 2)
log(i, l)
log10(d)
log2(d)
log1p(d)
sin(i)
cos(i)
tan(i8)
cot(i8)
sec(i8)
csc(i8)
sin(d / 1e300)
asin(d)
acos(d)
atan(d)
atan2(d, f)
atan2(f, d)
atan2(-0d, 0d)
sinh(i8)
cosh(i8)
tanh(d)
sinh(d)
cosh(d)
asinh(f)
acosh(d)
atanh(d)
degrees(d)
radians(d)
hypot(d, f)
pi() * i
e() * i
-- bits
i & 12
i | i
l ^ i
~i8
~l
i8 & i8
shiftleft(i, 3)
shiftleft(l, i8)
shiftright(i, i8)
shiftright(l, 70)
shiftrightunsigned(i, 3)
shiftrightunsigned(l, i8)
i << 33
bit_count(i)
bit_count(l)
bit_count(b)
bit_get(i, 3)
bit_get(l, i8)
-- dates
year(dt)
quarter(dt)
month(dt)
day(dt)
dayofyear(dt)
dayofweek(dt)
weekday(dt)
weekofyear(dt)
extract(yearofweek from dt)
extract(dow_iso from dt)
extract(week from ts)
extract(year from ts)
date_part('month', dt)
dayname(dt)
monthname(dt)
date_add(dt, 30)
date_add(dt, i8)
date_add(dt, i)
date_sub(dt, i16)
dt + 1
dt - i8
datediff(dt, date'2000-02-29')
datediff(ts, dt)
dt - date'2000-01-01'
add_months(dt, 1)
add_months(dt, -13)
add_months(dt, i8)
add_months(dt, i)
last_day(dt)
next_day(dt, 'mon')
next_day(dt, 'Sunday')
next_day(dt, 'TH')
next_day(dt, s)
trunc(dt, 'year')
trunc(dt, 'MM')
trunc(dt, 'quarter')
trunc(dt, 'week')
trunc(dt, 'day')
dt + interval '1' month
dt - interval '1' year
dt + interval '3' day
dt - interval 90 days
dt + ym
unix_date(dt)
date_from_unix_date(i16)
make_date(2024, i8, 29)
make_date(i, 2, i8)
months_between(dt, date'2000-02-29')
to_date(s)
try_to_date(s, 'yyyy-MM-dd')
-- timestamps
year(ts)
day(ts)
hour(ts)
minute(ts)
second(ts)
hour(tn)
minute(tn)
second(tn)
extract(second from ts)
extract(second from tn)
extract(doy from ts)
cast(ts as date)
ts + interval '1' hour
ts + interval '1' day
ts - interval '36' hour
ts + interval '1' month
ts - interval '1' year
tn + interval '1' hour
tn - interval '1' month
tn + interval '40' day
ts + ds
ts + ym
tn + ds
dt + ds
dt + interval '1' hour
ts - timestamp'2024-03-01 00:00:00'
tn - timestamp_ntz'2024-03-01 00:00:00'
ts - dt
tn - ts
date_trunc('year', ts)
date_trunc('quarter', ts)
date_trunc('month', ts)
date_trunc('week', ts)
date_trunc('day', ts)
date_trunc('hour', ts)
date_trunc('minute', ts)
date_trunc('second', ts)
date_trunc('millisecond', ts)
date_trunc('microsecond', ts)
date_trunc('month', dt)
date_trunc('hour', tn)
months_between(ts, timestamp'2024-02-29 12:00:00')
months_between(ts, timestamp'2024-02-29 12:00:00', false)
from_utc_timestamp(ts, 'Asia/Tokyo')
from_utc_timestamp(ts, 'America/New_York')
to_utc_timestamp(ts, 'America/New_York')
to_utc_timestamp(ts, '+05:30')
from_utc_timestamp(ts, 'PST')
from_utc_timestamp(ts, s)
convert_timezone('UTC', 'America/New_York', tn)
convert_timezone('America/New_York', 'UTC', tn)
timestampadd(HOUR, 25, ts)
timestampadd(DAY, 1, ts)
timestampadd(MONTH, i8, ts)
timestampadd(WEEK, 1, tn)
timestampadd(SECOND, 100000, ts)
timestampadd(QUARTER, 2, ts)
timestampdiff(HOUR, ts, timestamp'2024-03-10 12:00:00')
timestampdiff(DAY, ts, timestamp'2024-03-10 12:00:00')
timestampdiff(MONTH, ts, timestamp'2024-03-10 12:00:00')
timestampdiff(YEAR, ts, tn)
timestampdiff(QUARTER, tn, timestamp_ntz'2024-03-10 12:00:00')
timestampdiff(MICROSECOND, ts, tn)
-- datetime conversions
unix_timestamp(ts)
unix_timestamp(dt)
to_unix_timestamp(ts)
unix_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
unix_seconds(ts)
unix_millis(ts)
unix_micros(ts)
timestamp_seconds(i)
timestamp_seconds(l)
timestamp_seconds(dec)
timestamp_seconds(i + 0.5d)
timestamp_seconds(frac)
timestamp_millis(l)
timestamp_micros(l)
from_unixtime(i)
from_unixtime(i, 'yyyy/MM/dd HH:mm')
make_timestamp(2024, i8, 10, 2, 30, 15.5)
make_timestamp(2024, 3, 10, i8, 30, 60)
make_timestamp(2024, 11, 3, 1, 30, dec)
make_timestamp(2024, 11, 3, 1, 30, 1, 'Europe/Paris')
make_timestamp_ntz(i, 3, 10, 2, 30, 15.123456)
try_make_timestamp(2024, i8, 10, 2, 30, 15.5)
make_ym_interval(i, i8)
make_dt_interval(i8, 30, 70, 1.5)
date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')
date_format(ts, 'y M d H m s S')
date_format(ts, 'yy MMM dd, EEE hh:mm a')
date_format(ts, 'MMMM EEEE D k K')
date_format(ts, "Q QQ QQQ QQQQ 'o''clock'")
date_format(ts, 'XXX xx Z X XXXXX')
date_format(ts, 'VV')
date_format(dt, 'yyyyMMdd')
date_format(tn, 'SSSSSS L LL LLL LLLL')
to_date(date_format(dt, 'dd/MM/yyyy'), 'dd/MM/yyyy')
to_date(date_format(dt, 'yyyyMMdd'), 'yyyyMMdd')
to_date(date_format(dt, 'd MMM yyyy'), 'd MMM yyyy')
to_date(date_format(dt, 'MMMM d, yyyy'), 'MMMM d, yyyy')
to_date(date_format(dt, 'yyyy-DDD'), 'yyyy-DDD')
to_timestamp(date_format(tn, 'yyyy-MM-dd hh:mm:ss a'), 'yyyy-MM-dd hh:mm:ss a')
to_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSSSSS')
to_timestamp(date_format(ts, "yyyy-MM-dd'T'HH:mm:ssXXX"), "yyyy-MM-dd'T'HH:mm:ssXXX")
to_timestamp(date_format(ts, 'HH:mm'), 'HH:mm')
to_timestamp(s, 'yyyy-MM-dd[ HH:mm:ss]')
to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
try_to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
try_to_timestamp(s, 'yy')
try_to_timestamp(s)
to_timestamp_ntz(s)
try_to_timestamp(concat('2024-', i8, '-1'), 'yyyy-M-d')
-- intervals
ym + interval '1' month
ym - interval '10' year
ds + interval '1' second
ds - ds
ym * 2
ym * 1.5
ym * d
ym * i
ds * 2
ds * dec
ds * 0.1d
ds * i8
ym / 2
ym / 1.5
ds / 3
ds / i8
ds / 0.3d
ds / dec
-ym
-ds
abs(ym)
abs(ds)
sign(ym)
sign(ds)
ym div interval '2' month
ds div interval '1' hour
extract(year from ym)
extract(month from ym)
extract(day from ds)
extract(hour from ds)
extract(minute from ds)
extract(second from ds)
try_add(ds, ds)
try_add(ym, ym)
try_multiply(ds, 1000)
try_divide(ds, i8)
try_add(dt, i)
try_add(ts, ds)
try_subtract(dt, 5)
-- arrays and structs
size(a)
cardinality(a)
array_size(a)
array(i, i8, null)
array(s, s2)
array()
a[0]
a[1]
a[i8]
element_at(a, 1)
element_at(a, -1)
element_at(a, 2)
element_at(a, i8)
try_element_at(a, 2)
try_element_at(a, i16)
get(a, 1)
get(a, i8)
array_contains(a, 1)
array_contains(a, i)
array_contains(ad, double('nan'))
array_contains(ad, 0d)
array_max(a)
array_min(ad)
array_max(ad)
array_position(a, 3)
array_distinct(array(i, 1, null, 1))
array_distinct(ad)
sort_array(a)
sort_array(a, false)
sort_array(ad)
array_join(array(s, s2), '-')
array_join(a, ',', 'none')
struct(i, s)
named_struct('p', i, 'q', d)
st.x
st.y
struct(i, s).s
array(st).x
array(st, null).y
array(st)[0].x
-- casts to numbers
cast(i as tinyint)
cast(l as int)
cast(i8 as bigint)
cast(d as int)
cast(d as bigint)
cast(f as bigint)
cast(f as smallint)
cast(dec as tinyint)
cast(big as bigint)
cast(whole as int)
cast(b as int)
cast(b as decimal(3,1))
cast(b as double)
cast(s as int)
cast(s as tinyint)
cast(s as bigint)
cast(s as double)
cast(s as float)
cast(s as decimal(6,2))
cast(s as decimal(38,18))
cast(s as boolean)
cast(i as boolean)
cast(d as boolean)
cast(dec as boolean)
cast(ts as bigint)
cast(ts as int)
cast(ts as double)
cast(ts as float)
cast(ts as decimal(20,6))
cast(ym as int)
cast(ym as tinyint)
cast(ds as bigint)
cast(ds as int)
cast(ds as decimal(18,3))
cast(ym as decimal(12,1))
cast(i as float)
cast(l as float)
cast(l as double)
cast(d as float)
cast(f as double)
cast(dec as float)
cast(big as double)
cast(whole as float)
cast(i as decimal(5,1))
cast(l as decimal(20,0))
cast(d as decimal(10,3))
cast(d as decimal(38,18))
cast(f as decimal(10,5))
cast(dec as decimal(4,1))
cast(dec as decimal(20,10))
cast(big as decimal(38,0))
cast(big as decimal(38,20))
cast(frac as decimal(10,5))
try_cast(s as int)
try_cast(s as double)
try_cast(s as decimal(4,1))
try_cast(s as boolean)
try_cast(d as int)
try_cast(l as tinyint)
try_cast(whole as int)
try_cast(concat('  ', i, chr(9)) as int)
try_cast(concat('+', i8) as int)
try_cast(concat(dec, 'd') as double)
-- casts to text
cast(i as string)
cast(b as string)
cast(d as string)
cast(f as string)
cast(dec as string)
cast(frac as string)
cast(big as string)
cast(dt as string)
cast(ts as string)
cast(tn as string)
cast(ym as string)
cast(ds as string)
cast(a as string)
cast(ad as string)
cast(st as string)
cast(array(st) as string)
cast(array(ts) as string)
cast(struct(dt, dec, b) as string)
cast(s as binary)
cast(cast(s as binary) as string)
-- casts to datetimes
cast(s as date)
cast(s as timestamp)
cast(s as timestamp_ntz)
try_cast(s as date)
try_cast(s as timestamp)
try_cast(s as timestamp_ntz)
cast(dt as timestamp)
cast(dt as timestamp_ntz)
cast(ts as date)
cast(ts as timestamp_ntz)
cast(tn as timestamp)
cast(tn as date)
cast(i as timestamp)
cast(l as timestamp)
cast(d as timestamp)
cast(f as timestamp)
cast(dec as timestamp)
cast(big as timestamp)
cast(cast(dt as string) as date)
cast(cast(ts as string) as timestamp)
cast(cast(tn as string) as timestamp_ntz)
try_cast(concat(dt, ' 1:2') as timestamp)
try_cast(concat(dt, 'T01:02:03Z') as timestamp)
try_cast(concat(dt, ' 01:02:03.1234567+02:00') as timestamp)
try_cast(concat(dt, ' 01:02:03 Europe/Paris') as timestamp)
try_cast(concat(dt, ' 01:02:03 America/Nowhere') as timestamp)
try_cast(concat(dt, ' 25:02:03') as timestamp)
try_cast(concat(dt, 'x') as date)
try_cast(concat(dt, ' anything') as date)
try_cast('2024' as date)
try_cast(concat('2024-', i8) as date)
try_cast(concat('2024-', i8) as timestamp)
cast(i8 as interval year to month)
cast(i as interval day to second)
cast(dec as interval day to second)
cast(cast(ym as string) as interval year to month)
cast(cast(ds as string) as interval day to second)
try_cast(s as interval day to second)
cast(a as array<string>)
cast(a as array<bigint>)
cast(ad as array<int>)
try_cast(ad as array<int>)
cast(st as struct<p:bigint,q:string>)
