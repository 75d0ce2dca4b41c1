# SPDX-License-Identifier: Apache-2.0
"""The wire format of Protocol Buffers, for tests that check files of ours without the schema at hand."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """A message as {field number: [values]}; what has a length is bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 in (0, 2), f"wire type {tag & 7}"
        if tag & 7:
            length, at = varint(data, at)
            assert at + length <= len(data), "a field beyond its message"
            value, at = data[at:at + length], at + length
        else:
            value, at = varint(data, at)
        found.setdefault(tag >> 3, []).append(value)
    return found
