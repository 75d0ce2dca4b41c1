-- What a shell of SQLite does in a day: tables, index, view, trigger, transactions, joins, windows, JSON, output
-- modes, and what looks after a database (docs/howto/torture.md).
.mode box
.headers on
create table author(id integer primary key, name text unique not null);
create table book(id integer primary key, author references author, title text, year int, price real, cover blob);
create index book_year on book(year, title);
create view recent as select title, name from book join author on author.id = book.author where year > 1990;
create trigger cheaper after update of price on book when new.price < old.price begin insert into author(name) values('reduced ' || old.id); end;
insert into author values(1, 'Ada'), (2, 'Grace'), (3, 'Barbara');
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200) insert into book select i, 1 + i % 3, printf('Title %03d', i * 7919 % 200), 1950 + i % 70, i * 1.25, zeroblob(2) from n;
begin; update book set price = price / 2 where id in (3, 5); savepoint s; delete from book where id > 150; rollback to s; commit;
select name, count(*), round(avg(price), 2), group_concat(title, ';') from book join author on author.id = author where year % 10 = 3 group by name having count(*) > 1 order by 3 desc;
select title, row_number() over (partition by author order by price) as place from book where id < 12 order by title limit 5 offset 1;
select * from recent where title like '%7%' intersect select title, name from book, author where author.id = book.author limit 3;
select json_extract('{"a":[1,{"b":"x"}]}', '$.a[1].b'), json_group_array(id) from book where id < 4;
select name, (select max(price) from book where author = author.id) from author where exists (select 1 from book where author = author.id and year between 1960 and 1970);
.mode csv
select id, title, hex(cover) from book order by price desc limit 3;
.mode insert book
select id, title from book limit 2;
.mode json
select id, cast(price as text) as p from book limit 2;
explain query plan select * from book where year = 1999 order by title;
pragma integrity_check;
reindex; vacuum; analyze;
select sum(a.id * b.id) from book a, book b where a.year = b.year;
