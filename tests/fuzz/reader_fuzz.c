// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording: reader, profile, timeline, and every view of it.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/export/export.h"
#include "tool/model/combined.h"
#include "tool/model/profile.h"
#include "tool/render/report_json.h"
#include "tool/render/run_screen.h"
#include "tool/render/stacks.h"
#include "tool/render/summary.h"
#include "tool/render/tree.h"

static const struct frame *nameless(void *context, uint32_t place, size_t *count) {
    enum { FRAMES = 256 };
    static struct frame frames[FRAMES];  // some places share one: recursion
    const struct profile *profile = context;
    struct frame *frame = &frames[place % FRAMES];
    frame->offset = profile->places.list.items[place].address;
    frame->is_hidden = frame->offset % 7 == 0;
    *count = 1;
    return frame;
}

static void print_views(const struct profile *profile, FILE *out) {
    struct frame_names names = {.of_place = nameless, .context = (void *)profile};
    struct terminal terminal = {.out = out, .columns = 80};
    struct view_options view = {.by = MEASURE_PEAK, .top = 5};
    struct summary summary = {
        .profile = profile, .names = &names, .view = &view, .path = "x", .has_list = true};
    summary_print_facts(&terminal, &summary, NULL);
    summary_print_file(&terminal, &summary);
    stacks_print(&terminal, profile, &names, &view, NULL);
    tree_print(&terminal, profile, &names, &view, NULL);
    report_json_print(out, profile, &names, &view, NULL);
    const struct export export = {.profile = profile,
                                  .names = &names,
                                  .process_count = 1,
                                  .program = "x",
                                  .command = "x",
                                  .trust = "x",
                                  .tool_version = "0"};
    for (const struct export_format *format = export_formats; format->name; format++)
        if (format->write) format->write(out, &export, NULL);
}

// The recording as one process of a run, twice, so that sums are made.
static void print_run(const struct recording *recording, FILE *out) {
    struct run_row rows[2];
    struct run run = {.rows = {.items = rows, .count = 2}};
    struct run_screen screen = {.run = &run, .top = 1};
    struct combined combined = {0};
    struct terminal terminal = {.out = out, .columns = 80};
    for (size_t i = 0; i < run.rows.count; i++) {
        run_row_of(recording, &rows[i]);
        trust_sums_add(&screen.trust, recording);
        if (!combined_add(&combined, recording)) abort();
    }
    combined_find(&combined, &screen.combined_low_bytes, &screen.combined_high_bytes);
    if (screen.combined_low_bytes > screen.combined_high_bytes) abort();
    combined_free(&combined);
    screen.sums = run_sum(&run);
    run_screen_print_facts(&terminal, &screen);
    run_screen_print_table(&terminal, &screen);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static FILE *out;
    struct recording recording;
    struct profile profile;
    if (!out) out = fopen("/dev/null", "w");
    if (!out) abort();
    if (!recording_open_memory(bytes, size, &recording, NULL)) return 0;
    if (profile_build(&recording, &profile, NULL)) {
        print_views(&profile, out);
        profile_free(&profile);
    }
    print_run(&recording, out);
    recording_close(&recording);
    return 0;
}
