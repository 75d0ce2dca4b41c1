#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the image of containers from files of `make dist`: from scratch, with the one file, in OCI's layout as a tar.
dev/image.py DIRECTORY FILE...; FILE is cairn-VERSION-linux-ARCH, one for each processor. The same bytes, and so the same
digest, each time; prints the file and the digest."""

import datetime
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import released  # noqa: E402

CPUS = {"x86_64": "amd64", "aarch64": "arm64"}
KIND = "application/vnd.oci.image."
ABOUT = {"org.opencontainers.image.title": "cairn", "org.opencontainers.image.licenses": "Apache-2.0",
         "org.opencontainers.image.description": released.ABOUT}


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def as_tar(entries):
    """(path, bytes or None for a directory, mode) as a tar of root's, without dates."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data, mode in entries:
            entry = tarfile.TarInfo(path)
            entry.mode = mode
            if data is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data or b""))
    return out.getvalue()


class Layout:
    def __init__(self):
        self.blobs = {}

    def add(self, kind, data, **more):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": KIND + kind, "digest": f"sha256:{digest}", "size": len(data), **more}

    def image(self, file, arch, created):
        """The manifest of one processor. /tmp is where cairn puts its library for the programs that it starts."""
        layer = as_tar([("cairn", file.read_bytes(), 0o755), ("tmp", None, 0o1777)])
        config = {"architecture": CPUS[arch], "os": "linux", "created": created,
                  "config": {"Entrypoint": ["/cairn"], "Env": ["PATH=/"], "WorkingDir": "/tmp"},
                  "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
                  "history": [{"created": created, "created_by": "make release"}]}
        manifest = {"schemaVersion": 2, "mediaType": f"{KIND}manifest.v1+json",
                    "config": self.add("config.v1+json", as_json(config)),
                    "layers": [self.add("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))],
                    "annotations": {**ABOUT, "org.opencontainers.image.created": created}}
        return self.add("manifest.v1+json", as_json(manifest), platform={"architecture": CPUS[arch], "os": "linux"})

    def tar(self, named):
        index = {"schemaVersion": 2, "mediaType": f"{KIND}index.v1+json", "manifests": [named]}
        blobs = [(f"blobs/sha256/{digest}", data, 0o644) for digest, data in sorted(self.blobs.items())]
        return as_tar([("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}), 0o644), ("index.json", as_json(index), 0o644),
                       ("blobs", None, 0o755), ("blobs/sha256", None, 0o755), *blobs])


def main():
    directory, files = released.arguments("dev/image.py", CPUS)
    created = datetime.datetime.fromtimestamp(released.seconds(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layout = Layout()
    manifests = [layout.image(file, released.arch_of(file), created) for file in sorted(files)]
    named = manifests[0]
    if len(manifests) > 1:
        named = layout.add("index.v1+json", as_json({"schemaVersion": 2, "mediaType": f"{KIND}index.v1+json", "manifests": manifests}))
    named["annotations"] = {"org.opencontainers.image.ref.name": released.VERSION}
    path = directory / f"cairn-heap-{released.VERSION}-oci.tar"
    path.write_bytes(layout.tar(named))
    print(path, named["digest"])


if __name__ == "__main__":
    main()
