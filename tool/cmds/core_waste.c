// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_waste.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/clock.h"
#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/render/columns.h"
#include "tool/render/findings.h"
#include "tool/render/findings_find.h"

enum { OFFENDERS = 3 };

// As JSON has them; rows of a screen have those with a head.
static const struct {
    const char *word, *head;
    int width;
} figures[WASTE_FIGURES] = {
    [WASTE_UNTOUCHED] = {"untouched_bytes", "UNTOUCHED", 10},
    [WASTE_ZERO] = {"zero_bytes", "ZERO", 9},
    [WASTE_DUPLICATE] = {"duplicate_bytes", "COPIES", 9},
    [WASTE_TAIL] = {"tail_bytes", "TAIL", 9},
    [WASTE_SLACK] = {"slack_bytes", "SLACK", 9},
    [FIGURE_WASTED] = {"wasted_bytes", NULL, 0},
    [FIGURE_HELD] = {"bytes", NULL, 0},
    [FIGURE_BLOCKS] = {"blocks", "BLOCKS", 10},
    [FIGURE_SPARSE] = {"sparse_bytes", "SPARSE", 9},
    [FIGURE_STRINGS] = {"string_bytes", NULL, 0},
    [FIGURE_UNREAD] = {NULL, NULL, 0},
};

bool waste_wish_read(const struct command_args *args, struct waste_wish *wish,
                     struct error *error) {
    enum { SEED_MAX = 1000000 };  // short enough to be typed again
    *wish = (struct waste_wish){.has_limit = !args_has(args, OPTION_NO_COPY_LIMIT),
                                .seed = hash_mix(clock_now_ns(), index_table_seed()) % SEED_MAX};
    return !args_has(args, OPTION_WASTE_SEED) ||
           args_number(args, OPTION_WASTE_SEED, 0, UINT64_MAX, &wish->seed, error);
}

// Rows with something that could be saved, at most so many as were asked for.
static size_t shown_of(const struct waste_sums *sums, const struct view_options *options,
                       size_t *count) {
    *count = 0;
    while (*count < sums->rows.count && waste_value(&sums->rows.items[*count], FIGURE_WASTED) +
                                            waste_value(&sums->rows.items[*count], FIGURE_SPARSE))
        ++*count;
    return options->top && options->top < *count ? options->top : *count;
}

// --- the screen

static struct unit_text share_text(double share) {
    enum { WHOLE = 1000000 };
    return units_percent((int64_t)(share * WHOLE), WHOLE);
}

// "43 % to 49 %"; "" of what is exact.
static struct unit_text interval_of_share(const struct waste_row *row) {
    struct unit_text out = {""};
    if (row->share.high > row->share.low)
        snprintf(out.text, sizeof out.text, "%s to %s", share_text(row->share.low).text,
                 share_text(row->share.high).text);
    return out;
}

static struct unit_text interval_of(const struct waste_row *row, int figure) {
    struct unit_text out = {"exact"};
    const struct drawn_estimate *estimate = &row->estimates[figure];
    if (estimate->high > estimate->low)
        snprintf(out.text, sizeof out.text, "%s to %s", units_size((int64_t)estimate->low).text,
                 units_size((int64_t)estimate->high).text);
    return out;
}

static void print_head(const struct waste_sums *sums, const struct terminal *terminal) {
    char name[KIN_LABEL_BYTES];
    const struct waste_row *all = &sums->all;
    const char *about = sums->windows ? "about " : "";
    const struct unit_text interval = interval_of_share(all);
    text_escape(name, sizeof name, sums->subject->look.name);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    printf(" \xc2\xb7 %s%s of %s in %s are of no use (%s%s%s)", about,
           units_size(waste_value(all, FIGURE_WASTED)).text,
           units_size(waste_value(all, FIGURE_HELD)).text,
           units_counted(waste_value(all, FIGURE_BLOCKS), "block", "blocks").text,
           share_text(all->share.value).text, interval.text[0] ? ": " : "", interval.text);
}

// "812 of 16,384 windows of 64 KiB and all 12 large blocks were read, seed 17"
static void part_text(const struct waste_sums *sums, char *text, size_t size) {
    const struct drawn *drawn = sums->drawn;
    char large[64];
    *text = 0;
    if (!sums->windows) return;
    snprintf(
        large, sizeof large, "%s of %s", units_count((int64_t)drawn[STRATUM_LARGE].count).text,
        units_counted((int64_t)drawn[STRATUM_LARGE].of_count, "large block", "large blocks").text);
    snprintf(text, size, "%s of %s of 64 KiB and %s were read, seed %" PRIu64,
             units_count((int64_t)drawn[STRATUM_WINDOWS].count).text,
             units_counted((int64_t)drawn[STRATUM_WINDOWS].of_count, "window", "windows").text,
             large, sums->windows->seed);
}

