// SPDX-License-Identifier: Apache-2.0
#include "tool/render/summary.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/heaps.h"
#include "tool/render/claims_find.h"
#include "tool/render/claims_summary.h"
#include "tool/render/interval.h"
#include "tool/render/mappings.h"
#include "tool/render/memory.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/reachability.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/site.h"
#include "tool/render/trust.h"

enum {
    INDENT = 2,
    KEY_COLUMNS = 13,
    LIST_INDENT = 4,
    FIGURES_COLUMNS = 38,  // percent, size and blocks of a line in the list
    SAMPLED_COLUMNS = 46,  // the same with intervals instead of blocks
};

static struct unit_text size_of(const struct summary *summary, int64_t bytes) {
    return units_size_as(bytes, summary->view->is_plain_number);
}

static void print_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, key);
}

// Prints a claim behind its key, which its sentence begins with: the first figure stands out, and
// samples at the end that say too little. Returns the columns of the line.
static size_t print_claim(const struct terminal *terminal, const struct summary *summary,
                          const struct claim *claim, const char *key, struct measured measured) {
    char sentence[CLAIM_SENTENCE_BYTES];
    claim_sentence(claim, summary->view->is_plain_number, sentence);
    const char *rest = sentence + strlen(key) + 1;
    int figure = (int)strlen(size_of(summary, measured_shown(measured)).text);
    int samples = (int)strlen(interval_samples(measured).text);
    int middle = (int)strlen(rest) - figure - samples;
    char between[CLAIM_SENTENCE_BYTES];
    const size_t indent = INDENT + KEY_COLUMNS;
    print_key(terminal, key);
    terminal_print(terminal, STYLE_STRONG, "%.*s", figure, rest);
    snprintf(between, sizeof between, "%.*s", middle, rest + figure);
    size_t used = indent + (size_t)figure;
    used = terminal_print_words(terminal, STYLE_PLAIN, used, indent, between);
    return terminal_print_words(terminal,
                                measured_is_unreliable(measured) ? STYLE_WARNING : STYLE_PLAIN,
                                used, indent, rest + figure + middle);
}

// Prints the highest resident memory beside the peak, or below it where it does not fit.
static void print_rss(const struct terminal *terminal, const struct summary *summary, size_t used,
                      uint64_t bytes) {
    static const char key[] = "     RSS peak ";
    const struct profile *profile = summary->profile;
    const char *about = profile->recording->header.is_rss_sampled ? "about " : "";
    const struct unit_text size = size_of(summary, (int64_t)bytes);
    const size_t columns = used + strlen(key) + strlen(about) + strlen(size.text);
    if (profile->sampling.is_on || columns > terminal->columns) {
        fputc('\n', terminal->out);
        print_key(terminal, "RSS peak");
    } else {
        terminal_print(terminal, STYLE_DIM, "%s", key);
    }
    terminal_print(terminal, STYLE_DIM, "%s", about);
    fputs(size.text, terminal->out);
}

static void print_peak(const struct terminal *terminal, const struct summary *summary) {
    uint64_t rss_peak = summary->profile->recording->header.rss_peak_bytes;
    if (summary->profile->heap) rss_peak = 0;  // of the process, and none of this heap's
    struct measured measured = measure_total(MEASURE_PEAK, summary->profile);
    struct claim claim;
    claim_of_peak(&claim, summary->profile, summary->view->is_plain_number);
    const size_t used = print_claim(terminal, summary, &claim, "peak heap", measured);
    if (rss_peak) print_rss(terminal, summary, used, rss_peak);
    fputc('\n', terminal->out);
}

// Returns false of an allocator whose heap is not read, as musl's.
static bool may_scan(struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    const char *path = recording_string(recording, header->allocator_module);
    // jemalloc, mimalloc and tcmalloc are
    return header->allocator != CAIRN_ALLOCATOR_OTHER || (path && strstr(path, "malloc"));
}

