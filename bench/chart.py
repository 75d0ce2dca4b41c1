# SPDX-License-Identifier: Apache-2.0
"""The wall time of each program under each tool as a bar chart. The scale is logarithmic: equal lengths are equal factors."""

import math
from xml.sax.saxutils import escape

from figures import figures
from svg import begin
from tables import text_of_ratio
from variants import HEAPTRACK, HEAPTRACK_RAW, PRELOAD, RUN

# Shown tools and their colours: cairn in blues, others in warm and grey tones.
COLOURS = {PRELOAD: "#2f7fd6", RUN: "#7ab3ec", HEAPTRACK_RAW: "#e08a3c", HEAPTRACK: "#c4553a",
           "jemalloc every": "#8c7bb8", "gperftools": "#4f9d7f", "massif": "#a0a0a0", "DHAT": "#6f6f6f"}
LABEL_WIDTH, PLOT_WIDTH, VALUE_WIDTH, MARGIN = 160, 520, 70, 16
BAR_HEIGHT, GROUP_GAP, LEGEND_HEIGHT, AXIS_HEIGHT = 11, 12, 48, 24
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def shown_rows(results):
    """[(name, [(tool, ratio)])] of the rows of real programs."""
    tools = [variant for variant in results.variants if variant.name in COLOURS]
    found = []
    for row in results.rows:
        cells = [(tool.name, figures(results, row, tool)) for tool in tools]
        bars = [(name, cell.wall_ratio) for name, cell in cells if cell and not cell.problem]
        if row.group.endswith("programs") and bars:
            found.append((row.name, bars))
    return found


def legend(tools):
    parts, width = [], (LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH) / 4
    for i, tool in enumerate(tools):
        x, y = MARGIN + i % 4 * width, MARGIN + i // 4 * 18
        parts.append(f'<rect x="{x:.0f}" y="{y}" width="11" height="11" rx="2" fill="{COLOURS[tool]}"/>'
                     f'<text x="{x + 16:.0f}" y="{y + 10}">{escape(tool)}</text>')
    return parts


def svg(results):
    rows = shown_rows(results)
    most = max([2, *(ratio for _, bars in rows for _, ratio in bars)])
    top, left = MARGIN + LEGEND_HEIGHT, MARGIN + LABEL_WIDTH
    heights = [len(bars) * BAR_HEIGHT + GROUP_GAP for _, bars in rows]
    bottom = top + sum(heights)
    width, height = left + PLOT_WIDTH + VALUE_WIDTH + MARGIN, bottom + AXIS_HEIGHT + MARGIN

    def length(ratio):
        return max(1.0, math.log(max(ratio, 1)) / math.log(most) * PLOT_WIDTH)

    parts = [begin(width, height, "Wall time as a ratio to the plain program")]
    parts += legend([tool for tool in COLOURS if any(tool == name for _, bars in rows for name, _ in bars)])
    for tick in (t for t in TICKS if t <= most):
        x = left + (length(tick) if tick > 1 else 0)
        parts.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}"'
                     f' y2="{bottom}"/><text class="small" x="{x:.1f}" y="{bottom + 14}"'
                     f' text-anchor="middle">{tick}x</text>')
    y = top
    for (name, bars), row_height in zip(rows, heights):
        middle = y + (row_height - GROUP_GAP) / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for i, (tool, ratio) in enumerate(bars):
            bar_y, bar = y + i * BAR_HEIGHT, length(ratio)
            parts.append(f'<rect x="{left}" y="{bar_y}" width="{bar:.1f}" height="{BAR_HEIGHT - 2}"'
                         f' fill="{COLOURS[tool]}"><title>{escape(f"{name}, {tool}")}</title></rect>'
                         f'<text class="small" x="{left + bar + 4:.1f}" y="{bar_y + 8}">'
                         f'{text_of_ratio(ratio)}</text>')
        y += row_height
    parts.append(f'<text class="small" x="{left}" y="{bottom + 28}">wall time as a ratio to the plain'
                 ' program, logarithmic; shorter is better</text></svg>')
    return "\n".join(parts) + "\n"
