# SPDX-License-Identifier: Apache-2.0
"""Figures that cairn is to reach, and whether it does. `measured` of a goal returns the figure or None; a
goal holds if the figure is at most the limit. What prototypes and heaptrack's preload had once measured on
another machine, on such rows, stands beside them."""

import dataclasses
import math
import statistics
from typing import Callable

from figures import facts, figures
from rows import LONG
from variants import FLOOR, HEAPTRACK, HEAPTRACK_RAW, PLAIN, PRELOAD, RUN

KIB, MIB = 1 << 10, 1 << 20
HEAP_SHARE, BYTES_A_STACK, BYTES_A_THREAD, BYTES_ALWAYS = 0.13, 100, 20 * 1000, 2 * MIB
RECORDING_ALWAYS = MIB


@dataclasses.dataclass(frozen=True)
class Goal:
    what: str
    limit: float
    unit: str
    prototype: str
    measured: Callable  # results, name of a variant -> number or None
    peers: bool = True  # whether heaptrack's figures are shown beside
    floor: Callable | None = None  # results -> the same of a preload that only counts, to be shown beside


def cell_of(results, row_name, variant_name):
    row = next((row for row in results.rows if row.name == row_name), None)
    variant = next((v for v in results.variants if v.name == variant_name), None)
    cell = figures(results, row, variant) if row and variant else None
    return None if not cell or cell.problem else cell


def figure(row_name, field, scale=1.0):
    def measured(results, variant_name):
        cell = cell_of(results, row_name, variant_name)
        value = getattr(cell, field) if cell else None
        return None if value is None else value * scale
    return measured


def floor_figure(row_name, field):
    return lambda results: figure(row_name, field)(results, FLOOR)


def ns(row_name, limit, prototype, what=None):
    """What a pair takes beyond the plain program's."""
    return Goal(what or row_name, limit, "ns a pair", prototype, figure(row_name, "added_ns"),
                floor=floor_figure(row_name, "added_ns"))


def over_floor(row_name):
    def measured(results, variant_name):
        added, floor = (figure(row_name, "added_ns")(results, name) for name in (variant_name, FLOOR))
        return None if None in (added, floor) else added - floor
    return measured


def ns_over_floor(row_name, limit, prototype, what=None):
    """The same beyond what a preload takes that only counts."""
    return Goal(what or row_name, limit, "ns a pair over the floor", prototype, over_floor(row_name),
                floor=floor_figure(row_name, "added_ns"))


def ratio(row_name, limit, prototype):
    return Goal(row_name, limit, "x", prototype, figure(row_name, "wall_ratio"),
                floor=floor_figure(row_name, "wall_ratio"))


def fixed(variant_name, measured):
    """A goal of one variant only, whatever column is asked."""
    return lambda results, _: measured(results, variant_name)


def threads_quotient(results, variant_name):
    """The whole cost of a pair in each of two threads, to that in one, by how much the plain program's rises:
    its allocator takes locks then, and the processors may share a core."""
    walk = "1,024 stacks in walk order, depth 20"
    one, two = (cell_of(results, f"{walk}{more}", variant_name) for more in ("", ", 2 threads"))
    return two.wall_ratio / one.wall_ratio if one and two else None


FIVE, FIVE_LIMIT = ("gawk", "lua", "bc", "php, its JIT compiler", "rustc, several threads"), 1.20
EIGHT = {"python3": (1.25, "1.29"), "sqlite3": (1.12, "1.17"), "xmllint": (1.12, "1.18"),
         "jq": (1.04, "1.04"), "perl": (1.10, "1.14"), "git log": (1.02, "1.02"),
         "cc1plus": (1.12, "1.11-1.16"), "redis-server": (1.10, "1.34")}


def mean_of(names):
    """The geometric mean of the rows' ratios."""
    def measured(results, variant_name):
        ratios = [figure(name, "wall_ratio")(results, variant_name) for name in names]
        return None if None in ratios else math.exp(statistics.fmean(map(math.log, ratios)))
    return measured


