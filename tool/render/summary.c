// SPDX-License-Identifier: Apache-2.0
#include "tool/render/summary.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/mapped.h"
#include "tool/render/memory.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/site.h"
#include "tool/render/trust.h"

enum {
    INDENT = 2,
    LIST_INDENT = 4,
    FIGURES_COLUMNS = 38,  // percent, size and blocks of a line in the list
    SAMPLED_COLUMNS = 46,  // the same with intervals instead of blocks
    LABEL_COLUMNS = 48,
    CALLERS_BYTES = 2048,
};
static const char arrow[] = "\xe2\x86\x90 ";  // leftwards

static struct unit_text size_of(const struct summary *summary, int64_t bytes) {
    return units_size_as(bytes, summary->view->is_plain_number);
}

static const char *plural(int64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

static void print_key(const struct terminal *terminal, const char *key) {
    enum { KEY_COLUMNS = 13 };
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, key);
}

// " in 4,182 blocks", or " ± 1.1 MiB in about 4,200 blocks".
static void print_blocks(const struct terminal *terminal, const struct summary *summary,
                         struct measured measured) {
    bool is_estimate = summary->profile->sampling.is_on;
    bool is_plain = summary->view->is_plain_number;
    fprintf(terminal->out, "%s in %s%s %s", interval_text(measured, true, is_plain).text,
            is_estimate ? "about " : "", units_count(measured.blocks).text,
            plural(measured.blocks, "block", "blocks"));
}

static void print_samples(const struct terminal *terminal, const struct summary *summary,
                          struct measured measured) {
    if (!summary->profile->sampling.is_on) return;
    fprintf(terminal->out, " (%s %s", units_count(measured.samples).text,
            plural(measured.samples, "sample", "samples"));
    if (measured_is_unreliable(measured)) terminal_print(terminal, STYLE_WARNING, ", unreliable");
    fputc(')', terminal->out);
}

static void print_peak(const struct terminal *terminal, const struct summary *summary) {
    const struct profile_peak *peak = &summary->profile->peak;
    uint64_t rss_peak = summary->profile->recording->header.rss_peak_bytes;
    struct measured measured = measure_total(MEASURE_PEAK, summary->profile);
    bool is_estimate = summary->profile->sampling.is_on;
    print_key(terminal, "peak heap");
    terminal_print(terminal, STYLE_STRONG, "%s", size_of(summary, peak->bytes).text);
    print_blocks(terminal, summary, measured);
    if (peak->at_ns) fprintf(terminal->out, " at %s", units_duration(peak->at_ns).text);
    print_samples(terminal, summary, measured);
    if (is_estimate && rss_peak) {
        fputc('\n', terminal->out);
        print_key(terminal, "RSS peak");
        fputs(size_of(summary, (int64_t)rss_peak).text, terminal->out);
    } else if (rss_peak) {
        bool is_sampled = summary->profile->recording->header.is_rss_sampled;
        terminal_print(terminal, STYLE_DIM, "     RSS peak %s", is_sampled ? "about " : "");
        fputs(size_of(summary, (int64_t)rss_peak).text, terminal->out);
    }
    fputc('\n', terminal->out);
}

// What a fork found when it began: counted among its allocations, though others made them.
static void print_inherited(const struct terminal *terminal, const struct summary *summary) {
    const struct figures *figures = &summary->profile->figures;
    if (!figures->inherited_blocks) return;
    print_key(terminal, "of these");
    fprintf(terminal->out, "%s in %s %s inherited from process %" PRIu32 "\n",
            size_of(summary, (int64_t)figures->inherited_bytes).text,
            units_count((int64_t)figures->inherited_blocks).text,
            plural((int64_t)figures->inherited_blocks, "block", "blocks"),
            summary->profile->recording->header.forked_from);
}

// What is left at the end, or there now.
static void print_left(const struct terminal *terminal, const struct summary *summary) {
    struct measured left = measure_total(MEASURE_EXIT, summary->profile);
    if (summary->profile->sampling.is_on && left.samples <= 0) {
        fputs("no sampled block\n", terminal->out);
        return;
    }
    fputs(size_of(summary, left.value).text, terminal->out);
    print_blocks(terminal, summary, left);
    print_samples(terminal, summary, left);
    fputc('\n', terminal->out);
}

