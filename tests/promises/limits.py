#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the process do not become its death: small address space, small files, few descriptors, no
locked memory, a full disk for the recording."""

import resource
import subprocess

import cairn_test as t

KIB, MIB = 1 << 10, 1 << 20


def with_limit(name, kind, value, how):
    argv = t.program("leak")
    path = t.fresh_path("limited") + ".cairn"
    if how == "run":
        command, env = [t.CAIRN, "run", "-q", "-o", path, "--", *argv], {}
    else:
        command, env = argv, {"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": path}

    def lower():
        resource.setrlimit(kind, (value, value))

    # Under `run` only the program is limited, not the tool: a shell lowers it between the two.
    if how == "run":
        option = {resource.RLIMIT_AS: "-v", resource.RLIMIT_FSIZE: "-f",
                  resource.RLIMIT_NOFILE: "-n", resource.RLIMIT_MEMLOCK: "-l"}[kind]
        amount = {resource.RLIMIT_AS: value // KIB, resource.RLIMIT_FSIZE: value // 512,
                  resource.RLIMIT_NOFILE: value, resource.RLIMIT_MEMLOCK: value // KIB}[kind]
        shell = f"ulimit {option} {amount}; exec {argv[0]}"
        command = [t.CAIRN, "run", "-q", "-o", path, "--", "sh", "-c", shell]
        lower = None
    done = subprocess.run(command, env=t.environment(env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=lower, timeout=60, check=False)
    t.check_equal(f"{name} ({how})", (done.returncode, done.stdout), (3, b""))


for how in ("run", "alone"):
    for mebibytes in (8, 16, 48, 100, 200, 300, 1000):
        with_limit(f"{mebibytes} MiB of address space", resource.RLIMIT_AS, mebibytes * MIB, how)
    for kibibytes in (0, 4, 64, 1024):
        with_limit(f"files of {kibibytes} KiB", resource.RLIMIT_FSIZE, kibibytes * KIB, how)
    with_limit("4 descriptors", resource.RLIMIT_NOFILE, 4, how)
    with_limit("no locked memory", resource.RLIMIT_MEMLOCK, 0, how)

for full in ("/dev/full", "/no/such/directory/x.cairn", "/proc/x.cairn"):
    result = t.run(t.program("leak"), env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": full})
    t.check_equal(f"recording to {full}", (result.status, result.out), (3, b""))
t.finish()
