// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/join.h"
#include "tool/render/alike.h"

enum { PLACES = 14, FRAMES = 2, STACKS = 60, DEPTH = 5, CELLS = 2 * STACKS, TEXT_BYTES = 4096 };

static struct frame frames[PLACES][FRAMES];
static size_t frame_counts[PLACES];
static struct recording recording;
static struct profile profile;
static struct stack stacks[STACKS], before[STACKS];
static uint32_t cells[CELLS], cells_before[CELLS];
static struct place places[PLACES];
static char texts[STACKS][TEXT_BYTES];  // of the stacks that are left

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    (void)context;
    *count = frame_counts[place];
    return frames[place];
}
static const struct frame_names names = {.of_place = frames_of};

static void start(void) {
    memset(stacks, 0, sizeof stacks);
    memset(frames, 0, sizeof frames);
    memset(places, 0, sizeof places);
    profile = (struct profile){.recording = &recording, .stacks = stacks, .stack_of_cell = cells};
    profile.places.list.items = places;
    profile.places.list.count = PLACES;
    assert_true(tree_start(&profile.tree));
}

static void end(void) {
    tree_free(&profile.tree);
    array_free(&profile.joined);
    free(profile.joined_numbers);
    stack_pool_free(&profile.more);
}

// A stack from the outermost place inwards; the tree has one of each way.
static struct stack *add(const uint32_t *way, size_t count, int64_t bytes) {
    uint32_t node = TREE_ROOT;
    for (size_t i = 0; i < count; i++) assert_true(tree_child(&profile.tree, node, way[i], &node));
    for (size_t i = 0; i < profile.stack_count; i++)
        if (stacks[i].node == node) return &stacks[i];
    struct stack *stack = &stacks[profile.stack_count];
    *stack = (struct stack){.node = node,
                            .id = 100 + profile.stack_count,
                            .number = (uint32_t)profile.stack_count,
                            .peak_bytes = bytes,
                            .at_bytes = 2 * bytes,
                            .allocations = 1,
                            .cut = count ? places[way[0]].cut : 0};
    profile.built_stack_count = ++profile.stack_count;
    return stack;
}

static unsigned draw(unsigned below) {
    static uint64_t state = 20261201;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static struct frame draw_frame(void) {
    static const char *const functions[] = {"load", "store", NULL, "main"},
                             *const files[] = {"/a/x.c", "/b/x.c", NULL},
                             *const modules[] = {"/bin/program", "/lib/one.so", "/lib2/one.so"};
    struct frame frame = {.function = functions[draw(4)],
                          .file = files[draw(3)],
                          .module = modules[draw(3)],
                          .line = 1 + draw(2),
                          .offset = draw(3),
                          .is_hidden = !draw(4),
                          .is_python = !draw(8),
                          .is_interpreter = !draw(6)};
    if (!frame.function) frame.file = NULL;
    if (frame.is_python) frame.is_hidden = frame.is_interpreter = false;
    return frame;
}

// Draws places, of which some are two functions, one inlined into the other, and the last one a
// mark of where stacks were cut.
static void draw_places(void) {
    for (size_t i = 0; i < PLACES; i++) {
        frame_counts[i] = draw(3) ? 1 : 2;
        for (size_t k = 0; k < frame_counts[i]; k++) frames[i][k] = draw_frame();
        if (frame_counts[i] == 2) frames[i][0].is_inlined = true;
    }
    places[PLACES - 1].cut = draw(2) ? CAIRN_CUT_NO_CFI : CAIRN_CUT_SMALL;
}

static void draw_stacks(void) {
    for (size_t i = 0; i < STACKS; i++) {
        uint32_t way[DEPTH];
        const size_t count = draw(DEPTH + 1);
        for (size_t k = 0; k < count; k++) way[k] = draw(k ? PLACES - 1 : PLACES);
        if (profile.stack_count < STACKS) add(way, count, 1 + draw(3));
    }
    profile.cell_count = CELLS;
    for (size_t i = 0; i < CELLS; i++) cells[i] = draw((unsigned)profile.stack_count + 1);
}

// Spells a stack out as it is printed, or as JSON has it but for addresses of functions.
static void spell(const struct stack *stack, struct alike_reading reading, char *text) {
    struct frame_list list = {.are_all_shown = reading.are_all_shown};
    const struct frame *frame;
    size_t index = 0, used = 0;
    assert_true(frame_list_fill(&list, &profile, &names, stack->node, 0));
    while ((frame = frame_list_next(&list, &index))) {
        char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
        frame_label(frame, label, sizeof label, sizeof label);
        frame_location(frame, location, sizeof location);
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s %s%s\n", label, location,
                                 frame->is_inlined ? " inlined" : "");
        if (reading.is_by_programs)
            used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s %s\n",
                                     frame->file ? frame->file : "",
                                     frame->module ? frame->module : "");
    }
    snprintf(text + used, TEXT_BYTES - used, "cut %u", stack->cut);
    frame_list_free(&list);
}

