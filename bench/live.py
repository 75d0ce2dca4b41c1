#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page of a redis-server under load, in Chromium (bench/live.mjs): the tab's heap each minute, pictures a second
while the flame graph zooms, errors in the console. bench/live.py MODULES [--minutes N] [--build-dir DIR]; MODULES is
where npm has installed playwright-core (web/ after npm ci). On a busy machine pictures a second mean little."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from serve import TOP, Alone, Served, child_of, free_port


class Load(Alone):
    """redis-benchmark until it is stopped, at a rate that leaves the machine something."""

    def __init__(self, port):
        words = ["redis-benchmark", "-p", str(port), "-t", "set,lpush,sadd", "-n", "100000000", "-r", "100000", "-d", "100",
                 "-c", "2", "-l", "-q"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("modules")
    parser.add_argument("--build-dir", default=str(TOP / "build"))
    parser.add_argument("--minutes", type=int, default=10)
    options = parser.parse_args()
    cairn, port = str(pathlib.Path(options.build_dir).resolve() / "cairn"), free_port()
    with tempfile.TemporaryDirectory() as scratch:
        argv = [cairn, "run", "-q", "-o", scratch + "/redis.cairn", "--", "redis-server", "--port", str(port), "--save", "",
                "--appendonly", "no", "--maxmemory", "200mb", "--maxmemory-policy", "allkeys-random"]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as run:
            time.sleep(1)
            load, served = Load(port), Served(cairn, str(child_of(run.pid)))
            status = subprocess.run(["node", str(TOP / "bench/live.mjs"), served.url, shutil.which("chromium"),
                                     options.modules, str(options.minutes)], check=False).returncode
            served.stop(), load.stop()
            run.terminate()
    return status


if __name__ == "__main__":
    sys.exit(main())