static void print_part(const struct waste_sums *sums, const struct terminal *terminal) {
    char part[160];
    if (!sums->windows) return;
    part_text(sums, part, sizeof part);
    terminal_print(terminal, STYLE_DIM,
                   "estimated with intervals of 95 %%: %s (--seed %" PRIu64
                   ": the same again; --no-copy-limit: all of it)\n",
                   part, sums->windows->seed);
    terminal_print(terminal, STYLE_DIM,
                   "copies are estimated from those among the blocks that were read\n");
    if (sums->left_out)
        terminal_print(terminal, STYLE_WARNING,
                       "%s changed while they were read and are left out\n",
                       units_counted((int64_t)sums->left_out, "window", "windows").text);
    if (!sums->subject->is_recorded || !sums->windows->are_by_map)
        terminal_print(
            terminal, STYLE_DIM,
            "what glibc keeps free in caches of threads and fastbins counts as in use\n");
}

static int64_t copied_of(const struct waste_row *row, bool are_strings) {
    return waste_value(row, are_strings ? (int)FIGURE_STRINGS : (int)WASTE_DUPLICATE);
}

// The stack that most duplicates, or most of the strings among them, are of.
static const struct waste_row *most_copies(const struct waste_sums *sums, bool are_strings) {
    const struct waste_row *most = NULL;
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        if (!most || copied_of(row, are_strings) > copied_of(most, are_strings)) most = row;
    }
    return most;
}

// "string duplicates: 12.4 MiB in 310,022 copies of 1,207 strings, most of them from PARSE".
static bool print_copies(const struct waste_sums *sums, const struct terminal *terminal,
                         bool are_strings) {
    char label[KIN_LABEL_BYTES];
    const struct waste_copies *copies = are_strings ? &sums->strings : &sums->copies;
    const struct waste_row *most = most_copies(sums, are_strings);
    if (!copies->count) return true;
    if (!core_kin_label(sums->subject, &most->kin, label)) return false;
    bool is_all = copied_of(most, are_strings) == copied_of(&sums->all, are_strings);
    const char *noun = are_strings ? "string" : "content";
    const char *nouns = are_strings ? "strings" : "contents";
    terminal_print(terminal, STYLE_DIM, "%sduplicates: %s%s in %s of %s%s, %sfrom %s\n",
                   are_strings ? "string " : "", sums->windows ? "about " : "",
                   units_size(copied_of(&sums->all, are_strings)).text,
                   units_counted((int64_t)copies->count, "copy", "copies").text,
                   units_counted((int64_t)copies->contents, noun, nouns).text,
                   sums->windows ? " (those that were read)" : "", is_all ? "" : "most of them ",
                   label);
    return true;
}

// What a fix saves is said where equal strings are worth a finding; `label` is for its text.
static bool find_strings(const struct waste_sums *sums, char label[KIN_LABEL_BYTES],
                         struct finding *finding) {
    const struct waste_row *most = most_copies(sums, true);
    const struct string_copies copies = {.bytes = (uint64_t)copied_of(&sums->all, true),
                                         .count = sums->strings.count,
                                         .strings = sums->strings.contents,
                                         .whose = label,
                                         .is_estimate = sums->windows != NULL};
    return most && core_kin_label(sums->subject, &most->kin, label) &&
           finding_of_strings(&copies, (uint64_t)waste_value(&sums->all, FIGURE_HELD), finding);
}

static void print_finding(const struct waste_sums *sums, const struct terminal *terminal,
                          const struct view_options *options) {
    char label[KIN_LABEL_BYTES], text[FINDING_TEXT_BYTES], help[FINDING_HELP_BYTES];
    struct finding finding;
    if (!find_strings(sums, label, &finding)) return;
    if (finding_text(&finding, NULL, NULL, options, text)) printf("finding: %s\n", text);
    finding_gain_text(&finding, NULL, options->is_plain_number, text);
    terminal_print(terminal, STYLE_DIM, "%s; how: %s\n", text, finding_help(finding.kind, help));
}

