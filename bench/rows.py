# SPDX-License-Identifier: Apache-2.0
"""The rows of the benchmark: what is run. A row writes its input into the current directory and returns
the command line; `share` is the part of the work to do: 1, or REDUCED_SHARE for peers that would take
minutes for all of it. Inputs are made here and are the same in every run."""

import dataclasses
import json
import subprocess
from typing import Callable

import real_programs
from variants import BUILD, PLAIN, PRELOAD, RUN

REDUCED_SHARE = 0.05

# How a row is timed (runner.py): the whole process; figures that the program prints; requests to a
# server; many starts of a program that does nothing.
PROCESS, PARTS, SERVER, START = "process", "parts", "server", "start"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    group: str
    prepare: Callable  # share -> (argv, environment)
    kind: str = PROCESS
    figure: str = "least"  # of a PARTS row
    threads: int = 1  # that live at once
    variants: tuple = ()  # only these; all if empty
    requests: int = 0  # of a SERVER row, in all


PYTHON_CONTAINERS = """
import json
table = {}
for i in range(%d):
    key = i * 7919 %% 99991
    table.setdefault('place %%d' %% (key %% 997), []).append((key, [str(key), key + 1], {'height': key / 1.5}))
for rows in table.values():
    rows.sort(key=lambda row: (-row[2]['height'], row[0]))
print(len(table), sum(len(rows) for rows in table.values()), sorted(table)[:3])
"""


def python3(share, scale=1):
    """From a file: heaptrack cannot read back a command line with more than one line."""
    with open("containers.py", "w", encoding="ascii") as file:
        file.write(PYTHON_CONTAINERS % int(130000 * share * scale))
    return [real_programs.PYTHON, "containers.py"], {"PYTHONMALLOC": "malloc"}


def xmllint(share):
    real_programs.xmllint(max(1, int(60 * share)))
    return ["xmllint", "--xpath", "count(//place)", "walk.xml"], {}


def git_log(share):
    real_programs.git_log(max(2, int(160 * share)))
    return ["git", "--no-pager", "--git-dir=walk.git", "log", "main"], {}


def jq(share):
    def nested(depth):
        if depth == 0:
            return {"place": "stone", "heights": [depth, 31, 4810]}
        return {"level": depth, "inner": [nested(depth - 1), nested(depth - 1)]}
    with open("deep.json", "w", encoding="ascii") as file:
        json.dump([nested(9) for _ in range(max(1, int(60 * share)))], file)
    return ["jq", "-c", "[.. | .heights? // empty | add] | add", "deep.json"], {}


CXX_HEADERS = "algorithm array map memory string unordered_map vector".split()
CXX_USE = """bool use_%d(const std::string &s) {
    std::map<std::string, std::array<int, %d>> m; std::unordered_map<int, std::vector<std::array<char, %d>>> u;
    m[s][0]++; u[1].emplace_back(); std::sort(u[1].begin(), u[1].end());
    return m.size() + u.size() > %d;
}
"""


def cc1plus(share):
    """The compiler proper: heaptrack does not follow g++ into its children."""
    uses = int(12 * share)
    with open("unit.cc", "w", encoding="ascii") as source:
        # Of a small unit most would be headers.
        source.writelines(f"#include <{name}>\n" for name in (CXX_HEADERS if uses else CXX_HEADERS[-1:]))
        source.writelines(CXX_USE % (i, i + 2, i + 2, i) for i in range(uses))
    subprocess.run(["g++", "-std=c++17", "-E", "-o", "unit.ii", "unit.cc"], check=True)
    path = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                          check=True).stdout.strip()
    return [path, "-quiet", "-std=c++17", "-fpreprocessed", "-o", "/dev/null", "unit.ii"], {}


def scaled(prepare, scale):
    """One of real_programs, with so much work."""
    return lambda share: prepare(max(1, int(scale * share)))


REDIS_TESTS, REDIS_REQUESTS = "set,lpush,hset,zadd", 150000  # so many of each


def redis_requests(share):
    return (["redis-server", "--save", "", "--appendonly", "no"],
            {"BENCH_REQUESTS": str(int(REDIS_REQUESTS * share)), "BENCH_TESTS": REDIS_TESTS})


PROGRAMS = [
    Row("python3", "programs", python3),
    Row("sqlite3", "programs", scaled(real_programs.sqlite3, 20)),
    Row("xmllint", "programs", xmllint),
    Row("jq", "programs", jq),
    Row("perl", "programs", scaled(real_programs.perl, 20)),
    Row("git log", "programs", git_log),
    Row("cc1plus", "programs", cc1plus),
    Row("redis-server", "programs", redis_requests, SERVER, threads=5,
        requests=REDIS_REQUESTS * len(REDIS_TESTS.split(","))),
    Row("node", "programs", scaled(real_programs.node, 8), threads=11),
]


# Programs that nobody tuned anything to: they were chosen after the rest was built, for allocating more
# than five million times a second, or with more than 100,000 stacks in several threads (rustc), or from
# code without unwind information that is generated as it runs (php).

def gawk(share):
    """Words counted and joined."""
    return ["gawk", f"BEGIN {{ for (i = 1; i < {int(1.5e6 * share)}; i++) {{ k = \"place \" (i * 7919 % 997);"
            " t[k] = t[k] \"s\"; u[i] = k i } for (k in u) n += length(u[k]); print n }"], {}


