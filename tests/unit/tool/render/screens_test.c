// SPDX-License-Identifier: Apache-2.0
// The user's screens, letter by letter, from a made-up recording with made-up names.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/answer/forms.h"
#include "tool/model/profile.h"
#include "tool/render/run_screen.h"
#include "tool/render/stack_answers.h"
#include "tool/render/summary.h"
#include "tool/render/tree.h"

enum { PROGRAM = 0x400000, NARROW = 80, WIDE = 120 };

// Return addresses that have names; what is not listed has none.
enum {
    MAIN = PROGRAM + 0x100,
    LOAD = PROGRAM + 0x200,
    INSERT = PROGRAM + 0x300,
    NEW = PROGRAM + 0x400,
    MALLOC = PROGRAM + 0x500,
    UNKNOWN = PROGRAM + 0x600,
    LAYOUT = PROGRAM + 0x700,
    ROW = PROGRAM + 0x800,
    COPY = PROGRAM + 0x900,
    DECODE = PROGRAM + 0xa00,
    WRAPPER = PROGRAM + 0xb00
};

static const char module_path[] = "/usr/bin/sample";
static const struct frame main_frames[] = {{"main", "/src/shell.c", module_path, 0xff, 31, false,
                                            false, false, true, false, false, false, 0}};
static const struct frame load_frames[] = {{"parse_line", "/src/load.c", module_path, 0x1ff, 5,
                                            true, false, false, true, false, false, false, 0},
                                           {"load_file", "/src/load.c", module_path, 0x1ff, 40,
                                            false, false, false, true, false, false, false, 0}};
static const struct frame insert_frames[] = {
    {"engine::Table<std::pair<std::string, long>, engine::Hash>::insert", "/src/table.cc",
     module_path, 0x2ff, 812, false, false, false, true, false, false, false, 0}};
static const struct frame new_frames[] = {{"operator new", NULL, "/lib/libstdc++.so.6", 0x3ff, 0,
                                           false, true, true, false, false, false, false, 0}};
static const struct frame malloc_frames[] = {{"xmalloc", "/src/x.c", module_path, 0x4ff, 3, false,
                                              true, true, false, false, false, false, 0}};
static const struct frame unknown_frames[] = {
    {NULL, NULL, module_path, 0x5ff, 0, false, false, false, true, false, false, false, 0}};
static const char library_path[] = "/usr/lib/x86_64-linux-gnu/liblayout-of-many-pages.so.6";
static const struct frame layout_frames[] = {{.function = "layout_job", .module = library_path}};
static const struct frame row_frames[] = {{.function = "make_row", .module = library_path}};
static const struct frame copy_frames[] = {
    {.function = "strdup", .module = "/lib/libc.so.6", .is_runtime = true}};
static const struct frame decode_frames[] = {
    {.function = "decode_the_next_image_of_a_page", .module = library_path}};
static const struct frame wrapper_frames[] = {{.function = "pool_alloc",
                                               .file = "/src/pool.c",
                                               .line = 9,
                                               .module = module_path,
                                               .is_own = true}};

static const struct {
    uint64_t address;
    const struct frame *frames;
    size_t count;
} known[] = {
    {MAIN, main_frames, 1},     {LOAD, load_frames, 2},       {INSERT, insert_frames, 1},
    {NEW, new_frames, 1},       {MALLOC, malloc_frames, 1},   {UNKNOWN, unknown_frames, 1},
    {LAYOUT, layout_frames, 1}, {ROW, row_frames, 1},         {COPY, copy_frames, 1},
    {DECODE, decode_frames, 1}, {WRAPPER, wrapper_frames, 1},
};

static struct making making;
static struct recording recording;
static struct profile profile;
static uint8_t *bytes;
static char *text;

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    (void)context;
    uint64_t address = profile.places.list.items[place].address + PROGRAM + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].address != address) continue;
        *count = known[i].count;
        return known[i].frames;
    }
    fail();
    return NULL;
}
static const struct frame_names names = {.of_place = frames_of};

static uint32_t stack_of(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    const uint64_t addresses[] = {a, b, c, d};
    uint32_t count = 0;
    while (count < 4 && addresses[count]) count++;
    return making_stack(&making, 0, addresses, count);
}

