#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool as one file (make dist), alone in a directory: it records, reports, and puts the library where the
dynamic linker can open it, checked by content, in a directory that nobody else can change; where that does not do,
in the next place; where nothing does, one line says what to set. Terminals are known without a description of them
on the system. And the packages of registries that have the file in them."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import cairn_test as t
import chroots

LEAK = t.program("leak")
OTHERS = ("/var/tmp", "/tmp", "/dev/shm")
NOBODY = 65534
STATUS_RUN_FAILED = 125


def make_tool():
    made = subprocess.run(["make", "-s", "BUILT=1", f"BUILD={t.BUILD}",
                           f"{str(t.BUILD).removeprefix(f'{t.SOURCE}/')}/dist/bin/cairn"],
                          cwd=t.SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={name: value for name, value in t.environment().items() if not name.startswith("MAKE")})
    if made.returncode and "no source package" in made.stdout:
        t.cannot_run_here("the source of Zydis cannot be had here: " + made.stdout.splitlines()[-1])
    t.check_equal(f"make dist: {made.stdout[-2000:]}", made.returncode, 0)
    place = pathlib.Path("alone").resolve()
    place.mkdir()
    pathlib.Path(".").resolve().chmod(0o755)  # other users come here
    return shutil.copy(t.BUILD / "dist/bin/cairn", place / "cairn")


def library(env=None, before=()):
    """(what `cairn env` names, the result)."""
    result = t.run([*before, TOOL, "env"], env=env)
    found = re.search(rb"LD_PRELOAD='(.*)'", result.out)
    return (found[1].decode() if found else None), result


def record(env, name):
    path = t.fresh_path(name) + ".cairn"
    result = t.run([TOOL, "run", "-o", path, *LEAK], env=env)
    return result, path


def cache(name):
    """A place of its own for the library, in a directory that every user can enter."""
    place = pathlib.Path(name).resolve()
    place.mkdir(mode=0o755)
    return place, {"XDG_CACHE_HOME": str(place), "HOME": str(place)}


def check_alone():
    t.check_equal("one file", subprocess.run(["ldd", TOOL], capture_output=True, check=False).returncode, 1)
    t.check(os.path.getsize(TOOL) <= 13 << 20, f"one file: {os.path.getsize(TOOL)} bytes")
    place, env = cache("own")
    result, path = record(env, "alone")
    t.check_equal("alone: status", result.status, t.run(LEAK).status)
    found = t.report(path)
    t.check(found and found["totals"]["allocations"] > 0, "alone: nothing recorded")
    file, _ = library(env)
    build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", file], capture_output=True, text=True,
                                                            check=True).stdout)[1]
    t.check_equal("where it is", file, f"{place}/cairn/lib/{build_id}/libcairn.so")
    for part in (file, *list(map(str, pathlib.Path(file).parents))[:2]):
        t.check_equal(f"{part}: mode", os.stat(part).st_mode & 0o7777, 0o755)
    before = os.stat(file)
    library(env)
    t.check_equal("again: the same file", (os.stat(file).st_ino, os.stat(file).st_mtime_ns),
                  (before.st_ino, before.st_mtime_ns))
    return place, env, file


def check_content(env, file):
    """What is damaged is replaced, and not in place: programs may have it mapped."""
    inode = os.stat(file).st_ino
    whole = pathlib.Path(file).read_bytes()
    for name, damaged in (("changed", whole[:5000] + b"x" + whole[5001:]), ("cut", whole[:5000]), ("longer", whole + b"x")):
        pathlib.Path(file).write_bytes(damaged)
        library(env)
        t.check(pathlib.Path(file).read_bytes() == whole, f"{name}: it is believed")
        t.check(os.stat(file).st_ino != inode, f"{name}: written in place")
        inode = os.stat(file).st_ino
    os.chmod(file, 0o777)
    library(env)
    t.check_equal("written by all: mode", os.stat(file).st_mode & 0o7777, 0o755)


