#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a made-up fleet: DIRECTORY COUNT. Three services in five releases, each a build of its own of
tests/programs/service.c, on twenty hosts; DIRECTORY/list has their labels, as `cairn export @DIRECTORY/list`
reads them. Every 10th process is recorded by a sample."""

import os
import pathlib
import subprocess
import sys

SERVICES = ("api", "search", "checkout")
RELEASES = (1, 2, 3, 4, 5)
HOSTS = 20


def build(source, directory):
    """Path of each release's program."""
    programs = {}
    for release in RELEASES:
        programs[release] = directory / f"service-{release}"
        subprocess.run(["cc", "-g", "-O1", f"-DRELEASE={release}", str(source), "-o", str(programs[release])],
                       check=True)
    return programs


def make(cairn, source, directory, count, environment=None):
    """Records `count` processes; their descriptions."""
    directory = pathlib.Path(directory)
    (directory / "recordings").mkdir(parents=True)
    programs, fleet = build(pathlib.Path(source), directory), []
    for number in range(count):
        one = {"path": str(directory / "recordings" / f"{number:05}.cairn"),
               "service": SERVICES[number % len(SERVICES)],
               "release": RELEASES[number // len(SERVICES) % len(RELEASES)],
               "host": f"host-{number * 7 % HOSTS:02}", "requests": 100 + number % 50,
               "is_sampled": number % 10 == 9}
        options = ["--sample", "--rate", "4KiB", "--seed", str(number + 1)] if one["is_sampled"] else []
        subprocess.run([cairn, "run", "-q", *options, "-o", one["path"], "--", str(programs[one["release"]]),
                        one["service"], str(one["requests"])], check=True, env=environment)
        fleet.append(one)
    with open(directory / "list", "w", encoding="utf-8") as out:
        for one in fleet:
            out.write(f"{one['path']}\thost={one['host']}\tservice={one['service']}\tversion=1.{one['release']}\n")
    return fleet


if __name__ == "__main__":
    source_tree = pathlib.Path(__file__).resolve().parents[2]
    make(os.environ.get("CAIRN", "cairn"), source_tree / "tests/programs/service.c", sys.argv[1], int(sys.argv[2]))
