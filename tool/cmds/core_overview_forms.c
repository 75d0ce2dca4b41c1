// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview.h"
#include "tool/cmds/core_overview_internal.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_foreign.h"
#include "tool/query/views.h"

enum { TENTH = 10, LINE_BYTES = 4096 };

static const struct {
    const char *key, *title;
} section_words[SECTIONS] = {
    [SECTION_PARTS] = {"resident", "resident memory"},
    [SECTION_GO_SPANS] = {"go_spans", "spans of Go's heap by size of objects"},
    [SECTION_GO_FUNCTIONS] = {"go_functions",
                              "what its functions allocated of it, by Go's samples"},
    [SECTION_TYPES] = {"types", "types of blocks in use"},
    [SECTION_WASTE] = {"waste", "of no use: never touched, zero, equal or unused"},
    [SECTION_OWNERS] = {"owners", "who keeps them"},
    [SECTION_REMEDIES] = {"remedies", "would give back"},
};

static void print_label(const struct terminal *terminal, const char *label) {
    enum { FIGURES_COLUMNS = 21 };
    char text[KIN_LABEL_BYTES];
    snprintf(text, sizeof text, "%s", label);
    text_cut(text, terminal->columns > 2 * FIGURES_COLUMNS ? terminal->columns - FIGURES_COLUMNS
                                                           : FIGURES_COLUMNS);
    terminal_print(terminal, STYLE_NAME, "%s", text);
    putchar('\n');
}

static void print_row(const struct terminal *terminal, enum section_id id, uint64_t all,
                      const struct section_row *row) {
    printf("  %6s %10s  ", units_percent((int64_t)row->bytes, (int64_t)all).text,
           units_size((int64_t)row->bytes).text);
    if (row->class) printf("%s: ", row->class);
    if (id == SECTION_PARTS)
        puts(row->label);
    else
        print_label(terminal, row->label);
}

// Prints a line, on several where the terminal is narrower.
static void print_line(const struct terminal *terminal, const char *key, const char *text) {
    enum { INDENT = 2 };
    char words[LINE_BYTES];
    snprintf(words, sizeof words, "%s%s", key, text);
    terminal_print_wrapped(terminal, 0, INDENT, words);
}

// Prints what there is beside the parts of resident memory.
static void print_beside(const struct overview *overview, const struct terminal *terminal) {
    uint64_t swapped = overview->resident.picture.swap_bytes;
    if (swapped) printf("  %17s  swapped out beside it\n", units_size((int64_t)swapped).text);
    if (!overview->has_heap && !overview->has_other && overview->go_finding == GO_ABSENT)
        print_line(terminal,
                   overview->facts.has_giveback ? "what is in use in it is not known: "
                                                : "what is free in it is not known: ",
                   overview->why_no_heap);
}

// Says whose the memory may be that is no heap that was read, where that is much of it.
static bool find_foreign(const struct overview *overview, char text[FOREIGN_BYTES]) {
    static const char go[] = "Go's heap";
    const bool is_go = overview->go_finding == GO_FOUND;
    const bool has_go = is_go && !overview->go.why_no_spans.text[0];
    uint64_t bytes = 0;
    for (size_t i = 0; i < overview->parts.count; i++) {
        const struct resident_part *part = &overview->parts.items[i];
        bool is_told = !strncmp(part->text, "in Python", strlen("in Python")) || *part->text == '[';
        if (part->kind == PART_OTHER && !is_told) bytes += part->bytes;
    }
    const struct foreign_subject subject = {
        .core = overview->is_open ? overview->subject.core : NULL,
        .pid = overview->pid,
        .has_python = overview->is_open,
        .allocator = overview->has_other ? core_heap_of(&overview->subject)->other.name : NULL};
    return (!is_go || overview->is_open) && bytes >= overview->parts.all_bytes / TENTH &&
           core_foreign_heap(&subject, text) && !(has_go && !strncmp(text, go, sizeof go - 1));
}