// What a fork found when it began, or cairn when it attached: no calls of this process.
static void print_inherited(const struct terminal *terminal, const struct summary *summary) {
    const struct inherited *inherited = &summary->profile->inherited;
    if (profile_lacks_older(summary->profile)) {
        print_key(terminal, "before");
        const char *advice = may_scan(summary->profile->recording) ? " (--scan-heap)" : "";
        fprintf(terminal->out, "not counted: what was allocated before attach%s\n", advice);
    }
    const struct figures *figures = &summary->profile->figures;
    bool is_found = figures->found_blocks && !summary->profile->has_copies_apart;
    uint64_t blocks = is_found ? figures->found_blocks : inherited->blocks;
    uint64_t bytes = is_found ? figures->found_bytes : inherited->bytes;
    if (!blocks) return;
    const struct cairn_header *header = &summary->profile->recording->header;
    print_key(terminal, header->has_census ? "before" : "inherited");
    fprintf(terminal->out, "%s%s in %s",
            summary->profile->sampling.is_on && !is_found ? "about " : "",
            size_of(summary, (int64_t)bytes).text,
            units_counted((int64_t)blocks, "block", "blocks").text);
    if (header->has_census)
        fputs(" allocated before attach\n", terminal->out);
    else if (summary->profile->has_copies_apart)
        fputs(" by forks: copies, not counted again\n", terminal->out);
    else
        fprintf(terminal->out, " from process %" PRIu32 "\n", header->forked_from);
}

// What is left at the end, or there now.
static void print_left(const struct terminal *terminal, const struct summary *summary) {
    const char *key = claim_left_word(summary->profile);
    struct measured left = measure_total(MEASURE_EXIT, summary->profile);
    struct claim claim;
    claim_of_left(&claim, summary->profile, summary->view->is_plain_number);
    if (summary->profile->sampling.is_on && left.estimate.samples <= 0) {
        print_key(terminal, key);
        fputs("no sampled block\n", terminal->out);
        return;
    }
    print_claim(terminal, summary, &claim, key, left);
    fputc('\n', terminal->out);
}

static void print_allocated(const struct terminal *terminal, const struct summary *summary) {
    const struct profile *profile = summary->profile;
    const struct profile_totals *totals = &profile->totals;
    print_key(terminal, "allocated");
    fprintf(terminal->out, "%s in %s %s", size_of(summary, (int64_t)totals->allocated_bytes).text,
            units_count((int64_t)totals->allocations).text,
            units_noun((int64_t)totals->allocations, "call", "calls"));
    uint64_t end_ns = profile->recording->header.end_ns;
    if (end_ns) fprintf(terminal->out, " (%s)", units_rate(totals->allocations, end_ns).text);
    if (totals->failed)
        terminal_print(terminal, STYLE_WARNING, ", %s failed",
                       units_count((int64_t)totals->failed).text);
    fputc('\n', terminal->out);
}

static void print_totals(const struct terminal *terminal, const struct summary *summary) {
    if (profile_has_calls(summary->profile)) print_allocated(terminal, summary);
    print_inherited(terminal, summary);
    if (!profile_has_frees(summary->profile)) return;
    print_left(terminal, summary);
}

static void print_figures(const struct terminal *terminal, const struct summary *summary,
                          struct measured measured) {
    const struct measure_row *about = measure_about(summary->view->by);
    int64_t whole = measure_total(summary->view->by, summary->profile).value;
    terminal_print(terminal, STYLE_STRONG, "%*s", LIST_INDENT + 4,
                   units_percent(measured.value, whole).text);
    if (about->is_bytes)
        fprintf(terminal->out, " %10s ", size_of(summary, measured_shown(measured)).text);
    else
        fprintf(terminal->out, " %10s ", units_count(measured_shown(measured)).text);
    bool is_count = !about->is_bytes, is_sampled = summary->profile->sampling.is_on;
    if (!is_sampled && (is_count || measure_is_known(about->in_blocks, summary->profile))) {
        fprintf(terminal->out, "%8s %-6s   ", is_count ? "" : units_count(measured.blocks).text,
                about->noun[measured.blocks != 1]);
        return;
    }
    if (is_sampled) interval_print(terminal, measured, false);
    terminal_indent(terminal, 2);
}

static void print_heading(const struct terminal *terminal, const struct site_list *list,
                          const char *what) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%s", what);
    if (list->hidden_count)
        terminal_print(terminal, STYLE_DIM, " (%s internal %s hidden: --all-frames)",
                       units_count((int64_t)list->hidden_count).text,
                       units_noun((int64_t)list->hidden_count, "frame", "frames"));
    fputc('\n', terminal->out);
}

