// SPDX-License-Identifier: Apache-2.0
#include "tool/render/snapshots_screen.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/model/snapshots.h"
#include "tool/render/columns.h"

enum {
    HIGHS_SHOWN = 4,
    TIME_COLUMNS = 10,
    SIZE_COLUMNS = 12,
    LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES
};

static const char *reason_text(enum cairn_snapshot_reason reason) {
    static const char *const texts[] = {[CAIRN_SNAPSHOT_CHURN] = "much was allocated and freed",
                                        [CAIRN_SNAPSHOT_HIGH] = "new high-water mark",
                                        [CAIRN_SNAPSHOT_LOW] = "the heap had fallen by a quarter",
                                        [CAIRN_SNAPSHOT_ASKED] = "snapshot",
                                        [CAIRN_SNAPSHOT_MARK] = "mark",
                                        [CAIRN_SNAPSHOT_EXIT] = "the exit handlers had run"};
    return texts[reason];
}

static const struct column snapshot_columns[] = {{"at", TIME_COLUMNS, STYLE_PLAIN, false},
                                                 {"live", SIZE_COLUMNS, STYLE_PLAIN, false},
                                                 {"blocks", SIZE_COLUMNS, STYLE_PLAIN, false},
                                                 {"allocated", SIZE_COLUMNS, STYLE_PLAIN, false}};
static const struct columns columns = {snapshot_columns, 4, 0, 0};

// A mark of a fork is from before it was one: only its name is known.
static void print_snapshot(const struct terminal *terminal, const struct snapshot *snapshot,
                           const struct view_options *view) {
    char label[LABEL_TEXT_BYTES];
    text_escape(label, sizeof label, snapshot->label);
    const struct unit_text texts[] = {
        units_duration(snapshot->at_ns), units_size_as(snapshot->live_bytes, view->is_plain_number),
        units_count(snapshot->live_blocks),
        units_size_as((int64_t)snapshot->allocated_bytes, view->is_plain_number)};
    if (snapshot->has_values)
        columns_print(terminal, &columns, texts);
    else
        terminal_print(terminal, STYLE_DIM, "%*s", (int)columns_width(&columns),
                       "what stacks held is not known");
    fprintf(terminal->out, "  %s%s%s%s", reason_text(snapshot->reason), *label ? " \"" : "", label,
            *label ? "\"" : "");
    if (snapshot->missing_values)
        terminal_print(
            terminal, STYLE_WARNING, "  %s missing",
            units_counted((int64_t)snapshot->missing_values, "value is", "values are").text);
    fputc('\n', terminal->out);
}

static bool is_plain_high(const struct snapshots *snapshots, size_t i) {
    if (i >= snapshots->count) return false;
    const struct snapshot *snapshot = &snapshots->list[i];
    return snapshot->reason == CAIRN_SNAPSHOT_HIGH && !*snapshot->label;
}

// Behind a high-water mark and before another: how many there are from `i` on.
static size_t highs_between(const struct snapshots *snapshots, size_t i) {
    size_t count = 0;
    if (!i || !is_plain_high(snapshots, i - 1)) return 0;
    while (is_plain_high(snapshots, i + count) && is_plain_high(snapshots, i + count + 1)) count++;
    return count;
}

bool snapshots_print(const struct terminal *terminal, const struct profile *profile,
                     const struct view_options *view, struct error *error) {
    struct snapshots snapshots;
    if (profile_is_sum(profile))
        return error_set(error, "snapshots are known of each process alone: -p PID or NAME");
    if (!snapshots_build(&snapshots, profile, error)) return false;
    terminal_print(terminal, STYLE_STRONG, "%s",
                   units_counted((int64_t)snapshots.count, "snapshot", "snapshots").text);
    terminal_print(terminal, STYLE_DIM, ": what stacks held is known of %s, the peak and the end\n",
                   snapshots.count ? "these" : "no others than");
    if (snapshots.count) columns_print_heads(terminal, &columns);
    if (snapshots.count) fputc('\n', terminal->out);
    for (size_t i = 0; i < snapshots.count; i++) {
        size_t alike = highs_between(&snapshots, i);
        if (alike > HIGHS_SHOWN) {
            terminal_print(terminal, STYLE_DIM, "%*s  %s new high-water marks in between\n",
                           (int)columns_width(&columns), "\xe2\x80\xa6",
                           units_count((int64_t)alike).text);
            i += alike - 1;
            continue;
        }
        print_snapshot(terminal, &snapshots.list[i], view);
    }
    snapshots_free(&snapshots);
    return true;
}

bool snapshots_json_put(struct json *json, const struct profile *profile) {
    struct snapshots snapshots;
    struct error error;
    bool is_ok = snapshots_build(&snapshots, profile, &error);
    json_open_array(json, "snapshots");
    for (size_t i = 0; is_ok && i < snapshots.count; i++) {
        const struct snapshot *snapshot = &snapshots.list[i];
        json_open_object(json, NULL);
        json_put_uint(json, "at_ns", snapshot->at_ns);
        json_put_string(json, "reason", snapshot_reason_name(snapshot->reason));
        json_put_string(json, "label", snapshot->label);
        json_put_uint(json, "generation", snapshot->generation);
        json_put_int(json, "live_bytes", snapshot->live_bytes);
        json_put_int(json, "live_blocks", snapshot->live_blocks);
        json_put_uint(json, "allocated_bytes", snapshot->allocated_bytes);
        json_put_uint(json, "allocations", snapshot->allocations);
        json_put_uint(json, "missing_values", snapshot->missing_values);
        json_put_bool(json, "has_values", snapshot->has_values);
        json_close(json);
    }
    json_close(json);
    if (is_ok) snapshots_free(&snapshots);
    return is_ok;
}
