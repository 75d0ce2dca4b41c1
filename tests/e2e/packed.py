#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages of a release beside those of pip and npm (e2e/one_file): rpm, Arch, the image of containers, crates. Each is
the same byte for byte when it is made again; its own tools take it, find it whole, and leave nothing behind. Of these
the usual run packs a small program in the place of the one file; CAIRN_LONG=1 packs that, and uses it: in roots that
have nothing else but one program, in a container, and in a program of Rust."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import time

import cairn_test as t

VERSION = t.run([t.SOURCE / "dev/commit.sh", "--version"]).out.decode().strip()


def one_file():
    """What is packed: build/dist's in the long run, else a script that asks this build for its manual."""
    name = f"cairn-{VERSION}-linux-x86_64"
    if t.IS_LONG:
        made = subprocess.run(["make", "-s", "BUILT=1", f"BUILD={t.BUILD}", f"{str(t.BUILD).removeprefix(f'{t.SOURCE}/')}/dist/{name}"],
                              cwd=t.SOURCE, check=False, env={key: value for key, value in t.environment().items() if not key.startswith("MAKE")})
        t.check_equal("make dist", made.returncode, 0)
        return t.BUILD / "dist" / name
    file = pathlib.Path(name).resolve()
    file.write_text(f'#!/bin/sh\nexec "{t.CAIRN}" "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def make(script, *words):
    """The files that a script makes, by name: twice, a second apart in what they could say of the time."""
    places = [pathlib.Path(f"{script}-{turn}").resolve() for turn in ("first", "again")]
    for turn, place in enumerate(places):
        place.mkdir()
        os.umask(0o022 if turn == 0 else 0o077)
        result = t.run([t.PYTHON, t.SOURCE / f"dev/{script}.py", place, *words],
                       env={"TZ": ("UTC", "Pacific/Kiritimati")[turn], "HOME": os.environ.get("HOME", "/"), "TMPDIR": str(place.parent)})
        os.umask(0o022)
        t.check_equal(f"{script}: {result.err.decode()[-500:]}", result.status, 0)
        time.sleep(0 if turn else 1.1)
    names = sorted(path.name for path in places[0].iterdir())
    t.check_equal(f"{script}: names", sorted(path.name for path in places[1].iterdir()), names)
    for name in names:
        t.check((places[0] / name).read_bytes() == (places[1] / name).read_bytes(), f"{script}: {name} differs when made again")
    return {name: places[0] / name for name in names}


def left_in(root):
    return [str(path) for path in root.rglob("*cairn*") if path.is_file() or not any(path.iterdir())]


def use(what, root, program="/usr/bin/cairn"):
    """Records in a root that has nothing but the package and one program with its libraries."""
    if not t.IS_LONG:
        return
    leak = t.program("leak")
    libraries = [word for line in t.run(["ldd", leak[0]]).out.decode().splitlines() for word in line.split() if word.startswith("/")]
    for path in (leak[0], *libraries):
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), place)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "proc").mkdir(exist_ok=True)
    inside = ["unshare", "-m", "/bin/sh", "-c", 'mount -t proc proc "$0/proc"; exec chroot "$@"', str(root), str(root)]
    said = t.run([*inside, program, "--version"]).out.decode().splitlines()
    t.check_equal(f"{what}: version", said[:1], [f"cairn {VERSION}"])
    result = t.run([*inside, program, "run", "-q", "-o", "/tmp/x.cairn", *leak], env={"HOME": "/tmp"})
    t.check_equal(f"{what}: status ({result.err.decode()})", result.status, t.run(leak).status)
    told = t.run([*inside, program, "report", "--json", "/tmp/x.cairn"], env={"HOME": "/tmp"})
    found = json.loads(told.out or b"{}")
    t.check(found and found["totals"]["allocations"] > 0, f"{what}: {told.err.decode()}")
    wanted = t.report(t.record(leak)[1])
    for name in ("allocations", "frees", "allocated_bytes", "freed_bytes"):
        t.check_equal(f"{what}: {name}", found and found["totals"][name], wanted and wanted["totals"][name])


def check_rpm(file):
    if not shutil.which("rpm"):
        return t.skip_part("rpm is not installed")
    root = pathlib.Path("rpm root").resolve()
    (root / "var/lib/rpm").mkdir(parents=True)
    rpm = ["rpm", "--root", root]
    for words in (["--initdb"], ["-i", file], ["-V", "cairn-heap"]):
        result = t.run([*rpm, *words])
        t.check_equal(f"rpm {words[0]}: {result.out.decode()}{result.err.decode()}", (result.status, result.out), (0, b""))
    use("rpm", root)
    shutil.rmtree(root / "tmp", ignore_errors=True)
    t.check_equal("rpm: needs", [line for line in t.run(["rpm", "-qp", "--requires", file]).out.decode().splitlines()
                                 if not line.startswith("rpmlib(")], [])
    t.check_equal("rpm: removed", (t.run([*rpm, "-e", "cairn-heap"]).status, left_in(root)), (0, left_of_use(root)))
    if shutil.which("rpmlint") and t.IS_LONG:
        said = t.run(["rpmlint", file]).out.decode()
        # It is static on purpose; signatures are of whoever publishes it.
        errors = [line for line in said.splitlines() if ": E: " in line and "statically-linked-binary" not in line and "no-signature" not in line]
        t.check_equal("rpmlint", errors, [])


def left_of_use(root):
    """The program that was recorded lies where the build does, whose path may have the name in it."""
    return [path for path in left_in(root) if str(t.BUILD) in path]


