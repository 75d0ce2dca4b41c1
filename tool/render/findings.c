// SPDX-License-Identifier: Apache-2.0
// The table of rules, and what their findings are as text. When they hold: findings_find.c.
#include "tool/render/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/findings_find.h"
#include "tool/render/interval.h"

#define PAGE "docs/howto/findings.md#"

enum {
    SHOWN_MAX = 4,  // in a summary
    LABEL_COLUMNS = 40,
    INDENT = 4,
    NOTE_INDENT = 10,
};

struct saying {
    const struct finding *finding;
    const char *label;  // of its stack
    bool is_plain;      // sizes as plain numbers
    char *out;          // FINDING_TEXT_BYTES
};

static void say(const struct saying *saying, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct saying *saying, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(saying->out, FINDING_TEXT_BYTES, format, list);
    va_end(list);
}

static struct unit_text size_of(const struct saying *saying, uint64_t bytes) {
    return units_size_as((int64_t)bytes, saying->is_plain);
}

static struct unit_text share_of(const struct finding *finding) {
    return units_percent((int64_t)finding->count, (int64_t)finding->of_count);
}

static void say_growth(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    char rate[64];
    rate_text(finding->bytes_per_s, rate, sizeof rate);
    say(saying, "%s grows by %s, steadily (fit %.2f)%s", saying->label, rate, finding->fit,
        finding->is_freed ? ", freed at shutdown" : "");
}

static void say_realloc(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying, "%s grows %s %s: reserve (%s copied)", saying->label,
        finding->of_count > 1 ? "each of its buffers" : "its buffer",
        units_counted((int64_t)finding->count, "time", "times").text,
        size_of(saying, finding->bytes).text);
}

static void say_temporary(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying, "%s%s of all blocks are %s, most of %s", finding->is_estimate ? "about " : "",
        share_of(finding).text, finding->is_estimate ? "short-lived" : "freed at once",
        saying->label);
}

static void say_ages(const struct saying *saying) {
    say(saying, "%s of all blocks live under 1 ms, most of %s", share_of(saying->finding).text,
        saying->label);
}

static void say_free(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying, "%s of %s resident are free in the heap, %s live, at %s",
        size_of(saying, finding->bytes).text, size_of(saying, finding->of_bytes).text,
        size_of(saying, finding->live_bytes).text, units_duration(finding->at_ns).text);
}

static void say_freed_by(const struct saying *saying) {
    const struct freed_by_flow *flow = &saying->finding->flow;
    int64_t interval = measured_interval(flow->freed);
    char sure[LABEL_COLUMNS * 2] = "";
    if (interval)
        snprintf(sure, sizeof sure, " \xc2\xb1 %s%s",
                 units_percent(interval, (int64_t)flow->of_bytes).text,
                 interval_samples(flow->freed).text);
    say(saying, "%s%s of what %s allocates is freed by %s",
        units_percent((int64_t)flow->bytes, (int64_t)flow->of_bytes).text, sure, flow->from,
        flow->to);
}

static void say_reuse(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    enum { BUFFER_BYTES = 4096 };  // fits on a stack
    bool is_small = finding->bytes && finding->bytes <= BUFFER_BYTES;
    char each[64] = "";
    if (finding->bytes) snprintf(each, sizeof each, " of %s", size_of(saying, finding->bytes).text);
    say(saying, "%s frees what it allocates, %s%s: %s", saying->label,
        units_counted((int64_t)finding->count, "block", "blocks").text, each,
        is_small ? "a buffer on the stack will do" : "one buffer can be reused");
}

static void say_alike(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying, "%s allocates %s of %s one by one: an array or a pool", saying->label,
        units_counted((int64_t)finding->count, "block", "blocks").text,
        size_of(saying, finding->bytes).text);
}

static void say_untouched(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying,
        "%s of %s live were never touched at %s, the largest blocks are of %s: reserve less",
        size_of(saying, finding->bytes).text, size_of(saying, finding->of_bytes).text,
        units_duration(finding->at_ns).text, saying->label);
}

static void say_arenas(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying, "%s hold %s free at %s, %s beyond the heap's peak: MALLOC_ARENA_MAX=2",
        units_counted((int64_t)finding->count, "arena", "arenas").text,
        size_of(saying, finding->bytes).text, units_duration(finding->at_ns).text,
        size_of(saying, finding->saved_bytes).text);
}

static void say_huge(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    say(saying,
        "%s of %s resident are heap on small pages at %s: GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        size_of(saying, finding->bytes).text, size_of(saying, finding->of_bytes).text,
        units_duration(finding->at_ns).text);
}

