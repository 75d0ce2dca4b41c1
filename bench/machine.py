# SPDX-License-Identifier: Apache-2.0
"""Where a measurement was made, and with what."""

import os
import platform
import subprocess


def processor_name():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return names[0] if names else platform.machine()


def package_version(name):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True,
                           check=False).stdout
    return f"{name} {shown}" if shown else ""


def description():
    versions = [package_version(name) for name in ("heaptrack", "libjemalloc2", "libgoogle-perftools4",
                                                   "valgrind")]
    return ", ".join([processor_name(), f"{os.cpu_count()} processors", f"Linux {platform.release()}",
                      " ".join(platform.libc_ver()), *filter(None, versions)])
