# SPDX-License-Identifier: Apache-2.0
"""The data in a page of `cairn open`, read by another hand than the page does."""

import base64
import json
import pathlib
import re
import zlib

import cairn_test as t


def numbers(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            values.append((value >> 1) ^ -(value & 1))
            value, shift = 0, 0
    return values


def read_page(path):
    """(bytes without data, chunks in the order of the page)."""
    text = pathlib.Path(path).read_text()
    before, rest = re.split('<script type="application/octet-stream" id="data"(?: data-live="1")?>', text)
    encoded, after = rest.split("</script>", 1)
    t.check(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", encoded), f"{path}: the data are not base64")
    data = zlib.decompress(base64.b64decode(encoded))
    chunks, at = [], 0
    while data[at]:
        name = data[at + 1:at + 1 + data[at]].decode()
        at += 1 + data[at]
        kind, size = chr(data[at]), int.from_bytes(data[at + 1:at + 5], "little")
        at += 5
        content = data[at:at + size]
        at += size
        chunks.append((name, json.loads(content) if kind == "j" else
                       content.decode().split("\0")[:-1] if kind == "t" else numbers(content)))
    t.check_equal(f"{path}: end of the data", at + 1, len(data))
    return len((before + after).encode()), chunks