static void say_strings(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    char whose[CAIRN_WASTE_LABEL_BYTES];
    text_escape(whose, sizeof whose, finding->whose ? finding->whose : finding->waste.most_strings);
    const char *of = *whose ? ", most of " : "";
    if (finding->is_estimate) {
        say(saying, "about %s of equal strings%s%s: keep each once",
            size_of(saying, finding->bytes).text, of, whose);
        return;
    }
    say(saying, "%s of equal strings, %s of %s%s%s: keep each once",
        size_of(saying, finding->bytes).text,
        units_counted((int64_t)finding->count, "copy", "copies").text,
        units_counted((int64_t)finding->of_count, "string", "strings").text, of, whose);
}

static void say_waste(const struct saying *saying) {
    const struct finding *finding = saying->finding;
    const struct cairn_waste *waste = &finding->waste;
    char most[CAIRN_WASTE_LABEL_BYTES];
    text_escape(most, sizeof most, waste->most);
    say(saying,
        "%s of %s in blocks are of no use: %s zero, %s equal to others, %s unused at ends, %s "
        "slack%s%s",
        size_of(saying, finding->bytes).text, size_of(saying, finding->of_bytes).text,
        size_of(saying, waste->zero_bytes).text, size_of(saying, waste->duplicate_bytes).text,
        size_of(saying, waste->tail_bytes).text, size_of(saying, waste->slack_bytes).text,
        *most ? ", most of it of " : "", most);
}

static const struct {
    const char *name, *view, *page;
    bool has_more;      // the view shows more of just this: a line names it
    const char *saved;  // what the bytes are that a fix saves
    finding_finder *find;
    void (*say)(const struct saying *saying);
} rules[FINDING_KINDS] = {
    [FINDING_GROWTH] = {"growth", "growth", PAGE "steady-growth", true, "of what is held",
                        finding_find_growth, say_growth},
    [FINDING_REALLOC] = {"realloc", "temporary", PAGE "a-buffer-that-is-grown", false, NULL,
                         finding_find_realloc, say_realloc},
    [FINDING_TEMPORARY] = {"temporary", "temporary", PAGE "short-lived-blocks", true, NULL,
                           finding_find_temporary, say_temporary},
    [FINDING_FREED_BY] = {"freed_by", "threads", PAGE "hand-over-between-threads", true, NULL,
                          finding_find_freed_by, say_freed_by},
    [FINDING_AGES] = {"ages", "ages", PAGE "short-lived-blocks", true, NULL, finding_find_ages,
                      say_ages},
    [FINDING_FREE] = {"free", "memory", PAGE "fragmentation", true, "resident", finding_find_free,
                      say_free},
    [FINDING_REUSE] = {"reuse", "frees", PAGE "freed-where-it-was-allocated", true, NULL,
                       finding_find_reuse, say_reuse},
    [FINDING_ALIKE] = {"alike", "sizes", PAGE "one-by-one-in-a-loop", true,
                       "of room around the blocks at the peak", finding_find_alike, say_alike},
    [FINDING_UNTOUCHED] = {"untouched", "stacks", PAGE "reserved-and-not-used", false,
                           "of address space", finding_find_untouched, say_untouched},
    [FINDING_ARENAS] = {"arenas", "memory", PAGE "arenas", true, "resident", finding_find_arenas,
                        say_arenas},
    [FINDING_STRINGS] = {"strings", "waste", PAGE "equal-strings", false, "of the heap",
                         finding_find_strings, say_strings},
    [FINDING_WASTE] = {"waste", "stacks", PAGE "zeros-and-unused-ends", false, "of what is held",
                       finding_find_waste, say_waste},
    [FINDING_HUGE] = {"huge", "memory", PAGE "small-pages", false, NULL, finding_find_huge,
                      say_huge},
};

const char *finding_name(enum finding_kind kind) {
    return rules[kind].name;
}

const char *finding_view(enum finding_kind kind) {
    return rules[kind].view;
}

const char *finding_page(enum finding_kind kind) {
    return rules[kind].page;
}

const char *findings_view(const struct findings *findings) {
    return findings->count ? rules[findings->list[0].kind].view : NULL;
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
    qsort(findings->list, findings->count, sizeof *findings->list, compare);
    return true;
}

uint32_t finding_node(const struct finding *finding, size_t index) {
    if (index) return finding->free_node;
    return finding->stack ? finding->stack->node : TREE_ROOT;
}

// The first frame of the program's own, else the first that is not internal frames; NULL: none.
static bool own_frame(const struct profile *profile, const struct frame_names *names, uint32_t node,
                      bool are_all_shown, const struct frame **frame) {
    struct frame_list frames = {.are_all_shown = are_all_shown};
    bool is_ok = frame_list_fill(&frames, profile, names, node, 0);
    *frame = is_ok ? frame_list_first_own(&frames) : NULL;
    frame_list_free(&frames);
    return is_ok;
}

