# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package `cairn` for pip, without setuptools: a wheel is a zip file of the sources with three
texts about them. With the tool as one file (dev/packages.py) it is a wheel for a processor, whose command pip puts
beside python. The version is that of the tool (tool/base/version.h)."""
import base64
import hashlib
import pathlib
import re
import stat
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ENTRY_POINTS = "[pytest11]\ncairn = cairn.pytest_plugin\n"
ANY = "py3-none-any"
# The file is static: it runs where there is glibc of any version, and where there is musl.
SYSTEMS = ("manylinux_2_17", "manylinux2014", "musllinux_1_1")


def version():
    text = (HERE / "../../tool/base/version.h").read_text(encoding="utf-8")
    return re.search(r'"(\d+\.\d+\.\d+)"', text)[1]


def metadata():
    return (f"Metadata-Version: 2.1\nName: cairn-heap\nVersion: {version()}\nRequires-Python: >=3.8\n"
            "Summary: Heap profiles of Python programs and of the native code in them, by cairn\n"
            "License: Apache-2.0\nDescription-Content-Type: text/markdown\n\n" +
            (HERE / "README.md").read_text(encoding="utf-8"))


def place():
    return f"cairn_heap-{version()}.dist-info"


def wheel_text(tags):
    is_pure = "true" if tags == ANY else "false"
    python, abi, systems = tags.split("-")
    return (f"Wheel-Version: 1.0\nGenerator: cairn\nRoot-Is-Purelib: {is_pure}\n" +
            "".join(f"Tag: {python}-{abi}-{system}\n" for system in systems.split(".")))


def entry_of(path):
    entry = zipfile.ZipInfo(path)
    mode = stat.S_IFREG | (0o755 if "/scripts/" in path else 0o644)
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def write_wheel(directory, files, tags=ANY):
    name = f"cairn_heap-{version()}-{tags}.whl"
    record = ""
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in sorted(files.items()):
            data = data if isinstance(data, bytes) else data.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            wheel.writestr(entry_of(path), data)
        wheel.writestr(entry_of(f"{place()}/RECORD"), record + f"{place()}/RECORD,,\n")
    return name


def described(files, tags=ANY):
    return {**files, f"{place()}/METADATA": metadata(), f"{place()}/WHEEL": wheel_text(tags),
            f"{place()}/entry_points.txt": ENTRY_POINTS}


def sources():
    return {f"cairn/{path.name}": path.read_text(encoding="utf-8") for path in (HERE / "cairn").glob("*.py")}


def build_wheel(directory, config_settings=None, metadata_directory=None):
    return write_wheel(directory, described(sources()))


def build_with_tool(directory, tool, arch):
    """`tool`: the bytes of the file that `make dist` made for this processor."""
    tags = "py3-none-" + ".".join(f"{system}_{arch}" for system in SYSTEMS)
    files = {**sources(), f"cairn_heap-{version()}.data/scripts/cairn": tool}
    return write_wheel(directory, described(files, tags), tags)


def build_editable(directory, config_settings=None, metadata_directory=None):
    """For `pip install -e`: a path file that leads to the checkout."""
    return write_wheel(directory, described({"cairn_heap.pth": f"{HERE}\n"}))


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
