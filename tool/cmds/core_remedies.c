// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_remedies.h"

#include <inttypes.h>
#include <stdio.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_remedies_huge.h"
#include "tool/cmds/core_remedies_pin.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/other_heaps.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/look_answer.h"
#include "tool/query/name_options.h"
#include "tool/query/views.h"
#include "tool/watch/program.h"

enum { TEXT_BYTES = REMEDY_WORDS_BYTES, PROC_PATH_BYTES = 32, PERCENT = 100 };

// Above so many percent of what is resident its allocator is what a process consists of.
enum { MOSTLY_MALLOC = 40 };

struct remedies_answer {
    const char *word;       // NULL: a process that has ended
    char name[TEXT_BYTES];  // safe to print
    pid_t pid;              // 0: a core
    struct remedy_facts facts;
    struct pin_origin pin;
    struct huge_live huge;
    struct opened own;  // the recording, if it was opened here
    bool has_own;
    char obstacle[TEXT_BYTES];  // why its events cannot be recorded; "": they can, or a core's
    bool is_stopped;
    uint64_t pause_ns;
    char why[sizeof((struct error *)0)->text];  // there is no heap
    struct remedy remedies[REMEDIES];
    size_t count;
};

// --- the answer

static struct remedy_about about_of(const struct remedies_answer *answer, const char *name) {
    return (struct remedy_about){&answer->facts, name, answer->obstacle, answer->is_stopped};
}

// Tells by what its allocator took from the system, as far as that can be resident.
static bool is_of_malloc(const struct remedies_answer *answer) {
    const struct remedy_facts *facts = &answer->facts;
    uint64_t bytes = giveback_sum(&facts->giveback).system_bytes + facts->other.all_bytes;
    if (facts->giveback.has_parameters) bytes += facts->giveback.parameters.mapped_bytes;
    if (bytes > facts->anonymous_bytes) bytes = facts->anonymous_bytes;
    return bytes >= facts->rss_bytes / PERCENT * MOSTLY_MALLOC;
}

static void claim_of_help(const struct remedies_answer *answer, const struct remedy *first,
                          struct claim *claim) {
    char title[REMEDY_TITLE_BYTES];
    bool is_most = first->class == REMEDY_AT_MOST;
    bool is_least =
        !is_most && first->kind == REMEDY_TRIM && giveback_sum(&answer->facts.giveback).is_cut;
    *claim = (struct claim){.key = CLAIM_REMEDY};
    core_remedy_title(first, &answer->facts, title);
    claim_set_text(claim, "what", title);
    claim_set(claim, "bytes", (int64_t)first->bytes);
    if (answer->facts.rss_bytes) claim_set(claim, "rss_bytes", (int64_t)answer->facts.rss_bytes);
    claim_set(claim, "is_most", is_most);
    claim_set(claim, "is_least", is_least);
    claim_set(claim, "is_whole", !is_most && !is_least);
}

static void claim_of_none(const struct remedies_answer *answer, uint64_t free_bytes,
                          struct claim *claim) {
    const struct remedy_facts *facts = &answer->facts;
    const char *why = facts->is_locked       ? "is_locked"
                      : free_bytes           ? NULL
                      : facts->is_core       ? "is_core"
                      : is_of_malloc(answer) ? "is_live"
                                             : "is_elsewhere";
    *claim = (struct claim){.key = CLAIM_REMEDY_NONE};
    if (facts->rss_bytes) claim_set(claim, "rss_bytes", (int64_t)facts->rss_bytes);
    claim_set(claim, "free_bytes", facts->is_locked ? 0 : (int64_t)free_bytes);
    claim_set(claim, "is_stuck", facts->is_locked || free_bytes);
    if (why) claim_set(claim, why, true);
    claim_set_text(claim, "allocator", facts->other.name ? facts->other.name : "glibc's malloc");
}

