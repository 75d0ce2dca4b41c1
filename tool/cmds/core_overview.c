// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/core_overview_internal.h"
#include "tool/heap/other_heaps.h"
#include "tool/heap/recorded.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"

struct overview_wish {
    bool has_limit;  // of a process no more is copied than `cairn core` copies unasked
    bool may_stop;   // false: it is looked at while it goes on
    const struct request *request;  // of the view memory: its part of the answer
};

static bool is_core_without_recording(const char *path) {
    struct core_image core;
    struct cairn_header header;
    struct error unused;
    if (!core_is_one(path) || !core_open(path, &core, &unused)) return false;
    bool is_recorded = core_find_recording(&core, &header);
    core_close(&core);
    return !is_recorded;
}

bool core_overview_is_possible(const char *word) {
    struct live_process process;
    struct process_stat stat;
    struct error error;
    pid_t pid;
    if (word && is_core_without_recording(word)) return true;
    if (!word || !running_may_be(word) || live_choose(word, &process, &error)) return false;
    if (running_find(word, &pid, &error)) return process_stat(pid, &stat);
    return access(word, F_OK) && running_count(word, &pid) > 1;  // which are they?
}

// --- what is looked at

static void find_name(struct overview *overview, const char *word) {
    char name[OVERVIEW_NAME_BYTES] = "";
    process_read(overview->pid, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    text_escape(overview->name, sizeof overview->name, *name ? name : word);
}

static uint64_t largest_block(const struct glibc_heap *heap) {
    uint64_t largest = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk_is_used(chunk) && chunk->size > largest) largest = chunk->size;
    }
    return largest;
}

// Looks at the heap of what is open; keeps the reason if there is none.
static void look_at_heap(struct overview *overview) {
    struct error error = {""};
    struct core_subject *subject = &overview->subject;
    bool is_ok = core_need_heap(subject, &error);
    overview->has_other = is_ok && core_heap_of(subject)->other.name;
    if (is_ok) overview->block_bytes = largest_block(core_heap_of(subject));
    if (overview->has_other) return;
    is_ok = is_ok && heap_look_survey(&subject->look, NULL, &overview->heap, &error);
    overview->has_heap = is_ok;
    if (!is_ok) text_escape(overview->why_no_heap, sizeof overview->why_no_heap, error.text);
}

// Finds what would make it smaller: of the copy, or else of the process while it goes on.
static void find_remedies(struct overview *overview) {
    struct remedy_facts *facts = &overview->facts;
    core_remedies_facts(overview->pid, false, &overview->resident, facts);
    bool is_read =
        (overview->has_heap || overview->has_other) &&
        core_remedies_read_heap(&overview->subject.look, core_heap_of(&overview->subject), facts);
    if (is_read) return;
    giveback_free(&facts->giveback);
    core_remedies_read_running(overview->pid, &overview->resident, facts);
}

// Looks at the heap that Go keeps beside malloc's.
static void look_at_go(struct overview *overview, const struct overview_wish *wish) {
    struct error why = {""};
    if (overview->is_core)
        overview->go_finding = go_heap_of_core(
            overview->subject.core, name_options_symbols()->sysroot, &overview->go, &why);
    else if (wish->may_stop)
        overview->go_finding = go_heap_of_process(overview->pid, &overview->go, &why);
    snprintf(overview->why_no_go, sizeof overview->why_no_go, "%s", why.text);
}

static bool is_go_alone(const struct overview *overview) {
    return overview->go_finding == GO_FOUND && overview->go.program.is_static;
}

static void find_parts(struct overview *overview) {
    if (overview->has_other) {
        const struct glibc_heap *heap = core_heap_of(&overview->subject);
        struct other_resident other = {.name = heap->other.name};
        const struct stopped_image *live = overview->is_core ? NULL : &overview->subject.look.live;
        other.bytes = other_heap_there(overview->subject.core, live, &heap->other.memory);
        other.used_bytes = other_heap_used(overview->subject.core, live, heap);
        resident_parts_find_other(&overview->resident, &other, &overview->parts);
    } else {
        struct python_pools python = {0};
        if (overview->is_open && !overview->is_core)
            python_pools_find(&overview->subject.look.live, &python);
        resident_parts_find(&overview->resident, overview->has_heap ? &overview->heap : NULL,
                            &overview->facts.giveback, &python, &overview->parts);
    }
}