static void put_finding(struct json *json, const struct waste_sums *sums) {
    char label[KIN_LABEL_BYTES], text[FINDING_TEXT_BYTES];
    const struct view_options options = {.is_plain_number = false};
    struct finding finding;
    json_open_array(json, "findings");
    if (find_strings(sums, label, &finding) && finding_text(&finding, NULL, NULL, &options, text)) {
        json_open_object(json, NULL);
        json_put_string(json, "kind", finding_name(finding.kind));
        json_put_string(json, "text", text);
        json_put_uint(json, "saved_bytes", finding.saved_bytes);
        json_put_string(json, "page", finding_page(finding.kind));
        json_close(json);
    }
    json_close(json);
}

static void print_limits(const struct waste_sums *sums, const struct terminal *terminal) {
    if (sums->subject->look.is_core)
        terminal_print(
            terminal, STYLE_DIM,
            "a core does not say which pages were there: untouched ones count as zero\n");
    if (!sums->subject->is_recorded)
        terminal_print(terminal, STYLE_DIM,
                       "not recorded: sizes are the allocator's, so a tail may be its slack\n");
}

// Room for WASTED, its interval, SHARE and the figures with a head.
enum { COLUMNS_MAX = 3 + WASTE_FIGURES };

static struct columns columns_of(const struct waste_sums *sums, struct column *items) {
    size_t count = 0;
    items[count++] = (struct column){"WASTED", 10, STYLE_PLAIN, false};
    if (sums->windows) items[count++] = (struct column){"95 %", 24, STYLE_DIM, false};
    items[count++] = (struct column){"SHARE", 6, STYLE_PLAIN, false};
    for (int i = 0; i < WASTE_FIGURES; i++)
        if (figures[i].head)
            items[count++] =
                (struct column){figures[i].head, (size_t)figures[i].width, STYLE_PLAIN, false};
    return (struct columns){items, count, 0, 1};
}

static bool print_row(const struct waste_sums *sums, const struct terminal *terminal,
                      const struct columns *columns, const struct waste_row *row) {
    char label[KIN_LABEL_BYTES];
    struct unit_text texts[COLUMNS_MAX];
    size_t count = 0;
    texts[count++] = units_size(waste_value(row, FIGURE_WASTED));
    if (sums->windows) texts[count++] = interval_of(row, FIGURE_WASTED);
    texts[count++] = share_text(row->share.value);
    for (int i = 0; i < WASTE_FIGURES; i++)
        if (figures[i].head)
            texts[count++] = i == (int)FIGURE_BLOCKS ? units_count(waste_value(row, i))
                                                     : units_size(waste_value(row, i));
    bool is_ok = core_kin_label(sums->subject, &row->kin, label);
    columns_print(terminal, columns, texts);
    printf("  %s\n", label);
    return is_ok;
}

static bool print_rows(const struct waste_sums *sums, const struct view_options *options) {
    struct column items[COLUMNS_MAX];
    const struct columns columns = columns_of(sums, items);
    const struct terminal terminal = terminal_of(stdout);
    size_t count, shown = shown_of(sums, options, &count);
    print_head(sums, &terminal);
    list_print_cut(&terminal, options, shown, count);
    putchar('\n');
    print_part(sums, &terminal);
    bool is_ok = print_copies(sums, &terminal, false) && print_copies(sums, &terminal, true);
    print_finding(sums, &terminal, options);
    print_limits(sums, &terminal);
    columns_print_heads(&terminal, &columns);
    printf("  %s\n", sums->subject->is_recorded ? "ALLOCATED BY" : "TYPE");
    for (size_t i = 0; i < shown && is_ok; i++)
        is_ok = print_row(sums, &terminal, &columns, &sums->rows.items[i]);
    return is_ok;
}

// --- JSON

static void put_sums(struct json *json, const struct waste_row *row, bool is_estimate) {
    char key[64];
    for (int i = 0; i < WASTE_FIGURES; i++) {
        if (!figures[i].word) continue;
        json_put_int(json, figures[i].word, waste_value(row, i));
        if (!is_estimate) continue;
        snprintf(key, sizeof key, "%s_low", figures[i].word);
        json_put_int(json, key, (int64_t)row->estimates[i].low);
        snprintf(key, sizeof key, "%s_high", figures[i].word);
        json_put_int(json, key, (int64_t)row->estimates[i].high + 1);
    }
    if (!is_estimate) return;
    const double whole = 1000;
    json_put_thousandths(json, "share", (unsigned)(row->share.value * whole));
    json_put_thousandths(json, "share_low", (unsigned)(row->share.low * whole));
    json_put_thousandths(json, "share_high", (unsigned)(row->share.high * whole) + 1);
}

