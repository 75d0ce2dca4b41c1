# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package `cairn` for pip, without setuptools: a wheel is a zip file of the sources with three
texts about them. The version is that of the tool (tool/base/version.h)."""
import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ENTRY_POINTS = "[pytest11]\ncairn = cairn.pytest_plugin\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: cairn\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


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


def write_wheel(directory, files):
    name = f"cairn_heap-{version()}-py3-none-any.whl"
    record = ""
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in sorted(files.items()):
            data = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            wheel.writestr(zipfile.ZipInfo(path), data)
        wheel.writestr(zipfile.ZipInfo(f"{place()}/RECORD"), record + f"{place()}/RECORD,,\n")
    return name


def described(files):
    return files | {f"{place()}/METADATA": metadata(), f"{place()}/WHEEL": WHEEL,
                    f"{place()}/entry_points.txt": ENTRY_POINTS}


def build_wheel(directory, config_settings=None, metadata_directory=None):
    sources = {f"cairn/{path.name}": path.read_text(encoding="utf-8") for path in (HERE / "cairn").glob("*.py")}
    return write_wheel(directory, described(sources))


def build_editable(directory, config_settings=None, metadata_directory=None):
    """For `pip install -e`: a path file that leads to the checkout."""
    return write_wheel(directory, described({"cairn_heap.pth": f"{HERE}\n"}))


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
