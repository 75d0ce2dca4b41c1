#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report --json` is one object of the documented form: every key there, of its type, no other."""

import cairn_test as t

INTEGER, TEXT, TRUTH = int, str, bool
PLAIN = (bool, int, float, str)


class OrNull:
    def __init__(self, kind):
        self.kind = kind


class Optional(OrNull):
    """A key that may be missing."""


class CountsByReason:
    pass


class Values:
    """Of keys that depend on the claim (tests/truth knows them)."""


FRAME = {"function": OrNull(TEXT), "file": OrNull(TEXT), "line": OrNull(INTEGER),
         "module": OrNull(TEXT), "offset": INTEGER, "inlined": TRUTH}
SIZES = {"exact": [{"size": INTEGER, "count": INTEGER, "at_least": TRUTH}], "log2": [INTEGER],
         "unknown": INTEGER}
ALIGNED = dict.fromkeys(["calls", "usual_alignment", "largest_alignment"], INTEGER) | {
    "slack_bytes": OrNull(INTEGER), "waste_bytes": OrNull(INTEGER),
    "alignments": [{"alignment": INTEGER, "calls": INTEGER}]}
REALLOCS = dict.fromkeys(["calls", "in_place", "grown", "copied_bytes"], INTEGER)
INHERITED = dict.fromkeys(["blocks", "bytes", "peak_blocks", "peak_bytes", "at_exit_blocks", "at_exit_bytes"], INTEGER)
STACK = {"id": (INTEGER, TEXT), "incomplete": OrNull(TEXT), "frames": [FRAME], "allocations": INTEGER,
         "frees": INTEGER, "temporary": INTEGER, "watched": INTEGER, "watched_short_lived": INTEGER,
         "allocated_bytes": INTEGER, "freed_bytes": INTEGER,
         "slack_bytes": INTEGER, "alignment_waste_bytes": INTEGER, "peak_blocks": INTEGER, "peak_bytes": INTEGER,
         "at_exit_bytes": INTEGER, "at_exit_blocks": INTEGER, "inherited": Optional(INHERITED), "sizes": Optional(SIZES),
         "reallocs": Optional(REALLOCS), "aligned": Optional(ALIGNED), "ages": Optional({"calls": [INTEGER], "ms": [INTEGER]})}
THREAD = {"name": TEXT, "tid": INTEGER, "slot": INTEGER, "start_ns": INTEGER, "end_ns": OrNull(INTEGER),
          "allocations": INTEGER, "allocated_bytes": INTEGER, "peak_bytes": INTEGER, "at_exit_bytes": INTEGER}
PICTURE = dict.fromkeys(
    ["at_ns", "rss_bytes", "pss_bytes", "swap_bytes", "live_bytes", "rest_bytes", "stacks_bytes",
     "files_bytes", "shared_bytes", "own_bytes", "other_bytes", "heap_live_bytes", "heap_live_blocks",
     "arenas", "arena_chunk_bytes", "arena_top_bytes"],
    INTEGER) | dict.fromkeys(["free_bytes", "slack_bytes", "mapped_bytes"], OrNull(INTEGER)) | {"free_is_partial": TRUTH}
RESIDENT = {"at_ns": INTEGER, "rss_bytes": INTEGER, "pss_bytes": OrNull(INTEGER), "swap_bytes": INTEGER}
MAPPED = dict.fromkeys(["calls", "mapped_bytes", "unmapped_bytes", "peak_bytes", "peak_mappings",
                        "at_exit_bytes", "at_exit_mappings"], INTEGER)
MAPPINGS = MAPPED | {
    "peak_at_ns": INTEGER, "lost": INTEGER,
    "kinds": dict.fromkeys(["memory", "files", "shared", "reserved", "allocator"], MAPPED),
    "stacks": [MAPPED | {"frames": [FRAME], "kinds": TEXT, "reserved_bytes": INTEGER,
                         "reserved_mappings": INTEGER}]}
