// SPDX-License-Identifier: Apache-2.0
// What makes the picture of a flame graph move in a browser, and its style, as text for the SVG.
#ifndef TOOL_EXPORT_FLAMEGRAPH_SCRIPT_H
#define TOOL_EXPORT_FLAMEGRAPH_SCRIPT_H

extern const char flamegraph_style[];
extern const char flamegraph_script[];

#endif
