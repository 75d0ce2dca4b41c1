# SPDX-License-Identifier: Apache-2.0
"""The wire format of Protocol Buffers, read; and snappy's block format, which wraps some of it."""

import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """(number, value) of each field: an integer, or bytes; fixed ones as their bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                assert kind == 2, f"wire type {kind}"
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field is cut off"
        yield number, value


def of(data, number):
    return [value for found, value in fields(data) if found == number]


def one(data, number, otherwise=b""):
    found = of(data, number)
    assert len(found) < 2, f"field {number} is there {len(found)} times"
    return found[0] if found else otherwise


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(signed(value))
    return values


def fixed64(data):
    return struct.unpack("<Q", data)[0]


def double(data):
    return struct.unpack("<d", data)[0]


def unsnap(data):
    """All three kinds of copies too, though cairn writes none."""
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(data[at:at + more], "little")
                at += more
            out += data[at:at + length + 1]
            at += length + 1
            continue
        width = (0, 1, 2, 4)[tag & 3]
        length = 4 + (tag >> 2 & 7) if width == 1 else 1 + (tag >> 2)
        back = int.from_bytes(data[at:at + width], "little") | ((tag >> 5) << 8 if width == 1 else 0)
        at += width
        for _ in range(length):
            out.append(out[-back])
    assert len(out) == size, f"{len(out)} bytes of {size}"
    return bytes(out)


def message(data):
    """The same as {number: [values]}."""
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found
