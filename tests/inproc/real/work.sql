-- What sqlite3 does for a living: inserts, indexes, joins, window functions, JSON, updates, a check at the end.
PRAGMA journal_mode = MEMORY;
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city TEXT, born INTEGER);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, person INTEGER, what TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
  INSERT INTO person SELECT i, 'name ' || (i * 7919 % 20011), 'city ' || (i % 101), 1900 + i % 100 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60000)
  INSERT INTO purchase SELECT i, i * 31 % 20000 + 1, hex(i * 104729), i % 977 / 7.0 FROM n;
CREATE INDEX by_person ON purchase(person);
CREATE INDEX by_city ON person(city, born);
SELECT city, count(*), round(sum(price), 2) FROM person JOIN purchase ON person.id = purchase.person
  GROUP BY city ORDER BY 3 DESC LIMIT 20;
SELECT name, price, rank() OVER (PARTITION BY city ORDER BY price DESC) AS place FROM person
  JOIN purchase ON person.id = purchase.person WHERE born = 1950 ORDER BY price DESC, purchase.id LIMIT 20;
UPDATE person SET name = upper(name) || '!' WHERE id % 3 = 0;
DELETE FROM purchase WHERE id % 7 = 0;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM (SELECT id, name FROM person ORDER BY id LIMIT 50);
SELECT group_concat(what, '') FROM (SELECT what FROM purchase ORDER BY what LIMIT 500);
SELECT count(*), total(length(name)), (SELECT count(*) FROM purchase WHERE what LIKE '%3A%') FROM person;
VACUUM;
PRAGMA integrity_check;
