-- A database of some size, asked in many ways; integrity checked. Output depends on nothing but this file and sqlite's version.
PRAGMA journal_mode = MEMORY;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INT);
CREATE TABLE sale(id INTEGER PRIMARY KEY, item INT REFERENCES item(id), amount INT, day INT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO item SELECT i, printf('item %05d', i * 7919 % 10007), (i * 31 % 997) / 7.0, i * 17 % 101 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO sale SELECT i, i * 7 % 3000 + 1, i * 13 % 9 + 1, i * 11 % 365 FROM n;
CREATE INDEX sale_item ON sale(item, day);
CREATE INDEX item_name ON item(name COLLATE NOCASE);
SELECT count(*), round(sum(price * stock), 4) FROM item;
SELECT item.name, sum(amount), round(avg(price * amount), 3) FROM sale JOIN item ON item.id = sale.item
 GROUP BY item.id HAVING sum(amount) > 30 ORDER BY 2 DESC, 1 LIMIT 40;
SELECT day, sum(amount) OVER (ORDER BY day ROWS 6 PRECEDING) FROM (SELECT day, sum(amount) AS amount FROM sale GROUP BY day)
 ORDER BY day LIMIT 100;
SELECT substr(name, 1, 7) AS part, count(*), group_concat(stock, '-') FROM item WHERE name LIKE 'ITEM 0%7%' GROUP BY part;
BEGIN;
UPDATE item SET stock = stock - (SELECT coalesce(sum(amount), 0) FROM sale WHERE sale.item = item.id);
DELETE FROM sale WHERE day % 7 = 3;
SAVEPOINT inner_one;
DELETE FROM item WHERE id % 2 = 0;
ROLLBACK TO inner_one;
COMMIT;
SELECT count(*), min(stock), max(stock) FROM item;
CREATE TRIGGER sold AFTER INSERT ON sale BEGIN UPDATE item SET stock = stock - new.amount WHERE id = new.item; END;
INSERT INTO sale SELECT 1000000 + id, item, 1, day FROM sale WHERE id < 2000;
SELECT sum(stock) FROM item;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM item WHERE id < 20;
SELECT hex(group_concat(printf('%d:%g:%s', id, price, upper(name)))) FROM item WHERE id % 100 = 0;
WITH RECURSIVE q(x, y, it, zx, zy) AS (SELECT a.x, b.y, 0, 0.0, 0.0 FROM
  (WITH RECURSIVE xs(x) AS (SELECT -2.0 UNION ALL SELECT x + 0.15 FROM xs WHERE x < 1) SELECT x FROM xs) a,
  (WITH RECURSIVE ys(y) AS (SELECT -1.0 UNION ALL SELECT y + 0.15 FROM ys WHERE y < 1) SELECT y FROM ys) b
  UNION ALL SELECT x, y, it + 1, zx * zx - zy * zy + x, 2 * zx * zy + y FROM q WHERE zx * zx + zy * zy < 4 AND it < 15)
SELECT round(y, 2), group_concat(m, '') FROM (SELECT y, x, max(it) AS m FROM q GROUP BY y, x) GROUP BY y;
VACUUM;
PRAGMA integrity_check;