static void print_foreign(const struct overview *overview, const struct terminal *terminal) {
    char text[FOREIGN_BYTES];
    if (find_foreign(overview, text)) print_line(terminal, "not read: ", text);
}

static void print_section(const struct overview *overview, const struct terminal *terminal,
                          enum section_id id) {
    const struct section *section = &overview->sections[id];
    if (!section->is_there || !(section->count || id != SECTION_REMEDIES)) return;
    bool is_dump = id == SECTION_PARTS && overview->is_core;
    terminal_print(terminal, STYLE_DIM, "%s", is_dump ? "memory in it" : section_words[id].title);
    const bool has_sum =
        id == SECTION_TYPES || id == SECTION_GO_SPANS || id == SECTION_GO_FUNCTIONS;
    if (has_sum && !*section->why)
        terminal_print(terminal, STYLE_DIM, ", %s in all",
                       units_size((int64_t)section->all_bytes).text);
    putchar('\n');
    for (size_t i = 0; i < section->count; i++)
        print_row(terminal, id, section->all_bytes, &section->rows[i]);
    if (id == SECTION_WASTE && !section->count) printf("  %17s\n", "nothing");
    if (*section->why) print_line(terminal, "not known: ", section->why);
    if (id == SECTION_PARTS) print_beside(overview, terminal);
    if (id == SECTION_PARTS) print_foreign(overview, terminal);
}

static void print_head(const struct overview *overview, const struct terminal *terminal) {
    const struct unit_text size = units_size((int64_t)overview->resident.picture.rss_bytes);
    terminal_print(terminal, STYLE_STRONG, "%s", overview->name);
    if (overview->pid)
        terminal_print(terminal, STYLE_STRONG, overview->is_core ? ", process %d" : " (%d)",
                       (int)overview->pid);
    const uint64_t missing = overview->is_core ? overview->subject.core->missing_bytes : 0;
    if (missing) printf(" · cut off, %s are missing", units_size((int64_t)missing).text);
    if (overview->is_core)
        printf(" · %s of memory in it, no recording:\n", size.text);
    else
        printf(" · %s resident, not recorded:\n", size.text);
}

void overview_print_screen(const struct overview *overview) {
    const struct terminal terminal = terminal_of(stdout);
    char sentence[CLAIM_SENTENCE_BYTES], next[OVERVIEW_NEXT_BYTES];
    overview_sentence(overview, sentence);
    overview_next(overview, next);
    print_head(overview, &terminal);
    terminal_print_line(&terminal, STYLE_STRONG, "  %s", sentence);
    for (int i = 0; i < SECTIONS; i++) print_section(overview, &terminal, (enum section_id)i);
    if (*next) terminal_print(&terminal, STYLE_STRONG, "next: %s\n", next);
}

// Fills in the sections of Go's heap alone, and tells the pause.
static void look_at_go(pid_t pid, struct overview *overview) {
    struct error why = {""};
    memset(overview, 0, sizeof *overview);
    overview->go_finding = go_heap_of_process(pid, &overview->go, &why);
    snprintf(overview->why_no_go, sizeof overview->why_no_go, "%s", why.text);
    overview_fill_go(overview);
    if (overview->go_finding != GO_FOUND) return;
    fprintf(stderr, "cairn: process %d was paused for %s\n", (int)pid,
            units_duration(overview->go.pause_ns).text);
    go_heap_close(&overview->go);
}

void core_overview_print_go(pid_t pid) {
    static struct overview overview;
    const struct terminal terminal = terminal_of(stdout);
    look_at_go(pid, &overview);
    print_section(&overview, &terminal, SECTION_GO_SPANS);
    print_section(&overview, &terminal, SECTION_GO_FUNCTIONS);
}

