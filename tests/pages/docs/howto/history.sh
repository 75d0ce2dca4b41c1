# SPDX-License-Identifier: Apache-2.0
git init -q . && mkdir src
commit() { git add -A . && git -c user.name=a -c user.email=a@b commit -qm "$1" --allow-empty; }
build() {
    printf '#include <stdlib.h>\n\n\nvoid parse(void) { for (int i = 0; i < %s; i++) free(malloc(64)); }\n' "$1" >src/parse.c
    printf '#include <stdlib.h>\nstatic void *volatile kept;\nvoid fill_map(void) {\n    for (int i = 0; i < %s; i++) kept = malloc(1000);\n}\n' "$2" >src/map.c
    printf 'void parse(void);\nvoid fill_map(void);\nint main(void) { parse(); fill_map(); return 0; }\n' >src/main.c
    printf 'all:\n\tgcc -g -O0 -o test_parser src/*.c\n' >Makefile
    printf 'test_parser\nmemory.db*\n.*\n' >.gitignore
    make -s && commit "$3" && cairn check --series memory.db -- ./test_parser >/dev/null
}
build 100 10 start && build 100 10 'say more' && build 101 10 'parse one more' && build 101 10 'words' || return 1
printf '#include <stdlib.h>\nstatic void *volatile kept;\nvoid fill_map(void) {\n    for (int i = 0; i < 30; i++) kept = malloc(1000);\n}\n' >src/map.c
make -s && commit 'make the map larger'
# the same with a commit between that was recorded and one that was not
git checkout -q HEAD~4 && make -s && cairn check --series gaps.db -- ./test_parser >/dev/null && git checkout -q - && make -s &&
    cairn check --series gaps.db -- ./test_parser >/dev/null && stands 'memory.db --build' 'gaps.db --build'
# a project of each runner; git does not see them
[ -n "$IS_WHOLE" ] || return 0
needs cmake ctest meson cargo || return
home=$(getent passwd "$(id -u)" | cut -d: -f6)
export RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup} CARGO_HOME=$PWD/.cargo
mkdir .bin && ln -s /usr/bin/python3 .bin
python3 -c 'import pytest' || return 77
printf '%s\n' build build-meson 'CMake*' meson.build 'Cargo*' target lib.rs tests >>.git/info/exclude
printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\nenable_testing()\nadd_test(NAME one COMMAND ls)\n' >CMakeLists.txt
printf "project('p', 'c')\ntest('one', find_program('ls'))\n" >meson.build
printf '[package]\nname = "p"\nversion = "0.1.0"\n[lib]\npath = "lib.rs"\n' >Cargo.toml
echo '#[test] fn one() { assert!(vec![1].len() == 1); }' >lib.rs
mkdir tests && echo 'def test_one(): assert [1]' >tests/test_one.py
printf '#include <gtest/gtest.h>\nTEST(One, Works) { EXPECT_TRUE(true); }\n' >.unit.cc
{ cmake -S . -B build && meson setup build-meson && g++ -o build/unit_tests .unit.cc -lgtest -lgtest_main -pthread; } >/dev/null 2>&1 &&
    stands '-C build' '-C build-meson'
