# SPDX-License-Identifier: Apache-2.0
"""Whether a real program does the same with cairn as without: status, both streams, and every file
that it leaves. Both runs happen at the same path, one after the other, with the same environment; a
program whose output names a time or a process says so by `see`, which cleans the output before it
is compared."""

import fnmatch
import hashlib
import os
import pathlib
import shutil
import stat

import cairn_test as t
from ports import free_port

PLACE = pathlib.Path.cwd() / "place"
TEMPORARY = pathlib.Path.cwd() / "temporary"
_prepared = {}  # by the function that fills the place: a copy of what it put there
DATE = "2020-02-02T02:02:02Z"
ENVIRONMENT = {
    "HOME": str(PLACE), "TMPDIR": str(TEMPORARY), "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm",
    "SOURCE_DATE_EPOCH": "1580608922", "PERL_HASH_SEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_AUTHOR_NAME": "Walker", "GIT_AUTHOR_EMAIL": "walker@example.org", "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_NAME": "Walker", "GIT_COMMITTER_EMAIL": "walker@example.org",
    "GIT_COMMITTER_DATE": DATE,
}


def describe(path):
    """What must not change about a file: kind, permissions, and what is in it."""
    state = path.lstat()
    inside = None
    if stat.S_ISREG(state.st_mode):
        inside = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(state.st_mode):
        inside = os.readlink(path)
    return oct(state.st_mode), inside


def tree(ignored):
    found = {}
    for path in sorted(PLACE.rglob("*")):
        name = str(path.relative_to(PLACE))
        if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored):
            found[name] = describe(path)
    return found


def make_place(prepare):
    for directory in (PLACE, TEMPORARY):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        # Some programs become another user.
        directory.chmod(0o1777)
    if prepare in _prepared:
        shutil.copytree(_prepared[prepare], PLACE, symlinks=True, dirs_exist_ok=True)
        PLACE.chmod(0o1777)
    elif prepare:
        prepare(PLACE)
        _prepared[prepare] = shutil.copytree(PLACE, pathlib.Path.cwd() / f"prepared.{len(_prepared)}", symlinks=True)


def check_files(name, plain, recorded):
    """Names only the files that differ: a tree may have thousands."""
    differing = [path for path in sorted(plain.keys() | recorded.keys())
                 if plain.get(path) != recorded.get(path)]
    t.check(not differing, f"{name}: {len(differing)} files differ: {differing[:8]}")


def compare(name, argv, prepare=None, see=None, ignored=(), as_user=(), status=0,
            **options):
    """Runs argv plainly and under `cairn run -q` in a fresh directory that `prepare` filled; all that
    the runs leave is compared but what `ignored` (patterns) names. `as_user` goes before both commands.
    A program that fails on both sides compares nothing: `status` is what it must end with."""
    recording = t.fresh_path("recording") + ".cairn"
    wrap = [t.CAIRN, "run", "-q", "-o", recording, "--"]
    env = {**ENVIRONMENT, **options.pop("env", {})}
    ends = []
    for prefix in ([], wrap):
        make_place(prepare)
        result = t.run([*as_user, *prefix, *argv], env=env, cwd=PLACE, **options)
        if see:
            result.out, result.err = see(result.out), see(result.err)
        ends.append((result, tree(ignored)))
    if not t.check_equal(f"{name}: status of the plain run", ends[0][0].status, status):
        print(ends[0][0].out[-2000:], ends[0][0].err[-2000:])
    ends[1][0].check_like(name, ends[0][0])
    check_files(name, ends[0][1], ends[1][1])
    t.check(os.path.exists(recording), f"{name}: nothing was recorded")
    if not (ends[0][0].out or ends[0][0].err or ends[0][1]):
        t.check(False, f"{name}: neither output nor files: nothing was compared")
    print(f"{name}: compared", flush=True)


def shell(name, script, **options):
    compare(name, ["bash", "-ec", script], **options)