static void claim_of_remedies(const struct remedies_answer *answer, struct claim *claim) {
    struct remedy shown[REMEDIES];
    size_t count = remedies_find(&answer->facts, false, shown);
    bool is_help = count && shown->class != REMEDY_NEEDS_LOG;
    bool is_cut = giveback_sum(&answer->facts.giveback).is_cut;
    bool is_unread = !answer->facts.has_giveback && !is_help;
    if (is_help) {
        claim_of_help(answer, shown, claim);
    } else if (is_unread || (!answer->facts.is_locked && !count && is_cut)) {
        *claim = (struct claim){.key = CLAIM_REMEDY_UNKNOWN};
        claim_set_text(claim, "why",
                       is_unread ? answer->why
                                 : "the heap changed while it was read; --no-copy-limit stops it");
    } else {
        claim_of_none(answer, count ? shown->bytes : 0, claim);
    }
}

static void print_remedy(const struct remedies_answer *answer, const struct terminal *terminal,
                         const struct remedy *remedy) {
    char title[REMEDY_TITLE_BYTES], text[TEXT_BYTES];
    bool is_known = remedy->class != REMEDY_NEEDS_LOG, has_share = answer->facts.rss_bytes;
    core_remedy_title(remedy, &answer->facts, title);
    printf("  %-11s %10s %6s  ", core_remedy_class(remedy),
           is_known ? units_size((int64_t)remedy->bytes).text : "not known",
           is_known && has_share
               ? units_percent((int64_t)remedy->bytes, (int64_t)answer->facts.rss_bytes).text
               : "");
    terminal_print(terminal, STYLE_NAME, "%s\n", title);
    if (remedy->kind == REMEDY_PIN) pin_origin_print(&answer->pin, terminal);
    if (remedy->kind == REMEDY_HUGE_PAGES) huge_live_print(&answer->huge, terminal);
    const struct remedy_about about = about_of(answer, answer->name);
    core_remedy_apply(remedy, &about, text);
    printf("      apply: %s\n", text);
    core_remedy_cost(remedy, &about, text);
    printf("      costs: %s\n", text);
    core_remedy_sure(remedy, &about, text);
    printf("      sure:  %s\n", text);
}

static void print_screen(const struct remedies_answer *answer, const struct claim *claim) {
    const struct terminal terminal = terminal_of(stdout);
    char sentence[CLAIM_SENTENCE_BYTES];
    claim_sentence(claim, false, sentence);
    terminal_print(&terminal, STYLE_STRONG, "%s", answer->name);
    if (answer->facts.rss_bytes)
        printf(" · %s resident", units_size((int64_t)answer->facts.rss_bytes).text);
    terminal_print(&terminal, STYLE_STRONG, ": %s\n", sentence);
    for (size_t i = 0; i < answer->count; i++) {
        if (!i)
            terminal_print(&terminal, STYLE_DIM, "  %-11s %10s %6s  %s\n", "CLASS", "BYTES",
                           answer->facts.rss_bytes ? "OF RSS" : "", "REMEDY");
        print_remedy(answer, &terminal, &answer->remedies[i]);
    }
}

// --- rows

// Columns of remedies come first, then those of arenas, in which the free memory is.
enum remedy_column {
    COLUMN_CLASS,
    COLUMN_BYTES,
    COLUMN_SHARE,
    COLUMN_TITLE,
    COLUMN_APPLY,
    COLUMN_COSTS,
    COLUMN_SURE,
    COLUMN_REMEDY,
    COLUMN_LARGE_FREE,
    COLUMN_PART,
    COLUMN_MAIN,
    COLUMN_ADDRESS,
    COLUMN_CHUNKS,
    COLUMN_FREE,
    COLUMN_FREE_RESIDENT,
    COLUMN_TOP,
    COLUMN_TOP_RESIDENT,
    COLUMN_TRIM,
    COLUMN_PINNED_BY,
    COLUMN_PINNED,
    COLUMN_AT_LEAST,
    COLUMN_LIVE,
    REMEDY_COLUMNS
};

