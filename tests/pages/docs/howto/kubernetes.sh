# SPDX-License-Identifier: Apache-2.0
# alone
needs unshare nsenter && lasting server && mkdir .bin && ln -s "$SOURCE_DIR/examples" examples || return
# A container: processes, mounts and a /tmp of its own, whose first process is the server.
unshare --pid --mount --fork sh -c 'mount -t tmpfs none /tmp && mount -t proc proc /proc && exec ./server' &
until container=$(pgrep -P $! -x server); do sleep 0.05; done
export container
# kubectl, as far as the page has it: a debug container has the processes of the one it names, and a tree of its own.
cat >.bin/kubectl <<'END'
#!/bin/sh
[ "$1" = debug ] || exit 2
while [ "$1" != -- ]; do
    case $1 in --custom=*) [ -e "${1#*=}" ] || exit 1 ;; esac
    shift
done
shift
exec nsenter --target "$container" --pid unshare --mount sh -c 'mount -t proc proc /proc && exec cairn "$@"' sh "$@"
END
chmod +x .bin/kubectl
stands kubepods.slice/kubepods-burstable.slice/POD/CONTAINER "$(tail -1 /proc/self/cgroup | cut -d: -f3)"