def lua(share):
    """Small tables and strings, most of them soon garbage."""
    with open("stones.lua", "w", encoding="ascii") as file:
        file.write(f"local t = {{}}\nfor i = 1, {int(3e6 * share)} do t[i % 997] = {{i, 'stone ' .. i, h = i / 1.5}} "
                   "end\nprint(#t)\n")
    return ["lua5.4", "stones.lua"], {}


def bc(share):
    """A number cruncher: every intermediate number is a block."""
    with open("sum.bc", "w", encoding="ascii") as file:
        file.write(f"scale = 12\nfor (i = 1; i < {int(6e5 * share)}; i++) {{ s += 1 / i; s = s * 1.0001; "
                   "if (s > 50) s = s - 17.3; }\ns\nquit\n")
    return ["bc", "-l", "sum.bc"], {}


def php(share):
    """Its own allocator off, as its developers do under a profiler; its code compiled as it runs."""
    with open("stones.php", "w", encoding="ascii") as file:
        file.write(f"<?php $t = []; for ($i = 1; $i < {int(1.2e6 * share)}; $i++) $t['place ' . ($i * 7919 % 997)][] = "
                   "['id' => $i, 'name' => 'stone ' . $i, 'h' => $i / 1.5]; echo count($t), PHP_EOL;\n")
    return (["php", "-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=tracing",
             "-d", "memory_limit=-1", "stones.php"], {"USE_ZEND_ALLOC": "0"})


RUST_HEAD = """use std::collections::{BTreeMap, HashMap};
#[derive(Debug, Clone, PartialEq)] struct Stone { id: u32, name: String, at: BTreeMap<u32, f64> }
"""
RUST_FUNCTION = """fn f%d(m: &mut HashMap<String, Vec<Stone>>) -> usize {
    let at: BTreeMap<u32, f64> = (0..%d).map(|i| (i, i as f64 * 1.5)).collect();
    let s = Stone { id: %d, name: format!("stone {:?}", at), at };
    m.entry(s.name.clone()).or_default().push(s); m.values().flatten().filter(|s| s.id > %d).count()
}
"""


def rustc(share):
    """The compiler with two code generation units, so that threads of its own allocate."""
    count = max(1, int(24 * share))
    with open("stones.rs", "w", encoding="ascii") as file:
        file.write(RUST_HEAD + "".join(RUST_FUNCTION % (i, i, i, i) for i in range(count)))
        calls = " + ".join(f"f{i}(&mut m)" for i in range(count))
        file.write(f'fn main() {{ let mut m = HashMap::new(); println!("{{}}", {calls}); }}\n')
    return ["/usr/bin/rustc", "-O", "-C", "codegen-units=2", "--emit=obj", "stones.rs"], {}


NEW_PROGRAMS = [
    Row("gawk", "new programs", gawk),
    Row("lua", "new programs", lua),
    Row("bc", "new programs", bc),
    Row("php, its JIT compiler", "new programs", php),
    Row("rustc, several threads", "new programs", rustc, threads=6),
]


def own(name, *numbers):
    """An own program; numbers that are floats are shared out, others stay."""
    def prepare(share):
        words = [str(int(n * share)) if isinstance(n, float) else str(n) for n in numbers]
        return [str(BUILD / "bench" / name), *words], {}
    return prepare


def pairs(mode, depth, stacks, count, threads=1):
    many = {"one": "one stack", "ring": "ring of 1,000 live blocks", "never": "stacks that never repeat",
            "walk": f"{stacks:,} stacks in walk order", "random": f"{stacks:,} random stacks"}[mode]
    name = f"{many}, depth {depth}" + (f", {threads} threads" if threads > 1 else "")
    return Row(name, "pairs", own("pairs", mode, depth, stacks, float(count), threads), PARTS,
               # Where every stack is new, growth is part of the cost and lies in single parts.
               "mean" if mode == "never" else "least", threads)


PAIRS = [
    *(pairs("one", depth, 1, 1e6) for depth in (5, 20, 60, 200)),
    *(pairs("walk", depth, 256, 1e6) for depth in (5, 20, 60, 200)),
    pairs("ring", 20, 1, 1e6),
    *(pairs("random", depth, 1024, 4e5) for depth in (20, 60)),
    *(pairs("never", depth, 1, 3e5) for depth in (20, 60)),
    *(pairs("walk", 20, 1024, 1e6, threads) for threads in (1, 2)),
    pairs("walk", 20, 1024, 2e5, 16),
]

THREADS_AND_TREES = [
    Row("16 threads with std::list", "own", own("lists", 16, 1e6), threads=17),
    Row("producer and consumer", "own", own("handover", 5e6), threads=2),
    Row("C++ trees, millions of stacks", "own", own("trees", 2e5)),
    Row("100,000 short threads", "own", own("short_threads", 1e5), PARTS, "middle", threads=2),
    Row("start of /bin/true", "own", lambda share: (["/bin/true"], {}), START),
    Row("start of python3", "own", lambda share: ([real_programs.PYTHON, "-c", "pass"], {}), START),
]

LONG_VARIANTS = (PLAIN, PRELOAD, RUN)
LONG = [
    Row("python3, 5 s", "long", lambda share: python3(share, 8), variants=LONG_VARIANTS),
    Row("sqlite3, 5 s", "long", scaled(real_programs.sqlite3, 150), variants=LONG_VARIANTS),
]

ROWS = PROGRAMS + NEW_PROGRAMS + PAIRS + THREADS_AND_TREES + LONG