def whole_run_percent(results, _):
    """By how much the whole `cairn run` is longer than the in-process part; the worst of the long rows."""
    found = [(cell_of(results, row.name, PRELOAD), cell_of(results, row.name, RUN)) for row in LONG]
    percents = [100 * (whole.wall_s / inside.wall_s - 1) for inside, whole in found if inside and whole]
    return max(percents, default=None)


def pairs_of_facts(results):
    """[(row, cairn's figures, facts, (thread, stack) pairs)] of rows whose recording was looked at."""
    for row in results.rows:
        cell, found = cell_of(results, row.name, PRELOAD), facts(results, row, PRELOAD)
        if cell and found:
            # Cells come in blocks of 16 a thread and more, so they are an upper bound.
            yield row, cell, found, min(found["cells"], found["stacks"] * found["threads"])


def memory_share(results, _):
    """The largest share of its allowance of resident memory that a row takes, in percent."""
    return max((100 * cell.rss_added_bytes / memory_allowance(row, found, stacks)
                for row, cell, found, stacks in pairs_of_facts(results)), default=None)


def memory_allowance(row, found, stacks):
    return (HEAP_SHARE * found["peak"] + BYTES_A_STACK * stacks + BYTES_A_THREAD * row.threads
            + BYTES_ALWAYS)


def recording_allowance(stacks):
    return BYTES_A_STACK * stacks + RECORDING_ALWAYS


def recordings(results):
    """[(row, bytes of the recording that `cairn run` leaves, what it may take)]"""
    for row, _, _, stacks in pairs_of_facts(results):
        whole = cell_of(results, row.name, RUN)
        if whole:
            yield row, whole.written_bytes, recording_allowance(stacks)


def recording_share(results, _):
    return max((100 * taken / allowed for _, taken, allowed in recordings(results)), default=None)


GOALS = [
    *(ns(f"one stack, depth {depth}", limit, had)
      for depth, limit, had in ((5, 8, "8.8"), (20, 12, "12.8"), (60, 20, "20.8"))),
    *(ns_over_floor(f"256 stacks in walk order, depth {depth}", limit, had)
      for depth, limit, had in ((5, 10, "10.2"), (20, 18, "19.9"), (60, 28, "28"), (200, 65, "66"))),
    ns_over_floor("1,024 random stacks, depth 20", 95, "95"),
    *(ns_over_floor(f"stacks that never repeat, depth {depth}", limit, had)
      for depth, limit, had in ((20, 350, "108"), (60, 850, "340"))),
    ns_over_floor("C++ trees, millions of stacks", 160, "72-102"),
    ns_over_floor("cc1plus", 150, "83-139", "cc1plus, an allocation"),
    Goal("2 threads: a pair in each to one thread's, over the plain program's", 1.05, "x", "1.0", threads_quotient),
    ratio("16 threads with std::list", 1.15, "1.1-1.2"),
    ratio("producer and consumer", 1.25, "1.06"),
    *(ratio(name, limit, had) for name, (limit, had) in EIGHT.items()),
    Goal("geometric mean of those eight", 1.06, "x", "1.16", mean_of(EIGHT),
         floor=lambda results: mean_of(EIGHT)(results, FLOOR)),
    Goal("geometric mean of five that nothing was tuned to", FIVE_LIMIT, "x", "", mean_of(FIVE),
         floor=lambda results: mean_of(FIVE)(results, FLOOR)),
    Goal("whole `cairn run` over in-process, runs of 5 s", 2, "%", "", whole_run_percent, peers=False),
    Goal("100,000 short threads, a thread", 0.5, "us", "0.3-0.5",
         figure("100,000 short threads", "added_ns", 1e-3)),
    Goal("100,000 short threads, resident memory added", 2, "MiB", "0.4",
         figure("100,000 short threads", "rss_added_bytes", 1 / MIB)),
    Goal("resident memory added, of what is allowed (worst row)", 100, "%", "", memory_share, peers=False),
    Goal("recording, of what is allowed (worst row)", 100, "%", "", recording_share, peers=False),
    Goal("totals only (`--no-stacks`), one stack, depth 20", 4, "ns a pair over the floor", "",
         fixed("cairn totals", over_floor("one stack, depth 20")), peers=False,
         floor=floor_figure("one stack, depth 20", "added_ns")),
    Goal("switched off, one stack, depth 20", 1, "ns a pair over the floor", "",
         fixed("cairn off", over_floor("one stack, depth 20")), peers=False,
         floor=floor_figure("one stack, depth 20", "added_ns")),
    Goal("a block that is not sampled (`--sample`), one stack, depth 20", 1, "ns a pair over the floor", "",
         fixed("cairn sampling", over_floor("one stack, depth 20")), peers=False,
         floor=floor_figure("one stack, depth 20", "added_ns")),
    Goal("start of /bin/true, preload", 0.7, "ms", "", figure("start of /bin/true", "added_s", 1e3)),
    *(Goal(f"{row}, whole `cairn run`", limit, "ms", "", fixed(RUN, figure(row, "added_s", 1e3)), peers=False)
      for row, limit in (("start of /bin/true", 12), ("start of python3", 15))),
]