// Opens what is looked at, or keeps why it is not.
static void open_subject(struct overview *overview, const struct overview_wish *wish) {
    const struct heap_wish look = {.depth = HEAP_REFERENCES,
                                   .bytes_max =
                                       wish->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct error why = {""};
    overview->is_open =
        wish->may_stop ? core_subject_open(overview->word, &look, NULL, &overview->subject, &why)
                       : error_set(&why, "it was not stopped (--no-stop)");
    if (overview->is_open)
        look_at_heap(overview);
    else
        text_escape(overview->why_no_heap, sizeof overview->why_no_heap, why.text);
}

static bool open_process(struct overview *overview, const struct overview_wish *wish,
                         struct error *error) {
    if (!running_find(overview->word, &overview->pid, error)) return false;
    find_name(overview, overview->word);
    snprintf(overview->word, sizeof overview->word, "%d", (int)overview->pid);
    overview->has_resident = rss_parts_of_process(overview->pid, &overview->resident);
    if (!overview->has_resident || !overview->resident.picture.rss_bytes)
        return examine_absence(overview->pid, error);
    look_at_go(overview, wish);
    if (!is_go_alone(overview)) open_subject(overview, wish);
    find_remedies(overview);
    return true;
}

static bool open_core(struct overview *overview, const struct overview_wish *wish,
                      struct error *error) {
    struct overview_wish looks = *wish;
    looks.may_stop = true;  // nothing is
    open_subject(overview, &looks);
    if (!overview->is_open) return error_set(error, "%s", overview->why_no_heap);
    overview->is_core = overview->parts.are_dumped = true;
    overview->pid = (pid_t)overview->subject.core->pid;
    text_escape(overview->name, sizeof overview->name, overview->word);
    resident_of_dump(overview->subject.core, &overview->resident);
    overview->has_resident = true;
    look_at_go(overview, wish);
    if ((overview->has_heap || overview->has_other) &&
        !core_remedies_read_heap(&overview->subject.look, core_heap_of(&overview->subject),
                                 &overview->facts))
        giveback_free(&overview->facts.giveback);
    return true;
}

static bool open_overview(struct overview *overview, const char *word,
                          const struct overview_wish *wish, struct error *error) {
    memset(overview, 0, sizeof *overview);
    snprintf(overview->word, sizeof overview->word, "%s", word);
    bool is_ok =
        core_is_one(word) ? open_core(overview, wish, error) : open_process(overview, wish, error);
    if (is_ok) find_parts(overview);
    return is_ok;
}

static void close_overview(struct overview *overview) {
    if (overview->go_finding == GO_FOUND) go_heap_close(&overview->go);
    remedy_facts_free(&overview->facts);
    if (overview->has_waste) waste_sums_free(&overview->waste);
    if (overview->has_heap) heap_state_free(&overview->heap);
    if (overview->is_open) core_subject_close(&overview->subject);
    if (overview->has_resident) rss_parts_free(&overview->resident);
}

static bool report(const char *word, const struct overview_wish *wish, struct error *error) {
    struct overview overview;
    bool is_ok = open_overview(&overview, word, wish, error);
    if (is_ok && view_has(wish->request->view, VIEW_IS_RESIDENT)) {
        is_ok = resident_parts_print(&overview.parts, overview.name, overview.pid, wish->request,
                                     error);
    } else if (is_ok) {
        overview_fill(&overview);
        if (wish->request->form)
            is_ok = overview_print_form(&overview, wish->request, error);
        else if (wish->request->is_json)
            overview_print_json(&overview);
        else
            overview_print_screen(&overview);
    }
    close_overview(&overview);
    return is_ok;
}

// Returns true if nothing is asked for that only a recording answers: a view, a filter, a form.
static bool is_plain_question(const struct command_args *args, const struct request *request) {
    static const enum option_id allowed[] = {
        OPTION_NO_COPY_LIMIT, OPTION_NO_STOP,    OPTION_COLOR, OPTION_DEBUG_DIR,
        OPTION_SYSROOT,       OPTION_DEBUGINFOD, OPTION_JSON};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    for (size_t i = 0; i < args->given_count; i++) {
        size_t at = 0;
        const enum option_id id = args->given[i].id;
        while (at < ALLOWED && allowed[at] != id) at++;
        bool is_form = view_has(request->view, VIEW_IS_RESIDENT) &&
                       (id == OPTION_VIEW || id == OPTION_FORMAT || id == OPTION_BYTES);
        is_form |= id == OPTION_FORMAT && !args_has(args, OPTION_VIEW);
        if (at == ALLOWED && !is_form) return false;
    }
    return !args->command->view;
}

bool core_overview_answers(const struct command_args *args, const struct request *request,
                           int *status) {
    const char *word = args->words[0];
    const struct overview_wish wish = {.has_limit = !args_has(args, OPTION_NO_COPY_LIMIT),
                                       .may_stop = !args_has(args, OPTION_NO_STOP),
                                       .request = request};
    struct error error;
    if (!is_plain_question(args, request) || !core_overview_is_possible(word)) return false;
    *status = report(word, &wish, &error) ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
    return true;
}
