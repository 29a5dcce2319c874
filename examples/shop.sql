-- A shop in one script: everview run examples/shop.sql

CREATE TABLE customer (id BIGINT NOT NULL, name STRING, city STRING);
CREATE TABLE orders (id BIGINT NOT NULL, customer_id BIGINT, price DECIMAL(10,2));

CREATE MATERIALIZED VIEW revenue AS
SELECT city, COUNT(*) AS orders, SUM(price) AS total
FROM customer JOIN orders ON customer.id = customer_id
GROUP BY city;

CREATE MATERIALIZED VIEW best_customers AS
SELECT name, SUM(price) AS total
FROM customer JOIN orders ON customer.id = customer_id
GROUP BY name
ORDER BY total DESC, name
LIMIT 2;

INSERT INTO customer VALUES (1, 'Ada', 'London'), (2, 'Emmy', 'Erlangen'), (3, 'Sofja', 'Stockholm');
INSERT INTO orders VALUES (10, 1, 12.00), (11, 2, 30.50), (12, 3, 8.25), (13, 1, 20.00);
SELECT * FROM revenue;
SELECT * FROM best_customers;

UPDATE orders SET price = 40.00 WHERE id = 12;
DELETE FROM orders WHERE id = 11;
SELECT * FROM revenue;
SELECT * FROM best_customers;
