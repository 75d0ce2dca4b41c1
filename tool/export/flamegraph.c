// SPDX-License-Identifier: Apache-2.0
// A flame graph as one SVG file without dependencies: any viewer of pictures shows it, and in a
// browser a click zooms, Ctrl-F or "search" marks functions. The outermost frame is on top; a
// frame's width is its share, its colour says which library it belongs to.
//
// Frames below a share of the whole are left out and counted: they would be thinner than a line.
#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/export/frame_table.h"
#include "tool/render/interval.h"

static const char style[] =
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#222;white-space:pre}"
    ".page{fill:#fff}.h{font:bold 17px system-ui,sans-serif}"
    ".s{font:12px system-ui,sans-serif;fill:#555}"
    ".b{font:12px system-ui,sans-serif;fill:#0a58ca;cursor:pointer}"
    "#frames rect{fill:hsl(var(--h),70%,72%);stroke:#fff;stroke-width:.4}"
    "#frames text{pointer-events:none}#frames g{cursor:pointer}"
    "#frames g:hover rect{stroke:#000;stroke-width:1}"
    "#frames g.above{opacity:.55}#frames g.hit rect{fill:#d81b60}#frames g.hit text{fill:#fff}"
    "@media(prefers-color-scheme:dark){.page{fill:#1b1b1f}.h,.s{fill:#ddd}.b{fill:#8ab4f8}"
    "#frames rect{stroke:#1b1b1f}}";

// Positions are shares of the whole (data-l, data-w); a view is the stretch of it that is shown.
// The rows of the picture stay where they are, and the width follows the window.
static const char script[] =
    "\n(function () {\n"
    "'use strict';\n"
    "const svg = document.documentElement, side = 10, letter = 6.7;\n"
    "const byId = (id) => document.getElementById(id);\n"
    "const frames = Array.from(byId('frames').children, (g) => ({\n"
    "  g, rect: g.querySelector('rect'), label: g.querySelector('text'),\n"
    "  title: g.querySelector('title').textContent,\n"
    "  left: +g.dataset.l, share: +g.dataset.w, y: +g.querySelector('rect').getAttribute('y')}));\n"
    "const rest = byId('details').textContent;\n"
    "let view = {left: 0, share: 1, y: -1}, pattern = null;\n"
    "const tiny = 1e-6;\n"
    "function draw() {\n"
    "  const width = Math.max(640, window.innerWidth || 1200), room = width - 2 * side;\n"
    "  svg.setAttribute('width', width);\n"
    "  for (const f of frames) {\n"
    "    const holds = f.y < view.y && f.left <= view.left + tiny &&\n"
    "      f.left + f.share >= view.left + view.share - tiny;\n"
    "    const left = Math.max(0, (f.left - view.left) / view.share);\n"
    "    const right = Math.min(1, (f.left + f.share - view.left) / view.share);\n"
    "    const size = (right - left) * room;\n"
    "    const shown = size > 0.1 && (holds || f.y >= view.y);\n"
    "    f.g.style.display = shown ? '' : 'none';\n"
    "    if (!shown) continue;\n"
    "    f.g.classList.toggle('above', holds);\n"
    "    f.rect.setAttribute('x', side + left * room);\n"
    "    f.rect.setAttribute('width', size);\n"
    "    f.label.setAttribute('x', side + left * room + 3);\n"
    "    const name = f.title.split('\\n')[0].replace(/ \\([^()]*\\)$/, '');\n"
    "    const columns = Math.floor((size - 6) / letter);\n"
    "    f.label.textContent = columns < 3 ? '' :\n"
    "      name.length <= columns ? name : name.slice(0, columns - 1) + '\\u2026';\n"
    "  }\n"
    "  mark();\n"
    "}\n"
    "function mark() {\n"
    "  let covered = 0, until = -1, count = 0;\n"
    "  const hits = [];\n"
    "  for (const f of frames) {\n"
    "    const hit = pattern !== null && pattern.test(f.title.split('\\n')[0]);\n"
    "    f.g.classList.toggle('hit', hit);\n"
    "    if (hit) hits.push(f);\n"
    "  }\n"
    "  hits.sort((a, b) => a.left - b.left || b.share - a.share);\n"
    "  for (const f of hits) {\n"
    "    count++;\n"
    "    if (f.left < until - tiny) continue;\n"
    "    covered += f.share;\n"
    "    until = f.left + f.share;\n"
    "  }\n"
    "  byId('found').textContent = pattern === null ? '' :\n"
    "    count + (count === 1 ? ' frame, ' : ' frames, ') + (100 * covered).toFixed(1) + ' % of "
    "the whole';\n"
    "}\n"
    "function zoom(f) {\n"
    "  view = f ? {left: f.left, share: f.share, y: f.y} : {left: 0, share: 1, y: -1};\n"
    "  draw();\n"
    "}\n"
    "function search(text) {\n"
    "  pattern = null;\n"
    "  if (text) {\n"
    "    try { pattern = new RegExp(text, 'i'); }\n"
    "    catch (problem) {\n"
    "      pattern = new RegExp(text.replace(/[.*+?^${}()|[\\]\\\\]/g, '\\\\$&'), 'i');\n"
    "    }\n"
    "  }\n"
    "  mark();\n"
    "}\n"
    "function ask() {\n"
    "  const text = window.prompt('Functions to mark (regular expression)', '');\n"
    "  if (text !== null) search(text);\n"
    "}\n"
    "for (const f of frames) {\n"
    "  f.g.addEventListener('click', () => zoom(f));\n"
    "  f.g.addEventListener('mouseenter', () => {\n"
    "    byId('details').textContent = f.title.replace('\\n', ': ');\n"
    "  });\n"
    "  f.g.addEventListener('mouseleave', () => { byId('details').textContent = rest; });\n"
    "}\n"
    "byId('reset').addEventListener('click', () => zoom(null));\n"
    "byId('search').addEventListener('click', ask);\n"
    "window.addEventListener('resize', draw);\n"
    "window.addEventListener('keydown', (event) => {\n"
    "  if (event.key === 'Escape') { search(''); zoom(null); }\n"
    "  if (event.key === 'f' && (event.ctrlKey || event.metaKey)) {\n"
    "    event.preventDefault();\n"
    "    ask();\n"
    "  }\n"
    "});\n"
    "const wanted = decodeURIComponent(window.location.hash.slice(1));\n"
    "if (wanted) search(wanted);\n"
    "draw();\n"
    "})();\n";