// 20 MiB in inserts, 5 MiB while loading, a little without a name, and a stack that was cut.
static int setup(void **state) {
    (void)state;
    making_start(&making);
    making_module(&making, module_path, PROGRAM, 0x10000, PROGRAM, 0x11);
    making_thread(&making, 4242, "sample");
    uint32_t insert = stack_of(MAIN, LOAD, INSERT, NEW);
    uint32_t load = stack_of(MAIN, LOAD, MALLOC, 0);
    uint32_t unknown = stack_of(MAIN, UNKNOWN, MALLOC, 0);
    uint32_t cut = stack_of(CAIRN_CUT_NO_CFI, UNKNOWN, 0, 0);
    making_book(&making, insert, 20480, 20u << 20, 0, 0);
    making_book(&making, load, 5, 5u << 20, 0, 0);
    making_book(&making, unknown, 1, 64 << 10, 0, 0);
    making_book(&making, cut, 1, 1024, 0, 0);
    making_peak(&making, 410000000);
    making_book(&making, insert, 1000000, 1u << 30, 1020480, (1u << 30) + (20u << 20));
    making_book(&making, load, 0, 0, 5, 5u << 20);
    making.header.end_ns = 520000000;
    making.header.rss_peak_bytes = 27u << 20;
    return 0;
}

static void build(void) {
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    recording.file_bytes = 120832;
    assert_true(profile_build(&recording, &profile, NULL));
}

static int teardown(void **state) {
    (void)state;
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    free(text);
    bytes = NULL;
    text = NULL;
    return 0;
}

enum screen { SCREEN_SUMMARY, SCREEN_STACKS, SCREEN_TREE };

static const char *print(enum screen screen, const struct view_options *view, size_t columns) {
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    struct terminal terminal = {.out = out, .columns = columns};
    if (screen != SCREEN_SUMMARY) {
        struct answer answer;
        assert_true((screen == SCREEN_STACKS ? stacks_answer : tree_answer)(&answer, &profile,
                                                                            &names, view, NULL));
        assert_true(answer_print_text(&terminal, &answer, NULL));
        answer_close(&answer);
    } else {
        struct summary summary = {.profile = &profile,
                                  .names = &names,
                                  .view = view,
                                  .path = "sample.4242.cairn",
                                  .next = "cairn report",
                                  .has_prefix = true,
                                  .has_list = true};
        assert_true(summary_print_facts(&terminal, &summary, NULL));
        summary_print_file(&terminal, &summary);
    }
    fclose(out);
    return text;
}

static void test_summary(void **state) {
    (void)state;
    build();
    struct view_options view = {.by = MEASURE_PEAK, .top = 2};
    assert_string_equal(
        print(SCREEN_SUMMARY, &view, NARROW),
        "cairn: sample ended with status 0 after 0.52 s\n"
        "  peak heap    25.1 MiB in 20,487 blocks at 0.41 s     RSS peak 27.0 MiB\n"
        "  allocated    1.0 GiB in 1,020,487 calls (2.0 M/s)\n"
        "  at exit      65.0 KiB in 2 blocks\n"
        "  exact · nothing lost · 1 of 4 stacks incomplete\n"
        "  at the peak (3 internal frames hidden: --all-frames)\n"
        "    80 %   20.0 MiB   20,480 blocks   engine::Table<…>::insert  table.cc:812\n"
        "                                      ← parse_line ← load_file\n"
        "    20 %    5.0 MiB        5 blocks   parse_line  load.c:5  ← load_file ← main\n"
        "   0.3 %   65.0 KiB        2 blocks   2 other call sites: --view stacks\n"
        "  sample.4242.cairn (118 KiB)   next: cairn report\n");
    assert_string_equal(
        strstr(print(SCREEN_SUMMARY, &view, WIDE), "    80 %"),
        "    80 %   20.0 MiB   20,480 blocks   engine::Table<…>::insert  table.cc:812"
        "  ← parse_line ← load_file\n"
        "    20 %    5.0 MiB        5 blocks   parse_line  load.c:5  ← load_file ← main\n"
        "   0.3 %   65.0 KiB        2 blocks   2 other call sites: --view stacks\n"
        "  sample.4242.cairn (118 KiB)   next: cairn report\n");
}

static void check_row(uint64_t a, uint64_t b, uint64_t c, uint64_t d, const char *wanted) {
    teardown(NULL);
    making_start(&making);
    making_module(&making, module_path, PROGRAM, 0x10000, PROGRAM, 0x11);
    making_thread(&making, 4242, "sample");
    making_book(&making, stack_of(a, b, c, d), 1, 1u << 20, 0, 0);
    making_peak(&making, 410000000);
    build();
    struct view_options view = {.by = MEASURE_PEAK, .top = 2};
    const char *screen = print(SCREEN_SUMMARY, &view, NARROW);
    if (!strstr(screen, wanted)) fail_msg("no \"%s\" in\n%s", wanted, screen);
}

