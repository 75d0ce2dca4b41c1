# SPDX-License-Identifier: Apache-2.0
"""What drives pages in a browser: the packages that web/package-lock.json names."""

import fcntl
import shutil

import cairn_test as t

WEB = t.SOURCE / "web"


def modules():
    """Directory with the sources and what npm adds; made once for a lock file, by one test."""
    (t.BUILD / "tests").mkdir(parents=True, exist_ok=True)
    with open(t.BUILD / "tests/web.lock", "w", encoding="ascii") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return modules_made()


def modules_made():
    made = t.BUILD / "tests/web"
    lock = (WEB / "package-lock.json").read_text()
    stamp = made / "installed"
    if not stamp.exists() or stamp.read_text() != lock:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(WEB / name, made)
        result = t.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=made)
        if result.status != 0:
            t.cannot_run_here("npm cannot fetch what web/package-lock.json names")
        stamp.write_text(lock)
    return made
