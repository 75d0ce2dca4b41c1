// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording (recording_form.h) that is added up with itself, by addresses and by
// names: the sum has both, and every name that it hands out is a text. Names come from the
// recording alone (SYMBOLS); no file is read.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/shown.h"
#include "tool/answer/forms.h"
#include "tool/query/merged.h"
#include "tool/query/name_options.h"
#include "tool/render/stack_answers.h"
#include "tool/render/tree.h"

static void check_names(const struct opened *sum, const struct frame_names *names) {
    size_t letters = 0;
    for (uint32_t i = 0; i < sum->profile.places.list.count; i++) {
        size_t count;
        if (sum->profile.places.list.items[i].cut) continue;
        const struct frame *frames = names->of_place(names->context, i, &count);
        for (size_t k = 0; k < count; k++) {
            letters += frames[k].function ? strlen(frames[k].function) : 0;
            letters += frames[k].file ? strlen(frames[k].file) : 0;
            letters += frames[k].module ? strlen(frames[k].module) : 0;
        }
    }
    require(letters < SIZE_MAX / 2);
}

static void print_sum(const struct opened *sum, const struct frame_names *names) {
    struct text screen;
    text_start(&screen);
    struct terminal terminal = {.out = screen.out, .columns = 80};
    struct view_options view = {.by = MEASURE_PEAK, .top = 5};
    struct answer stacks;
    if (stacks_answer(&stacks, &sum->profile, names, &view, NULL)) {
        answer_print_text(&terminal, &stacks, NULL);
        answer_close(&stacks);
    }
    if (tree_answer(&stacks, &sum->profile, names, &view, NULL)) {
        answer_print_text(&terminal, &stacks, NULL);
        answer_close(&stacks);
    }
    text_end(&screen, check_screen);
}

static void add_up(char *path, bool is_by_names, bool has_lines) {
    char *words[] = {path, path, NULL};
    const struct opening opening = {
        .words = words, .count = 2, .is_by_names = is_by_names, .has_lines = has_lines};
    struct opened sum;
    struct error error;
    if (!merged_open(&opening, &sum, &error)) return;
    require(sum.process_count == 2);
    struct frame_names names = names_frames(sum.names);
    check_names(&sum, &names);
    print_sum(&sum, &names);
    opened_close(&sum);
}

// A file that commands find by a path.
static int write_file(const uint8_t *bytes, size_t size) {
    int file = memfd_create("merge_fuzz", MFD_CLOEXEC);
    require(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *form, size_t form_size) {
    char path[64];
    size_t size;
    uint8_t *bytes = form_expand(form, form_size, &size);
    require(bytes != NULL);
    int file = write_file(bytes, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    name_options_symbols()->is_closed = true;
    add_up(path, false, false);
    add_up(path, true, form_size % 2);
    close(file);
    free(bytes);
    return 0;
}
