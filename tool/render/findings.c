// SPDX-License-Identifier: Apache-2.0
// The table of rules, and what their findings are as text. When they hold: findings_find.c.
#include "tool/render/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/claims_summary.h"
#include "tool/render/findings_find.h"
#include "tool/render/interval.h"

enum {
    SHOWN_MAX = 4,  // in a summary
    LABEL_COLUMNS = 40,
    INDENT = 4,
    NOTE_INDENT = 10,
};

// A finding's values as those of a claim.
typedef void finding_filler(const struct finding *finding, struct claim *claim);

static void fill_growth(const struct finding *finding, struct claim *claim) {
    claim_set_real(claim, "bytes_per_s", finding->bytes_per_s);
    claim_set_real(claim, "fit", finding->fit);
    claim_set(claim, "is_freed", finding->is_freed);
    claim_set(claim, "first_bytes", finding->first_bytes);
    claim_set(claim, "last_bytes", finding->last_bytes);
    claim_set(claim, "interval_bytes", finding->interval_bytes);
    claim_set(claim, "snapshots", (int64_t)finding->moment_count);
    claim_set(claim, "stacks", (int64_t)finding->stack_count);
}

static void fill_realloc(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "times", (int64_t)finding->count);
    // of those that another stack began it is not known how many there were
    if (finding->of_count) claim_set(claim, "buffers", (int64_t)finding->of_count);
    claim_set(claim, "copied_bytes", (int64_t)finding->bytes);
    claim_set(claim, "is_one", finding->of_count == 1);
    claim_set(claim, "is_many", finding->of_count > 1);
}

static void fill_short(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "blocks", (int64_t)finding->count);
    claim_set(claim, "of_blocks", (int64_t)finding->of_count);
    claim_set(claim, "where_blocks", (int64_t)finding->part);
    claim_set(claim, "is_most", finding->part > finding->count / 2);
    if (claim->key == CLAIM_AGES) claim_set(claim, "bound_ns", (int64_t)finding->bound_ns);
    if (claim->key == CLAIM_SHORT) claim_set(claim, "watched", (int64_t)finding->watched);
}

static void fill_free(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "free_bytes", (int64_t)finding->bytes);
    claim_set(claim, "rss_bytes", (int64_t)finding->of_bytes);
    claim_set(claim, "live_bytes", (int64_t)finding->live_bytes);
    claim_set(claim, "at_ns", (int64_t)finding->at_ns);
}

static void fill_freed_by(const struct finding *finding, struct claim *claim) {
    const struct freed_by_flow *flow = &finding->flow;
    int64_t interval = measured_interval(flow->freed);
    char sure[LABEL_COLUMNS * 2] = "";
    if (interval)
        snprintf(sure, sizeof sure, " \xc2\xb1 %s%s",
                 units_percent(interval, (int64_t)flow->of_bytes).text,
                 interval_samples(flow->freed).text);
    claim_set_text(claim, "from", flow->from);
    claim_set_text(claim, "to", flow->to);
    claim_set(claim, "bytes", (int64_t)flow->bytes);
    claim_set(claim, "of_bytes", (int64_t)flow->of_bytes);
    claim_set(claim, "blocks", (int64_t)finding->count);
    claim_set(claim, "interval_bytes", interval);
    claim_set(claim, "late_bytes", (int64_t)flow->late_bytes);
    claim_set_text(claim, "interval", sure);
}

static void fill_reuse(const struct finding *finding, struct claim *claim) {
    enum { BUFFER_BYTES = 4096 };  // fits on a stack
    claim_set(claim, "blocks", (int64_t)finding->count);
    if (finding->bytes) claim_set(claim, "block_bytes", (int64_t)finding->bytes);
    claim_set(claim, "is_small", finding->bytes && finding->bytes <= BUFFER_BYTES);
}

static void fill_alike(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "blocks", (int64_t)finding->count);
    claim_set(claim, "block_bytes", (int64_t)finding->bytes);
}

static void fill_untouched(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "bytes", (int64_t)finding->bytes);
    claim_set(claim, "of_bytes", (int64_t)finding->of_bytes);
    claim_set(claim, "at_ns", (int64_t)finding->at_ns);
    claim_set(claim, "is_least", finding->is_least);
}

static void fill_arenas(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "arenas", (int64_t)finding->count);
    claim_set(claim, "free_bytes", (int64_t)finding->bytes);
    claim_set(claim, "beyond_bytes", (int64_t)finding->saved_bytes);
    claim_set(claim, "rss_bytes", (int64_t)finding->of_bytes);
    claim_set(claim, "at_ns", (int64_t)finding->at_ns);
}

static void fill_huge(const struct finding *finding, struct claim *claim) {
    claim_set(claim, "bytes", (int64_t)finding->bytes);
    claim_set(claim, "rss_bytes", (int64_t)finding->of_bytes);
    claim_set(claim, "at_ns", (int64_t)finding->at_ns);
}