static struct stack *stack_with_id(uint64_t id) {
    for (size_t i = 0; i < profile.stack_count; i++)
        if (stacks[i].id == id) return &stacks[i];
    return NULL;
}

// The stack that has the values of one that was there before, by what both read.
static const struct stack *row_of(const struct stack *wanted, struct alike_reading reading) {
    char text[TEXT_BYTES];
    const struct stack *found = NULL;
    spell(wanted, reading, text);
    for (size_t i = 0; i < profile.stack_count; i++) {
        if (strcmp(text, texts[i])) continue;
        assert_null(found);  // two rows read the same
        found = &stacks[i];
    }
    assert_non_null(found);
    return found;
}

static bool is_among(const struct stack *row, uint64_t id) {
    size_t count;
    const struct joined_id *ids = profile_joined_ids(&profile, row, &count);
    for (size_t i = 0; i < count; i++)
        if (ids[i].id == id) return true;
    return row->id == id;
}

// Compares with what a reader finds who compares the texts of all stacks with each other.
static void check_random(struct alike_reading reading) {
    start();
    draw_places();
    draw_stacks();
    const size_t count = profile.stack_count;
    memcpy(before, stacks, sizeof stacks);
    memcpy(cells_before, cells, sizeof cells);
    assert_true(alike_join(&profile, &names, MEASURE_PEAK, reading, NULL));
    for (size_t i = 0; i < profile.stack_count; i++) spell(&stacks[i], reading, texts[i]);
    int64_t sums[STACKS] = {0}, left = 0;
    uint64_t calls = 0;
    for (size_t i = 0; i < count; i++) {
        const struct stack *row = row_of(&before[i], reading);
        assert_true(is_among(row, before[i].id));
        const struct stack *largest = &before[row->id - 100];
        assert_true(largest->peak_bytes > before[i].peak_bytes ||
                    (largest->peak_bytes == before[i].peak_bytes && row->id <= before[i].id));
        sums[row - stacks] += before[i].peak_bytes;
        for (size_t cell = 0; cell < CELLS; cell++)
            if (cells_before[cell] == i + 1) assert_int_equal(cells[cell], row->number + 1);
    }
    for (size_t i = 0; i < profile.stack_count; i++) {
        assert_int_equal(stacks[i].number, i);
        assert_int_equal(stacks[i].peak_bytes, sums[i]);
        assert_int_equal(stacks[i].at_bytes, 2 * sums[i]);
        left += stacks[i].peak_bytes;
        calls += stacks[i].allocations;
    }
    assert_int_equal(calls, count);
    assert_int_equal(profile.joined.count, count - profile.stack_count);
    assert_true(left > 0);
    end();
}

static void test_random(void **state) {
    enum { TURNS = 40, TURNS_LONG = 400 };
    const int turns = getenv("CAIRN_LONG") ? TURNS_LONG : TURNS;
    (void)state;
    for (int i = 0; i < turns; i++) {
        check_random((struct alike_reading){false, false});
        check_random((struct alike_reading){false, true});
        check_random((struct alike_reading){true, true});
    }
}

// Two calls of one line: their ids are listed, and a second time nothing changes.
static void test_ids(void **state) {
    (void)state;
    start();
    for (size_t i = 0; i < 3; i++) {
        frame_counts[i] = 1;
        frames[i][0] = (struct frame){
            .function = "fill", .file = "x.c", .line = 7, .module = "/bin/x", .offset = 40 + i};
        add((uint32_t[]){(uint32_t)i}, 1, 10 + (int64_t)(i == 1));
    }
    for (int turn = 0; turn < 2; turn++) {
        assert_true(alike_join(&profile, &names, MEASURE_PEAK, (struct alike_reading){0}, NULL));
        assert_int_equal(profile.stack_count, 1);
        assert_int_equal(stacks[0].id, 101);
        char *others = alike_other_ids(&profile, &stacks[0]);
        assert_string_equal(others, "0000000000000064 0000000000000066");
        free(others);
    }
    assert_non_null(stack_with_id(101));
    end();
}

// A filter took away a stack: its cells are nobody's.
static void test_filtered(void **state) {
    (void)state;
    start();
    for (size_t i = 0; i < 3; i++) {
        frame_counts[i] = 1;
        frames[i][0] = (struct frame){.function = "fill", .file = "x.c", .line = 7, .offset = i};
        add((uint32_t[]){(uint32_t)i}, 1, 1);
        cells[i] = (uint32_t)i + 1;
    }
    profile.cell_count = 3;
    stacks[0] = stacks[1];
    stacks[1] = stacks[2];
    profile.stack_count = 2;
    assert_true(alike_join(&profile, &names, MEASURE_PEAK, (struct alike_reading){0}, NULL));
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(cells[0], 0);
    assert_int_equal(cells[1], 1);
    assert_int_equal(cells[2], 1);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_ids),
                                       cmocka_unit_test(test_filtered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
