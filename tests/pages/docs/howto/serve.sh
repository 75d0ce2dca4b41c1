# SPDX-License-Identifier: Apache-2.0
# alone
needs curl go redis-server && loopback server && mkdir other .bin && lasting server && export PPROF_BROWSER=true &&
    stands system.slice/web.service "$(tail -1 /proc/self/cgroup | cut -d: -f3)" && stands seconds=30 seconds=1 &&
    stands /etc/cairn/token token && stands 0.0.0.0:6060 0.0.0.0:6061 && stands server:6060 server:6061 &&
    mount -t tmpfs none /run && mkdir -p /run/user/1000 && redis_recorded
# units of systemd: a socket that starts its service
mkdir -p .systemd && mount --bind .systemd /etc/systemd/system && ln -s "$SOURCE_DIR/examples" examples &&
    ln -s "$SOURCE_DIR/tests/tools/systemctl.py" .bin/systemctl
