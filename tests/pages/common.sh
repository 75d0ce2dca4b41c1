# SPDX-License-Identifier: Apache-2.0
# What pages take for granted: read before each page's own file, in the page's directory (tests/tools/page_blocks.py).

export BROWSER=/bin/true

# examples/server.cc, built once for all pages, and under other names.
server_here() {
    cp "$SOURCE_DIR/examples/server.cc" .
    (
        flock 9
        [ -x "$SHARED/server" ] || g++ -O2 -g -o "$SHARED/server" server.cc
    ) 9>"$SHARED/lock"
    for name in server "$@"; do cp "$SHARED/server" "$name"; done
    DOC_PROGRAM=./server
}

# Its recording, under each of these names.
recorded() {
    cairn run -q -o "$1" ./server >/dev/null || return 1
    first=$1
    shift
    for name; do cp "$first" "$name"; done
}

# A process that waits, of a test's program that says "ready".
running() {
    mkfifo .ready .held
    exec 8<>.held
    "$BUILD_DIR/tests/programs/$1" <&8 >.ready &
    DOC_PID=$!
    read -r _ <.ready
}

# The same, recorded.
running_recorded() {
    mkfifo .ready .held
    exec 8<>.held
    cairn run -q -o held.cairn "$BUILD_DIR/tests/programs/$1" <&8 >.ready &
    read -r _ <.ready
    DOC_PID=$(pgrep -P $! -x "$1")
}

needs() {
    for tool; do
        command -v "$tool" >/dev/null || {
            echo "$tool is not installed"
            return 77
        }
    done
}
