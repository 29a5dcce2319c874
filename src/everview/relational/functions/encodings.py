"""Characters as numbers, bytes as text: ASCII, CHR, HEX, base 64, binary digits, and digests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from typing import Any, Final

from everview.errors import EvaluationError
from everview.relational.expressions import Call, Literal
from everview.relational.functions.failures import unsupported
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import BINARY, INT32, INT64, STRING, Binary, String, Value

Bound = Callable[..., Any]
_UNSIGNED_64: Final = (1 << 64) - 1


@function("ascii", INT32)
def _ascii(call: Call) -> Bound:
    return lambda s: ord(s[0]) if s else 0


@function("chr", STRING)
def _chr(call: Call) -> Bound:
    return lambda n: chr(n & 0xFF) if n >= 0 else ""


@function("hex", STRING)
def _hex(call: Call) -> Bound:
    match call.args[0].type:
        case String():
            return lambda s: s.encode().hex().upper()
        case Binary():
            return lambda b: b.hex().upper()
        case _:
            return lambda n: f"{n & _UNSIGNED_64:X}"


@function("unhex", BINARY, Nulls.STRICT_OR_NULL)
def _unhex(call: Call) -> Bound:
    def unhex(s: str) -> bytes | None:
        digits = s if len(s) % 2 == 0 else "0" + s
        try:
            return binascii.unhexlify(digits)
        except ValueError:
            return None

    return unhex


@function("bin", STRING)
def _bin(call: Call) -> Bound:
    return lambda n: f"{n & _UNSIGNED_64:b}"


@function("base64", STRING)
def _base64(call: Call) -> Bound:
    def encode(data: bytes, is_chunked: bool = False) -> str:
        text = base64.b64encode(data).decode()
        return "\r\n".join(text[i : i + 76] for i in range(0, len(text), 76)) if is_chunked else text

    return encode


_CHARSETS: Final = {"utf-8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "latin-1"}


def _charset(call: Call) -> str:
    wanted = call.args[1]
    name = str(wanted.value).lower() if isinstance(wanted, Literal) else None
    if name not in _CHARSETS:
        shown = f"charset {name!r}" if name else "a charset that is not a constant"
        raise unsupported(f"{call.function} with {shown} is not supported.", call.function, "use 'utf-8'.")
    return _CHARSETS[name]


def _malformed(call: Call, value: Value, charset: str) -> EvaluationError:
    return EvaluationError(
        f"{call.function} cannot convert {value!r} with charset {charset!r}.", condition="MALFORMED_CHARACTER_CODING"
    )


@function("encode", BINARY)
def _encode(call: Call) -> Bound:
    charset = _charset(call)

    def encode(s: str, _charset_name: str) -> bytes:
        try:
            return s.encode(charset)
        except UnicodeEncodeError:
            raise _malformed(call, s, charset) from None

    return encode


@function("decode", STRING)
def _decode(call: Call) -> Bound:
    charset = _charset(call)

    def decode(data: bytes, _charset_name: str) -> str:
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            raise _malformed(call, data, charset) from None

    return decode


@function("md5", STRING)
def _md5(call: Call) -> Bound:
    return lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()


@function("sha1", STRING)
def _sha1(call: Call) -> Bound:
    return lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()


_SHA2: Final = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


@function("sha2", STRING, Nulls.STRICT_OR_NULL)
def _sha2(call: Call) -> Bound:
    return lambda data, bits: _SHA2[bits](data).hexdigest() if bits in _SHA2 else None


@function("crc32", INT64)
def _crc32(call: Call) -> Bound:
    return zlib.crc32