static void print_totals(const struct terminal *terminal, const struct summary *summary) {
    const struct profile *profile = summary->profile;
    const struct profile_totals *totals = &profile->totals;
    print_key(terminal, "allocated");
    fprintf(terminal->out, "%s in %s %s", size_of(summary, (int64_t)totals->allocated_bytes).text,
            units_count((int64_t)totals->allocations).text,
            plural((int64_t)totals->allocations, "call", "calls"));
    uint64_t end_ns = profile->recording->header.end_ns;
    if (end_ns) fprintf(terminal->out, " (%s)", units_rate(totals->allocations, end_ns).text);
    if (totals->failed)
        terminal_print(terminal, STYLE_WARNING, ", %s failed",
                       units_count((int64_t)totals->failed).text);
    fputc('\n', terminal->out);
    print_inherited(terminal, summary);
    print_key(terminal, profile_has_ended(profile) ? "at exit" : "live now");
    print_left(terminal, summary);
}

// An address without a name, of the same module as the frame before it.
static bool is_same_module(const struct site *site, unsigned i) {
    const struct frame *frame = site->frames[i], *before = site->frames[i - 1];
    return !frame->function && frame->module && before->module && *frame->module &&
           !strcmp(frame->module, before->module);
}

// "← caller ← caller" of a site; empty if it has none.
static void callers_text(const struct site *site, char *out, size_t size) {
    *out = 0;
    for (unsigned i = 1; i < site->frame_count; i++) {
        char label[FRAME_TEXT_BYTES];
        size_t used = strlen(out);
        if (is_same_module(site, i))
            snprintf(label, sizeof label, "+0x%" PRIx64, site->frames[i]->offset);
        else
            frame_label(site->frames[i], label, sizeof label, LABEL_COLUMNS);
        snprintf(out + used, size - used, "%s%s%s", i > 1 ? " " : "", arrow, label);
    }
}

static void print_name(const struct terminal *terminal, const char *label, const char *location) {
    terminal_print(terminal, STYLE_NAME, "%s", label);
    if (*location) terminal_print(terminal, STYLE_DIM, "  %s", location);
}

// Name and place behind the figures, callers behind them or on a line of their own.
static void print_code(const struct terminal *terminal, const struct site *site,
                       size_t figures_columns) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES], callers[CALLERS_BYTES];
    size_t room = terminal->columns - figures_columns;
    if (!site->frame_count) {
        terminal_print(terminal, STYLE_DIM, "%s\n", STACK_NOT_RECORDED);
        return;
    }
    frame_location(site->frames[0], location, sizeof location);
    text_cut(location, room / 2);
    size_t location_columns = *location ? text_columns(location) + 2 : 0;
    // on a wide screen a short name leaves room for its callers
    size_t label_room = room - location_columns;
    if (label_room > LABEL_COLUMNS) label_room = LABEL_COLUMNS;
    frame_label(site->frames[0], label, sizeof label, label_room);
    callers_text(site, callers, sizeof callers);
    size_t used = text_columns(label) + location_columns;
    print_name(terminal, label, location);
    if (*callers && used + 2 + text_columns(callers) > room) {
        fputc('\n', terminal->out);
        terminal_indent(terminal, figures_columns);
        text_cut(callers, room);
        terminal_print(terminal, STYLE_DIM, "%s", callers);
    } else if (*callers) {
        terminal_print(terminal, STYLE_DIM, "  %s", callers);
    }
    fputc('\n', terminal->out);
}

static void print_figures(const struct terminal *terminal, const struct summary *summary,
                          struct measured measured) {
    const struct measure_row *about = measure_about(summary->view->by);
    int64_t whole = measure_total(summary->view->by, summary->profile).value;
    terminal_print(terminal, STYLE_STRONG, "%*s", LIST_INDENT + 4,
                   units_percent(measured.value, whole).text);
    if (about->is_bytes)
        fprintf(terminal->out, " %10s ", size_of(summary, measured.value).text);
    else
        fprintf(terminal->out, " %10s ", units_count(measured.value).text);
    if (!summary->profile->sampling.is_on) {
        bool is_count = !about->is_bytes;
        fprintf(terminal->out, "%8s %-6s   ", is_count ? "" : units_count(measured.blocks).text,
                about->noun[measured.blocks != 1]);
        return;
    }
    struct unit_text note = interval_note(measured);
    size_t columns = text_columns(note.text);
    terminal_indent(terminal, 2);
    terminal_print(terminal, measured_is_unreliable(measured) ? STYLE_WARNING : STYLE_PLAIN, "%s",
                   note.text);
    terminal_indent(terminal, INTERVAL_NOTE_COLUMNS + 2 - columns);
}

