#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make tarball` in a clone: the sources of the commit, with checksums, and the same bytes out of the tarball itself,
under another umask and time zone. What is in no commit is refused."""

import hashlib
import pathlib
import shutil
import tarfile

import cairn_test as t

t.need("git", "xz", "make")
if not (t.SOURCE / ".git").exists():
    t.cannot_run_here("these sources are no repository of git")


def git(*words):
    result = t.run(["git", "-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@t.invalid", *words])
    t.check_equal(f"git {words[-1]}", result.status, 0)
    return result.out.decode()


def make_tarball(place, *before):
    """The only tarball in build/dist, and what make said."""
    made = t.run([*before, "make", "-s", "-C", str(place), "tarball"], env={"TARBALL_LEVEL": "1"})
    found = sorted((place / "build/dist").glob("*.tar.xz"))
    return made, found[0] if found else None


clone = pathlib.Path("clone").resolve()
git("clone", "-q", "--depth", "1", f"file://{t.SOURCE}", str(clone))
# The scripts as they are here, also where they are in no commit yet.
for path in ["Makefile", ".gitattributes", *map(str, (t.SOURCE / "dev").glob("*.sh"))]:
    source = t.SOURCE / path
    shutil.copy2(source, clone / source.relative_to(t.SOURCE))
git("-C", str(clone), "add", "-A")
git("-C", str(clone), "commit", "-q", "--allow-empty", "-m", "as it is")
made, first = make_tarball(clone)
if t.check(made.status == 0 and first, f"make tarball: {made.err.decode()}"):
    version = t.run_cairn("--version").out.split()[1].decode()
    t.check_equal("name", first.name, f"cairn-{version}.tar.xz")
    sums = dict(line.split()[::-1] for line in (first.parent / "SHA256SUMS").read_text("ascii").splitlines())
    t.check_equal("checksums", sums, {first.name: hashlib.sha256(first.read_bytes()).hexdigest()})
    with tarfile.open(first) as archive:
        members = archive.getmembers()
        archive.extractall(".")
    listed = {f"cairn-{version}/{name}" for name in git("-C", str(clone), "ls-files").splitlines()}
    t.check_equal("files that are missing, or too many", listed ^ {m.name for m in members if not m.isdir()}, set())
    seconds = git("-C", str(clone), "log", "-1", "--format=%ct").strip()
    t.check_equal("owners and times", {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members},
                  {(0, 0, "", "", int(seconds))})
    made, second = make_tarball(pathlib.Path(f"cairn-{version}").resolve(), "env", "TZ=Asia/Tokyo", "sh", "-c",
                                'umask 077; exec "$@"', "sh")
    t.check(made.status == 0 and second, f"make tarball in a tarball: {made.err.decode()}")
    t.check(second and second.read_bytes() == first.read_bytes(), "the tarball of the tarball is another one")

    (clone / "README.md").write_text("changed\n")
    made, _ = make_tarball(clone)
    t.check(made.status != 0 and b"changes that are in no commit" in made.err, f"a changed tree: {made.err.decode()}")
t.finish()