static const struct answer_column remedy_columns[REMEDY_COLUMNS] = {
    [COLUMN_CLASS] = ANSWER_FIGURES("class", "class", ANSWER_TEXT, 0),
    [COLUMN_BYTES] = ANSWER_FIGURES("bytes", "bytes", ANSWER_BYTES, 0),
    [COLUMN_SHARE] = ANSWER_FIGURES("share", "of RSS", ANSWER_SHARE, 0),
    [COLUMN_TITLE] = ANSWER_NAMES("title", ANSWER_TAIL, .head = "remedy"),
    [COLUMN_APPLY] = ANSWER_TAILS("apply", "\n      apply: ", NULL, .head = "apply"),
    [COLUMN_COSTS] = ANSWER_TAILS("costs", "\n      costs: ", NULL, .head = "costs"),
    [COLUMN_SURE] = ANSWER_TAILS("sure", "\n      sure:  ", NULL, .head = "sure"),
    [COLUMN_REMEDY] = ANSWER_DATA("remedy", ANSWER_TEXT),
    [COLUMN_LARGE_FREE] = ANSWER_DATA("large_free_bytes", ANSWER_BYTES),
    [COLUMN_PART] = ANSWER_DATA("part", ANSWER_TEXT),
    [COLUMN_MAIN] = ANSWER_DATA("main", ANSWER_BOOL),
    [COLUMN_ADDRESS] = ANSWER_DATA("address", ANSWER_NUMBER),
    [COLUMN_CHUNKS] = ANSWER_DATA("free_chunks", ANSWER_COUNT),
    [COLUMN_FREE] = ANSWER_DATA("free_bytes", ANSWER_BYTES),
    [COLUMN_FREE_RESIDENT] = ANSWER_DATA("free_resident_bytes", ANSWER_BYTES),
    [COLUMN_TOP] = ANSWER_DATA("top_bytes", ANSWER_BYTES),
    [COLUMN_TOP_RESIDENT] = ANSWER_DATA("top_resident_bytes", ANSWER_BYTES),
    [COLUMN_TRIM] = ANSWER_DATA("trim_bytes", ANSWER_BYTES),
    [COLUMN_PINNED_BY] = ANSWER_DATA("pinned_by", ANSWER_NUMBER),
    [COLUMN_PINNED] = ANSWER_DATA("pinned_bytes", ANSWER_BYTES),
    [COLUMN_AT_LEAST] = ANSWER_DATA("at_least", ANSWER_BOOL),
    [COLUMN_LIVE] = ANSWER_DATA("live_bytes", ANSWER_BYTES)};

struct remedy_list {
    const struct remedies_answer *found;
    size_t at;
    char title[REMEDY_TITLE_BYTES], apply[TEXT_BYTES], costs[TEXT_BYTES], sure[TEXT_BYTES];
    struct frame_list frames;
};

static void set_known(struct answer_row *row, size_t column, uint64_t value, bool is_known) {
    if (is_known)
        answer_set(row, column, (int64_t)value);
    else
        answer_set_unknown(row, column);
}

