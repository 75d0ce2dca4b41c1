# SPDX-License-Identifier: Apache-2.0
"""What the pictures have in common: SVG without scripts or fonts of its own, readable on light and on dark ground."""

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #3a3f45 } .small { font-size: 10px }
.grid { stroke: #8888; stroke-width: 0.5 } .one { stroke: #888; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9 } }
</style>"""


def begin(width, height, label):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label="{label}">{STYLE}')
