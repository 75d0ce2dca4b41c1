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

# TEXT of the page's commands stands for OTHER: stands TEXT OTHER.
stands() {
    printf '%s\t%s\n' "$1" "$2" >>.stands
}

# A program that goes on by itself, until the page's directory goes, under each of these names.
lasting() {
    cat >.lasting.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[1500], *volatile gone;
int main(void) {
    for (int i = 0; i < 1500; i++) kept[i] = malloc(4000);
    for (int i = 0; !access(".lasting.c", F_OK); i++) {
        free(kept[i % 1500]);
        kept[i % 1500] = malloc(4000);
        usleep(10000);
    }
    return 0;
}
END
    for name; do gcc -g -O0 -o "$name" .lasting.c || return 1; done
}

# Of a page that is alone: its loopback interface is up, and has these names.
loopback() {
    python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))'
    echo "127.0.0.1 localhost $*" >.hosts && mount --bind .hosts /etc/hosts
}

# A redis that is recorded, on its usual port or another one.
redis_recorded() {
    needs redis-server redis-cli && begun "cairn run -q -o redis.cairn redis-server --save '' $*" 'cairn ctl redis-server status'
}

# COMMAND in the background; back when CONDITION ends well, or the command has ended. Prints what it printed.
begun() {
    [ -z "${!DOC_*}" ] || export ${!DOC_@}
    setsid bash -c "$1" </dev/null >.printed 2>&1 &
    begun=$!
    until (eval "$2") >/dev/null 2>&1; do
        kill -0 "$begun" 2>/dev/null || return 0
        sleep 0.05
    done
}

goes_on() {
    begun "$1" "$2"
    kill -0 "$begun" 2>/dev/null || wait "$begun"
    set -- $?
    cat .printed
    return "$1"
}

# The status of cairn; of another program only if it did not go on that long.
ended() {
    begun "$1" "$2"
    went_on=
    kill -TERM -- "-$begun" 2>/dev/null && went_on=1
    # some lose a signal that comes while they begin
    while sleep 3; do kill -TERM -- "-$begun"; done 2>/dev/null &
    again=$!
    wait "$begun"
    set -- "$1" $?
    { kill "$again" && wait "$again"; } 2>/dev/null
    cat .printed
    case $went_on$1 in
    cairn\ * | 1cairn\ * | 1*\ cairn\ *) return "$2" ;;
    1*) return 0 ;;
    esac
    return "$2"
}
