#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes what the fuzzer NAME starts from: dev/fuzz-seeds.sh BUILD NAME DIRECTORY. Seeds of readers of
# recordings are cut from recordings of real programs, made once for all of them, in BUILD/fuzz/recorded; programs that are
# not there are left out. What is newer than the build stays.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
name=$2
mkdir -p "$3"
seeds=$(cd "$3" && pwd)
[ -z "$(find "$seeds.made" -newer "$build/cairn" 2>/dev/null)" ] || exit 0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cairn-seeds.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

logs=
record() {
    name_of_file=$1
    python=
    shift
    if [ "$1" = --python ]; then
        python=$1
        shift
    fi
    command -v "$1" >/dev/null || return 0
    "$build/cairn" run -q $logs $python -o "$name_of_file.cairn" "$@" >/dev/null 2>&1 || :
}

# One thread, several, children, a program that was killed, libraries that come and go.
record_programs() {
    echo 'int main() { return 0; }' >a.cc
    record python3 python3 -c 'import threading
thread = threading.Thread(target=lambda: [str(i) for i in range(99)])
thread.start(); thread.join()'
    record frames --python python3 -c 'import json
json.loads(json.dumps([1, {"a": [2]}]))'
    record sqlite3 sqlite3 :memory: 'create table t(a); insert into t values(1); select count(*) from t'
    record g++ g++ -c a.cc
    record killed sh -c 'ls; kill -9 $$'
    record threads "$build/tests/programs/threads" pipe
    record fork "$build/tests/programs/births" fork
    record modules "$build/tests/programs/dlopen_loop"
}

# The first fuzzer that wants them makes them, and the others that run beside it wait.
record_for_all() {
    recorded=$build/fuzz/recorded
    exec 9>"$recorded.lock"
    flock 9
    if [ -z "$(find "$recorded.made" -newer "$build/cairn" 2>/dev/null)" ]; then
        rm -rf "$recorded"
        mkdir "$recorded"
        (cd "$recorded" && record_programs) 9>&-
        touch "$recorded.made"
    fi
    exec 9>&-
    cd "$recorded"
}

recordings() { find . -name '*.cairn' -type f; }

# A core of a program with a few blocks, small enough for core_fuzz.c.
dump_core() {
    command -v gcore >/dev/null && command -v gcc >/dev/null || return 0
    cat >small.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static void **volatile kept;
int main(void) {
    kept = malloc(64);
    kept[0] = main;
    kept[1] = calloc(1, 24);
    kept[2] = calloc(1, 3000);
    free(malloc(2000));
    kept = malloc(32);
    kept[0] = calloc(1, 40);
    return pause();
}
END
    gcc -O1 -w -o small small.c || return 0
    ./small &
    until [ "$(cut -d ' ' -f 3 "/proc/$!/stat")" = S ]; do :; done
    gcore -o small "$!" >/dev/null 2>&1 || :
    kill "$!"
    find . -name 'small.*' -size -600k ! -name '*.c' -exec cp {} "$seeds/small" \;
}

# Small modules with their code from address 0x1000 on (symbol_fuzz.c, types_fuzz.c), one for each form of debug
# information.
compile() {
    file=$1
    compiler=$2
    shift 2
    command -v "$compiler" >/dev/null || return 0
    "$compiler" -O1 -fPIC -shared -nostdlib -fno-asynchronous-unwind-tables -Wl,--build-id=none \
        -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--hash-style=sysv -Wl,-Ttext-segment=0x1000 \
        "$@" -o "$seeds/$file" 2>/dev/null || :
}