static void put_section(struct json *json, const struct section *section, const char *key) {
    if (!section->is_there || *section->why) {
        json_put_null(json, key);
        return;
    }
    json_open_array(json, key);
    for (size_t i = 0; i < section->count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "bytes", section->rows[i].bytes);
        json_put_string(json, "what", section->rows[i].label);
        if (section->rows[i].class) json_put_string(json, "class", section->rows[i].class);
        json_close(json);
    }
    json_close(json);
}

void core_overview_put_go(struct json *json, pid_t pid) {
    static struct overview overview;
    look_at_go(pid, &overview);
    if (overview.go_finding == GO_ABSENT) return;
    for (enum section_id id = SECTION_GO_SPANS; id <= SECTION_GO_FUNCTIONS; id++)
        put_section(json, &overview.sections[id], section_words[id].key);
}

static void put_sizes(struct json *json, const struct overview *overview) {
    const struct cairn_picture *picture = &overview->resident.picture;
    if (overview->is_core) {
        json_put_null(json, "rss_bytes");
        json_put_null(json, "swap_bytes");
        json_put_uint(json, "dump_bytes", picture->rss_bytes);
        json_put_uint(json, "missing_bytes", overview->subject.core->missing_bytes);
    } else {
        json_put_uint(json, "rss_bytes", picture->rss_bytes);
        json_put_uint(json, "swap_bytes", picture->swap_bytes);
        json_put_null(json, "dump_bytes");
        json_put_null(json, "missing_bytes");
    }
}

// Returns how long the process was paused; false: it was not.
static bool pause_of(const struct overview *overview, uint64_t *pause_ns) {
    const bool is_copied = overview->is_open && !overview->is_core;
    const bool is_go = overview->go_finding == GO_FOUND && !overview->is_core;
    *pause_ns = (is_copied ? overview->subject.look.live.pause_ns : 0) +
                (is_go ? overview->go.pause_ns : 0);
    return is_copied || is_go;
}

static const char *not_known(const struct overview *overview) {
    return overview->has_heap || overview->has_other ? NULL : overview->why_no_heap;
}

enum overview_column {
    OVERVIEW_PART,
    OVERVIEW_SHARE,
    OVERVIEW_BYTES,
    OVERVIEW_CLASS,
    OVERVIEW_WHAT,
    OVERVIEW_COLUMNS
};

static const struct answer_column overview_columns[OVERVIEW_COLUMNS] = {
    [OVERVIEW_PART] = ANSWER_NAMES("part", ANSWER_TAIL, .head = "part"),
    [OVERVIEW_SHARE] = ANSWER_FIGURES("share", NULL, ANSWER_RATIO, 6),
    [OVERVIEW_BYTES] = ANSWER_FIGURES("bytes", "bytes", ANSWER_BYTES, 10),
    [OVERVIEW_CLASS] = ANSWER_DATA("class", ANSWER_TEXT),
    [OVERVIEW_WHAT] = ANSWER_NAMES("what", ANSWER_TAIL, .head = "what")};

struct overview_rows {
    const struct overview *overview;
    size_t section, at;
};

static bool next_overview(struct answer *answer, struct answer_row *row) {
    struct overview_rows *rows = answer->state;
    const struct section *section = &rows->overview->sections[rows->section];
    while (rows->at == section->count) {
        if (++rows->section == SECTIONS) return false;
        section++;
        rows->at = 0;
    }
    const struct section_row *told = &section->rows[rows->at++];
    answer_set_text(row, OVERVIEW_PART, section_words[rows->section].key);
    answer_set_ratio(row, OVERVIEW_SHARE, (int64_t)told->bytes, (int64_t)section->all_bytes);
    answer_set(row, OVERVIEW_BYTES, (int64_t)told->bytes);
    if (told->class) answer_set_text(row, OVERVIEW_CLASS, told->class);
    answer_set_text(row, OVERVIEW_WHAT, told->label);
    return true;
}

