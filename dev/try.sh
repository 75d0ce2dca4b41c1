#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records a real program in a scratch directory and prints the report: dev/try.sh, or
# PROG='python3 -c "..."' dev/try.sh for a command of one's own (quoted as for a shell).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cairn-try.XXXXXX")

# Half a second to a second of work: a table, an index over it, and queries that sort and group.
write_example() {
    cat >"$1" <<'SQL'
create table walk(id integer primary key, place text, height real, note text);
insert into walk
  with recursive step(i) as (select 1 union all select i + 1 from step where i < 250000)
  select i, 'place ' || (i * 7919 % 5000), (i * 31 % 4810) / 1.5, hex(i * 2654435761) from step;
create index walk_by_place on walk(place, height);
create table summary as
  select place, count(*) as visits, avg(height) as mean, group_concat(note, ' ') as notes
  from walk group by place;
select count(*), round(avg(mean), 3), sum(length(notes)) from summary;
select place, visits, round(mean, 2) from summary order by notes limit 5;
SQL
}

if [ -n "${PROG:-}" ]; then
    eval "set -- $PROG"
else
    write_example "$scratch/walk.sql"
    set -- sqlite3 :memory: ".read $scratch/walk.sql"
fi
recording=$scratch/$(basename "$1").cairn
status=0
"$top/build/cairn" run -o "$recording" -- "$@" || status=$?
if [ -e "$recording" ]; then
    echo
    "$top/build/cairn" report --top 3 --view stacks "$recording"
fi
[ "$status" -eq 0 ] || echo "(the program ended with status $status)"
