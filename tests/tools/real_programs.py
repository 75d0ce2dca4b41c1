# SPDX-License-Identifier: Apache-2.0
"""Real programs with inputs that are made here, the same in every run. Each entry is a function that
writes its input into the current directory and returns the command line (and sometimes environment)."""

import json
import os
import subprocess

from cairn_test import PYTHON

SQL = """create table walk(id integer primary key, place text, height real, note text);
insert into walk with recursive step(i) as (select 1 union all select i + 1 from step where i < {rows})
  select i, 'place ' || (i * 7919 % 500), (i * 31 % 4810) / 1.5, hex(i * 2654435761) from step;
create index walk_by_place on walk(place, height);
select place, count(*), round(avg(height), 3), length(group_concat(note)) from walk group by place
  order by 4, 1 limit 20;
"""


def sqlite3(scale=1):
    with open("walk.sql", "w", encoding="ascii") as file:
        file.write(SQL.format(rows=20000 * scale))
    return ["sqlite3", ":memory:", ".read walk.sql"], {}


PYTHON_WORK = """
words = {}
for i in range(%d):
    words.setdefault('w%%d' %% (i * 7919 %% 997), []).append(str(i) * 3)
print(len(words), sum(len(''.join(w)) for w in words.values()))
"""


def python3(scale=1):
    return [PYTHON, "-c", PYTHON_WORK % (30000 * scale)], {"PYTHONMALLOC": "malloc"}


PERL_WORK = ("my %%h; for my $i (1..%d) { push @{$h{$i * 7919 %% 997}}, 'x' x ($i %% 50) } "
             "my $t = 0; $t += length join ',', @{$h{$_}} for sort keys %%h; "
             "print scalar(keys %%h), ' ', $t, qq(\\n);")


def perl(scale=1):
    return ["perl", "-e", PERL_WORK % (60000 * scale)], {"PERL_HASH_SEED": "0"}


def xmllint(scale=1):
    with open("walk.xml", "w", encoding="ascii") as file:
        file.write("<walk>\n")
        for i in range(8000 * scale):
            file.write(f'<place id="{i}"><name>stone {i % 97}</name><height>{i * 31 % 4810}</height>'
                       f"</place>\n")
        file.write("</walk>\n")
    return ["xmllint", "--xpath", "count(//place[height > 2000])", "walk.xml"], {}


def jq(scale=1):
    with open("walk.json", "w", encoding="ascii") as file:
        json.dump([{"id": i, "place": f"place {i % 97}", "height": i * 31 % 4810}
                   for i in range(6000 * scale)], file)
    return ["jq", "-c", "group_by(.place) | map({place: .[0].place, sum: map(.height) | add}) | .[:5]",
            "walk.json"], {}


def git_log(scale=1):
    count = 300 * scale
    if not os.path.isdir("walk.git"):
        subprocess.run(["git", "init", "-q", "--bare", "walk.git"], check=True)
        lines = []
        for i in range(count):
            text = f"stone {i}\n" * (i % 7 + 1)
            lines.append(f"commit refs/heads/main\ncommitter Walker <walker@example.org> {1600000000 + i}"
                         f" +0000\ndata {len(text)}\n{text}\nM 100644 inline stones/{i % 20}\n"
                         f"data {len(text)}\n{text}\n")
        subprocess.run(["git", "--git-dir=walk.git", "fast-import", "--quiet"],
                       input="".join(lines).encode(), check=True)
    shown = "--stat" if scale == 1 else "--patch"
    return ["git", "--no-pager", "--git-dir=walk.git", "log", shown, "main"], {}


CXX_WORK = """#include <map>
#include <string>
#include <vector>
#include <algorithm>
#include <iostream>
int main() {
    std::map<std::string, std::vector<int>> walk;
    for (int i = 0; i < 1000; i++) walk[std::to_string(i % 97)].push_back(i);
    std::cout << walk.size() << std::endl;
}
"""


def gxx(scale=1):
    del scale
    with open("walk.cc", "w", encoding="ascii") as file:
        file.write(CXX_WORK)
    return ["g++", "-O1", "-g", "-o", "walk-program", "walk.cc"], {}


NODE_WORK = ("const m = new Map(); for (let i = 0; i < %d; i++) {"
             " const k = 'w' + i * 7919 %% 997; m.set(k, (m.get(k) || []).concat(i %% 7)); }"
             " console.log(m.size, JSON.stringify([...m]).length);"
             " console.log(require('zlib').gzipSync(Buffer.alloc(1 << 20, 'walk')).length > 100);")


def node(scale=1):
    return ["node", "-e", NODE_WORK % (60000 * scale)], {}


SINGLE = {"sqlite3": sqlite3, "python3": python3, "perl": perl, "xmllint": xmllint, "jq": jq,
          "git-log": git_log}
EVERY = {**SINGLE, "g++": gxx, "node": node}
