#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a service's memory `cairn report --cgroup` names: bench/cgroups.py [NAME...]. Each service runs in a cgroup
of its own (as root) and is looked at after a load, while it goes on. Named is what is in a part other than `not_known`, and
of anonymous memory in a kind other than `heap` and of a process that was read. Services that are not installed are left out."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import remedies
from remedies import CAIRN, MIB, get

WANTED = 98  # percent
JAVA = """
import com.sun.net.httpserver.*; import java.net.*; import java.util.*;
public class S { public static void main(String[] x) throws Exception {
  var kept = new ArrayList<byte[]>(); for (int i = 0; i < 50000; i++) kept.add(new byte[1000]);
  var s = HttpServer.create(new InetSocketAddress(7401), 0);
  s.createContext("/", e -> { var b = new byte[100000]; e.sendResponseHeaders(200, b.length); e.getResponseBody().write(b); e.close(); });
  s.start(); } }
"""
RUBY = ("require 'socket'; kept = (1..100000).map { |i| \"s#{i}\" * 3 }; s = TCPServer.new(7402); "
        "loop { c = s.accept; c.write(\"HTTP/1.0 200 OK\\r\\n\\r\\n\" + 'x' * 1000); c.close }")
SERVICES = {
    **remedies.SERVERS,
    "java (http)": (["java", "-Xmx200m", "{place}/S.java"], lambda place: get(7401, times=500)),
    "ruby (http)": (["ruby", "-e", RUBY], lambda place: get(7402, times=500)),
}
FILES = {**remedies.FILES, "S.java": JAVA}


def make_cgroup(name):
    for mount, used in (("/sys/fs/cgroup/memory", "memory.usage_in_bytes"), ("/sys/fs/cgroup", "memory.current")):
        path = f"{mount}/cairn-bench-{name.split()[0]}-{os.getpid()}"
        if os.path.isdir(mount):
            os.mkdir(path)
            if os.path.exists(f"{path}/{used}"):
                return path
            os.rmdir(path)
    sys.exit("no cgroup with memory can be made")


def enter(path):
    with open(f"{path}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
    os.setsid()


def end(path, process):
    for _ in range(100):
        with open(f"{path}/cgroup.procs") as procs:
            pids = procs.read().split()
        if not pids:
            break
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        process.poll()
        time.sleep(0.1)
    process.wait()
    os.rmdir(path)


def look(name, place):
    path = make_cgroup(name)
    command = [word.replace("{place}", place) for word in SERVICES[name][0]]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place,
                               preexec_fn=lambda: enter(path))
    time.sleep(2)
    SERVICES[name][1](place)
    start = time.monotonic()
    answer = json.loads(subprocess.run([CAIRN, "report", "--json", "--cgroup", path], capture_output=True, check=True).stdout)
    took = time.monotonic() - start
    end(path, process)
    used = answer["used_bytes"]
    unnamed = answer["parts"]["not_known"] + answer["anonymous_unread_bytes"] + answer["anonymous"]["heap"]
    share = 100 * (1 - unnamed / used)
    parts = sorted(((bytes or 0, part) for part, bytes in [*answer["parts"].items(), *answer["anonymous"].items()]
                    if part not in ("anonymous", "not_known")), reverse=True)
    largest = ", ".join(f"{part} {bytes / MIB:.1f}" for bytes, part in parts[:3])
    print(f"| {name} | {len(answer['processes'])} | {used / MIB:.1f} | {share:.1f} | {answer['over_bytes'] / MIB:.2f} | "
          f"{answer['anonymous_elsewhere_bytes'] / MIB:.2f} | {largest} | {1000 * took:.0f} |", flush=True)
    return share >= WANTED


def main():
    results = []
    print("| service | processes | used, MiB | named, % | over | elsewhere | the largest, MiB | took, ms |")
    print("|---|--:|--:|--:|--:|--:|---|--:|")
    for name in sys.argv[1:] or SERVICES:
        if not shutil.which(SERVICES[name][0][0]):
            continue
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)  # for servers that become another user
            for file, text in FILES.items():
                with open(f"{place}/{file}", "w") as out:
                    out.write(text.replace("{place}", place))
            if name == "mariadbd":
                remedies.shell("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={place}/my",
                               "--auth-root-authentication-method=normal")
            results.append(look(name, place))
    print(f"\n{sum(results)} of {len(results)} with {WANTED} % or more named")


if __name__ == "__main__":
    main()