def text_of(number, unit):
    if number is None:
        return "–"
    return f"{number:,.2f}" if unit in ("x", "ms", "us") or abs(number) < 1 else f"{number:,.1f}"


def table(results):
    lines = ["| what | goal | prototype | measured | reached | floor | heaptrack raw / complete |",
             "|---|--:|--:|--:|---|--:|--:|"]
    for goal in GOALS:
        number = goal.measured(results, PRELOAD)
        if number is None:
            continue
        peers = [text_of(goal.measured(results, name), goal.unit) if goal.peers else ""
                 for name in (HEAPTRACK_RAW, HEAPTRACK)]
        floor = text_of(goal.floor(results), goal.unit) if goal.floor else ""
        lines.append(f"| {goal.what} | ≤ {goal.limit:g} {goal.unit} | {goal.prototype}"
                     f" | {text_of(number, goal.unit)} | {'yes' if number <= goal.limit else '**no**'}"
                     f" | {floor} | {' / '.join(filter(None, peers))} |")
    lines += ["", "*Floor* is what a preload adds that only counts (of ratios: its ratio).",
              "Why a goal is not reached: [docs/explain/performance.md](../../docs/explain/performance.md)."]
    lines += ["", *allowances(results), *rates(results)]
    return lines


def rates(results):
    """Of the programs with a goal in times: how often they allocate, and what that leaves for an allocation."""
    lines = []
    for name, limit in [*((name, limit) for name, (limit, _) in EIGHT.items()), *((name, FIVE_LIMIT) for name in FIVE)]:
        plain, mine, floor = (cell_of(results, name, variant) for variant in (PLAIN, PRELOAD, FLOOR))
        if not (plain and mine and floor and plain.allocations):
            continue
        allowed_ns = (limit - 1) * plain.wall_s * 1e9 / plain.allocations
        lines.append(f"| {name} | {plain.allocations / plain.wall_s / 1e6:.1f} | {allowed_ns:.1f} | {mine.added_ns:.1f}"
                     f" | {floor.added_ns:.1f} |")
    return ["", "What that leaves for an allocation and its free, in ns; a preload that only counts is the floor:", "",
            "| program | million allocations a second | the goal allows | cairn | floor |", "|---|--:|--:|--:|--:|",
            *lines] if lines else []


def allowances(results):
    """What the two lines in percent of an allowance are made of, and the rows that exceed it."""
    found = list(pairs_of_facts(results))
    if not found:
        return []
    memory = [(row, cell.rss_added_bytes, memory_allowance(row, facts_, stacks))
              for row, cell, facts_, stacks in found]
    return ["Allowed resident memory: 13 % of the peak heap + 100 bytes a (thread, stack) + 20 kB a live"
            f" thread + 2 MiB. {text_of_exceeding(memory)}", "",
            "Allowed recording of `cairn run`: 100 bytes a (thread, stack) + 1 MiB."
            f" {text_of_exceeding(list(recordings(results)))}"]


def text_of_exceeding(rows):
    over = [f"{row.name} ({taken / MIB:.1f} of {allowed / MIB:.1f} MiB)"
            for row, taken, allowed in rows if taken > allowed]
    text = f"{len(rows) - len(over)} of {len(rows)} rows keep to it"
    return text + ("; not: " + ", ".join(over) + "." if over else ".")