def check_refused(place, env):
    """A directory that others can change is not used."""
    own = place / "cairn"
    shutil.rmtree(own)
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    own.symlink_to(elsewhere)
    file, _ = library(env)
    t.check(file and not file.startswith(str(place)) and not any(elsewhere.iterdir()), f"a link: {file}")
    own.unlink()
    own.mkdir()
    own.chmod(0o777)
    file, _ = library(env)
    t.check(file and not file.startswith(str(place)), f"written by all: {file}")
    if os.getuid() == 0:
        own.chmod(0o755)
        os.chown(own, NOBODY, NOBODY)
        file, _ = library(env)
        t.check(file and not file.startswith(str(place)), f"another user's: {file}")
    shutil.rmtree(own)
    place.chmod(0o777)
    file, _ = library(env)
    t.check(file and not file.startswith(str(place)), f"in a directory of all: {file}")
    place.chmod(0o755)
    blank, env = cache("with a blank")
    file, _ = library(env)
    t.check(file and not file.startswith(str(blank)), f"a blank: {file}")


def check_places(place, env):
    """Other file systems, in a mount namespace of the test's own."""
    if os.getuid() != 0 or t.run(["unshare", "-m", "true"]).status != 0:
        return t.skip_part("mount namespaces cannot be made")
    mount = f"mount -t tmpfs -o noexec,mode=1777 none {place}; "
    file, result = library(env, ["unshare", "-m", "/bin/sh", "-c", mount + 'exec "$@"', "sh"])
    t.check(file and not file.startswith(str(place)), f"noexec: {file} {result.err}")
    nowhere = "".join(f"mount -t tmpfs -o ro none {other}; " for other in OTHERS)
    tool = shutil.copy(TOOL, "/opt/cairn-one-file-test")  # /tmp is covered
    try:
        result = t.run(["unshare", "-m", "/bin/sh", "-c", nowhere + 'cd /; exec "$@"', "sh", tool, "run", "true"],
                       env={"XDG_CACHE_HOME": "/proc"})
    finally:
        os.unlink(tool)
    t.check_equal("nowhere: status", result.status, STATUS_RUN_FAILED)
    t.check(result.err.count(b"\n") == 1 and b"set XDG_CACHE_HOME" in result.err and b"Read-only" in result.err,
            f"nowhere: {result.err.decode()}")


def check_full(place, env):
    if os.getuid() != 0 or t.run(["unshare", "-m", "true"]).status != 0:
        return
    mount = f"mount -t tmpfs -o size=64k,mode=755 none {place}; "
    file, result = library(env, ["unshare", "-m", "/bin/sh", "-c", mount + f'"$@"; find {place} -type f >&2', "sh"])
    t.check(file and not file.startswith(str(place)), f"full: {file} {result.err}")
    t.check_equal("full: left behind", result.err, b"")


def check_other_user():
    """What root starts may become another user, and is recorded then."""
    if os.getuid() != 0:
        return
    private = pathlib.Path("private").resolve()
    private.mkdir(mode=0o700)
    path = t.fresh_path("user") + ".cairn"
    become = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    result = t.run([TOOL, "run", "-o", path, *become, *LEAK], env={"XDG_CACHE_HOME": str(private)})
    t.check_equal("another user: status", result.status, t.run(LEAK).status)
    found = t.report(path)
    t.check(found and "leak" in found["process"]["command"],
            f"another user: {found and found['process']}")
    t.check(not (private / "cairn/lib").exists(), "another user: in a private directory")