static void fill_strings(const struct finding *finding, struct claim *claim) {
    char whose[CAIRN_WASTE_LABEL_BYTES];
    text_escape(whose, sizeof whose, finding->whose ? finding->whose : finding->waste.most_strings);
    claim_set_text(claim, "where", whose);
    claim_set(claim, "bytes", (int64_t)finding->bytes);
    claim_set(claim, "copies", (int64_t)finding->count);
    claim_set(claim, "strings", (int64_t)finding->of_count);
    claim_set(claim, "is_estimate", finding->is_estimate);
}

static void fill_waste(const struct finding *finding, struct claim *claim) {
    const struct cairn_waste *waste = &finding->waste;
    char most[CAIRN_WASTE_LABEL_BYTES];
    text_escape(most, sizeof most, waste->most);
    claim_set_text(claim, "where", most);
    claim_set(claim, "bytes", (int64_t)finding->bytes);
    claim_set(claim, "of_bytes", (int64_t)finding->of_bytes);
    claim_set(claim, "zero_bytes", (int64_t)waste->zero_bytes);
    claim_set(claim, "equal_bytes", (int64_t)waste->duplicate_bytes);
    claim_set(claim, "tail_bytes", (int64_t)waste->tail_bytes);
    claim_set(claim, "slack_bytes", (int64_t)waste->slack_bytes);
}

static const struct {
    enum claim_key claim;
    const char *view;
    bool has_more;      // the view shows more of just this: a line names it
    bool has_label;     // the claim is about the finding's stack
    const char *saved;  // what the bytes are that a fix saves
    finding_finder *find;
    finding_filler *fill;
} rules[FINDING_KINDS] = {
    [FINDING_GROWTH] = {CLAIM_GROWTH, "growth", true, true, "of what is held", finding_find_growth,
                        fill_growth},
    [FINDING_REALLOC] = {CLAIM_REALLOC, "temporary", false, true, NULL, finding_find_realloc,
                         fill_realloc},
    [FINDING_TEMPORARY] = {CLAIM_TEMPORARY, "temporary", true, true, NULL, finding_find_temporary,
                           fill_short},
    [FINDING_FREED_BY] = {CLAIM_FREED_BY, "threads", true, false, NULL, finding_find_freed_by,
                          fill_freed_by},
    [FINDING_AGES] = {CLAIM_AGES, "ages", true, true, NULL, finding_find_ages, fill_short},
    [FINDING_FREE] = {CLAIM_FREE, "memory", true, false, "resident", finding_find_free, fill_free},
    [FINDING_REUSE] = {CLAIM_REUSE, "frees", true, true, NULL, finding_find_reuse, fill_reuse},
    [FINDING_ALIKE] = {CLAIM_ALIKE, "sizes", true, true, "of room around the blocks at the peak",
                       finding_find_alike, fill_alike},
    [FINDING_UNTOUCHED] = {CLAIM_UNTOUCHED, "stacks", false, true, "of address space",
                           finding_find_untouched, fill_untouched},
    [FINDING_ARENAS] = {CLAIM_ARENAS, "memory", true, false, "resident", finding_find_arenas,
                        fill_arenas},
    [FINDING_STRINGS] = {CLAIM_STRINGS, "waste", false, false, "of the heap", finding_find_strings,
                         fill_strings},
    [FINDING_WASTE] = {CLAIM_WASTE, "stacks", false, false, "of what is held", finding_find_waste,
                       fill_waste},
    [FINDING_HUGE] = {CLAIM_HUGE, "memory", false, false, NULL, finding_find_huge, fill_huge},
};

const char *finding_name(enum finding_kind kind) {
    return claim_row(rules[kind].claim)->key;
}

const char *finding_view(enum finding_kind kind) {
    return rules[kind].view;
}

const char *finding_page(enum finding_kind kind) {
    return claim_row(rules[kind].claim)->page;
}

const char *finding_help(enum finding_kind kind, char text[FINDING_HELP_BYTES]) {
    const char *page = finding_page(kind), *name = strrchr(page, '/'), *mark = strchr(page, '#');
    const int size = (int)strcspn(name + 1, ".");
    snprintf(text, FINDING_HELP_BYTES, "cairn help %.*s%s", size, name + 1, mark ? mark : "");
    return text;
}

const char *findings_view(const struct findings *findings) {
    const struct finding *first = findings->list;
    if (!findings->count) return NULL;
    // short-lived blocks are what the usual view ranks: a buffer without any is not in it
    bool is_absent = first->kind == FINDING_REALLOC && first->stack && !first->stack->temporary;
    return is_absent ? "findings" : rules[first->kind].view;
}

// Memory that is lost for good comes first; then what gains most.
static int compare(const void *a, const void *b) {
    const struct finding *first = a, *second = b;
    bool is_leak = first->kind == FINDING_GROWTH;
    if (is_leak != (second->kind == FINDING_GROWTH)) return is_leak ? -1 : 1;
    if (first->gain != second->gain) return first->gain < second->gain ? 1 : -1;
    return (int)first->kind - (int)second->kind;
}

bool findings_find(struct findings *findings, const struct profile *profile, struct error *error) {
    // blocks that an image of owners has live: their ages are not what became of them
    const size_t left_out =
        recording_is_of_owners(profile->recording) ? FINDING_AGES : FINDING_KINDS;
    *findings = (struct findings){0};
    for (size_t i = 0; i < FINDING_KINDS; i++)
        if (i != left_out && !rules[i].find(findings, profile, error)) return false;
    findings_sort(findings);
    return true;
}

