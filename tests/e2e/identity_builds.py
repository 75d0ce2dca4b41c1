#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs stay themselves, part two: compilers under make -j2, cmake, git, gdb. Object files,
programs, debug information and repositories are the same to the byte. make with clang and cmake are left to `make check-long`."""

import re

import identity
import cairn_test as t

t.need("gcc", "g++", "clang", "make", "cmake", "git", "gdb")
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
FILES = 6

C_FILE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "walk.h"
struct stone{i} {{ int height; char name[{i} + 8]; struct stone{i} *next; }};
int walk_{i}(int rounds) {{
    struct stone{i} *first = NULL;
    int sum = 0;
    for (int n = 0; n < rounds; n++) {{
        struct stone{i} *stone = malloc(sizeof *stone);
        snprintf(stone->name, sizeof stone->name, "s%d", n * {i});
        *stone = (struct stone{i}){{n * {i} % 481, "", first}};
        first = stone;
    }}
    while (first) {{
        struct stone{i} *next = first->next;
        sum += first->height;
        free(first);
        first = next;
    }}
    return sum;
}}
"""
CXX_FILE = """#include <algorithm>
#include <map>
#include <string>
#include <vector>
extern "C" {
#include "walk.h"
}
extern "C" int walk_sorted(int rounds) {
    std::map<std::string, std::vector<int>> walk;
    for (int i = 0; i < rounds; i++) walk[std::to_string(i % 97)].push_back(walk_1(i));
    for (auto &entry : walk) std::sort(entry.second.rbegin(), entry.second.rend());
    return walk.begin()->second.front();
}
"""
MAIN = """#include <stdio.h>
#include "walk.h"
int main(void) {{
    int sum = walk_sorted(300);
    {calls}
    printf("%d\\n", sum);
    return 0;
}}
"""
MAKEFILE = """OBJECTS := main.o sorted.o $(patsubst %,walk%.o,{numbers})
program: $(OBJECTS)
\t$(CXX) -o $@ $^
%.o: %.c walk.h
\t$(CC) -O2 -g -Wall -c -o $@ $<
%.o: %.cc walk.h
\t$(CXX) -O2 -g -Wall -c -o $@ $<
"""
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(walk C CXX)
include(CheckFunctionExists)
check_function_exists(malloc_usable_size HAS_USABLE_SIZE)
add_executable(program main.c sorted.cc {files})
"""


def fill(place):
    numbers = range(1, FILES + 1)
    names = [f"walk_{i}" for i in numbers]
    (place / "walk.h").write_text("".join(f"int {name}(int);\n" for name in [*names, "walk_sorted"]))
    for i in numbers:
        (place / f"walk{i}.c").write_text(C_FILE.format(i=i))
    (place / "sorted.cc").write_text(CXX_FILE)
    source = MAIN.format(calls="\n    ".join(f"sum += {name}(100);" for name in names))
    (place / "main.c").write_text(source)
    (place / "Makefile").write_text(MAKEFILE.format(numbers=" ".join(map(str, numbers))))
    (place / "CMakeLists.txt").write_text(
        CMAKE.format(files=" ".join(f"walk{i}.c" for i in numbers)))


# Lines of two jobs come in any order.
def sorted_lines(text):
    return b"\n".join(sorted(text.split(b"\n")))


GIT = """
    git init -q -b main walk && cd walk && git config gc.auto 0 && git config pack.threads 1
    cp ../*.c* ../walk.h . && git add . && git commit -q -m first
    for i in 1 2 3 4 5; do echo "int more_$i;" >>walk$i.c && git commit -q -a -m "stone $i"; done
    git checkout -q -b side HEAD~3 && echo 'int side;' >>main.c && git commit -q -a -m side
    git checkout -q main && git merge -q -m merged side && git rebase -q --onto HEAD~2 HEAD~1 side
    git log --graph --stat --all && git blame -s walk3.c | tail -3 && git diff main~3 --word-diff
    git gc -q --prune=now && git fsck --strict && git count-objects -v && git rev-parse HEAD side
    git clone -q . ../copy && git -C ../copy log --oneline | sha256sum && git archive main | sha256sum
"""
GDB = ["gdb", "-nx", "-batch", "-ex", "break walk_3", "-ex", "run", "-ex", "bt", "-ex", "info args",
       "-ex", "delete", "-ex", "continue", "-ex", "ptype struct stone3", "./program"]


def fill_program(place):
    fill(place)
    made = t.run(["make", "-s", "-j2", "CC=gcc", "CXX=g++"], cwd=place)
    t.check_equal("program for gdb", made.status, 0)


for name, (cc, cxx) in COMPILERS.items() if t.IS_LONG else [("gcc", COMPILERS["gcc"])]:
    make = ["make", "-j2", f"CC={cc}", f"CXX={cxx}"]
    identity.compare(f"make with {name}", make, prepare=fill, see=sorted_lines)
identity.compare("compile error", ["gcc", "-c", "-x", "c", "CMakeLists.txt"], prepare=fill, status=1)
if t.IS_LONG:  # what cmake tries out lies in directories with random names, which its log names
    identity.shell("cmake", "cmake -S . -B made -DCMAKE_BUILD_TYPE=Debug"
                   " && cmake --build made -j2 >/dev/null && made/program",
                   prepare=fill, ignored=("made/CMakeFiles/*.log", "made/CMakeFiles/*.yaml"))
# The index holds the times of the files.
identity.shell("git", GIT, prepare=fill, ignored=("*/.git/index",))
identity.compare("gdb", GDB, prepare=fill_program, ignored=("*.o", "program"),
                 see=lambda text: re.sub(rb"process \d+", b"process PID", text))
t.finish()