def check_cut():
    """A file that was cut while it was copied says so, wherever it was."""
    whole = pathlib.Path(TOOL).read_bytes()
    for size in (8192, len(whole) // 10, len(whole) // 2, len(whole) - 100_000, len(whole) - 1):
        cut = pathlib.Path(t.fresh_path("cut"))
        cut.write_bytes(whole[:size])
        cut.chmod(0o755)
        result = t.run([str(cut), "--version"])
        t.check_equal(f"cut after {size}", (result.status, result.out, result.err),
                      (1, b"", b"cairn: this file is cut: copy it again, and compare its checksum\n"))


def check_env_library():
    result = t.run([TOOL, "env", "--library", "image", "--for", "docker"])
    t.check_equal("env --library", result.out.decode(), f'ENV LD_PRELOAD="{os.getcwd()}/image/libcairn.so"\n')
    carried = pathlib.Path("image/libcairn.so").read_bytes()
    for name in ("libcairn.so", "libcairn-cxx.so", "libcairn-musl.so", "libcairn-torture.so"):
        t.check_equal(f"env --library: mode of {name}", os.stat(f"image/{name}").st_mode & 0o777, 0o755)
    path = t.fresh_path("by-image") + ".cairn"
    t.run(LEAK, env={"LD_PRELOAD": os.path.abspath("image/libcairn.so"), "CAIRN_OUTPUT": path})
    t.check(t.report(path), "env --library: nothing recorded by it")
    again = t.run([TOOL, "env", "--library", "image"])
    t.check_equal("env --library again: status", again.status, 0)
    pathlib.Path("image/libcairn.so").write_bytes(carried[:-1])
    other = t.run([TOOL, "env", "--library", "image"])
    t.check((other.status, other.out) == (1, b"") and b"libcairn.so exists and is another one" in other.err,
            f"env --library, another file there: {other.err}")
    t.check_equal("it stays", pathlib.Path("image/libcairn.so").read_bytes(), carried[:-1])


def screen_of(command, env, wanted):
    """What a program shows on a terminal until `wanted` is there; then it gets a q."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, t.environment(env))
    shown, end = b"", time.monotonic() + t.PATIENCE_S
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
    try:
        os.write(terminal, b"q")
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


def check_terminal():
    """No descriptions of terminals anywhere: the screen is drawn nevertheless."""
    if os.getuid() != 0 or t.run(["unshare", "-m", "true"]).status != 0:
        return
    _, path = record({}, "shown")
    hide = "".join(f"[ ! -d {place} ] || mount -t tmpfs none {place}; "
                   for place in ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"))
    command = ["/usr/bin/unshare", "-m", "/bin/sh", "-c", hide + 'exec "$@"', "sh", TOOL, "report", "--view", "tree", path]
    shown = screen_of(command, {"TERM": "xterm-256color", "TERMINFO_DIRS": "", "LC_ALL": "C.UTF-8"}, b"main")
    t.check(b"\x1b[" in shown and b"main" in shown, f"terminal: {shown[-500:]!r}")


def make_packages(name):
    place = pathlib.Path(name).resolve()
    place.mkdir()
    file, = (t.BUILD / "dist").glob("cairn-*-linux-x86_64")
    made = t.run([t.PYTHON, t.SOURCE / "dev/packages.py", place, file])
    t.check_equal("packages", (made.status, made.err), (0, b""))
    return {path.name.rpartition(".")[2]: path for path in place.iterdir()}


def check_recorded(what, tool, home):
    """The command of a package records alone, without anything else of cairn in reach."""
    path = t.fresh_path("packaged") + ".cairn"
    result = t.run(["env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", tool, "run", "-q", "-o", path, *LEAK])
    t.check_equal(f"{what}: status ({result.err})", result.status, t.run(LEAK).status)
    t.check(t.report(path)["totals"]["allocations"] > 0, f"{what}: nothing recorded")


def check_wheel(wheel):
    if t.run([t.PYTHON, "-m", "pip", "--version"]).status:
        t.skip_part("pip is not installed")
        return
    home = pathlib.Path("wheel").resolve()
    result = t.run([t.PYTHON, "-m", "pip", "install", "--no-index", "--no-deps", "--prefix", home, wheel], env={"PIP_ROOT_USER_ACTION": "ignore"})
    t.check_equal(f"pip: {result.err.decode()}", result.status, 0)
    tool, = home.rglob("bin/cairn")
    check_recorded("wheel", tool, home)
    library, = home.rglob("cairn/pytest_plugin.py")
    asked = t.run([t.PYTHON, "-c", "import sysconfig; sysconfig.get_path = lambda name: '%s'; import cairn; print(cairn.tool())" % tool.parent],
                  env={"PYTHONPATH": str(library.parents[1]), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    t.check_equal("the package finds its own command", asked.out.decode().strip(), str(tool))


VENVS = {"bullseye": "3.9", "bookworm": "3.11", "trixie": "3.13"}
IN_VENV = """
set -e
python3 -m venv --system-site-packages /tmp/wheel/venv
cd /tmp/wheel
venv/bin/pip install --quiet --no-index --no-deps ./*.whl
venv/bin/cairn run -q -o run.cairn venv/bin/python -c 'kept = [bytes(100000) for _ in range(9)]'
venv/bin/python tracked.py
venv/bin/python -m pytest -q --cairn -p no:cacheprovider test_limit.py >pytest.log && exit 1
grep -q '1 failed, 1 passed' pytest.log
for file in run tracked; do venv/bin/cairn report --json $file.cairn >$file.json; done
"""
TRACKED = """
import cairn
with cairn.Tracker("tracked.cairn"):
    kept = [bytearray(100000) for _ in range(9)]
"""
LIMITED = """
import pytest
@pytest.mark.limit_memory("1 MB")
def test_small(): bytes(1000)
@pytest.mark.limit_memory("1 MB")
def test_large(): kept = [bytearray(100000) for _ in range(30)]
"""


def check_venvs(wheel):
    """The wheel in virtual environments of other Debians, without an index: its command, Tracker and plugin of pytest."""
    for suite, version in VENVS.items() if t.IS_LONG else ():
        root = chroots.find(suite, "venv", ["python3", "python3-venv", "python3-pytest"])
        if not root:
            continue
        place = root / "tmp/wheel"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(wheel, place)
        (place / "tracked.py").write_text(TRACKED, "utf-8")
        (place / "test_limit.py").write_text(LIMITED, "utf-8")
        result = t.run(chroots.inside(root, ["HOME=/tmp/wheel", "sh", "-c", IN_VENV]))
        log = (place / "pytest.log").read_text("utf-8") if (place / "pytest.log").exists() else ""
        t.check_equal(f"{suite}: {result.err.decode()} {log}", result.status, 0)
        t.check((place / f"venv/lib/python{version}").is_dir(), f"{suite}: another Python than {version}")
        for name in ("run", "tracked"):
            told = place / f"{name}.json"
            allocated = json.loads(told.read_text("utf-8"))["totals"]["allocated_bytes"] if told.exists() else 0
            t.check(allocated > 900000, f"{suite}: {name}: {allocated} bytes")


def check_npm(package):
    if not shutil.which("npm"):
        t.skip_part("npm is not installed")
        return
    home = pathlib.Path("npm").resolve()
    home.mkdir()
    result = t.run(["npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", home, package], env={"HOME": str(home)})
    t.check_equal(f"npm: {result.err.decode()}", result.status, 0)
    check_recorded("npm", home / "node_modules/.bin/cairn", home)
    (home / "node_modules/cairn-heap/bin/cairn-linux-x86_64").unlink()
    result = t.run([home / "node_modules/.bin/cairn", "--version"])
    t.check_equal("another processor", (result.status, result.err.count(b"\n"), b"no file for Linux on x86_64" in result.err), (1, 1, True))


def check_packages():
    """The registries' packages: the same bytes twice, installed from the file without a network."""
    first, second = make_packages("packages"), make_packages("packages-again")
    t.check_equal("kinds", sorted(first), ["tgz", "vsix", "whl"])
    for kind, path in first.items():
        t.check_equal(f"{kind}: the same twice", path.read_bytes() == second[kind].read_bytes(), True)
    check_wheel(first["whl"])
    check_venvs(first["whl"])
    check_npm(first["tgz"])


TOOL = make_tool()
PLACE, ENV, FILE = check_alone()
check_content(ENV, FILE)
check_refused(PLACE, ENV)
check_places(PLACE, ENV)
check_full(PLACE, ENV)
check_other_user()
check_cut()
check_env_library()
check_terminal()
check_packages()
t.finish()