SCHEMA = {
    "schema": TEXT,
    "process": {"pid": INTEGER, "ppid": INTEGER, "command": TEXT, "start_unix_ns": INTEGER,
                "duration_ns": INTEGER,
                "exit": OrNull({"status": OrNull(INTEGER), "signal": OrNull(INTEGER)})},
    "totals": {"allocations": INTEGER, "frees": INTEGER, "allocated_bytes": INTEGER,
               "freed_bytes": INTEGER, "failed": INTEGER, "temporary": INTEGER, "watched": INTEGER,
               "watched_short_lived": INTEGER, "slack_bytes": INTEGER, "alignment_waste_bytes": INTEGER},
    "inherited": INHERITED,
    "peak": {"bytes": INTEGER, "blocks": INTEGER, "at_ns": INTEGER, "from_ns": OrNull(INTEGER), "error_bytes": INTEGER},
    "at_exit": {"bytes": INTEGER, "blocks": INTEGER},
    "rss": {"peak_bytes": OrNull(INTEGER), "at_peak": OrNull(PICTURE), "last": OrNull(PICTURE),
            "points": [RESIDENT], "named": [{"name": TEXT, "bytes": INTEGER}]},
    "trust": {"exact": TRUTH, "lost": CountsByReason(), "stacks_incomplete": CountsByReason(),
              "own_bytes": INTEGER, "frames_unresolved": INTEGER, "earlier_frees": INTEGER},
    "stacks": [STACK],
    "mappings": OrNull(MAPPINGS),
    "threads": [THREAD],
    "snapshots": [{"at_ns": INTEGER, "reason": TEXT, "label": TEXT, "generation": INTEGER, "live_bytes": INTEGER,
                 "live_blocks": INTEGER, "allocated_bytes": INTEGER, "allocations": INTEGER,
                 "missing_values": INTEGER, "has_values": TRUTH}],
    "claims": OrNull([{"key": TEXT, "evidence": Values(), "sentence": TEXT, "sure": TEXT, "page": TEXT,
                       "saves": Optional({"bytes": INTEGER, "calls": INTEGER, "faults": INTEGER, "is_least": TRUTH})}]),
    "freed_by": [dict.fromkeys(["owner_slot", "freer_slot", "frees", "bytes"], INTEGER)],
}


def is_of(value, kind):
    return isinstance(value, kind) and (kind in (bool, PLAIN) or not isinstance(value, bool))


def compare(where, value, form):
    if isinstance(form, OrNull):
        return value is None or compare(where, value, form.kind)
    if isinstance(form, CountsByReason):
        return t.check(isinstance(value, dict) and all(is_of(n, int) for n in value.values()),
                       f"{where}: {value!r} are not counts by reason")
    if isinstance(form, Values):
        return t.check(value and all(one is None or is_of(one, PLAIN) for one in value.values()),
                       f"{where}: {value!r} are no values")
    if isinstance(form, tuple):
        return t.check(any(is_of(value, kind) for kind in form), f"{where}: {value!r}")
    if isinstance(form, list):
        if t.check(isinstance(value, list), f"{where}: {value!r} is no list"):
            for index, item in enumerate(value):
                compare(f"{where}[{index}]", item, form[0])
        return True
    if isinstance(form, dict):
        if t.check(isinstance(value, dict), f"{where}: {value!r} is no object"):
            needed = [key for key in form if not isinstance(form[key], Optional)]
            t.check(set(needed) <= set(value) <= set(form), f"{where}: keys {sorted(value)}")
            for key in set(value) & set(form):
                compare(f"{where}.{key}", value[key], form[key])
        return True
    return t.check(is_of(value, form), f"{where}: {value!r} is no {form.__name__}")


for command, options in ((("leak",), []), (("threads", "pipe"), []), (("dlopen_loop",), []), (("exceptions",), []), (("aligned",), []),
                         (("mappings", 500, 1), ["--mmap"])):
    argv = t.program(*command)
    path = t.fresh_path("recording") + ".cairn"
    t.run_cairn("run", "-q", *options, "-o", path, "--", *argv)
    found = t.report(path)
    if not found:
        continue
    compare(command[0], found, SCHEMA)
    t.check_equal("schema", found["schema"], "cairn.report/1")
    t.check_equal("command", found["process"]["command"], " ".join(argv))
    t.check(0 <= found["peak"]["at_ns"] <= found["process"]["duration_ns"], f"{found['peak']}")
    t.check(found["rss"]["peak_bytes"] and found["rss"]["peak_bytes"] > 1 << 19, f"{found['rss']}")
    ids = [stack["id"] for stack in found["stacks"]]
    t.check_equal("ids are unique", len(set(ids)), len(ids))
    t.check_equal("same again", t.report(path), found)
t.finish()
