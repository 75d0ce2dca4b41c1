# SPDX-License-Identifier: Apache-2.0
# A program that works when it is asked to, recorded (PID) and not, and one that clang's XRay can instrument.
cat >waits.c <<'END' && gcc -g -O1 -fno-omit-frame-pointer -o waits waits.c || return
#include <stdio.h>
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 300; i++) {
        kept = realloc(calloc(10, 10), 3000);
        free(kept);
        kept = malloc(i % 10 ? 1000 : 2 << 20);
        if (i % 3) free(kept);
    }
}
int main(void) {
    do {
        puts("ready");
        fflush(stdout);
        while (getchar() != '\n') {}
        work();
    } while (1);
}
END
# The kernel sets a tracer's probes in all processes that have the file, and valgrind would execute them in another test.
tool=$(dirname "$(command -v cairn)")
mkdir .tool && cp "$tool"/cairn "$tool"/libcairn*.so .tool && PATH=$PWD/.tool:$PATH || return
mkfifo .asked .ready .asked.plain .ready.plain && exec 5<>.asked.plain 6<>.ready.plain 8<>.asked 9<>.ready || return
cairn run -q --sample --rate 64K -o held.cairn ./waits <&8 >&9 &
# bpftrace sets those of libc in all processes, -p or not: this one has a libc of its own.
mkdir .libc && cp "$(ldd ./waits | awk '/libc.so.6/ { print $3 }')" .libc || return
LD_LIBRARY_PATH=$PWD/.libc ./waits <&5 >&6 &
plain=$!
read -r _ <&9 && read -r _ <&6
DOC_PID=$(pgrep -P "$(jobs -p %1)" -x waits)
export L=$PWD/.tool/libcairn.so
# each of them works once
work() {
    echo >.asked && read -r _ <.ready && echo >.asked.plain && read -r _ <.ready.plain
}
attached_and_worked() {
    [ "$(cat "/proc/$begun/comm")" = bpftrace ] && grep -qs Attaching .printed heap.trace && work &&
        { [ ! -e heap.trace ] || grep -q 'cairn trace' heap.trace; }
}
export -f work
mkdir .bin examples && sed "s,:libc:,:$PWD/.libc/libc.so.6:,g" "$SOURCE_DIR/examples/malloc.bt" >examples/malloc.bt
printf '#!/bin/sh\nexec 7<&-\nexec "%s" -B line "$@" 2>&1\n' "$(command -v bpftrace)" >.bin/bpftrace && chmod +x .bin/bpftrace
stands 'sudo bpftrace -l' 'bpftrace -l' && stands /usr/local/lib/cairn/libcairn.so "$L" && stands /proc/PID "/proc/$plain" &&
    stands 'record -p PID' "record -p $plain" && stands ' -o heap.data' ' -o heap.data -- bash -c work' &&
    stands 'malloc.bt PID' "malloc.bt $plain"
# The kernel's probes have one name for all: this page and e2e/tracers take turns.
if [ "$(id -u)" = 0 ] && [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ]; then
    exec 7<"$BASH" && flock 7 && kernel_probes() { :; }
fi
cat >prog.cc <<'END'
#include <cstdlib>
__attribute__((noinline)) void *my_alloc(size_t bytes) { return malloc(bytes); }
__attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) free(my_alloc(100 + i)); }
int main() { fill(100); return 0; }
END
printf '[always]\nfun:*my_alloc*=arg1\n' >xray.list
g++ -g -O1 -o prog prog.cc || return
clang++ -fxray-instrument -fxray-attr-list=xray.list -o .xray prog.cc 2>/dev/null && xray() { :; }