static void put_part(struct json *json, const struct waste_sums *sums) {
    json_put_bool(json, "estimated", sums->windows);
    if (!sums->windows) return;
    json_open_object(json, "sample");
    json_put_uint(json, "seed", sums->windows->seed);
    json_put_uint(json, "window_bytes", WINDOW_BYTES);
    json_put_uint(json, "windows", sums->drawn[STRATUM_WINDOWS].count);
    json_put_uint(json, "of_windows", sums->drawn[STRATUM_WINDOWS].of_count);
    json_put_uint(json, "large_blocks", sums->drawn[STRATUM_LARGE].count);
    json_put_uint(json, "of_large_blocks", sums->drawn[STRATUM_LARGE].of_count);
    json_put_uint(json, "windows_left_out", sums->left_out);
    json_close(json);
}

static bool print_json(const struct waste_sums *sums) {
    struct json json;
    char label[KIN_LABEL_BYTES];
    bool is_ok = true;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.waste/1");
    json_put_bool(&json, "pages_known", !sums->subject->look.is_core);
    json_put_bool(&json, "recorded", sums->subject->is_recorded);
    put_part(&json, sums);
    put_sums(&json, &sums->all, sums->windows);
    json_put_uint(&json, "copies", sums->copies.count);
    json_put_uint(&json, "contents", sums->copies.contents);
    json_put_uint(&json, "string_copies", sums->strings.count);
    json_put_uint(&json, "strings", sums->strings.contents);
    put_finding(&json, sums);
    json_open_array(&json, "waste");
    for (size_t i = 0; i < sums->rows.count && is_ok; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        json_open_object(&json, NULL);
        json_put_string(&json, "kind", core_kin_word(row->kin.kind));
        json_put_string(&json, "name", label);
        put_sums(&json, row, sums->windows);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return is_ok;
}

static bool resolve(const struct waste_sums *sums, size_t count, struct error *error) {
    if (!sums->subject->is_recorded) return true;
    for (size_t i = 0; i < count; i++) core_kin_want(sums->subject, &sums->rows.items[i].kin);
    return names_resolve(sums->subject->opened.names, error);
}

static bool print(const struct waste_sums *sums, void *context, struct error *error) {
    const struct request *request = context;
    if (!resolve(sums, sums->rows.count, error)) return false;
    bool is_ok = request->is_json ? print_json(sums) : print_rows(sums, &request->options);
    return is_ok || error_set(error, "out of memory");
}

// --- for budgets

static bool measure(const struct waste_sums *sums, void *context, struct error *error) {
    struct core_waste *waste = context;
    size_t size, count = sums->rows.count < OFFENDERS ? sums->rows.count : OFFENDERS;
    char label[KIN_LABEL_BYTES];
    waste->is_estimate = sums->windows;
    waste->wasted = sums->all.estimates[FIGURE_WASTED];
    waste->bytes = sums->all.estimates[FIGURE_HELD];
    waste->share = sums->all.share;
    part_text(sums, waste->part, sizeof waste->part);
    if (!resolve(sums, count, error)) return false;
    FILE *out = open_memstream(&waste->offenders, &size);
    bool is_ok = out;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        is_ok = core_kin_label(sums->subject, &row->kin, label);
        fprintf(out, "%s%s of %s: %s\n", sums->windows ? "about " : "",
                units_size(waste_value(row, FIGURE_WASTED)).text,
                units_size(waste_value(row, FIGURE_HELD)).text, label);
    }
    if (out && fclose(out)) is_ok = false;
    return is_ok || error_set(error, "out of memory");
}

static bool sum_of(const char *word, const struct waste_wish *asked,
                   bool (*use)(const struct waste_sums *sums, void *context, struct error *error),
                   void *context, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max =
                                       asked->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit",
                                   .may_draw = asked->has_limit,
                                   .seed = asked->seed};
    struct core_subject subject;
    struct waste_sums sums;
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_ok = waste_sums_make(&subject, &sums, error) && use(&sums, context, error);
    if (is_ok)
        core_print_doubts(&subject);
    else
        heap_look_blame(&subject.look, error);
    waste_sums_free(&sums);
    core_subject_close(&subject);
    return is_ok;
}

bool core_waste_report(const char *word, const struct request *request,
                       const struct waste_wish *wish, struct error *error) {
    return sum_of(word, wish, print, (void *)(uintptr_t)request, error);
}

bool core_waste_measure(const char *word, const struct waste_wish *wish, struct core_waste *waste,
                        struct error *error) {
    *waste = (struct core_waste){0};
    return sum_of(word, wish, measure, waste, error);
}
