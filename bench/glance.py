#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The picture of the README: how much longer real programs run under cairn and under each peer, from the
committed table. A dot is a program, the stroke among them their geometric mean; the scale is logarithmic.

    bench/glance.py [bench/results/performance.csv] > bench/results/glance.svg
"""

import csv
import math
import pathlib
import statistics
import sys
from xml.sax.saxutils import escape

from svg import begin

TOP = pathlib.Path(__file__).resolve().parent.parent
# Column of the table, what it is called here, colour.
SHOWN = (("cairn sampling", "cairn --sample", "#7ab3ec"), ("cairn", "cairn, library alone", "#2f7fd6"),
         ("cairn run", "cairn run", "#2f7fd6"), ("heaptrack raw", "heaptrack, library alone", "#e08a3c"),
         ("heaptrack", "heaptrack", "#c4553a"), ("massif", "massif", "#8a8a8a"), ("DHAT", "DHAT", "#6f6f6f"))
LABEL, PLOT, VALUE, MARGIN, LINE, AXIS = 170, 460, 70, 16, 26, 40
TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200)


def ratios(path):
    """{variant: {program: ratio}} of the rows of real programs."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for cell in csv.DictReader(file):
            if cell["group"].endswith("programs") and cell["wall_ratio"] and not cell["problem"]:
                found.setdefault(cell["variant"], {})[cell["row"]] = float(cell["wall_ratio"])
    return found


def line(name, colour, programs, y, at):
    mean = statistics.geometric_mean(programs.values())
    parts = [f'<text x="{MARGIN + LABEL - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>']
    parts += [f'<circle cx="{at(ratio):.1f}" cy="{y}" r="3.5" fill="{colour}" fill-opacity="0.45"><title>'
              f'{escape(program)}: {ratio:.2f}x</title></circle>' for program, ratio in sorted(programs.items())]
    parts.append(f'<rect x="{at(mean) - 1.5:.1f}" y="{y - 9}" width="3" height="18" fill="{colour}"/>')
    parts.append(f'<text x="{MARGIN + LABEL + PLOT + 12}" y="{y + 4}">{mean:.{1 if mean >= 10 else 2}f}x</text>')
    return parts


def picture(found):
    shown = [(name, colour, found[column]) for column, name, colour in SHOWN if column in found]
    count = max(len(programs) for _, _, programs in shown)
    # a ratio below 1 is noise of the machine, and is drawn where it was measured
    least = min(0.9, *(min(programs.values()) for _, _, programs in shown))
    most = max(max(programs.values()) for _, _, programs in shown)
    left, top = MARGIN + LABEL, MARGIN
    bottom = top + LINE * len(shown)
    width, height = left + PLOT + VALUE + MARGIN, bottom + AXIS

    def at(ratio):
        return left + math.log(ratio / least) / math.log(most / least) * PLOT

    parts = [begin(width, height, f"How much longer {count} programs run, by profiler")]
    for tick in (tick for tick in TICKS if tick <= most):
        parts.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{at(tick):.1f}" x2="{at(tick):.1f}"'
                     f' y1="{top}" y2="{bottom}"/><text class="small" x="{at(tick):.1f}" y="{bottom + 14}"'
                     f' text-anchor="middle">{tick:g}x</text>')
    for number, (name, colour, programs) in enumerate(shown):
        parts += line(name, colour, programs, top + LINE * number + LINE // 2, at)
    parts.append(f'<text class="small" x="{left}" y="{bottom + 32}">wall time relative to the program alone, {count}'
                 ' programs; less is better</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(picture(ratios(sys.argv[1] if len(sys.argv) > 1 else TOP / "bench/results/performance.csv")), end="")