// An own frame without a name does not lead where a function has one, unless that is libc's; a
// module never takes a function's room.
static void test_leading_frame(void **state) {
    (void)state;
    build();
    check_row(UNKNOWN, LAYOUT, ROW, MALLOC,
              "   make_row  liblayout-of-many-pages.so.6\n"
              "                                      ← layout_job ← sample+0x5ff\n");
    check_row(MAIN, UNKNOWN, ROW, MALLOC, "   make_row  liblayout-of-many-pages.so.6\n");
    check_row(MAIN, UNKNOWN, MALLOC, 0, "   main  shell.c:31\n");
    check_row(UNKNOWN, COPY, MALLOC, 0, "   sample+0x5ff  → strdup\n");
    check_row(MAIN, LAYOUT, MALLOC, 0, "   main  shell.c:31  → layout_job\n");
    check_row(LAYOUT, DECODE, MALLOC, 0, "   decode_the_next_image_of_a_page  liblayou…\n");
}

static void test_endings(void **state) {
    (void)state;
    making.header.exit_signal = 9;
    making.header.state = CAIRN_STATE_DIED;
    making.header.lost[CAIRN_LOST_NESTED] = 12;
    making.header.totals.is_threaded = 1;
    making.header.totals.batch_bytes = 65536;
    build();
    struct view_options view = {.by = MEASURE_PEAK, .top = 1};
    const char *screen = print(SCREEN_SUMMARY, &view, NARROW);
    assert_memory_equal(screen, "cairn: sample ended by SIGKILL after 0.52 s\n", 44);
    assert_non_null(strstr(screen,
                           "  not exact · lost: 12 events in signal handlers · 1 of 4 stacks "
                           "incomplete\n"));
}

static void test_threaded_peak(void **state) {
    (void)state;
    making.header.totals.is_threaded = 1;
    making.header.totals.batch_bytes = 65536;
    build();
    struct view_options view = {.by = MEASURE_PEAK, .top = 1};
    assert_non_null(strstr(print(SCREEN_SUMMARY, &view, NARROW),
                           "  exact, peak within 128 KiB · nothing lost · 1 of 4 stacks"));
}

static void test_nothing_allocated(void **state) {
    (void)state;
    making_start(&making);
    build();
    struct view_options view = {.by = MEASURE_PEAK};
    assert_string_equal(
        print(SCREEN_SUMMARY, &view, NARROW),
        "cairn: sample ended with status 0 after 2.00 s\n"
        "  no allocation was seen: the program made none, or has an allocator of its own\n"
        "    linked in\n"
        "  exact · nothing lost\n"
        "  sample.4242.cairn (118 KiB)   next: cairn report\n");
}

static void test_stacks(void **state) {
    (void)state;
    build();
    struct view_options view = {.by = MEASURE_EXIT, .top = 0, .depth = 8};
    assert_string_equal(print(SCREEN_STACKS, &view, NARROW),
                        "2 stacks by what they hold at the end\n"
                        "\n"
                        "  1  98 % 64.0 KiB in 1 block\n"
                        "          allocated 64.0 KiB in 1 call, 64.0 KiB at the peak\n"
                        "          sample+0x5ff\n"
                        "          main                      shell.c:31\n"
                        "\n"
                        "  2 1.5 % 1.0 KiB in 1 block\n"
                        "          allocated 1.0 KiB in 1 call, 1.0 KiB at the peak\n"
                        "          sample+0x5ff\n"
                        "          [incomplete: code without unwind information]\n"
                        "\n"
                        "1 internal frame is hidden: --all-frames\n");
    view = (struct view_options){.by = MEASURE_PEAK, .top = 1, .depth = 2, .has_all_frames = true};
    assert_string_equal(print(SCREEN_STACKS, &view, NARROW),
                        "4 stacks by what they held at the peak, the first 1 (--top 0: all)\n"
                        "\n"
                        "  1  80 % 20.0 MiB in 20,480 blocks\n"
                        "          allocated 1.0 GiB in 1,020,480 calls, 0 B at the end\n"
                        "          operator new              libstdc++.so.6\n"
                        "          engine::Table<…>::insert  table.cc:812\n"
                        "          … 3 more frames: --depth 0\n");
}

// A stack of which most blocks were watched may have more of the short-lived ones than all are
// thought to have: no share is above the whole.
static void test_share_of_estimates(void **state) {
    (void)state;
    build();
    struct view_options view = {.by = MEASURE_SHORT, .top = 10};
    for (size_t i = 0; i < profile.stack_count; i++)
        profile.stacks[i].watched = (struct watched_blocks){0};
    profile.stacks[0].watched = (struct watched_blocks){.blocks = 100, .short_lived = 50};
    profile.totals.watched = (struct watched_blocks){.blocks = 1000, .short_lived = 50};
    assert_true(measure_total(MEASURE_SHORT, &profile).value <
                measure_stack(MEASURE_SHORT, &profile.stacks[0]).value);
    assert_non_null(strstr(print(SCREEN_STACKS, &view, WIDE), "\n  1 100 % "));
}

