# SPDX-License-Identifier: Apache-2.0
"""glibc of other Debian releases, from the mirror that apt uses here: unpacked, to run programs through its own
ld.so. One that is on this machine is used as it is."""

import gzip
import lzma
import os
import pathlib
import platform
import re
import subprocess
import urllib.error
import urllib.request

SUITES = {"2.31": "bullseye", "2.36": "bookworm", "2.41": "trixie"}
# Tried before the suite's list of packages, which is large; point releases replace them.
LIKELY = {"2.31": ["2.31-13+deb11u11"], "2.36": ["2.36-9+deb12u10"], "2.41": ["2.41-12+deb13u1", "2.41-12"]}
TIMEOUT_S = 60


def mirror():
    """The first Debian archive of apt's sources."""
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        for url in re.findall(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(https?://\S+)", path.read_text(encoding="utf-8"), re.M):
            if re.search(r"/debian/?$", url):
                return url.rstrip("/")
    return "http://deb.debian.org/debian"


def architecture():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def read(url):
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        return answer.read()


def listed(version):
    """The path of libc6 in the suite's list of packages."""
    base = f"{mirror()}/dists/{SUITES[version]}/main/binary-{architecture()}/Packages"
    for ending, unpack in ((".xz", lzma.decompress), (".gz", gzip.decompress)):
        try:
            text = unpack(read(base + ending)).decode()
        except (urllib.error.HTTPError, lzma.LZMAError, OSError):
            continue
        found = re.search(r"^Package: libc6\n(?:.+\n)*?Filename: (\S+)$", text, re.M)
        if found:
            return found[1]
    raise OSError(f"{base}.xz: no libc6 in it")


def package(version):
    for likely in LIKELY[version]:
        try:
            return read(f"{mirror()}/pool/main/g/glibc/libc6_{likely}_{architecture()}.deb")
        except urllib.error.HTTPError:
            continue
    return read(f"{mirror()}/{listed(version)}")


def here():
    return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]


def loader(version, directory):
    """(ld.so, directory of its libraries), None where it is this machine's; OSError: it cannot be had."""
    if version == here():
        return None
    target = pathlib.Path(directory) / version
    if not target.exists():
        archive = pathlib.Path(directory) / f"{version}.deb"
        archive.write_bytes(package(version))
        unpacked = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(unpacked)], check=True)
        archive.unlink()
        unpacked.rename(target)
    found = [path for path in sorted(target.rglob("ld-linux*.so.*")) if path.parent.name.endswith("-linux-gnu")]
    if not found:
        raise OSError(f"{target}: no ld.so in it")
    return str(found[0]), str(found[0].parent)