void findings_sort(struct findings *findings) {
    qsort(findings->list, findings->count, sizeof *findings->list, compare);
}

bool finding_label(const struct profile *profile, const struct frame_names *names,
                   const struct stack *stack, bool has_all_frames, char label[FRAME_TEXT_BYTES]) {
    const struct frame *frame = NULL;
    char location[FRAME_TEXT_BYTES];
    snprintf(label, FRAME_TEXT_BYTES, STACK_NOT_RECORDED);
    if (!findings_own_frame(profile, names, stack->node, has_all_frames, &frame)) return false;
    if (!frame) return true;
    frame_label(frame, label, FRAME_TEXT_BYTES, LABEL_COLUMNS);
    frame_location(frame, location, sizeof location);
    size_t used = strlen(label);
    if (frame->file) snprintf(label + used, FRAME_TEXT_BYTES - used, " %s", location);
    return true;
}

bool finding_claim(const struct finding *finding, const struct profile *profile,
                   const struct frame_names *names, bool has_all_frames, struct claim *claim) {
    char label[FRAME_TEXT_BYTES];
    bool is_short = finding->kind == FINDING_TEMPORARY && finding->is_estimate;
    *claim = (struct claim){.key = is_short ? CLAIM_SHORT : rules[finding->kind].claim};
    if (finding->stack && !finding_label(profile, names, finding->stack, has_all_frames, label))
        return false;
    if (finding->stack && rules[finding->kind].has_label) claim_set_text(claim, "where", label);
    rules[finding->kind].fill(finding, claim);
    if (profile) claim_set_sure(claim, profile);
    return true;
}

bool finding_text(const struct finding *finding, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  char text[FINDING_TEXT_BYTES]) {
    struct claim claim;
    if (!finding_claim(finding, profile, names, view->has_all_frames, &claim)) return false;
    claim_sentence(&claim, view->is_plain_number, text);
    return true;
}

void finding_gain_text(const struct finding *finding, const struct profile *profile, bool is_plain,
                       char text[FINDING_TEXT_BYTES]) {
    char bytes[128] = "", calls[128] = "";
    uint64_t all = profile ? profile->totals.allocations : 0;
    if (finding->saved_bytes)
        snprintf(bytes, sizeof bytes, "%s %s",
                 units_size_as((int64_t)finding->saved_bytes, is_plain).text,
                 rules[finding->kind].saved);
    if (finding->kind == FINDING_REALLOC && finding->bytes)
        snprintf(bytes, sizeof bytes, "copying %s",
                 units_size_as((int64_t)finding->bytes, is_plain).text);
    if (finding->saved_calls && finding->is_estimate)
        snprintf(calls, sizeof calls, "some %s of %s",
                 units_percent((int64_t)finding->saved_calls, (int64_t)all).text,
                 units_counted((int64_t)all, "call", "calls").text);
    else if (finding->saved_calls)
        snprintf(calls, sizeof calls, "%s of %s (%s)",
                 units_count((int64_t)finding->saved_calls).text,
                 units_counted((int64_t)all, "call", "calls").text,
                 units_percent((int64_t)finding->saved_calls, (int64_t)all).text);
    if (finding->saved_faults)
        snprintf(calls, sizeof calls, "%s",
                 units_counted((int64_t)finding->saved_faults, "page fault", "page faults").text);
    if (finding->kind == FINDING_FREED_BY)
        snprintf(calls, sizeof calls, "the locks of %s by another thread",
                 units_counted((int64_t)finding->count, "free", "frees").text);
    snprintf(text, FINDING_TEXT_BYTES, "a fix saves %s %s%s%s",
             finding->is_least ? "at least" : "up to", bytes, *bytes && *calls ? ", and " : "",
             calls);
}

void finding_add_view(enum finding_kind kind, char text[FINDING_TEXT_BYTES]) {
    size_t used = strlen(text);
    if (rules[kind].has_more)
        snprintf(text + used, FINDING_TEXT_BYTES - used, ": --view %s", rules[kind].view);
}

bool findings_print(const struct findings *findings, const struct terminal *terminal,
                    const struct profile *profile, const struct frame_names *names,
                    const struct view_options *view, struct error *error) {
    char text[FINDING_TEXT_BYTES];
    if (!findings->count) return true;
    terminal_print(terminal, STYLE_DIM, "  findings\n");
    for (size_t i = 0; i < findings->count && i < SHOWN_MAX; i++) {
        if (!finding_text(&findings->list[i], profile, names, view, text))
            return error_set(error, "no memory for a stack");
        finding_add_view(findings->list[i].kind, text);
        terminal_indent(terminal, INDENT);
        terminal_print_wrapped(terminal, INDENT, INDENT + 2, text);
    }
    if (findings->count > SHOWN_MAX) {
        terminal_indent(terminal, INDENT);
        fprintf(terminal->out, "%zu more: --view findings\n", findings->count - SHOWN_MAX);
    }
    return true;
}