// False without memory.
static bool set_remedy(struct remedy_list *list, const struct remedy *remedy,
                       struct answer_row *row) {
    const struct remedies_answer *found = list->found;
    bool is_known = remedy->class != REMEDY_NEEDS_LOG;
    core_remedy_title(remedy, &found->facts, list->title);
    const struct remedy_about about = about_of(found, found->word);
    core_remedy_apply(remedy, &about, list->apply);
    core_remedy_cost(remedy, &about, list->costs);
    core_remedy_sure(remedy, &about, list->sure);
    if (!remedy->is_shown) row->use = ANSWER_FOR_PROGRAMS;
    answer_set_text(row, COLUMN_PART, "remedy");
    answer_set_text(row, COLUMN_CLASS, core_remedy_class(remedy));
    set_known(row, COLUMN_BYTES, remedy->bytes, is_known);
    set_known(row, COLUMN_SHARE, remedy->bytes, is_known && found->facts.rss_bytes);
    answer_set_text(row, COLUMN_TITLE, list->title);
    answer_set_text(row, COLUMN_APPLY, list->apply);
    answer_set_text(row, COLUMN_COSTS, list->costs);
    answer_set_text(row, COLUMN_SURE, list->sure);
    answer_set_text(row, COLUMN_REMEDY, core_remedy_key(remedy));
    set_known(row, COLUMN_LARGE_FREE, remedy->piece_bytes, remedy->kind == REMEDY_THRESHOLD);
    if (remedy->kind != REMEDY_PIN) return true;
    row->frames = pin_origin_frames(&found->pin, &list->frames);
    return !found->pin.is_known || row->frames;
}

// False without memory.
static bool set_huge_stack(struct remedy_list *list, size_t number, struct answer_row *row) {
    const struct huge_live *huge = &list->found->huge;
    row->use = ANSWER_FOR_PROGRAMS;
    answer_set_text(row, COLUMN_PART, "huge_pages");
    answer_set(row, COLUMN_BYTES, (int64_t)huge->stacks.items[number].huge_bytes);
    answer_set(row, COLUMN_LIVE, (int64_t)huge->stacks.items[number].live_bytes);
    row->frames = huge_live_frames(huge, number, &list->frames);
    return row->frames;
}

static void set_arena(const struct arena_free *arena, struct answer_row *row) {
    const bool is_pinned = arena->pin.address;
    row->use = ANSWER_FOR_PROGRAMS;
    answer_set_text(row, COLUMN_PART, "arena");
    answer_set(row, COLUMN_BYTES, (int64_t)arena->system_bytes);
    answer_set(row, COLUMN_MAIN, arena->is_main);
    answer_set(row, COLUMN_ADDRESS, (int64_t)arena->address);
    answer_set(row, COLUMN_CHUNKS, (int64_t)arena->chunk_count);
    answer_set(row, COLUMN_FREE, (int64_t)arena->chunk_bytes);
    answer_set(row, COLUMN_FREE_RESIDENT, (int64_t)arena->chunk_resident_bytes);
    answer_set(row, COLUMN_TOP, (int64_t)arena->top_bytes);
    answer_set(row, COLUMN_TOP_RESIDENT, (int64_t)arena->top_resident_bytes);
    answer_set(row, COLUMN_TRIM, (int64_t)arena->trim_bytes);
    set_known(row, COLUMN_PINNED_BY, arena->pin.address, is_pinned);
    set_known(row, COLUMN_PINNED, arena->pin.resident_bytes, is_pinned);
    answer_set(row, COLUMN_AT_LEAST, arena->is_cut);
}

static bool next_row(struct answer *answer, struct answer_row *row) {
    struct remedy_list *list = answer->state;
    const struct remedies_answer *found = list->found;
    const struct giveback *giveback = &found->facts.giveback;
    const size_t stacks = found->huge.stacks.count;
    size_t at = list->at++;
    if (at >= found->count + stacks + giveback->arenas.count) return false;
    if (at < found->count)
        answer->is_failed = !set_remedy(list, &found->remedies[at], row);
    else if (at < found->count + stacks)
        answer->is_failed = !set_huge_stack(list, at - found->count, row);
    else
        set_arena(&giveback->arenas.items[at - found->count - stacks], row);
    return !answer->is_failed;
}

