// SPDX-License-Identifier: Apache-2.0
#include "tool/render/reachability.h"

#include <stdio.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { INDENT = 2, KEY_COLUMNS = 13 };

void reachability_text(const struct cairn_reachability *sums, char text[REACHABILITY_BYTES]) {
    snprintf(text, REACHABILITY_BYTES,
             "directly lost: %s in %s; indirectly: %s in %s; still reachable: %s in %s",
             units_size((int64_t)sums->direct_bytes).text,
             units_counted((int64_t)sums->direct_blocks, "block", "blocks").text,
             units_size((int64_t)sums->indirect_bytes).text,
             units_counted((int64_t)sums->indirect_blocks, "block", "blocks").text,
             units_size((int64_t)sums->reachable_bytes).text,
             units_counted((int64_t)sums->reachable_blocks, "block", "blocks").text);
}

static void print_unknown(const struct terminal *terminal,
                          const struct reachability *reachability) {
    char reason[4 * CAIRN_REASON_BYTES];
    text_escape(reason, sizeof reason, reachability->sums.reason);
    terminal_print(terminal, STYLE_WARNING, "reachability not known");
    if (reachability->known_count)
        fprintf(terminal->out, " of %s",
                units_counted((int64_t)reachability->unknown_count, "process", "processes").text);
    if (reason[0]) fprintf(terminal->out, ": %s", reason);
}

static void print_all(const struct terminal *terminal, const struct reachability *reachability) {
    char text[REACHABILITY_BYTES];
    reachability_text(&reachability->sums, text);
    if (reachability->known_count) fputs(text, terminal->out);
    if (reachability->known_count && reachability->unknown_count) fputs("; ", terminal->out);
    if (reachability->unknown_count) print_unknown(terminal, reachability);
    fputc('\n', terminal->out);
}

static bool is_asked(const struct reachability *reachability) {
    return reachability->known_count || reachability->unknown_count;
}

void reachability_print_line(const struct terminal *terminal, const struct profile *profile) {
    const struct reachability *reachability = &profile->reachability;
    if (!is_asked(reachability)) return;
    print_all(terminal, reachability);
    if (!reachability->known_count) return;
    fprintf(terminal->out,
            "at the end, which waited %s for a copy of %s; each row counts its lost blocks and "
            "all that only they keep\n",
            units_duration(reachability->sums.pause_ns).text,
            units_size((int64_t)reachability->sums.copied_bytes).text);
}

void reachability_print_fact(const struct terminal *terminal, const struct profile *profile) {
    if (!is_asked(&profile->reachability)) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, "leaks");
    print_all(terminal, &profile->reachability);
}

void reachability_put_sums(struct json *json, const struct cairn_reachability *sums) {
    json_put_uint(json, "direct_bytes", sums->direct_bytes);
    json_put_uint(json, "direct_blocks", sums->direct_blocks);
    json_put_uint(json, "indirect_bytes", sums->indirect_bytes);
    json_put_uint(json, "indirect_blocks", sums->indirect_blocks);
    json_put_uint(json, "reachable_bytes", sums->reachable_bytes);
    json_put_uint(json, "reachable_blocks", sums->reachable_blocks);
}

void reachability_put(struct json *json, const struct profile *profile) {
    const struct reachability *reachability = &profile->reachability;
    if (!is_asked(reachability)) return;
    json_open_object(json, "reachability");
    json_put_uint(json, "known_processes", reachability->known_count);
    json_put_uint(json, "unknown_processes", reachability->unknown_count);
    reachability_put_sums(json, &reachability->sums);
    json_put_uint(json, "pause_ns", reachability->sums.pause_ns);
    json_put_string(json, "unknown_reason", reachability->sums.reason);
    json_close(json);
}
