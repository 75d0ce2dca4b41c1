#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes packages of distributions from files of `make dist`: for those of rpm, and for Arch. Each has the one file, the
manual page, completions and licences, and needs nothing.
dev/distributions.py DIRECTORY FILE...; FILE is cairn-VERSION-linux-ARCH. The same bytes each time. Where rpmbuild is not
installed, it says so and leaves rpm out."""

import gzip
import hashlib
import io
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import released  # noqa: E402
from released import TOP, VERSION  # noqa: E402

CPUS = ("x86_64", "aarch64")
NAME = "cairn-heap"
SPEC = r"""
Name: {name}
Version: {version}
Release: 1
Summary: {about}
License: Apache-2.0
Packager: cairn
Group: Development/Tools
AutoReqProv: no
%description
Records which call stacks hold a program's memory at its peak, what is left
at the end and what is allocated too often: of programs that it starts, and of
those that run already. One static file, for glibc and for musl.
%files
{files}
%changelog
* {day} cairn <cairn@localhost> - {version}-1
- Packed from the one static file of the release.
"""
RPM_SETTINGS = {"_buildhost": "cairn", "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
                "_build_id_links": "none", "debug_package": "%{nil}", "__os_install_post": "%{nil}",
                "_binary_payload": "w9.gzdio", "_source_payload": "w9.gzdio", "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"}


def run(*words, **how):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    if done.returncode:
        sys.exit(f"dev/distributions.py: {words[0]}: {done.stdout[-2000:]}")
    return done.stdout


def manual(tool, place, seconds):
    """What the tool says of itself: the manual page (with scdoc) and completions."""
    share = place / "usr/share"
    run(TOP / "dev/install-manual.sh", tool, share / "man", share / "bash-completion/completions", share / "zsh/site-functions",
        share / "fish/vendor_completions.d", env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)})
    page = share / "man/man1/cairn.1"
    if page.exists():
        page.with_suffix(".1.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()


def stage(place, file, manuals):
    """The package's tree: what there is at `place` when it is installed."""
    shutil.copytree(manuals, place)
    (place / "usr/bin").mkdir()
    shutil.copyfile(file, place / "usr/bin/cairn")
    licences = place / f"usr/share/licenses/{NAME}"
    licences.mkdir(parents=True)
    shutil.copyfile(TOP / "LICENSE", licences / "LICENSE")
    said = file.with_name(f"{file.name}-licences.txt")
    if said.exists():
        shutil.copyfile(said, licences / "THIRD_PARTY")
    for path in [place, *place.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def files_of(place):
    return sorted(path for path in place.rglob("*") if path.is_file())


def write_rpm(directory, place, arch, seconds, work):
    listed = "\n".join([f"%dir /usr/share/licenses/{NAME}", *(f"/{path.relative_to(place)}" for path in files_of(place))])
    spec = work / f"{arch}.spec"
    spec.write_text(SPEC.format(name=NAME, version=VERSION, about=released.ABOUT, files=listed,
                                day=time.strftime("%a %b %d %Y", time.gmtime(seconds))), encoding="ascii")
    settings = [word for name, value in {**RPM_SETTINGS, "_topdir": str(work / "rpm"), "_rpmdir": str(work)}.items()
                for word in ("--define", f"{name} {value}")]
    # It takes the root away that it packs.
    shutil.copytree(place, work / f"{arch}.root")
    run("rpmbuild", "-bb", "--noclean", "--target", f"{arch}-linux", "--buildroot", work / f"{arch}.root", *settings, spec,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "HOME": str(work), "LC_ALL": "C"})
    made = f"{NAME}-{VERSION}-1.{arch}.rpm"
    shutil.move(work / made, directory / made)
    return directory / made


def entry_of(path, is_directory, mode, size, seconds):
    entry = tarfile.TarInfo(path)
    entry.mode, entry.size, entry.mtime = mode, size, seconds
    entry.uname = entry.gname = "root"
    entry.type = tarfile.DIRTYPE if is_directory else tarfile.REGTYPE
    return entry


def mtree(rows, seconds):
    """(path, bytes or None, mode): what pacman -Qkk compares."""
    lines = ["#mtree", f"/set type=file uid=0 gid=0 mode=644 time={seconds}.0"]
    for path, data, mode in rows:
        if data is None:
            lines.append(f"./{path} mode={mode:o} type=dir")
        else:
            lines.append(f"./{path} mode={mode:o} size={len(data)} md5digest={hashlib.md5(data).hexdigest()} "
                         f"sha256digest={hashlib.sha256(data).hexdigest()}")
    return gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)


def write_arch(directory, place, arch, seconds):
    rows = [(str(path.relative_to(place)), None if path.is_dir() else path.read_bytes(), path.stat().st_mode & 0o777)
            for path in sorted(place.rglob("*"))]
    size = sum(len(data) for _, data, _ in rows if data)
    about = {"pkgname": NAME, "pkgbase": NAME, "pkgver": f"{VERSION}-1", "pkgdesc": released.ABOUT, "builddate": seconds,
             "packager": "cairn", "size": size, "arch": arch, "license": "Apache-2.0"}
    told = "".join(f"{key} = {value}\n" for key, value in about.items()).encode()
    rows = [(".PKGINFO", told, 0o644), (".MTREE", mtree([(".PKGINFO", told, 0o644), *rows], seconds), 0o644), *rows]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, data, mode in rows:
            archive.addfile(entry_of(path, data is None, mode, len(data or b""), seconds), io.BytesIO(data or b""))
    made = directory / f"{NAME}-{VERSION}-1-{arch}.pkg.tar.xz"
    made.write_bytes(lzma.compress(out.getvalue(), preset=6))
    return made


def main():
    directory, files = released.arguments("dev/distributions.py", CPUS)
    seconds = released.seconds()
    own = [file for file in files if released.arch_of(file) == os.uname().machine]
    if not own:
        sys.exit("dev/distributions.py: none of these files runs here, and the manual page is made by one")
    has_rpm = shutil.which("rpmbuild")
    if not has_rpm:
        print("dev/distributions.py: rpmbuild is not installed: no rpm", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        manual(own[0].resolve(), work / "manual", seconds)
        for file in files:
            arch = released.arch_of(file)
            stage(work / arch, file, work / "manual")
            if has_rpm:
                print(write_rpm(directory, work / arch, arch, seconds, work))
            print(write_arch(directory, work / arch, arch, seconds))


if __name__ == "__main__":
    main()