static void test_tree(void **state) {
    (void)state;
    build();
    struct view_options view = {.by = MEASURE_PEAK, .top = 10, .threshold = 0.01};
    assert_string_equal(
        print(SCREEN_TREE, &view, NARROW),
        " 100 %  25.1 MiB  sample, at the peak\n"
        "                  main shell.c:31\n"
        " 100 %  25.0 MiB  load_file load.c:40\n"
        "                  parse_line load.c:5\n"
        "  80 %  20.0 MiB  engine::Table<std::pair<…>, engine::Hash>::insert table.cc:812\n"
        "3 internal frames are hidden: --all-frames\n");
    view.is_inverted = true;
    assert_string_equal(print(SCREEN_TREE, &view, WIDE),
                        " 100 %  25.1 MiB   20,487 blocks  sample, at the peak, by allocating "
                        "function\n"
                        "  80 %  20.0 MiB   20,480 blocks  ├ engine::Table<std::pair<std::string, "
                        "long>, engine::Hash>::insert table.cc:812\n"
                        "                                  │ parse_line load.c:5\n"
                        "                                  │ load_file load.c:40\n"
                        "                                  │ main shell.c:31\n"
                        "  20 %   5.0 MiB        5 blocks  └ parse_line load.c:5\n"
                        "                                    load_file load.c:40\n"
                        "                                    main shell.c:31\n"
                        "3 internal frames are hidden: --all-frames\n");
}

static void test_trust(void **state) {
    (void)state;
    making.header.own_bytes = 4u << 20;
    making.header.lost[CAIRN_LOST_UNKNOWN_FREE] = 7;
    making.header.is_rss_sampled = 1;
    build();
    struct frame_names some = names;
    some.wanted_count = 310;
    some.unresolved_count = 12;
    some.unresolved_modules = "libfoo.so";
    struct terminal terminal = {.columns = NARROW};
    size_t size;
    terminal.out = open_memstream(&text, &size);
    trust_print(&terminal, &profile, &some);
    fclose(terminal.out);
    assert_string_equal(text,
                        "  not exact · lost: 7 frees of unknown blocks · 1 of 4 stacks "
                        "incomplete\n"
                        "  12 of 310 frames without a name (libfoo.so) · cairn itself 4.0 MiB\n");
    struct view_options view = {.by = MEASURE_PEAK};
    assert_non_null(strstr(print(SCREEN_SUMMARY, &view, NARROW), "RSS peak about 27.0 MiB\n"));
}

static void test_inherited(void **state) {
    (void)state;
    making_inherited(&making, "(inherited)", 3, 3000);
    making.header.forked_from = 4241;
    build();
    struct view_options view = {.by = MEASURE_PEAK};
    assert_non_null(strstr(print(SCREEN_SUMMARY, &view, NARROW), "1.0 GiB in 1,020,487 calls"));
    assert_non_null(strstr(print(SCREEN_SUMMARY, &view, NARROW),
                           "  inherited    2.9 KiB in 3 blocks from process 4241\n"));
}

static void test_census(void **state) {
    (void)state;
    making_inherited(&making, "(before attach)", 1, 100);
    making.header.has_census = 1;
    build();
    struct view_options view = {.by = MEASURE_PEAK};
    assert_non_null(strstr(print(SCREEN_SUMMARY, &view, NARROW),
                           "  before       100 B in 1 block allocated before attach\n"));
}

static void add_row(struct run *run, const char *name, uint32_t pid, uint64_t peak_bytes) {
    struct run_row *row = &run->rows.items[run->rows.count++];
    *row = (struct run_row){.pid = pid, .state = CAIRN_STATE_ENDED, .has_exit = true};
    snprintf(row->name, sizeof row->name, "%s", name);
    row->figures = (struct figures){.peak_bytes = peak_bytes,
                                    .allocations = 1000 * pid,
                                    .allocated_bytes = 3 * peak_bytes,
                                    .exit_bytes = 512,
                                    .exit_blocks = 1};
}

static const char *print_run(const struct run_screen *screen) {
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    const struct terminal terminal = {.out = out, .columns = NARROW};
    run_screen_print_ending(&terminal, screen);
    run_screen_print_facts(&terminal, screen);
    run_screen_print_table(&terminal, screen);
    fclose(out);
    return text;
}