enum { WIDTH = 1200, ROW = 18, TOP = 76, BOTTOM = 34, SIDE = 10 };
enum { THINNEST_SHARE = 4000, TEXT_BYTES = 2 * FRAME_TITLE_BYTES };

struct writer {
    FILE *out;
    const struct export *export;
    struct frame_table frames;
    struct frame_tree tree;
    int64_t *left;  // by node: what lies left of it
    int64_t thinnest;
    uint32_t deepest;
    size_t left_out;
};

static void put_amount(const struct writer *writer, const struct frame_node *node, char *out,
                       size_t size) {
    const struct measure_row *about = measure_about(writer->export->by);
    const struct measured measured = node->sum;
    struct unit_text value = about->is_bytes ? units_size(measured_shown(measured))
                                             : units_count(measured_shown(measured));
    snprintf(out, size, "%s%s%s%s%s", value.text,
             interval_amount(measured, about->is_bytes, false).text, about->is_bytes ? "" : " ",
             about->is_bytes ? "" : about->noun[node->value != 1], interval_samples(measured).text);
}

// Where each node starts, and what is too thin. Children have higher numbers than their parents.
static bool lay_out(struct writer *writer) {
    const struct frame_node *nodes = writer->tree.nodes.items;
    size_t count = writer->tree.nodes.count;
    writer->left = calloc(count, sizeof *writer->left);
    if (!writer->left) return false;
    writer->thinnest = nodes[FRAME_TREE_ROOT].value / THINNEST_SHARE;
    for (uint32_t i = 0; i < count; i++) {
        int64_t left = writer->left[i];
        bool is_drawn = nodes[i].value > writer->thinnest;
        if (is_drawn && nodes[i].depth > writer->deepest) writer->deepest = nodes[i].depth;
        writer->left_out += !is_drawn;
        for (uint32_t child = nodes[i].first_child; child; child = nodes[child].next_sibling) {
            writer->left[child] = left;
            left = figures_add(left, nodes[child].value);
        }
    }
    return true;
}

// A hue for each library, in warm colours for the program itself.
static unsigned hue_of(const struct writer *writer, const struct frame *frame) {
    enum { HUES = 360, PROGRAM_HUE = 28, STEP = 30 };
    const char *program = writer->export->profile->recording->header.executable;
    if (!frame->module || !strcmp(frame->module, program)) return PROGRAM_HUE;
    unsigned hash = 0;
    for (const char *at = text_base_name(frame->module); *at; at++)
        hash = hash * 31 + (unsigned char)*at;
    return (PROGRAM_HUE + STEP + hash % (HUES - 2 * STEP)) % HUES;
}

static void put_title(struct writer *writer, const struct frame *frame,
                      const struct frame_node *node) {
    char place[FRAME_TEXT_BYTES], amount[FRAME_TEXT_BYTES];
    int64_t total = writer->tree.nodes.items[FRAME_TREE_ROOT].value;
    struct frame located = *frame;
    if (!writer->export->has_lines) located.line = 0;
    frame_location(&located, place, sizeof place);
    put_amount(writer, node, amount, sizeof amount);
    fputs("<title>", writer->out);
    char title[FRAME_TITLE_BYTES];
    frame_title(frame, title, sizeof title);
    text_put_markup(writer->out, title);
    if (*place) {
        fputs(" (", writer->out);
        text_put_markup(writer->out, place);
        fputc(')', writer->out);
    }
    fprintf(writer->out, "\n%s, %s</title>", amount, units_percent(node->value, total).text);
}