compile_modules() {
    cat >one.c <<'END'
static volatile int sink;
static inline __attribute__((always_inline)) int deep(int x) { sink = x; return x * 3; }
static inline __attribute__((always_inline)) int inner(int x) { return deep(x) + deep(x + 1); }
struct entry { struct entry *next; void *value; struct hidden *hidden; char *names[]; } *table[8];
int outer(int x) { static struct entry *last; last = table[x & 7]; return inner(x) - 2 + !last; }
int other(int x) { while (x > 9) x = outer(x - 1); return x; }
END
    cat >two.cc <<'END'
namespace space {
template <class T> struct box {
    T value;
    T get(T x) const { auto f = [this](T y) { return y * value; }; return f(x) + f(x + 1); }
};
struct local { __attribute__((noinline)) static int call(int x) { box<int> b{x}; return b.get(x); } };
struct base { virtual int count() { return 1; } union { char *text; long number; }; };
struct list : base { list *next; box<const char *> items[2][3]; int bits : 3; enum { ONE } one; };
list head, *heads[4];
thread_local list *of_thread;
}
int use(int x) { return space::local::call(x); }
END
    for version in 2 3 4 5; do compile "c$version" gcc "-gdwarf-$version" one.c; done
    compile cxx g++ -g two.cc
    compile packed g++ -g -gz two.cc
    compile split gcc -g -gsplit-dwarf one.c
    compile clang clang -g one.c
    compile plain gcc one.c
    # the tables of Go
    for form in FORM=0xf0 FORM=0xf1 FORM=0xf1,--defsym,TEXTLESS=1; do
        gcc -static -nostdlib -no-pie -Wl,-Ttext-segment=0x1000 -Wl,-e,0 -Wl,--build-id=none -Wl,-z,noseparate-code \
            -Wa,--defsym,"$form" -o "$seeds/go$((number = ${number:-0} + 1))" "$top/tests/programs/go_table.s" || :
    done
    # the small symbol table that distributions pack into a stripped file
    if command -v xz >/dev/null && [ -f "$seeds/plain" ]; then
        objcopy --only-keep-debug "$seeds/plain" small && xz small
        strip -o stripped "$seeds/plain"
        objcopy --add-section .gnu_debugdata=small.xz stripped "$seeds/minidebug"
    fi
}

names() {
    for library in $(ldd "$build/cairn" | sed -n 's/.*=> \(.*\) (.*/\1/p'); do
        nm -D "$library" | sed -n 's/.* [TW] \([^@]*\).*/\1/p' | grep '^_Z' | head -5
    done
    nm -D "$(gcc -print-file-name=libstdc++.so)" | sed -n 's/.* [TW] \([^@]*\).*/\1/p' |
        awk 'NR % 200 == 0'
}

# Histories with steps, with small pages so that files are small.
make_histories() {
    command -v sqlite3 >/dev/null && command -v git >/dev/null || return 0
    for calls in 10 11 12 12 9; do
        printf 'parse %s 64\nfill_map %s 100\n' $calls $calls >plan
        "$build/cairn" check --series one.db --commit "c$((number = ${number:-0} + 1))" -- \
            "$build/tests/programs/planned" plan >/dev/null 2>&1 || :
    done
    sqlite3 one.db 'PRAGMA page_size=512; VACUUM'
    cp one.db "$seeds/one"
}

rm -rf "$seeds"
mkdir -p "$seeds"
case "$name" in
reader | report | export | web | merge)
    record_for_all
    recordings | xargs "$build/tests/reader_seeds" "$seeds"
    ;;
events)
    logs='--events'
    record_programs
    find . -name '*.events' -type f -size -200k -exec cp {} "$seeds" \;
    ;;
history) make_histories ;;
index)
    record_for_all
    for index in */index; do cp "$index" "$seeds/$(dirname "$index")"; done
    ;;
cfi) "$build/tests/cfi_seeds" "$seeds" ;;
symbol | types) compile_modules ;;
static) # of musl, which are small
    echo '#include <stdlib.h>
static __thread long here = 5, there;
int main(int n, char **words) {
    void *block = malloc(n * 10);
    here += there + !words;
    free(realloc(calloc(n, 3), 50));
    free(block);
    return (int)here;
}' >static.c
    start=/usr/lib/x86_64-linux-musl/rcrt1.o
    if command -v musl-gcc >/dev/null && [ -f "$start" ]; then
        musl-gcc -Os -static -Wl,-z,noseparate-code -o "$seeds/fixed" static.c
        musl-gcc -Os -g -fPIE -static -nostartfiles -Wl,-pie,--no-dynamic-linker,-z,text,-z,noseparate-code \
            "$start" -o "$seeds/anywhere" static.c
    fi
    ;;
core)
    "$build/tests/core_seeds" "$seeds"
    dump_core
    ;;
told) # what a report leaves in the cache are bundles of names
    record ls ls
    XDG_CACHE_HOME=$scratch/cache "$build/cairn" report ls.cairn >/dev/null 2>&1 || :
    find cache -type f -size -64k | while read -r bundle; do
        { printf b; cat "$bundle"; } >"$seeds/bundle.$(basename "$bundle")"
    done
    ;;
name)
    { names; names | c++filt; } | while read -r text; do
        printf '%s' "$text" >"$seeds/$(printf '%s' "$text" | cksum | cut -d' ' -f1)"
    done
    ;;
esac
if [ -d "$top/tests/fuzz/corpus/$name" ]; then cp "$top/tests/fuzz/corpus/$name"/* "$seeds"; fi
touch "$seeds.made"
