// SPDX-License-Identifier: Apache-2.0
// Massif's file format, for ms_print and massif-visualizer: the timeline as snapshots in
// milliseconds, with a tree of callers at the peak and at the end. Massif keeps 100 snapshots; so
// does this, each the highest of its stretch of the timeline.
//
// ms_print takes '#' for the start of a comment wherever it stands, so names have '@' instead.
#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/export/frame_table.h"

enum { SNAPSHOTS = 100, NS_PER_MS = 1000000, THRESHOLD_SHARE = 1000, LINE_BYTES = 8192 };

struct writer {
    FILE *out;
    const struct export *export;
    struct frame_table frames;
    unsigned snapshot_count;
};

static void put_line(FILE *out, const char *prefix, const char *text) {
    char line[LINE_BYTES];
    text_escape(line, sizeof line, text);
    for (char *at = line; (at = strchr(at, '#'));) *at = '@';
    fprintf(out, "%s%s\n", prefix, line);
}

static void put_snapshot(struct writer *writer, uint64_t at_ns, int64_t bytes, const char *tree) {
    if (bytes < 0) bytes = 0;
    fprintf(writer->out,
            "#-----------\nsnapshot=%u\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRId64
            "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
            writer->snapshot_count++, at_ns / NS_PER_MS, bytes, tree);
}

static void put_frame(FILE *out, const struct frame *frame) {
    char text[FRAME_VALGRIND_BYTES];
    frame_valgrind_text(frame, text, sizeof text);
    put_line(out, "", text);
}

static uint32_t visible(const struct frame_tree *tree, uint32_t node, int64_t threshold) {
    return node && tree->nodes.items[node].value >= threshold ? node : 0;
}

// Children come in order of value: the small ones are a node's last, and become one line.
static uint32_t visible_count(const struct frame_tree *tree, uint32_t node, int64_t threshold) {
    uint32_t count = 0, child = tree->nodes.items[node].first_child;
    for (; visible(tree, child, threshold); child = tree->nodes.items[child].next_sibling) count++;
    return count;
}

static void put_rest(FILE *out, const struct frame_tree *tree, uint32_t node, int64_t threshold) {
    const struct frame_node *nodes = tree->nodes.items;
    uint32_t shown = visible_count(tree, node, threshold);
    uint32_t hidden = nodes[node].child_count - shown;
    int64_t bytes = 0;
    if (!hidden) return;
    uint32_t child = nodes[node].first_child;
    for (uint32_t i = 0; child; i++, child = nodes[child].next_sibling)
        if (i >= shown) bytes = figures_add(bytes, nodes[child].value);
    fprintf(out, "%*sn0: %" PRId64 " in %u place%s, all below massif's threshold (0.10%%)\n",
            (int)nodes[node].depth + 1, "", bytes, hidden, hidden > 1 ? "s" : "");
}

static void put_node(struct writer *writer, const struct frame_tree *tree, uint32_t index,
                     int64_t threshold) {
    const struct frame_node *node = &tree->nodes.items[index];
    uint32_t shown = visible_count(tree, index, threshold);
    uint32_t lines = shown + (node->child_count > shown);
    fprintf(writer->out, "%*sn%u: %" PRId64 " ", (int)node->depth, "", lines, node->value);
    if (index == FRAME_TREE_ROOT)
        fputs("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n", writer->out);
    else
        put_frame(writer->out, writer->frames.frames.items[node->frame]);
}

// Depth first without recursion: stacks may be tens of thousands of frames deep.
static void put_tree(struct writer *writer, const struct frame_tree *tree) {
    const struct frame_node *nodes = tree->nodes.items;
    int64_t threshold = nodes[FRAME_TREE_ROOT].value / THRESHOLD_SHARE + 1;
    uint32_t at = FRAME_TREE_ROOT, next;
    for (;;) {
        put_node(writer, tree, at, threshold);
        next = visible(tree, nodes[at].first_child, threshold);
        if (!next) put_rest(writer->out, tree, at, threshold);
        while (!next && at != FRAME_TREE_ROOT) {
            next = visible(tree, nodes[at].next_sibling, threshold);
            if (next) break;
            at = nodes[at].parent;
            put_rest(writer->out, tree, at, threshold);
        }
        if (!next) return;
        at = next;
    }
}

static bool put_detailed(struct writer *writer, uint64_t at_ns, enum measure by, const char *kind,
                         struct error *error) {
    struct frame_tree tree;
    if (!frame_tree_build_inverted(&tree, &writer->frames, by, THRESHOLD_SHARE, error))
        return false;
    put_snapshot(writer, at_ns, tree.nodes.items[FRAME_TREE_ROOT].value, kind);
    put_tree(writer, &tree);
    frame_tree_free(&tree);
    return true;
}

// The points of the timeline before or after the peak, each stretch as one snapshot.
static void put_points(struct writer *writer, bool is_before_peak) {
    const struct profile *profile = writer->export->profile;
    const struct recording *recording = profile->recording;
    const struct cairn_totals *totals = &recording->header.totals;
    uint64_t end_ns = recording_last_ns(recording), peak_ns = profile->peak.at_ns;
    size_t count = recording_count(recording, CAIRN_SECTION_POINTS);
    size_t stretch = count / SNAPSHOTS + 1;
    struct cairn_point point;
    for (size_t first = 0; first < count; first += stretch) {
        int64_t most = INT64_MIN;
        uint64_t at_ns;
        bool is_beyond = __builtin_mul_overflow(totals->point_ns, (uint64_t)first, &at_ns);
        for (size_t i = first; i < first + stretch && recording_point(recording, i, &point); i++)
            if (point.is_used && point.max_bytes > most) most = point.max_bytes;
        if (is_beyond || at_ns > end_ns || most == INT64_MIN) continue;
        if (most > profile->peak.bytes) most = profile->peak.bytes;
        if ((at_ns < peak_ns) == is_before_peak) put_snapshot(writer, at_ns, most, "empty");
    }
}

static bool put_all(struct writer *writer, struct error *error) {
    const struct export *export = writer->export;
    const struct profile *profile = export->profile;
    uint64_t end_ns = recording_last_ns(profile->recording);
    char version[LINE_BYTES];
    snprintf(version, sizeof version, "desc: cairn %s; ", export->tool_version);
    put_line(writer->out, version, export->trust);
    put_line(writer->out, "cmd: ", export->command);
    fputs("time_unit: ms\n", writer->out);
    put_points(writer, true);
    if (!put_detailed(writer, profile->peak.at_ns, MEASURE_PEAK, "peak", error)) return false;
    put_points(writer, false);
    if (end_ns < profile->peak.at_ns) end_ns = profile->peak.at_ns;
    return put_detailed(writer, end_ns, MEASURE_EXIT, "detailed", error);
}

bool export_massif(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.out = out, .export = export};
    if (!frame_table_build(&writer.frames, export, FRAMES_MARKED, error)) return false;
    bool is_ok = put_all(&writer, error);
    frame_table_free(&writer.frames);
    return is_ok;
}