bool findings_settle(struct findings *findings, const struct profile *profile,
                     const struct frame_names *names, struct error *error) {
    size_t kept = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        const struct frame *allocates = NULL, *frees = NULL;
        bool is_about_two = finding->free_node != TREE_ROOT;
        if (is_about_two && (!own_frame(profile, names, finding->stack->node, false, &allocates) ||
                             !own_frame(profile, names, finding->free_node, false, &frees)))
            return error_set(error, "no memory for a stack");
        bool is_one = allocates && frees && allocates->function && frees->function &&
                      frame_is_same_function(allocates, frees);
        if (!is_about_two || is_one) findings->list[kept++] = *finding;
    }
    findings->count = kept;
    return true;
}

// "function file.c:12" of the stack.
static bool find_label(const struct profile *profile, const struct frame_names *names,
                       const struct stack *stack, const struct view_options *view,
                       char label[FRAME_TEXT_BYTES]) {
    const struct frame *frame = NULL;
    char location[FRAME_TEXT_BYTES];
    snprintf(label, FRAME_TEXT_BYTES, "[stack not recorded]");
    if (!stack) return true;
    if (!own_frame(profile, names, stack->node, view->has_all_frames, &frame)) return false;
    if (!frame) return true;
    frame_label(frame, label, FRAME_TEXT_BYTES, LABEL_COLUMNS);
    frame_location(frame, location, sizeof location);
    size_t used = strlen(label);
    if (frame->file) snprintf(label + used, FRAME_TEXT_BYTES - used, " %s", location);
    return true;
}

bool finding_text(const struct finding *finding, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  char text[FINDING_TEXT_BYTES]) {
    char label[FRAME_TEXT_BYTES];
    const struct saying saying = {finding, label, view->is_plain_number, text};
    if (!find_label(profile, names, finding->stack, view, label)) return false;
    rules[finding->kind].say(&saying);
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
    snprintf(text, FINDING_TEXT_BYTES, "a fix saves up to %s%s%s", bytes,
             *bytes && *calls ? ", and " : "", calls);
}

// The sentence, with the view that shows more.
static bool text_with_view(const struct finding *finding, const struct profile *profile,
                           const struct frame_names *names, const struct view_options *view,
                           char text[FINDING_TEXT_BYTES]) {
    if (!finding_text(finding, profile, names, view, text)) return false;
    size_t used = strlen(text);
    if (rules[finding->kind].has_more)
        snprintf(text + used, FINDING_TEXT_BYTES - used, ": --view %s", rules[finding->kind].view);
    return true;
}

// Words behind each other, on further lines with a deeper indent where they do not fit.
static void print_wrapped(const struct terminal *terminal, size_t first, size_t indent,
                          char *text) {
    size_t used = first;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        size_t columns = text_columns(word);
        bool is_first = used == first;
        if (!is_first && used + 1 + columns > terminal->columns) {
            fputc('\n', terminal->out);
            terminal_indent(terminal, indent);
            used = indent;
            is_first = true;
        }
        fprintf(terminal->out, "%s%s", is_first ? "" : " ", word);
        used += columns + !is_first;
    }
    fputc('\n', terminal->out);
}

bool findings_print(const struct findings *findings, const struct terminal *terminal,
                    const struct profile *profile, const struct frame_names *names,
                    const struct view_options *view, struct error *error) {
    char text[FINDING_TEXT_BYTES];
    if (!findings->count) return true;
    terminal_print(terminal, STYLE_DIM, "  findings\n");
    for (size_t i = 0; i < findings->count && i < SHOWN_MAX; i++) {
        if (!text_with_view(&findings->list[i], profile, names, view, text))
            return error_set(error, "no memory for a stack");
        terminal_indent(terminal, INDENT);
        print_wrapped(terminal, INDENT, INDENT + 2, text);
    }
    if (findings->count > SHOWN_MAX) {
        terminal_indent(terminal, INDENT);
        fprintf(terminal->out, "%zu more: --view findings\n", findings->count - SHOWN_MAX);
    }
    return true;
}

bool findings_print_all(const struct findings *findings, const struct terminal *terminal,
                        const struct profile *profile, const struct frame_names *names,
                        const struct view_options *view, struct error *error) {
    char text[FINDING_TEXT_BYTES];
    fprintf(terminal->out, findings->count ? "%s, the largest gain first\n" : "no findings\n",
            units_counted((int64_t)findings->count, "finding", "findings").text);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        if (!text_with_view(finding, profile, names, view, text))
            return error_set(error, "no memory for a stack");
        int used = fprintf(terminal->out, "\n%3zu ", i + 1) - 1;
        print_wrapped(terminal, (size_t)used, NOTE_INDENT, text);
        finding_gain_text(finding, profile, view->is_plain_number, text);
        terminal_indent(terminal, NOTE_INDENT);
        print_wrapped(terminal, NOTE_INDENT, NOTE_INDENT, text);
        terminal_indent(terminal, NOTE_INDENT);
        terminal_print(terminal, STYLE_DIM, "how: %s\n", finding_page(finding->kind));
    }
    return true;
}
