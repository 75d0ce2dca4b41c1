# SPDX-License-Identifier: Apache-2.0
"""Other Debian suites in chroots: $CHROOTS/SUITE-NAME (build/chroots), which CAIRN_LONG=1 makes where they are not."""

import os
import pathlib
import shutil

import cairn_test as t
import glibc_versions

PLACE = pathlib.Path(os.environ.get("CHROOTS", t.SOURCE / "build/chroots"))


def find(suite, name, packages):
    """The suite's root directory with these packages; None, and a part is skipped: it is not here."""
    root = PLACE / f"{suite}-{name}"
    if (root / "usr").exists():
        return root
    if not os.environ.get("CAIRN_LONG"):
        return t.skip_part(f"{suite}: {root} is not there (CAIRN_LONG=1 makes it)")
    if not shutil.which("mmdebstrap") or os.geteuid() != 0:
        return t.skip_part(f"{suite}: mmdebstrap is not installed, or this is not root")
    PLACE.mkdir(parents=True, exist_ok=True)
    made = t.run(["mmdebstrap", "--quiet", "--variant=minbase", "--aptopt=Acquire::Check-Valid-Until \"false\"",
                  f"--include={','.join(packages)}", suite, f"{root}.new", glibc_versions.mirror()])
    if made.status:
        return t.skip_part(f"{suite}: mmdebstrap: {made.err.decode(errors='replace').splitlines()[-1:]}")
    os.rename(f"{root}.new", root)
    return root


def inside(root, words):
    """The words of a command that runs there, with processes and mounts of its own."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
            'root=$1; shift; mount -t proc proc "$root/proc" && exec chroot "$root" "$@"', "sh", str(root), "env", "-i",
            "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", *words]