static size_t figures_columns(const struct summary *summary) {
    return summary->profile->sampling.is_on ? SAMPLED_COLUMNS : FIGURES_COLUMNS;
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
        site_print(terminal, site, figures_columns(summary));
    }
    if (list->sites.count <= top) return;
    size_t others = list->sites.count - top;
    print_figures(terminal, summary, rest);
    terminal_print(terminal, STYLE_DIM, "%s other %s: --view stacks\n",
                   units_count((int64_t)others).text,
                   units_noun((int64_t)others, "call site", "call sites"));
}

// Wrappers of malloc that say nothing about who holds the memory, and how to look behind them.
static void print_wrappers(const struct terminal *terminal, const struct site_list *list) {
    char names[FRAME_TEXT_BYTES];
    int64_t blocks, all_blocks;
    if (!site_wrappers_find(list, names, sizeof names, &blocks, &all_blocks)) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%s of the blocks go through %s:\n",
                   units_percent(blocks, all_blocks).text, names);
    terminal_indent(terminal, LIST_INDENT);
    terminal_print(terminal, STYLE_DIM,
                   "--internal-frames FILE with \"allocator NAME\" a line shows "
                   "their callers\n");
}

bool summary_print_list(const struct terminal *terminal, const struct summary *summary,
                        struct error *error) {
    struct site_list list;
    enum measure by = summary->view->by;
    size_t most = summary->view->top;
    if (most && most < SITES_JOINED) most = SITES_JOINED;
    bool is_ok = site_list_build(&list, summary->profile, summary->names, by, most,
                                 summary->view->has_all_frames, error);
    if (is_ok && !site_lines_join(&list, terminal, figures_columns(summary)))
        is_ok = error_set(error, "no memory for the list of call sites");
    if (is_ok && list.sites.count) {
        bool is_of_owners = recording_is_of_owners(summary->profile->recording);
        print_heading(terminal, &list,
                      is_of_owners ? "by who keeps them" : measure_about(by)->snapshot);
        print_sites(terminal, summary, &list);
        print_wrappers(terminal, &list);
    }
    site_list_free(&list);
    return is_ok;
}

