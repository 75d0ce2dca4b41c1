#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests, or those that are named, under circumstances that machines of users have and ours does not:
#     dev/check-anywhere.sh BUILD ['CONDITION ...' [TEST-PART ...]]        '': every condition
# What is to be tested has been built. A condition is a row of the table: its name, the command before the
# test runner's, and with `!` the parts of names of tests that cannot be made there: browsers need more descriptors
# and threads; below a seccomp filter nothing is attached to, and the library keeps from calls that might be punished.
# A condition that needs root or what this machine lacks is skipped, with its reason. Ends with status 1 if a test
# failed in any of them.
set -u
cd "$(dirname "$0")/.."
top=$(pwd)
build=$1
wanted=${2:-}
[ $# -lt 2 ] && shift || shift 2

conditions() {
    cat <<TABLE
one-processor      taskset -c 0
busy               beside_hogs nice -n 5
few-resources      as_user games prlimit --nofile=128 --nproc=512 !export_flamegraph !export_speedscope !export_valgrind !open_
low-pids           with_pids first
high-pids          with_pids last
deep-path          at_depth
blanks             at_blanks
ordinary-user      as_user nobody
turkish            in_turkish
far-away           env TZ=Pacific/Kiritimati
old-kernel         $build/tests/without_calls !attach !core_live !names_kept !namespaces !own_allocator !process_names !confined !tool_death !own_calls
TABLE
}

work=$(mktemp -d "${TMPDIR:-/tmp}/cairn-anywhere.XXXXXX")
chmod 755 "$work"
hogs=
finish() {
    for pid in $hogs; do kill "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Each takes the command that runs the tests.
beside_hogs() {
    for _ in $(seq "$(nproc)"); do
        sh -c 'while :; do :; done' &
        hogs="$hogs $!"
    done
    "$@"
    status=$?
    for pid in $hogs; do kill "$pid"; done
    hogs=
    return $status
}

# The tree is seen at another place as well; nobody else sees it there.
at() {
    seen_at=$1
    shift
    mkdir -p "$seen_at" &&
        unshare -m sh -c 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"' sh "$top" "$seen_at" "$@"
}
# The same, where a user may write: all of it is the user's, and what is written lies elsewhere.
at_for() {
    owner=$1
    seen_at=$2
    shift 2
    mkdir -p "$seen_at" "$work/upper$owner" "$work/work$owner" && chown "$owner" "$work/upper$owner" &&
        unshare -m sh -c 'mount -t overlay overlay -o "metacopy=on,lowerdir=$1,upperdir=$2,workdir=$3" "$4" && cd "$4" &&
            chown -R "$5" . && shift 5 && exec "$@"' sh "$top" "$work/upper$owner" "$work/work$owner" "$seen_at" "$owner" "$@"
}
at_blanks() { at "$work/a place/with blanks in it" "$@"; }
at_depth() { at "$work/$(seq -s / 100000 100060)" "$@"; }

as_user() {
    user=$1
    shift
    mkdir -p "$work/home$user" && chown -R "$user" "$logs" "$work/home$user" &&
        at_for "$user" "$work/tree" setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
            env HOME="$work/home$user" SHELL=/bin/sh PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"
}

# `first` or `last`: where the kernel begins to count anew soon.
with_pids() {
    unshare -fp --mount-proc sh -c 'last=/proc/sys/kernel/ns_last_pid
        if [ "$1" = last ]; then echo $(($(cat /proc/sys/kernel/pid_max) - 500)) >$last || exit; fi
        shift; "$@"; exit $?' sh "$@"
}

in_turkish() {
    mkdir -p "$work/locales"
    [ -d "$work/locales/tr_TR.UTF-8" ] || localedef -i tr_TR -f UTF-8 "$work/locales/tr_TR.UTF-8"
    LOCPATH=$work/locales LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 "$@"
}

why_not() {
    case $1 in
    few-resources | low-pids | high-pids | deep-path | blanks | ordinary-user)
        [ "$(id -u)" -eq 0 ] || echo "needs root"
        ;;
    turkish) [ -e /usr/share/i18n/locales/tr_TR ] || echo "the locale tr_TR is not installed" ;;
    esac
    case $1 in
    high-pids) [ -e /proc/sys/kernel/ns_last_pid ] || echo "the kernel has no ns_last_pid" ;;
    esac
}

run_tests() {
    name=$1 command=$2 except=$3
    shift 3
    logs=$top/$build/anywhere/$name
    mkdir -p "$logs"
    # shellcheck disable=SC2086
    $command python3 dev/run-tests.py --no-build --build-dir "$build" --logs "$logs" $except "$@"
}

# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- unit/ promises/ e2e/
conditions >"$work/conditions"
while IFS= read -r row <&3; do
    name=${row%% *} command= except=
    case " $wanted " in "  " | *" $name "*) ;; *) continue ;; esac
    for word in ${row#* }; do
        case $word in
        !*) except="$except --except ${word#!}" ;;
        *) command="$command $word" ;;
        esac
    done
    reason=$(why_not "$name")
    echo "== $name:${reason:+ skipped: }${reason:-$command}"
    if [ -n "$reason" ]; then
        echo "$name: skipped: $reason" >>"$work/results"
    elif run_tests "$name" "$command" "$except" "$@" >"$work/output" 3<&-; then
        echo "$name: $(tail -1 "$work/output")" >>"$work/results"
        grep '^skipped: ' "$work/output"
    else
        echo "$name: $(tail -1 "$work/output")" >>"$work/results"
        echo "$name" >>"$work/failed"
        grep -v '^ok ' "$work/output"
    fi
done 3<"$work/conditions"
echo
cat "$work/results"
[ ! -e "$work/failed" ] || exit 1