static void put_label(struct writer *writer, const struct frame *frame, double x, double width,
                      unsigned y) {
    const double letter = 6.7;
    const unsigned baseline = 13, padding = 3;
    char title[FRAME_TITLE_BYTES];
    size_t columns = width > 2 * padding ? (size_t)((width - 2 * padding) / letter) : 0;
    frame_title(frame, title, sizeof title);
    fprintf(writer->out, "<text x=\"%.2f\" y=\"%u\">", x + padding, y + baseline);
    if (columns > 2) {
        text_cut(title, columns);
        text_put_markup(writer->out, title);
    }
    fputs("</text>", writer->out);
}

static void put_node(struct writer *writer, uint32_t index) {
    const struct frame_node *node = &writer->tree.nodes.items[index];
    const struct frame *frame = writer->frames.frames.items[node->frame];
    double total = (double)writer->tree.nodes.items[FRAME_TREE_ROOT].value;
    double left = (double)writer->left[index] / total, share = (double)node->value / total;
    double x = SIDE + left * (WIDTH - 2 * SIDE), width = share * (WIDTH - 2 * SIDE);
    unsigned y = TOP + (node->depth - 1) * ROW;
    fprintf(writer->out, "<g data-l=\"%.7f\" data-w=\"%.7f\">", left, share);
    put_title(writer, frame, node);
    fprintf(writer->out,
            "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" style=\"--h:%u\"/>", x, y,
            width, ROW - 1, hue_of(writer, frame));
    put_label(writer, frame, x, width, y);
    fputs("</g>\n", writer->out);
}

static void put_heading(struct writer *writer) {
    const struct export *export = writer->export;
    char amount[FRAME_TEXT_BYTES];
    const struct measure_row *about = measure_about(export->by);
    put_amount(writer, &writer->tree.nodes.items[FRAME_TREE_ROOT], amount, sizeof amount);
    fprintf(writer->out, "<text class=\"h\" x=\"%d\" y=\"24\">", SIDE);
    text_put_markup(writer->out, export->program);
    fprintf(writer->out, ": %s %s</text>\n<text class=\"s\" x=\"%d\" y=\"44\">", amount,
            export->by == MEASURE_CALLS ? "of allocation" : about->snapshot, SIDE);
    text_put_markup(writer->out, export->trust);
    fputs("</text>\n", writer->out);
    fprintf(writer->out,
            "<text id=\"reset\" class=\"b\" x=\"%d\" y=\"64\">whole heap</text>\n"
            "<text id=\"search\" class=\"b\" x=\"%d\" y=\"64\">search</text>\n"
            "<text id=\"found\" class=\"s\" x=\"%d\" y=\"64\"></text>\n",
            SIDE, SIDE + 90, SIDE + 150);
}

static void put_footing(struct writer *writer, unsigned height) {
    fprintf(writer->out, "<text id=\"details\" class=\"s\" x=\"%d\" y=\"%u\">", SIDE, height - 12);
    if (writer->left_out)
        fprintf(writer->out, "not drawn: %s below %.3f %%",
                units_counted((int64_t)writer->left_out, "frame", "frames").text,
                100.0 / THINNEST_SHARE);
    fputs("</text>\n", writer->out);
}

static void put_svg(struct writer *writer) {
    unsigned height = TOP + writer->deepest * ROW + BOTTOM;
    const struct frame_node *nodes = writer->tree.nodes.items;
    fprintf(writer->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\">\n"
            "<style>%s</style>\n<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n",
            WIDTH, height, style);
    put_heading(writer);
    fputs("<g id=\"frames\">\n", writer->out);
    for (uint32_t i = 1; i < writer->tree.nodes.count; i++)
        if (nodes[i].value > writer->thinnest) put_node(writer, i);
    fputs("</g>\n", writer->out);
    put_footing(writer, height);
    fprintf(writer->out, "<script><![CDATA[%s]]></script>\n</svg>\n", script);
}

bool export_flamegraph(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.out = out, .export = export};
    if (!frame_table_build(&writer.frames, export, FRAMES_FUNCTIONS, error)) return false;
    bool is_ok = frame_tree_build(&writer.tree, &writer.frames, export->by, error);
    if (is_ok && !lay_out(&writer)) is_ok = error_set(error, "no memory for the flame graph");
    if (is_ok) put_svg(&writer);
    free(writer.left);
    frame_tree_free(&writer.tree);
    frame_table_free(&writer.frames);
    return is_ok;
}