// The sentence behind an empty profile.
static void print_empty(const struct terminal *terminal, const struct summary *summary) {
    const char *reason = summary->empty_reason;
    if (damage_is_any(&summary->profile->recording->damage))
        reason = "the part of the recording that counts them is damaged";
    else if (!recording_has_begun(summary->profile->recording))
        reason = "there was no room for the recording, in memory or on its disk";
    else if (recording_lost(summary->profile->recording, CAIRN_LOST_REST))
        reason = "the program limited its memory before it made one";
    else if (!reason && summary->profile->totals.failed)
        reason = "every allocation failed";
    else if (!reason && summary->profile->recording->header.is_attached)
        reason = "the program made none since, or has an allocator of its own linked in";
    else if (!reason && recording_imported(summary->profile->recording))
        reason = "the imported file has none";
    else if (!reason)
        reason = "the program made none, or has an allocator of its own linked in";
    bool has_others = summary->profile->recording->header.unkept.processes != 0;
    char text[FRAME_TEXT_BYTES];
    text_escape(text, sizeof text, reason);
    terminal_print_line(terminal, STYLE_WARNING, "%*sno allocation%s was seen: %s", INDENT, "",
                        has_others ? " of its own" : "", text);
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

// "server.4711.cairn", which has the program's name too; else "server (PATH)", "server 4711".
static void print_subject(const struct terminal *terminal, const struct summary *summary,
                          struct parts *line) {
    char program[FRAME_TEXT_BYTES], path[FRAME_TEXT_BYTES], text[2 * FRAME_TEXT_BYTES + 4];
    program_name(summary->profile, program, sizeof program);
    text_escape(path, sizeof path, summary->path);
    if (!strncmp(text_base_name(path), program, strlen(program)))
        snprintf(text, sizeof text, "%s", path);
    else if (!path[strspn(path, "0123456789")])
        snprintf(text, sizeof text, "%s %s", program, path);
    else
        snprintf(text, sizeof text, "%s (%s)", program, path);
    terminal_print(terminal, STYLE_STRONG, "%s", text);
    line->used = text_columns(text);
}

static const char *peak_word(const struct profile *profile) {
    if (recording_is_of_owners(profile->recording)) return "kept";
    if (profile->heap) return "its peak";
    return profile->is_of_mappings ? "peak mapped" : "peak heap";
}

void summary_print_context(const struct terminal *terminal, const struct summary *summary,
                           const char *of_run, const char *at_text) {
    const struct profile *profile = summary->profile;
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    struct parts line = {.terminal = terminal};
    char heap[CAIRN_LABEL_TEXT];
    print_subject(terminal, summary, &line);
    if (profile->heap) {
        text_escape(heap, sizeof heap, profile->heap);
        parts_add(&line, STYLE_STRONG, "heap %s", heap);
    }
    if (profile_has_frees(profile))
        parts_add(&line, STYLE_PLAIN, "%s %s%s", peak_word(profile),
                  size_of(summary, measured_shown(peak)).text,
                  interval_amount(peak, true, summary->view->is_plain_number).text);
    else
        parts_add(&line, STYLE_PLAIN, "allocated %s",
                  size_of(summary, (int64_t)profile->totals.allocated_bytes).text);
    if (profile->heap)
        parts_add(&line, STYLE_PLAIN, "as its row says");
    else
        trust_add_short(&line, profile);
    if (of_run) parts_add(&line, STYLE_PLAIN, "%s", of_run);
    if (*at_text) parts_add(&line, STYLE_STRONG, "%s", at_text);
    parts_end(&line);
}

// Says that the limit on processor time made samples rare: another rate would change nothing.
static void slowed_text(const struct profile *profile, char *out, size_t size) {
    const struct cairn_sampling *sampling = &profile->sampling;
    const double millionths_of_percent = 10000;
    snprintf(out, size, " --cpu-budget %g%% left one in up to %s: take a higher one, or",
             (double)sampling->cpu_budget_millionths / millionths_of_percent,
             units_size((int64_t)sampling->rate_most_bytes).text);
}

// How a sample that says little can be made a better one.
static void print_advice(const struct terminal *terminal, const struct summary *summary) {
    enum { SAMPLES_LEAST = 30, SAMPLES_GOOD = 200, RATE_LEAST = 1024 };
    const struct profile *profile = summary->profile;
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    bool is_attached = profile->recording->header.is_attached;
    int64_t interval = measured_interval(peak);
    bool is_wide = interval > peak.value / 2, is_narrow = interval < peak.value / 10;
    bool has_few = measured_samples(peak) < SAMPLES_LEAST;
    // nothing to draw from: no other rate would show more
    if (profile_lacks_older(profile) && profile->totals.allocated_bytes < RATE_LEAST) return;
    if (!profile->sampling.is_on || is_narrow || !(has_few || is_wide)) return;
    bool is_slowed = profile->sampling.slowed_count && profile->sampling.cpu_budget_millionths &&
                     profile->sampling.rate_most_bytes > profile->sampling.rate_bytes;
    int64_t rate = RATE_LEAST, good = peak.value / SAMPLES_GOOD;
    while (rate * 2 <= good) rate *= 2;
    char advice[CLAIM_SENTENCE_BYTES] = " take";
    struct unit_text says = units_counted(measured_samples(peak), "sample says", "samples say");
    terminal_indent(terminal, INDENT);
    size_t used = terminal_print_words(terminal, STYLE_WARNING, INDENT, LIST_INDENT, says.text);
    used = terminal_print_words(terminal, STYLE_WARNING, used, LIST_INDENT, " little:");
    if (is_slowed)
        slowed_text(profile, advice, sizeof advice);
    else if (good >= RATE_LEAST && (uint64_t)rate < profile->sampling.rate_bytes)
        snprintf(advice, sizeof advice, " take --rate %" PRId64 "%s (some %s samples), or",
                 rate >> 20 ? rate >> 20 : rate >> 10, rate >> 20 ? "MiB" : "KiB",
                 units_count(peak.value / rate).text);
    used = terminal_print_words(terminal, STYLE_PLAIN, used, LIST_INDENT, advice);
    terminal_print_words(terminal, STYLE_PLAIN, used, LIST_INDENT,
                         is_attached ? " --exact for all blocks" : " all blocks, without --sample");
    fputc('\n', terminal->out);
}

// What recording took, if that was more than the program itself.
static void print_cost(const struct terminal *terminal, const struct summary *summary) {
    char text[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    if (!claim_of_cost(&claim, summary->profile)) return;
    claim_sentence(&claim, summary->view->is_plain_number, text);
    terminal_indent(terminal, INDENT);
    terminal_print_wrapped(terminal, INDENT, INDENT, text);
}

// What allocators by name hold is beside the heap; what they made it of is a part of it.
static void print_backing(const struct terminal *terminal, const struct summary *summary) {
    struct backing backing = heaps_backing(summary->profile);
    if (!backing.peak_bytes && !backing.exit_bytes) return;
    print_key(terminal, "backing");
    fprintf(terminal->out, "%s of the heap at its peak, %s left: taken by allocators by name\n",
            size_of(summary, backing.peak_bytes).text, size_of(summary, backing.exit_bytes).text);
}

// Marked as what its row makes of it: a row that lies has wrong figures.
static void print_heap(const struct terminal *terminal, const struct summary *summary) {
    char heap[CAIRN_LABEL_TEXT];
    text_escape(heap, sizeof heap, summary->profile->heap);
    print_key(terminal, "heap");
    fprintf(terminal->out, "%s, as its row of --wrap says\n", heap);
    print_peak(terminal, summary);
    print_totals(terminal, summary);
}

bool summary_print_first(const struct terminal *terminal, const struct summary *summary,
                         struct error *error) {
    struct claim claims[FIRST_CLAIMS];
    size_t count;
    char sentence[CLAIM_SENTENCE_BYTES], text[CLAIM_SENTENCE_BYTES + FRAME_TEXT_BYTES];
    const char *process = summary->process;
    if (!claims_first(claims, &count, summary->profile, summary->names))
        return error_set(error, "no memory for sums by function");
    for (size_t i = 0; i < count; i++) {
        claim_sentence(&claims[i], summary->view->is_plain_number, sentence);
        snprintf(text, sizeof text, "%s%s%s", process ? process : "", process ? ": " : "",
                 sentence);
        terminal_indent(terminal, INDENT);
        terminal_print_wrapped(terminal, INDENT, LIST_INDENT, text);
    }
    return true;
}

bool summary_print_facts(const struct terminal *terminal, const struct summary *summary,
                         struct error *error) {
    const struct profile *profile = summary->profile;
    if (summary->has_prefix) fputs("cairn: ", terminal->out);
    ending_print(terminal, profile, summary->is_alive);
    fputc('\n', terminal->out);
    if (summary->findings && !summary_print_first(terminal, summary, error)) return false;
    if (recording_is_of_owners(profile->recording)) {
        print_left(terminal, summary);
    } else if (profile->is_of_mappings) {
        mapped_print_facts(terminal, profile, summary->view);
    } else if (profile->heap) {
        print_heap(terminal, summary);
    } else if (!profile_is_empty(profile)) {
        if (profile_has_frees(profile)) print_peak(terminal, summary);
        print_totals(terminal, summary);
        memory_print_line(terminal, profile, summary->view);
        if (!pools_print_lines(terminal, profile, summary->view, error)) return false;
        print_backing(terminal, summary);
        overruns_print_line(terminal, profile);
        reachability_print_fact(terminal, profile);
    } else {
        print_empty(terminal, summary);
    }
    if (!profile->is_of_mappings && !profile->heap && !recording_is_of_owners(profile->recording))
        mapped_print_line(terminal, profile, summary->view);
    if (!profile->heap) trust_print(terminal, profile, summary->names);
    if (!profile_is_empty(profile) && !profile->heap) {
        print_advice(terminal, summary);
        print_cost(terminal, summary);
    }
    if (summary->has_list && !summary_print_list(terminal, summary, error)) return false;
    return !summary->findings || profile->heap ||
           findings_print(summary->findings, terminal, profile, summary->names, summary->view,
                          error);
}
