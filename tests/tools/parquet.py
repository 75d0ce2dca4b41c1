# SPDX-License-Identifier: Apache-2.0
"""A strict reader of Parquet files, written from the format's description without a look at the writer: what
`cairn export -f parquet` uses of it, and nothing else. Pages are unpacked by the command zstd."""

import datetime
import struct
import subprocess

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
INT64, BYTE_ARRAY = 2, 6
PLAIN, PLAIN_DICTIONARY, RLE = 0, 2, 3
UTF8, LIST_CONVERTED, TIMESTAMP_MICROS = 0, 3, 10
ZSTD = 6


class Bytes:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        assert self.at + size <= len(self.data), "beyond the end"
        self.at += size
        return self.data[self.at - size:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def thrift(self, kind=STRUCT):
        """A value of Thrift's compact protocol; a structure is a dictionary by field number."""
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind == BINARY:
            return self.take(self.varint())
        if kind == LIST:
            head = self.take(1)[0]
            count = self.varint() if head >> 4 == 15 else head >> 4
            return [self.thrift(head & 15) for _ in range(count)]
        assert kind == STRUCT, f"type {kind}"
        found, field = {}, 0
        while (head := self.take(1)[0]) != STOP:
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            assert field not in found, f"field {field} twice"
            found[field] = self.thrift(head & 15)
        return found


def hybrid(data, width, count):
    """Runs and bit-packed groups of `count` integers."""
    values = []
    while len(values) < count:
        head = data.varint()
        if head & 1:
            mask, shifts = (1 << width) - 1, range(0, 8 * width, width)
            for _ in range(head >> 1):
                bits = int.from_bytes(data.take(width), "little")
                values += [bits >> shift & mask for shift in shifts]
            assert len(values) < count + 8, "more groups than values"
        else:
            assert head, "an empty run"
            values += [int.from_bytes(data.take((width + 7) // 8), "little")] * (head >> 1)
            assert len(values) <= count, "a run beyond the values"
    return values[:count]


def plain(data, kind, count):
    if kind == INT64:
        return list(struct.unpack(f"<{count}q", data.take(8 * count)))
    return [data.take(struct.unpack("<I", data.take(4))[0]).decode() for _ in range(count)]


class Column:
    def __init__(self, element, is_list):
        self.name, self.is_list = element[4].decode(), is_list
        self.kind, self.is_time = element.get(1), element.get(6) == TIMESTAMP_MICROS
        self.path = [element[4]]


def columns_of(schema):
    root, *rest = schema
    assert root[5] == sum(1 for _ in groups_of(rest)), "children of the root"
    for element, inner in groups_of(rest):
        column = Column(element, bool(inner))
        if inner:
            assert element[6] == LIST_CONVERTED and element[3] == 0, element
            assert inner[0][3] == 2 and inner[0][4] == b"list" and inner[1][4] == b"element", inner
            column.kind, column.path = inner[1][1], [element[4], b"list", b"element"]
            assert inner[1][6] == UTF8 and inner[1][3] == 0
        else:
            assert element[3] == 1, f"{element} is not optional"
            assert (column.kind == BYTE_ARRAY) == (element.get(6) == UTF8), element
        yield column


def groups_of(elements):
    at = 0
    while at < len(elements):
        inner = elements[at + 1:at + 3] if elements[at].get(5) else []
        yield elements[at], inner
        at += 1 + len(inner)


def unpack(packed, size):
    data = subprocess.run(["zstd", "-dc"], input=packed, capture_output=True, check=True).stdout
    assert len(data) == size, f"a page of {len(data)} bytes, not {size}"
    return Bytes(data)


def page(data, size_of_chunk):
    start = data.at
    head = data.thrift()
    body = unpack(data.take(head[3]), head[2])
    size_of_chunk[0] += data.at - start
    size_of_chunk[1] += data.at - start - head[3] + head[2]
    return head, body


def levels(body, count):
    inner = Bytes(body.take(struct.unpack("<I", body.take(4))[0]))
    found = hybrid(inner, 1, count)
    assert inner.at == len(inner.data), "bytes behind the levels"
    return found


def values_of(data, chunk, column):
    about = chunk[3]
    assert about[1] == column.kind and about[3] == column.path and about[4] == ZSTD, about
    sizes, dictionary, found = [0, 0], None, Bytes(data, about.get(11, about[9]))
    assert chunk[2] == found.at
    if 11 in about:
        head, body = page(found, sizes)
        assert head[1] == 2 and head[7][2] == PLAIN_DICTIONARY
        dictionary = plain(body, column.kind, head[7][1])
        assert body.at == len(body.data) and len(set(dictionary)) == len(dictionary)
    assert found.at == about[9], "the data page is elsewhere"
    head, body = page(found, sizes)
    assert head[1] == 0 and head[5][1] == about[5] and head[5][3] == head[5][4] == RLE, head
    assert [about[7], about[6]] == sizes, (about, sizes)
    repetitions = levels(body, about[5]) if column.is_list else [0] * about[5]
    definitions = levels(body, about[5])
    if dictionary is None:
        assert head[5][2] == PLAIN
        values = plain(body, column.kind, sum(definitions))
    else:
        assert head[5][2] == PLAIN_DICTIONARY
        values = [dictionary[i] for i in hybrid(body, body.take(1)[0], sum(definitions))]
    assert body.at == len(body.data), "bytes behind the values"
    return put_together(column, repetitions, definitions, iter(values))


def put_together(column, repetitions, definitions, values):
    rows = []
    for repetition, definition in zip(repetitions, definitions, strict=True):
        value = next(values) if definition else None
        if value is not None and column.is_time:
            value = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=value)
        if not column.is_list:
            rows.append(value)
        elif repetition:
            rows[-1].append(value)
        else:
            rows.append([value] if definition else [])
    return rows


def read(path):
    """(rows as dictionaries, number of row groups, who made it)"""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:4] == data[-4:] == b"PAR1"
    length = struct.unpack("<I", data[-8:-4])[0]
    footer = Bytes(data[len(data) - 8 - length:-8])
    about = footer.thrift()
    assert footer.at == length and about[1] == 1
    columns, rows = list(columns_of(about[2])), []
    for group in about[4]:
        found = [values_of(data, chunk, column) for chunk, column in zip(group[1], columns, strict=True)]
        assert {len(values) for values in found} == {group[3]}, "columns of different lengths"
        rows += [dict(zip((c.name for c in columns), row)) for row in zip(*found)]
    assert len(rows) == about[3]
    return rows, len(about[4]), about[6].decode()
