#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs editors/vscode as a .vsix, which `code --install-extension FILE` and the registries take: a zip file of the
extension with two texts about it. It has no parts that are compiled, and needs nothing else.
    dev/vsix.py DIRECTORY      writes DIRECTORY/cairn-heap-VERSION.vsix and prints its path"""

import json
import pathlib
import sys
import zipfile
from xml.sax.saxutils import quoteattr

TOP = pathlib.Path(__file__).resolve().parent.parent
HERE = TOP / "editors/vscode"
TYPES = {".json": "application/json", ".vsixmanifest": "text/xml", ".js": "application/javascript",
         ".md": "text/markdown", ".txt": "text/plain"}
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the same bytes each time


def content_types():
    rows = "".join(f"<Default Extension={quoteattr(ending)} ContentType={quoteattr(kind)}/>" for ending, kind in TYPES.items())
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{rows}</Types>\n')


def manifest(about):
    def put(name, **attributes):
        return f"<{name} " + " ".join(f"{key}={quoteattr(value)}" for key, value in attributes.items()) + "/>"

    identity = put("Identity", Language="en-US", Id=about["name"], Version=about["version"], Publisher=about["publisher"])
    engine = put("Property", Id="Microsoft.VisualStudio.Code.Engine", Value=about["engines"]["vscode"])
    kind = put("Property", Id="Microsoft.VisualStudio.Code.ExtensionKind", Value=",".join(about["extensionKind"]))
    assets = "".join(put("Asset", Type=f"Microsoft.VisualStudio.{of}", Path=f"extension/{name}", Addressable="true")
                     for of, name in (("Code.Manifest", "package.json"), ("Services.Content.Details", "README.md"),
                                      ("Services.Content.License", "LICENSE.txt")))
    target = put("InstallationTarget", Id="Microsoft.VisualStudio.Code")
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">'
            f"<Metadata>{identity}<DisplayName>{about['displayName']}</DisplayName>"
            f'<Description xml:space="preserve">{about["description"]}</Description>'
            f"<Tags>{','.join(about['keywords'])}</Tags><Categories>{','.join(about['categories'])}</Categories>"
            f"<License>extension/LICENSE.txt</License><Properties>{engine}{kind}</Properties></Metadata>"
            f"<Installation>{target}</Installation><Dependencies/><Assets>{assets}</Assets></PackageManifest>\n")


def files():
    about = json.loads((HERE / "package.json").read_text("utf-8"))
    yield "extension.vsixmanifest", manifest(about)
    yield "[Content_Types].xml", content_types()
    for path in [HERE / "package.json", HERE / "README.md", *sorted((HERE / "src").glob("*.js"))]:
        yield f"extension/{path.relative_to(HERE)}", path.read_text("utf-8")
    yield "extension/LICENSE.txt", (TOP / "LICENSE").read_text("utf-8")


def write(directory):
    about = json.loads((HERE / "package.json").read_text("utf-8"))
    path = pathlib.Path(directory) / f"{about['name']}-{about['version']}.vsix"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            package.writestr(entry, text)
    return path


if __name__ == "__main__":
    print(write(sys.argv[1]))
