#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One version, wherever it is written; and `cairn --version`: the commit of the sources, out of a repository or an
archive of it, with the date and nothing of the machine. Another commit renews one object of the tool."""

import datetime
import email.utils
import os
import pathlib
import platform
import re
import shutil

import cairn_test as t

GIT = ["git", "-c", f"safe.directory={t.SOURCE}", "-C", str(t.SOURCE)]


def first_match(path, pattern):
    found = re.search(pattern, (t.SOURCE / path).read_text("utf-8"), re.M)
    return found and found[1]


VERSION = first_match("tool/base/version.h", r'^#define CAIRN_TOOL_VERSION "(.*)"$')


def check_places():
    t.check(re.fullmatch(r"\d+\.\d+\.\d+", VERSION), f"version {VERSION!r}")
    for path, pattern in (("CHANGELOG.md", r"^## (\d\S*) \(\d{4}-\d\d-\d\d\)$"),
                          ("debian/changelog", r"^cairn \((.*)\) "),
                          ("bindings/rust/Cargo.toml", r'^version = "(.*)"$'),
                          ("bindings/rust/dhat/Cargo.toml", r'^version = "(.*)"$'),
                          ("bindings/rust/dhat/Cargo.toml", r'^cairn-heap = .*version = "(.*)"')):
        t.check_equal(path, first_match(path, pattern), VERSION)
    released = first_match("CHANGELOG.md", r"^## \d\S* \((.*)\)$")
    packed = first_match("debian/changelog", r"^ -- .*>  (.*)$")
    t.check_equal("dates of both changelogs", email.utils.parsedate_to_datetime(packed).date().isoformat(), released)
    t.check(f"cairn {VERSION} " in t.run_cairn("help").out.decode(), "help does not begin with the version")


def said(path=t.CAIRN):
    """The lines of --version, by their first word."""
    result = t.run([path, "--version"])
    t.check_equal("--version", (result.status, result.err), (0, b""))
    lines = [line.split(None, 1) for line in result.out.decode().splitlines()]
    t.check_equal("--version: lines", [line[0] for line in lines], ["cairn", "commit", "built", "for"])
    return dict(lines)


def script(place, *arguments, **env):
    """Like a build: without the date of a build around this test."""
    kept = {name: value for name, value in t.environment().items() if name != "SOURCE_DATE_EPOCH"}
    result = t.run(["env", "-i", *(f"{name}={value}" for name, value in {**kept, **env}.items()),
                    str(place / "dev/commit.sh"), *arguments])
    t.check_equal(f"commit.sh {arguments}", (result.status, result.err), (0, b""))
    return result.out.decode().strip()


def check_lines():
    lines = said()
    t.check_equal("cairn", lines["cairn"], VERSION)
    t.check_equal("for", lines["for"], platform.machine())
    t.check(re.fullmatch(r"by +.*\d+\.\d+.*, sources of (\d{4}-\d\d-\d\d|unknown)", lines["built"]), lines["built"])
    t.check_equal("--version and -V", t.run_cairn("-V").out, t.run_cairn("--version").out)


def check_repository():
    """The repository and an archive of it tell the same commit and date."""
    result = t.run([*GIT, "log", "-1", "--format=%H %ct"])
    if not (t.SOURCE / ".git").exists() or result.status != 0:
        t.skip_part("these sources are no repository of git")
        return
    commit, seconds = result.out.decode().split()
    day = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).date().isoformat()
    t.check(script(t.SOURCE) in (f"{commit[:12]} {day}", f"{commit[:12]}+changes {day}"), script(t.SOURCE))
    t.check_equal("--seconds", script(t.SOURCE, "--seconds"), seconds)
    t.check_equal("SOURCE_DATE_EPOCH", script(t.SOURCE, SOURCE_DATE_EPOCH="86400").split()[1], "1970-01-02")
    t.check(said()["commit"].startswith(commit[:12]), f"the tool is of commit {said()['commit']}")

    archive = pathlib.Path("archive")
    archive.mkdir()
    packed = t.run([*GIT, "archive", "--format=tar", "HEAD", ".gitattributes", "dev/commit.txt", "dev/commit.sh"])
    t.check_equal("tar", t.run(["tar", "-x", "-C", "archive"], stdin=packed.out).status, 0)
    t.check_equal("in an archive", script(archive.resolve()), f"{commit[:12]} {day}")
    t.check_equal("in an archive: --seconds", script(archive.resolve(), "--seconds"), seconds)


def check_nothing_known():
    place = pathlib.Path("bare").resolve()
    (place / "dev").mkdir(parents=True)
    for name in ("commit.sh", "commit.txt"):
        shutil.copy(t.SOURCE / "dev" / name, place / "dev" / name)
    (place / "dev/commit.txt").write_text("$" + "Format:%H %ct$\n")
    t.check_equal("neither archive nor repository", script(place), "unknown unknown")
    t.check_equal("the same, with a date", script(place, SOURCE_DATE_EPOCH="0"), "unknown 1970-01-01")


def times(place):
    return {str(path.relative_to(place)): path.stat().st_mtime_ns for path in place.rglob("*.o")}


def check_one_object():
    """A copy of what was built, made again for sources of another date."""
    if platform.machine() != "x86_64":
        t.skip_part("the tool is built for x86-64 alone")
        return
    place = pathlib.Path("build").resolve()
    shutil.copytree(t.BUILD / "obj/tool", place / "obj/tool", copy_function=shutil.copy2)
    for name in ("cairn", "commit"):
        shutil.copy2(t.BUILD / name, place / name)
    before = times(place)
    make = ["make", "-s", "-C", str(t.SOURCE), f"BUILD={place}", "tools"]
    made = t.run(make, env={"SOURCE_DATE_EPOCH": "86400"})
    t.check_equal("make", (made.status, made.err), (0, b""))
    t.check(said(place / "cairn")["built"].endswith(" 1970-01-02"), "the copy says its date")
    after = times(place)
    t.check_equal("objects that were made again", [name for name in after if before.get(name) != after[name]],
                  ["obj/tool/base/version.o"])
    linked = os.stat(place / "cairn").st_mtime_ns
    t.check_equal("make again", t.run(make, env={"SOURCE_DATE_EPOCH": "86400"}).status, 0)
    t.check_equal("nothing is made again", (times(place), os.stat(place / "cairn").st_mtime_ns), (after, linked))


check_places()
check_lines()
check_repository()
check_nothing_known()
check_one_object()
t.finish()