static void tell_facts(const struct remedies_answer *found, struct answer *answer) {
    const struct remedy_facts *facts = &found->facts;
    const struct malloc_parameters *parameters = &facts->giveback.parameters;
    bool has_parameters = facts->giveback.has_parameters;
    answer_fact_text(answer, "core", found->pid ? NULL : found->word);
    answer_fact_known(answer, "pause_ns", ANSWER_TIME, (int64_t)found->pause_ns, found->is_stopped);
    answer_fact_known(answer, "rss_bytes", ANSWER_BYTES, (int64_t)facts->rss_bytes,
                      facts->rss_bytes);
    answer_fact(answer, "huge_bytes", ANSWER_BYTES, (int64_t)huge_pages_bytes(&facts->huge));
    answer_fact_text(answer, "not_known", facts->has_giveback ? NULL : found->why);
    answer_fact_known(answer, "mmap_threshold", ANSWER_BYTES, (int64_t)parameters->mmap_threshold,
                      has_parameters);
    answer_fact_known(answer, "trim_threshold", ANSWER_BYTES, (int64_t)parameters->trim_threshold,
                      has_parameters);
    answer_fact(answer, "thresholds_fixed", ANSWER_BOOL, has_parameters && parameters->are_fixed);
}

static bool print_form(const struct remedies_answer *found, const struct request *request,
                       const struct claim *claim, struct error *error) {
    struct remedy_list list = {.found = found};
    char program[NAME_MAX];
    size_t count = found->count + found->huge.stacks.count + found->facts.giveback.arenas.count;
    struct answer answer = {.view = "remedies",
                            .options = &request->options,
                            .columns = remedy_columns,
                            .column_count = REMEDY_COLUMNS,
                            .has_frames = found->pin.is_known || found->huge.stacks.count,
                            .whole = (int64_t)found->facts.rss_bytes,
                            .shown = count,
                            .count = count,
                            .pid = (uint32_t)found->pid,
                            .next_row = next_row,
                            .state = &list};
    if (found->pid && process_name(found->pid, program)) answer.program = program;
    look_answer_claims(&answer, claim, 1);
    tell_facts(found, &answer);
    bool is_ok = look_answer_print(request, &answer, error);
    frame_list_free(&list.frames);
    return is_ok;
}

// --- what is looked at

// Finds the stacks of blocks that keep memory, of what is recorded; `opened`: its recording, or
// NULL.
static void find_stacks(struct remedies_answer *answer, const struct heap_look *look,
                        struct opened *opened) {
    const struct arena_free *pinned = remedies_pinned(&answer->facts.giveback);
    const struct huge_pages *huge = &answer->facts.huge;
    struct error unused;
    if (!look->is_recorded || (!pinned && !huge->units.count)) return;
    if (!opened) {
        if (!look->is_core) name_options_symbols()->process = (uint32_t)look->pid;
        answer->has_own = heap_look_recording(look, &answer->own, &unused);
        if (!answer->has_own) return;
        opened = &answer->own;
    }
    huge_live_find(look, opened, huge, &answer->huge);
    pin_origin_of_look(look, opened, pinned, &answer->pin);
}

// Reads the heap of what was looked at; `opened`: its recording, or NULL.
static bool read_look(struct remedies_answer *answer, const struct heap_look *look,
                      struct opened *opened, struct error *error) {
    const struct memory_view view = core_view(look->core);
    struct glibc_heap heap;
    answer->is_stopped = !look->is_core;
    answer->pause_ns = look->is_core ? 0 : look->live.pause_ns;
    bool is_glibc = glibc_heap_read(&view, &heap, error);
    bool is_ok = (!heap_look_may_be_another(look) || core_add_other_heaps(look->core, &heap)) &&
                 (is_glibc || heap.other.name);
    if (!is_ok) core_refuse_heap(look->core, error);
    if (is_ok) {
        is_ok = core_remedies_read_heap(look, &heap, &answer->facts) ||
                error_set(error, "out of memory");
        if (is_ok) find_stacks(answer, look, opened);
    }
    glibc_heap_free(&heap);
    return is_ok;
}