static void tell_sizes(const struct overview *overview, struct answer *answer) {
    const struct cairn_picture *picture = &overview->resident.picture;
    const bool is_core = overview->is_core;
    const int64_t resident = (int64_t)picture->rss_bytes, swapped = (int64_t)picture->swap_bytes;
    uint64_t pause_ns;
    const bool was_paused = pause_of(overview, &pause_ns);
    answer_fact_known(answer, "rss_bytes", ANSWER_BYTES, resident, !is_core);
    answer_fact_known(answer, "swap_bytes", ANSWER_BYTES, swapped, !is_core);
    answer_fact_known(answer, "dump_bytes", ANSWER_BYTES, resident, is_core);
    answer_fact_known(answer, "missing_bytes", ANSWER_BYTES,
                      is_core ? (int64_t)overview->subject.core->missing_bytes : 0, is_core);
    answer_fact_known(answer, "pause_ns", ANSWER_TIME, (int64_t)pause_ns, was_paused);
    answer_fact_text(answer, "core", is_core ? overview->name : NULL);
    answer_fact_text(answer, "not_known", not_known(overview));
}

bool overview_print_form(const struct overview *overview, const struct request *request,
                         struct error *error) {
    struct overview_rows rows = {.overview = overview};
    struct answer answer = {.view = "overview",
                            .options = &request->options,
                            .columns = overview_columns,
                            .column_count = OVERVIEW_COLUMNS,
                            .pid = (uint32_t)overview->pid,
                            .program = overview->name,
                            .next_row = next_overview,
                            .state = &rows};
    char sentence[CLAIM_SENTENCE_BYTES], next[OVERVIEW_NEXT_BYTES], foreign[FOREIGN_BYTES];
    struct claim claim;
    for (int i = 0; i < SECTIONS; i++) answer.count += overview->sections[i].count;
    answer.shown = answer.count;
    overview_sentence(overview, sentence);
    overview_next(overview, next);
    snprintf(answer.title, sizeof answer.title, "%.*s", (int)sizeof answer.title - 1, sentence);
    answer.claim_count = overview_claim(overview, &claim);
    answer.claims = &claim;
    tell_sizes(overview, &answer);
    answer_fact_text(&answer, "not_read", find_foreign(overview, foreign) ? foreign : NULL);
    answer_fact_text(&answer, "next", *next ? next : NULL);
    for (int i = 0; i < SECTIONS; i++)
        if (*overview->sections[i].why)
            answer_note(&answer, "%s: not known: %s", section_words[i].key,
                        overview->sections[i].why);
    return request->form->print(stdout, &answer, error);
}

void overview_print_json(const struct overview *overview) {
    char sentence[CLAIM_SENTENCE_BYTES], next[OVERVIEW_NEXT_BYTES];
    overview_sentence(overview, sentence);
    overview_next(overview, next);
    char foreign[FOREIGN_BYTES];
    struct claim claim;
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.overview/1");
    if (overview->pid)
        json_put_uint(&json, "pid", (uint64_t)overview->pid);
    else
        json_put_null(&json, "pid");
    json_put_string(&json, "name", overview->name);
    put_sizes(&json, overview);
    uint64_t pause_ns;
    if (pause_of(overview, &pause_ns))
        json_put_uint(&json, "pause_ns", pause_ns);
    else
        json_put_null(&json, "pause_ns");
    json_put_string(&json, "sentence", sentence);
    if (overview_claim(overview, &claim))
        claim_put_json_alone(&json, &claim);
    else
        json_put_null(&json, "claims");
    json_put_string(&json, "not_known", not_known(overview));
    json_put_string(&json, "not_read", find_foreign(overview, foreign) ? foreign : NULL);
    for (int i = 0; i < SECTIONS; i++)
        put_section(&json, &overview->sections[i], section_words[i].key);
    json_put_string(&json, "next", *next ? next : NULL);
    json_close(&json);
}
