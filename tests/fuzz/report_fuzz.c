// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording (recording_form.h) on every screen and as JSON, with names of functions
// that are no better: whatever is shown is text without control characters and without turned
// direction of writing, and the JSON is such to a parser of other people.
#include "tests/fuzz/shown.h"
#include "tool/answer/forms.h"
#include "tool/model/all_heaps.h"
#include "tool/model/combined.h"
#include "tool/model/heaps.h"
#include "tool/render/chart.h"
#include "tool/render/findings.h"
#include "tool/render/groups_screen.h"
#include "tool/render/growth.h"
#include "tool/render/memory.h"
#include "tool/render/report_json.h"
#include "tool/render/run_screen.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/snapshots_screen.h"
#include "tool/render/stack_answers.h"
#include "tool/render/summary.h"
#include "tool/render/tree.h"

static void print_answer(const struct terminal *terminal, struct answer *answer) {
    answer_print_text(terminal, answer, NULL);
    answer_close(answer);
}

// Views over time, of shapes and of memory.
static void print_shapes(const struct terminal *terminal, const struct profile *profile,
                         const struct frame_names *names, const struct view_options *view) {
    const uint64_t short_ns = 10000000;
    struct findings findings;
    if (findings_find(&findings, profile, NULL))
        findings_settle(&findings, profile, names, NULL) &&
            findings_print(&findings, terminal, profile, names, view, NULL);
    struct answer stacks;
    if (findings_answer(&stacks, profile, names, view, NULL)) print_answer(terminal, &stacks);
    for (int kind = SHAPES_TEMPORARY; kind <= SHAPES_AGES; kind++)
        if (shapes_answer(&stacks, profile, names, view, (enum shapes_kind)kind, short_ns, NULL))
            print_answer(terminal, &stacks);
    if (threads_answer(&stacks, profile, view, false, NULL)) print_answer(terminal, &stacks);
    if (growth_answer(&stacks, profile, names, view, NULL)) print_answer(terminal, &stacks);
    struct answer snapshots;
    if (snapshots_answer(&snapshots, profile, view, NULL)) print_answer(terminal, &snapshots);
    if (timeline_answer(&stacks, profile, names, view, NULL)) print_answer(terminal, &stacks);
    if (memory_answer(&stacks, profile, view, NULL)) print_answer(terminal, &stacks);
    memory_print_line(terminal, profile, view);
}

static void print_views(const struct profile *profile) {
    struct text screen, json;
    text_start(&screen);
    text_start(&json);
    struct frame_names names = {.of_place = badly_named, .context = (void *)profile};
    struct terminal terminal = {.out = screen.out, .columns = 80};
    struct view_options view = {.by = MEASURE_PEAK, .top = 5};
    struct summary summary = {
        .profile = profile, .names = &names, .view = &view, .path = "x", .has_list = true};
    summary_print_facts(&terminal, &summary, NULL);
    summary_print_file(&terminal, &summary);
    struct answer stacks;
    if (stacks_answer(&stacks, profile, &names, &view, NULL)) print_answer(&terminal, &stacks);
    if (tree_answer(&stacks, profile, &names, &view, NULL)) print_answer(&terminal, &stacks);
    struct answer answer;
    if (regions_answer(&answer, profile, &view, NULL)) print_answer(&terminal, &answer);
    if (pools_answer(&answer, profile, &view, NULL)) print_answer(&terminal, &answer);
    print_shapes(&terminal, profile, &names, &view);
    struct findings findings;
    if (findings_find(&findings, profile, NULL) &&
        findings_settle(&findings, profile, &names, NULL))
        report_json_print(json.out, profile, &names, &findings, &view, NULL);
    text_end(&screen, check_screen);
    text_end(&json, check_json);
}

// The recording as one process of a run, twice, so that sums are made.
static void print_run(const struct recording *recording) {
    struct text text;
    struct run_row rows[2];
    struct run run = {.rows = {.items = rows, .count = 2}};
    struct run_screen screen = {.run = &run, .top = 1};
    struct combined combined = {0};
    text_start(&text);
    struct terminal terminal = {.out = text.out, .columns = 80};
    for (size_t i = 0; i < run.rows.count; i++) {
        run_row_of(recording, &rows[i]);
        trust_sums_add(&screen.trust, recording);
        require(combined_add(&combined, recording));
    }
    screen.combined = combined_find(&combined);
    combined_free(&combined);
    screen.sums = run_sum(&run);
    run_screen_print_facts(&terminal, &screen);
    run_screen_print_table(&terminal, &screen);
    text_end(&text, check_screen);
}

// Each allocator by name in the place of malloc's heap, and all of them beside it.
static void print_heaps(struct recording *recording) {
    struct heap_names list;
    if (!heap_names_read(&list, recording)) return;
    for (size_t i = 0; i <= list.list.count; i++) {
        struct profile profile;
        bool is_one = i < list.list.count;
        if (!profile_build(recording, &profile, NULL)) break;
        bool is_ok = is_one ? profile_show_heap(&profile,
                                                heap_name_path(&list, &list.list.items[i]), NULL) &&
                                  profile_sum_heap_threads(&profile)
                            : profile_show_all_heaps(&profile, NULL);
        if (is_ok && is_one) print_views(&profile);
        profile_free(&profile);
    }
    heap_names_free(&list);
}

static void show(const struct profile *profile) {
    print_views(profile);
    print_run(profile->recording);
    print_heaps(profile->recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *form, size_t form_size) {
    show_form(form, form_size, show);
    return 0;
}