static void test_run(void **state) {
    (void)state;
    struct run_row rows[8];
    struct run run = {.directory = "/no/such", .rows = {.items = rows}};
    struct run_screen screen = {.run = &run,
                                .combined = {.low_bytes = 119u << 20,
                                             .high_bytes = 131u << 20,
                                             .pss_bytes = 140u << 20,
                                             .pss_processes = 7},
                                .top = 3,
                                .has_prefix = true};
    add_row(&run, "cc1plus-with-a-very-long-name", 4321, 85u << 20);
    add_row(&run, "ld", 4322, 20u << 20);
    add_row(&run, "as", 4323, 2u << 20);
    add_row(&run, "e\033vil", 4324, 1u << 20);
    add_row(&run, "make", 4300, 300u << 10);
    add_row(&run, "sh", 4301, 30u << 10);
    add_row(&run, "sed", 4302, 40u << 10);
    rows[0].rss_peak_bytes = 90u << 20;
    rows[1].rss_peak_bytes = 95u << 20;
    rows[1].exit_status = 1;
    rows[2].has_exit = false;
    rows[3].exit_signal = 9;
    run.first = 4;
    rows[4].duration_ns = 12300000000u;
    screen.sums = run_sum(&run);
    screen.trust.lost[CAIRN_LOST_NESTED] = 4;
    screen.trust.inexact_count = 1;
    screen.trust.own_bytes = 2u << 20;
    assert_string_equal(
        print_run(&screen),
        "cairn: make ended with status 0 after 12.3 s, 7 processes recorded\n"
        "  combined peak  119 MiB to 131 MiB     largest alone 85.0 MiB\n"
        "  largest RSS    about 95.0 MiB (ld 4322)     PSS of all at least 140 MiB\n"
        "  allocated      325 MiB in 30,193,000 calls\n"
        "  at exit        3.5 KiB in 7 blocks\n"
        "  1 of the processes not exact · lost: 4 events in signal handlers\n"
        "  cairn itself up to 2.0 MiB\n"
        "  peak heap  allocated          calls    at exit  ended      process\n"
        "   85.0 MiB    255 MiB      4,321,000      512 B  status 0   cc1plus-with-… 4321\n"
        "   20.0 MiB   60.0 MiB      4,322,000      512 B  status 1   ld 4322\n"
        "    2.0 MiB    6.0 MiB      4,323,000      512 B  ended      as 4323\n"
        "    300 KiB    900 KiB      4,300,000      512 B  status 0   make 4300\n"
        "    1.0 MiB    3.0 MiB      4,324,000      512 B             1 further process\n"
        "   40.0 KiB    210 KiB      8,603,000    1.0 KiB             2 small processes\n"
        "               325 MiB     30,193,000    3.5 KiB             all 7\n"
        "  each process: --view processes\n");
    screen.combined.pss_processes = 3;  // the others were too short to be looked at
    assert_non_null(strstr(print_run(&screen), "     PSS of 3 of 7 processes at least 140 MiB\n"));
    screen.top = 0;
    assert_non_null(strstr(print_run(&screen), "SIGKILL    e\\x1bvil 4324\n"));
}

static void test_losses(void **state) {
    (void)state;
    assert_string_equal(loss_sentence(CAIRN_LOST_UNKNOWN_FREE, 1), "free of an unknown block");
    assert_string_equal(loss_sentence(CAIRN_LOST_UNKNOWN_FREE, 2), "frees of unknown blocks");
    assert_string_equal(loss_sentence(CAIRN_LOSS_MAX, 1), "of an unknown kind");
    for (size_t kind = 0; kind < CAIRN_LOST_KINDS; kind++) assert_non_null(loss_key(kind));
}

// Names from a file that means no good.
static void test_names_are_escaped(void **state) {
    (void)state;
    const struct frame evil = {.function = "a\033[2Jb\n", .file = "/x/\xff.c", .line = 1};
    char label[FRAME_TEXT_BYTES];
    frame_label(&evil, label, sizeof label, 40);
    assert_string_equal(label, "a\\x1b[2Jb\\x0a");
    frame_location(&evil, label, sizeof label);
    assert_string_equal(label, "\\xff.c:1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_summary),
        TEST(test_leading_frame),
        TEST(test_endings),
        TEST(test_threaded_peak),
        TEST(test_nothing_allocated),
        TEST(test_stacks),
        TEST(test_share_of_estimates),
        TEST(test_tree),
        TEST(test_names_are_escaped),
        TEST(test_trust),
        TEST(test_inherited),
        TEST(test_census),
        TEST(test_run),
        TEST(test_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