def check_arch(file):
    if not shutil.which("pacman"):
        return t.skip_part("pacman is not installed")
    root = pathlib.Path("arch").resolve()
    (root / "var/lib/pacman").mkdir(parents=True)
    (root / "pacman.conf").write_text("[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n", "ascii")
    pacman = ["pacman", "--config", root / "pacman.conf", "--root", root, "--dbpath", root / "var/lib/pacman", "--cachedir", root / "cache",
              "--logfile", root / "log", "--noconfirm"]
    for words in (["-U", file], ["-Qkk", "cairn-heap"]):
        result = t.run([*pacman, *words])
        t.check_equal(f"pacman {words[0]}: {result.out.decode()}{result.err.decode()}", result.status, 0)
    t.check(result.out.decode().strip().endswith(" 0 altered files"), f"pacman -Qkk: {result.out.decode()}{result.err.decode()}")
    use("Arch", root)
    shutil.rmtree(root / "tmp", ignore_errors=True)
    t.check_equal("pacman -R", (t.run([*pacman, "-R", "cairn-heap"]).status, left_in(root)), (0, left_of_use(root)))


def blob(layout, described):
    data = (layout / "blobs" / described["digest"].replace(":", "/")).read_bytes()
    t.check_equal(f"{described['digest']}", (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)), (described["digest"], described["size"]))
    return data


def check_image(file, packed):
    layout = pathlib.Path("layout").resolve()
    layout.mkdir()
    t.run(["tar", "-xf", file, "-C", layout])
    named, = json.loads((layout / "index.json").read_text("utf-8"))["manifests"]
    t.check_equal("image: name", named["annotations"], {"org.opencontainers.image.ref.name": VERSION})
    manifest = json.loads(blob(layout, named))
    config = json.loads(blob(layout, manifest["config"]))
    layers = [blob(layout, layer) for layer in manifest["layers"]]
    t.check_equal("image: layers", len(layers), len(config["rootfs"]["diff_ids"]))
    if not shutil.which("umoci"):
        return t.skip_part("umoci is not installed")
    result = t.run(["umoci", "unpack", "--rootless", "--image", f"{layout}:{VERSION}", "bundle"])
    t.check_equal(f"umoci: {result.err.decode()}", result.status, 0)
    root = pathlib.Path("bundle/rootfs").resolve()
    t.check_equal("image: files", sorted(path.name for path in root.rglob("*")), ["cairn", "tmp"])
    t.check((root / "cairn").read_bytes() == packed.read_bytes(), "image: another file")
    use("image", root, "/cairn")
    run_container()


def run_container():
    """By the first of them that can here: crun 1.8 refuses machines that have both versions of control groups."""
    if not t.IS_LONG:
        return
    shutil.rmtree("bundle")
    t.run(["umoci", "unpack", "--image", f"layout:{VERSION}", "bundle"])
    path = pathlib.Path("bundle/config.json")
    config = json.loads(path.read_text("utf-8"))
    t.check_equal("image: what it runs", config["process"]["args"], ["/cairn"])
    config["process"].update(terminal=False, args=["/cairn", "--version"])
    path.write_text(json.dumps(config), "utf-8")
    said = {}
    for runner in filter(shutil.which, ("runc", "crun")):
        result = t.run([runner, "run", f"cairn-test-{os.getpid()}"], cwd="bundle")
        said[runner] = result.err.decode()
        if result.status == 0 and result.out:
            return t.check_equal(runner, result.out.decode().splitlines()[0], f"cairn {VERSION}")
    t.skip_part(f"no container runs here: {said}")


def check_crates():
    if not t.IS_LONG:
        return
    if not shutil.which("cargo"):
        return t.skip_part("cargo is not installed")
    crates = make("crates", t.BUILD / "libcairn_embed.a")
    t.check_equal("crates", list(crates), [f"cairn-heap-{VERSION}.crate", f"cairn-heap-dhat-{VERSION}.crate"])
    t.run(["tar", "-xf", crates[f"cairn-heap-{VERSION}.crate"]])
    built = t.run(["cargo", "build", "--offline", "--quiet", "--example", "words"], cwd=f"cairn-heap-{VERSION}",
                  env={"HOME": os.environ.get("HOME", "/"), "CARGO_TARGET_DIR": os.path.abspath("rust")})
    t.check_equal(f"cargo build: {built.err.decode()[-1000:]}", built.status, 0)
    path = t.fresh_path("crate") + ".cairn"
    t.run([os.path.abspath("rust/debug/examples/words")], env={"CAIRN_OUTPUT": path})
    found = t.report(path)
    t.check(found and t.stacks_through(found, "words::count_words"), "crate: no such stack")


def check_refused(file):
    """One line for a file of no known processor."""
    strange = pathlib.Path(f"cairn-{VERSION}-linux-riscv64").resolve()
    shutil.copy(file, strange)
    for script in ("packages", "image", "distributions"):
        result = t.run([t.PYTHON, t.SOURCE / f"dev/{script}.py", pathlib.Path.cwd(), strange])
        t.check((result.status, result.err.count(b"\n")) == (1, 1) and b"of x86_64 or aarch64" in result.err, f"{script}: {result.err}")


FILE = one_file()
check_refused(FILE)
IMAGE, = make("image", FILE).values()
check_image(IMAGE, FILE)
PACKAGES = make("distributions", FILE)
check_arch(PACKAGES.pop(f"cairn-heap-{VERSION}-1-x86_64.pkg.tar.xz"))
if shutil.which("rpmbuild"):
    check_rpm(PACKAGES.pop(f"cairn-heap-{VERSION}-1.x86_64.rpm"))
else:
    t.skip_part("rpmbuild is not installed")
t.check_equal("other files", list(PACKAGES), [])
check_crates()
t.finish()
