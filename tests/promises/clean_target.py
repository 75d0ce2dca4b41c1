#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library may not change in its process: descriptors, handlers, threads, environment beyond the
documented variables, working directory, errno at the start."""

import cairn_test as t

LOOK = r"""
import os, signal
fds = sorted(os.listdir('/proc/self/fd'), key=int)
links = []
for fd in fds:
    try:
        links.append((fd, os.readlink('/proc/self/fd/' + fd)))
    except OSError:
        pass  # the descriptor of the listing itself
status = open('/proc/self/status').read()
masks = [line for line in status.splitlines() if line.startswith(('Sig', 'Shd', 'Threads', 'Seccomp'))
         and not line.startswith('SigQ')]  # counts those of all the user's processes
print([fd for fd, link in links if not link.startswith(('pipe', '/dev/null', '/proc'))])
print(len(fds), masks, os.getcwd(), os.umask(0o77))
print(sorted(n for n in os.environ if not n.startswith('CAIRN_') and n not in ('LD_PRELOAD', '_')))
"""
ARGV = [t.PYTHON, "-c", LOOK]
plain = t.run(ARGV)
t.record(ARGV)[0].check_like("run", plain)
t.record_alone(ARGV)[0].check_like("preload alone", plain)

# A program that counts its descriptors by opening one sees the same number.
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap"]
seen = t.run(shell)
t.record(shell)[0].check_like("shell", seen)
t.finish()