static void print_heading(const struct terminal *terminal, const struct site_list *list,
                          enum measure by) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%s", measure_about(by)->moment);
    if (list->hidden_count)
        terminal_print(terminal, STYLE_DIM, " (%s plumbing %s hidden: --all-frames)",
                       units_count((int64_t)list->hidden_count).text,
                       plural((int64_t)list->hidden_count, "frame", "frames"));
    fputc('\n', terminal->out);
}

static void print_sites(const struct terminal *terminal, const struct summary *summary,
                        const struct site_list *list) {
    size_t top = summary->view->top ? summary->view->top : list->sites.count;
    struct measured rest = {0};
    for (size_t i = 0; i < list->sites.count; i++) {
        const struct site *site = &list->sites.items[i];
        if (i >= top) {
            measured_add(&rest, site->measured);
            continue;
        }
        print_figures(terminal, summary, site->measured);
        print_code(terminal, site,
                   summary->profile->sampling.is_on ? SAMPLED_COLUMNS : FIGURES_COLUMNS);
    }
    if (list->sites.count <= top) return;
    size_t others = list->sites.count - top;
    print_figures(terminal, summary, rest);
    terminal_print(terminal, STYLE_DIM, "%s other %s\n", units_count((int64_t)others).text,
                   plural((int64_t)others, "place", "places"));
}

bool summary_print_list(const struct terminal *terminal, const struct summary *summary,
                        struct error *error) {
    struct site_list list;
    enum measure by = summary->view->by;
    bool is_ok = site_list_build(&list, summary->profile, summary->names, by,
                                 summary->view->has_all_frames, error);
    if (is_ok && list.sites.count) {
        print_heading(terminal, &list, by);
        print_sites(terminal, summary, &list);
    }
    site_list_free(&list);
    return is_ok;
}

// The sentence behind an empty profile.
static void print_empty(const struct terminal *terminal, const struct summary *summary) {
    const char *reason = summary->empty_reason;
    if (damage_is_any(&summary->profile->recording->damage))
        reason = "the part of the recording that counts them is damaged";
    else if (!reason && summary->profile->totals.failed)
        reason = "every allocation failed";
    else if (!reason)
        reason = "the program made none, or has an allocator of its own linked in";
    char text[FRAME_TEXT_BYTES];
    text_escape(text, sizeof text, reason);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_WARNING, "no allocation was seen: %s\n", text);
}

void summary_print_path(const struct terminal *terminal, const char *path, uint64_t bytes,
                        const char *next) {
    static const char key[] = "   next: ";
    char safe[FRAME_TEXT_BYTES];
    text_escape(safe, sizeof safe, path);
    struct unit_text size = units_size((int64_t)bytes);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_STRONG, "%s", safe);
    fprintf(terminal->out, " (%s)", size.text);
    if (next) {
        size_t used = INDENT + text_columns(safe) + strlen(size.text) + 3;
        text_escape(safe, sizeof safe, next);
        bool has_room = used + strlen(key) + text_columns(safe) <= terminal->columns;
        fputs(has_room ? "   " : "\n  ", terminal->out);
        terminal_print(terminal, STYLE_DIM, "next: ");
        fputs(safe, terminal->out);
    }
    fputc('\n', terminal->out);
}

void summary_print_file(const struct terminal *terminal, const struct summary *summary) {
    summary_print_path(terminal, summary->path, summary->profile->recording->file_bytes,
                       summary->next);
}

bool summary_print_facts(const struct terminal *terminal, const struct summary *summary,
                         struct error *error) {
    const struct profile *profile = summary->profile;
    if (summary->has_prefix) fputs("cairn: ", terminal->out);
    ending_print(terminal, profile, summary->is_alive);
    fputc('\n', terminal->out);
    if (profile->is_of_mappings) {
        mapped_print_facts(terminal, profile, summary->view);
    } else if (profile->totals.allocations) {
        print_peak(terminal, summary);
        print_totals(terminal, summary);
        memory_print_line(terminal, profile, summary->view);
        overruns_print_line(terminal, profile);
    } else {
        print_empty(terminal, summary);
    }
    if (!profile->is_of_mappings) mapped_print_line(terminal, profile, summary->view);
    trust_print(terminal, profile, summary->names);
    if (summary->has_list && !summary_print_list(terminal, summary, error)) return false;
    return !summary->findings || findings_print(summary->findings, terminal, profile,
                                                summary->names, summary->view, error);
}