static bool read_stopped(struct remedies_answer *answer, const struct remedies_wish *wish,
                         struct error *error) {
    const struct heap_wish look_wish = {.depth = HEAP_HEADS,
                                        .bytes_max =
                                            wish->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                        .way_around = "--no-copy-limit"};
    struct heap_look look;
    if (!heap_look_take(answer->word, &look_wish, &look, error)) return false;
    if (!look.is_core)
        fprintf(stderr, "cairn: process %s was paused for %s\n", look.name,
                units_duration(look.live.pause_ns).text);
    bool is_ok = read_look(answer, &look, NULL, error);
    heap_look_close(&look);
    return is_ok;
}

// Notes why its program cannot be recorded, if that is so.
static void find_obstacle(struct remedies_answer *answer) {
    struct program program;
    struct error unused;
    char file[PROC_PATH_BYTES];
    int status;
    snprintf(file, sizeof file, "/proc/%d/exe", (int)answer->pid);
    if (program_find(file, &program, &status, &unused) && program.obstacle)
        snprintf(answer->obstacle, sizeof answer->obstacle, "%s", program.obstacle);
}

static bool read_process(struct remedies_answer *answer, const struct remedies_wish *wish,
                         struct error *error) {
    struct rss_parts resident;
    struct error reason = {""};
    if (!running_find(answer->word, &answer->pid, error)) return false;
    bool is_ok = rss_parts_of_process(answer->pid, &resident);
    is_ok = (is_ok && resident.picture.rss_bytes) || examine_absence(answer->pid, error);
    if (is_ok) {
        struct live_process live;
        core_remedies_facts(answer->pid, live_describe(answer->pid, &live), &resident,
                            &answer->facts);
        find_obstacle(answer);
        bool is_read = wish->may_stop && read_stopped(answer, wish, &reason);
        bool is_other = !is_read && process_has_other_heap(answer->pid);
        bool is_running = !is_read && !is_other &&
                          core_remedies_read_running(answer->pid, &resident, &answer->facts);
        if (is_running)
            pin_origin_of_process(answer->pid, remedies_pinned(&answer->facts.giveback),
                                  &answer->pin);
        else if (!is_read)
            text_escape(answer->why, sizeof answer->why,
                        *reason.text ? reason.text
                        : is_other   ? "its heap is not glibc's, and such are read only stopped"
                                     : "no heap of glibc's malloc could be read");
    }
    rss_parts_free(&resident);
    return is_ok;
}

// Works remedies out of the facts, and prints them.
static bool print_found(struct remedies_answer *answer, const struct request *request,
                        struct error *error) {
    struct claim claim;
    bool are_all = request->form && !request->form->is_for_people;
    answer->count = remedies_find(&answer->facts, are_all, answer->remedies);
    claim_of_remedies(answer, &claim);
    if (request->form) return print_form(answer, request, &claim, error);
    print_screen(answer, &claim);
    return true;
}

static void close_answer(struct remedies_answer *answer) {
    pin_origin_close(&answer->pin);
    huge_live_free(&answer->huge);
    if (answer->has_own) opened_close(&answer->own);
    giveback_free(&answer->facts.giveback);
}

bool core_remedies_rows(struct core_subject *subject, const struct remedy_facts *facts,
                        const struct request *request, struct error *error) {
    struct remedies_answer answer = {.pid = subject->look.pid, .facts = *facts};
    bool is_ok = read_look(&answer, &subject->look, &subject->opened, error) &&
                 print_found(&answer, request, error);
    close_answer(&answer);
    return is_ok;
}

bool core_remedies_report(const char *word, const struct request *request,
                          const struct remedies_wish *wish, struct error *error) {
    struct remedies_answer answer = {.word = word};
    text_escape(answer.name, sizeof answer.name, word);
    bool is_core = core_is_one(word);
    bool is_ok = is_core ? read_stopped(&answer, wish, error) : read_process(&answer, wish, error);
    is_ok = is_ok && print_found(&answer, request, error);
    close_answer(&answer);
    huge_pages_free(&answer.facts.huge);
    return is_ok;
}
