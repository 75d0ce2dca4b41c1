# SPDX-License-Identifier: Apache-2.0
"""What a version says of the recordings of a release (tests/compat): the keys of its JSON, which later versions may only
add to, and figures, which stay. dev/compat-recordings.py writes them down, tests/e2e/compat.py compares."""

import gzip
import json
import pathlib

import cairn_test as t

COMPAT = t.SOURCE / "tests/compat"
RECORDINGS = "recordings.tar.xz"
LOGS = "logs.tar.xz"  # event logs with their recordings, and what `cairn events --format csv` said of them
EXPECTED = "expected.json"
# The recordings of each release, in directories of this name within the archive.
PLACE = "recordings"
COMPARED = ("exact.cairn", "values.cairn")
# Parts of a report that are figures of the recording, of which later versions may know more, but not other ones.
SECTIONS = ("schema", "totals", "inherited", "peak", "at_exit", "mappings", "threads", "snapshots", "regions", "pools",
            "freed_by", "combined_peak")
# Views whose rows are answers (docs/reference/json.md), whose schema and columns stay.
VIEWS = ("stacks", "leaks", "temporary", "sizes", "functions", "modules", "threads", "snapshots")
VALUES = ("allocations", "frees", "allocated_bytes", "peak_bytes", "at_exit_bytes")


def keys_of(found, path=""):
    """Paths of all keys, each once; of a list what its elements have together."""
    if isinstance(found, dict):
        return {f"{path}{name}" for name in found}.union(*(keys_of(value, f"{path}{name}.") for name, value in found.items()))
    if isinstance(found, list):
        return set().union(*(keys_of(value, f"{path.removesuffix('.')}[].") for value in found))
    return set()


def own_functions(stack):
    """Names that do not depend on this machine's libraries."""
    return [frame["function"] for frame in stack["frames"] if (frame["module"] or "").endswith("/program")]


def figures_of(found):
    kept = {name: found[name] for name in SECTIONS if name in found}
    if kept.get("mappings"):
        kept["mappings"] = {name: value for name, value in kept["mappings"].items() if name != "stacks"}
    kept["stacks"] = sorted(([own_functions(stack), {name: stack[name] for name in VALUES}] for stack in found.get("stacks", [])),
                            key=json.dumps)
    kept["processes"] = [figures_of(process) for process in found.get("processes", [])]
    return kept


def is_kept(old, new):
    """All of `old` is in `new`: objects may have grown."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and is_kept(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(is_kept, old, new))
    return type(old) is type(new) and old == new


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protocol buffer that has integers and bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def pprof_sums(data):
    """Sums over the samples (field 2 of a profile), by position of the value (field 2 of a sample)."""
    sums = []
    for number, sample in fields(gzip.decompress(data)):
        if number != 2:
            continue
        packed, values, at = b"".join(value for field, value in fields(sample) if field == 2), [], 0
        while at < len(packed):
            value, at = varint(packed, at)
            values.append(value)
        sums = [a + b for a, b in zip(sums or [0] * len(values), values)]
    return sums


def say(*arguments):
    result = t.run_cairn(*arguments)
    if not t.check_equal(f"cairn {' '.join(map(str, arguments))}", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None
    return result.out


def answer_keys(view, path):
    """Keys of a view's answer, and of its columns; none of what this recording does not have."""
    answer = t.run_cairn("report", "--view", view, "--json", str(path))
    if answer.status:
        return set()
    answer = json.loads(answer.out)
    return {f"{key}={answer[key]}" if key == "schema" else key for key in answer} | {f"rows[].{column['key']}" for column in answer["columns"]}


def look(directory):
    """What this version says of the recordings in the directory: `keys` of each kind of JSON, of all of them together,
    and `figures` of each."""
    keys, figures = {"report": set(), "export": set(), "diff": set(), "answers": set()}, {}
    for path in sorted(pathlib.Path(directory).glob("*.cairn")):
        report, profile = say("report", "--json", str(path)), say("export", "-f", "pprof", str(path))
        exported = say("export", "-f", "json", str(path))
        if None in (report, profile, exported):
            continue
        report = json.loads(report)
        keys["report"] |= keys_of(report)
        keys["export"] |= keys_of(json.loads(exported))
        keys["answers"] |= {f"{view}.{key}" for view in VIEWS for key in answer_keys(view, path)}
        figures[path.name] = {**figures_of(report), "pprof_sums": pprof_sums(profile)}
    compared = say("diff", "--json", *(str(pathlib.Path(directory) / name) for name in COMPARED))
    if compared is not None:
        keys["diff"] |= keys_of(json.loads(compared))
    return {"keys": {kind: sorted(found) for kind, found in keys.items()}, "figures": figures}
