# SPDX-License-Identifier: Apache-2.0
"""From samples to figures. A ratio or a difference is taken within a round, between runs that lie seconds
apart, and the median of the rounds is the figure."""

import dataclasses
import statistics

from rows import PARTS
from variants import FLOOR, PLAIN


def reduced(name):
    """The name of `name`'s run on the small input."""
    return f"{name}, reduced"


class Results:
    """samples[row name][variant name][round] for rows and variants of a benchmark."""

    def __init__(self, rows, variants, share=1):
        self.rows, self.variants, self.share, self.samples = rows, variants, share, {}

    def add(self, row, name, number, sample):
        self.samples.setdefault(row.name, {}).setdefault(name, {})[number] = sample

    def of(self, row, name):
        return self.samples.get(row.name, {}).get(name, {})


@dataclasses.dataclass
class Figures:
    """One cell of the table; None is what was not measured."""
    rounds: int
    wall_s: float
    wall_ratio: float
    cpu_s: float | None
    cpu_ratio: float | None
    allocations: float | None
    added_s: float  # a unit
    added_ns: float | None  # an allocation
    rss_bytes: int
    rss_added_bytes: int
    written_bytes: int
    report_s: float | None
    report_rss_bytes: int | None
    problem: str = ""


def median_of(numbers):
    numbers = [number for number in numbers if number is not None]
    return statistics.median(numbers) if numbers else None


def allocations_of(results, row, is_reduced):
    """Allocations a unit: 1 of an operation, otherwise as the floor counted them."""
    if row.kind == PARTS:
        return 1
    counted = results.of(row, reduced(FLOOR) if is_reduced else FLOOR)
    return median_of(sample.allocations for sample in counted.values())


def figures(results, row, variant):
    """Figures of a variant in a row, or None if it did not run."""
    samples = results.of(row, variant.name)
    plain = results.of(row, reduced(PLAIN) if variant.is_reduced else PLAIN)
    pairs = [(sample, plain[number]) for number, sample in samples.items() if number in plain]
    if not pairs:
        return None
    problem = next((sample.problem for sample, _ in pairs if sample.problem), "")
    allocations = allocations_of(results, row, variant.is_reduced)
    added_s = median_of(mine.wall_s - base.wall_s for mine, base in pairs)
    report = next((sample.report for sample, _ in pairs if sample.report), (None, None))
    return Figures(
        rounds=len(pairs), wall_s=median_of(mine.wall_s for mine, _ in pairs),
        wall_ratio=median_of(mine.wall_s / base.wall_s for mine, base in pairs),
        cpu_s=median_of(mine.cpu_s for mine, _ in pairs),
        cpu_ratio=median_of(mine.cpu_s / base.cpu_s for mine, base in pairs if mine.cpu_s and base.cpu_s),
        allocations=allocations, added_s=added_s,
        added_ns=added_s * 1e9 / allocations if allocations else None,
        rss_bytes=median_of(mine.rss_bytes for mine, _ in pairs),
        rss_added_bytes=median_of(mine.rss_bytes - base.rss_bytes for mine, base in pairs),
        written_bytes=median_of(mine.written_bytes for mine, _ in pairs),
        report_s=report[0], report_rss_bytes=report[1], problem=problem)


def facts(results, row, name):
    """What cairn's recording of the row says of itself (runner.facts_of)."""
    return next((sample.facts for sample in results.of(row, name).values() if sample.facts), {})
