# SPDX-License-Identifier: Apache-2.0
# alone
# A service in a cgroup of its own: it grows until evidence of it is there, and then until it is killed.
cat >shopd.c <<'END' && gcc -g -O0 -o shopd shopd.c && gcc -g -O0 -DWAITS -o helper shopd.c || return
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct session { struct session *next; char room[1000]; } *all_sessions;
int main(void) {
#ifdef WAITS
    for (;;) pause();
#endif
    bool is_seen = false;
    for (long bytes = 0;; bytes += 1016) {
        struct session *one = malloc(sizeof *one);
        memset(one, 1, sizeof *one);
        one->next = all_sessions;
        all_sessions = one;
        if (bytes % (50 * 1016) == 0) usleep(1000);
        while (!is_seen && bytes > 112 << 20) {
            is_seen = !system("grep -q 'not recorded from now on' /var/lib/oom/oom.log");
            usleep(20000);
        }
    }
}
END
cgroups=/sys/fs/cgroup
[ -e $cgroups/memory ] && cgroups=/sys/fs/cgroup/memory
group=cairn-page-$(cut -d' ' -f4 /proc/self/stat)-$RANDOM
if mkdir "$cgroups/$group" && { echo 128M >"$cgroups/$group/memory.limit_in_bytes" || echo 128M >"$cgroups/$group/memory.max"; } 2>/dev/null
then
    memory_cgroup() { :; }
    for program in ./helper ./helper ./shopd; do sh -c "echo 0 >$cgroups/$group/cgroup.procs; exec $program" & done
    # It goes when its processes are gone, and the watch with it.
    (cd "$cgroups" && until pgrep -x shopd; do sleep 0.05; done && while pgrep -x shopd; do sleep 0.05; done
     pkill -x helper; until rmdir "$group"; do sleep 0.05; done) >/dev/null 2>&1 &
    mkdir .cgroup .lib && mount --bind "$cgroups/$group" .cgroup && mount -t tmpfs none /sys/fs/cgroup &&
        mkdir -p /sys/fs/cgroup/system.slice/shop.service && mount --bind .cgroup /sys/fs/cgroup/system.slice/shop.service &&
        umount .cgroup && mount -t tmpfs none /var/lib
else
    rmdir "$cgroups/$group"
fi
