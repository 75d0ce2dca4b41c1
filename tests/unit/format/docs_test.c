// SPDX-License-Identifier: Apache-2.0
// docs/reference/environment.md has the settings, and format.md says what format.h says: its tables
// of fields are compared with the structures, and the bytes of its worked example with what
// make_recording writes. Run from the root of the checkout.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/guard.h"
#include "format/looks.h"
#include "format/packed.h"
#include "format/sample.h"
#include "format/settings.h"
#include "format/symbols.h"
#include "format/torture.h"
#include "format/waste.h"
#include "tests/tools/make_recording.h"
#include "tool/model/profile.h"
#include "tool/model/stack_fields.h"

static char *document;

// The text of a page; NULL if it cannot be read.
static char *read_page(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, size + 1);
    bool is_read = text && fread(text, 1, size, file) == size;
    fclose(file);
    if (is_read) return text;
    free(text);
    return NULL;
}

static int read_document(void **state) {
    (void)state;
    document = read_page("docs/reference/format.md");
    return document ? 0 : -1;
}

static int free_document(void **state) {
    (void)state;
    free(document);
    return 0;
}

// The text behind the heading "### `NAME`", up to the next heading.
static char *part_of(const char *name) {
    char heading[64];
    snprintf(heading, sizeof heading, "### `%s`", name);
    const char *start = strstr(document, heading);
    if (!start) fail_msg("docs/reference/format.md has no part \"%s\"", heading);
    const char *end = strstr(start + strlen(heading), "\n#");
    return end ? strndup(start, (size_t)(end - start)) : strdup(start);
}

// A row "| 0x10 | 4 | `field` | ..." of a part's table.
static void check_field(const char *structure, const char *field, size_t offset, size_t size) {
    char row[128];
    snprintf(row, sizeof row, "| 0x%zx | %zu | `%s` |", offset, size, field);
    char *part = part_of(structure);
    if (!strstr(part, row)) fail_msg("docs/reference/format.md, %s: no row %s", structure, row);
    free(part);
}

#define FIELD(structure, field)                                                                    \
    check_field(#structure, #field, offsetof(struct structure, field),                             \
                sizeof(((struct structure *)0)->field))

// Every variable that the library or the tool knows is in the table, and no other.
static void test_settings(void **state) {
    (void)state;
    char *page = read_page("docs/reference/environment.md");
    assert_non_null(page);
    size_t known = 0, told = 0;
    for (int i = 0; i < CAIRN_SETTINGS; i++) {
        char name[64];
        snprintf(name, sizeof name, "`%s`", cairn_settings[i].name);
        if (!strstr(page, name)) fail_msg("docs/reference/environment.md has no %s", name);
    }
    for (const char *at = page; (at = strstr(at, "`CAIRN_")); at++) {
        size_t length = strcspn(at + 1, "`=");
        bool is_known = strlen(TORTURE_VARIABLE) == length &&
                        !memcmp(TORTURE_VARIABLE, at + 1, length);  // of a library of its own
        told++;
        for (int i = 0; i < CAIRN_SETTINGS && !is_known; i++)
            is_known = strlen(cairn_settings[i].name) == length &&
                       !memcmp(cairn_settings[i].name, at + 1, length);
        if (!is_known) fail_msg("docs/reference/environment.md: %.*s", (int)length, at + 1);
        known++;
    }
    assert_int_equal(known, told);
    assert_true(known >= CAIRN_SETTINGS);
    free(page);
}

static void test_stack_fields(void **state) {
    (void)state;
    char *page = read_page("docs/reference/json.md");
    assert_non_null(page);
    for (const struct stack_field *field = stack_fields; field->key; field++)
        if (!strstr(page, field->key)) fail_msg("docs/reference/json.md has no %s", field->key);
    free(page);
}

static void test_guard(void **state) {
    (void)state;
    FIELD(cairn_guard, band_bytes);
    FIELD(cairn_guard, checks_wanted);
    FIELD(cairn_guard, checks_done);
    FIELD(cairn_guard, checks_begun);
    FIELD(cairn_guard, overrun_blocks);
    FIELD(cairn_guard, unguarded_blocks);
    FIELD(cairn_guard, checked_blocks);
    FIELD(cairn_guard, checked_ns);
    FIELD(cairn_guard, bands_table);
    FIELD(cairn_overrun, found_at);
    FIELD(cairn_overrun, cell);
    FIELD(cairn_overrun, found_cell);
    FIELD(cairn_overrun, found_tid);
    FIELD(cairn_overrun, address);
    FIELD(cairn_overrun, size);
    FIELD(cairn_overrun, found_ns);
    FIELD(cairn_overrun, before);
    FIELD(cairn_overrun, behind);
    FIELD(cairn_overrun, is_unmet);
    FIELD(cairn_overrun_side, changed_bytes);
    FIELD(cairn_overrun_side, nearest);
    FIELD(cairn_overrun_side, farthest);
    FIELD(cairn_overrun_side, sample);
}

static void test_header(void **state) {
    (void)state;
    FIELD(cairn_header, magic);
    FIELD(cairn_header, version);
    FIELD(cairn_header, header_bytes);
    FIELD(cairn_header, self_address);
    FIELD(cairn_header, mapped_bytes);
    FIELD(cairn_header, state);
    FIELD(cairn_header, stop_reason);
    FIELD(cairn_header, machine);
    FIELD(cairn_header, is_compact);
    FIELD(cairn_header, section_count);
    FIELD(cairn_header, allocator);
    FIELD(cairn_header, allocator_module);
    FIELD(cairn_header, slot_bytes);
    FIELD(cairn_header, slot_granule);
    FIELD(cairn_header, pid);
    FIELD(cairn_header, ppid);
    FIELD(cairn_header, uid);
    FIELD(cairn_header, forked_from);
    FIELD(cairn_header, has_exit);
    FIELD(cairn_header, exit_status);
    FIELD(cairn_header, exit_signal);
    FIELD(cairn_header, start_unix_ns);
    FIELD(cairn_header, start_clock_ns);
    FIELD(cairn_header, end_ns);
    FIELD(cairn_header, rss_peak_bytes);
    FIELD(cairn_header, own_bytes);
    FIELD(cairn_header, cpu_ns);
    FIELD(cairn_header, live_map);
    FIELD(cairn_header, is_rss_sampled);
    FIELD(cairn_header, windows);
    FIELD(cairn_header, python_version);
    FIELD(cairn_header, has_python_frames);
    FIELD(cairn_header, is_attached);
    FIELD(cairn_header, has_census);
    FIELD(cairn_header, live_samples);
    FIELD(cairn_header, comm);
    FIELD(cairn_header, page_bytes);
    FIELD(cairn_header, java_version);
    FIELD(cairn_header, has_java_frames);
    FIELD(cairn_header, go_version);
    FIELD(cairn_header, has_go_frames);
    FIELD(cairn_header, js_version);
    FIELD(cairn_header, has_js_frames);
    FIELD(cairn_header, php_version);
    FIELD(cairn_header, has_php_frames);
    FIELD(cairn_header, ruby_version);
    FIELD(cairn_header, has_ruby_frames);
    FIELD(cairn_header, sections);
    FIELD(cairn_header, control);
    FIELD(cairn_header, totals);
    FIELD(cairn_header, lost);
    FIELD(cairn_header, pace);
    FIELD(cairn_header, left_out);
    FIELD(cairn_header, unkept);
    FIELD(cairn_header, has_mappings);
    FIELD(cairn_header, mappings_epoch);
    FIELD(cairn_header, mappings_peak_bytes);
    FIELD(cairn_header, mappings_peak_ns);
    FIELD(cairn_header, mappings_lost);
    FIELD(cairn_header, mappings_ranges);
    FIELD(cairn_header, command);
    FIELD(cairn_header, executable);
    FIELD(cairn_header, directory);
    FIELD(cairn_header, destination);
    FIELD(cairn_header, max_depth);
    FIELD(cairn_header, bypassing);
}

static void test_parts_of_the_header(void **state) {
    (void)state;
    FIELD(cairn_section, kind);
    FIELD(cairn_section, entry_bytes);
    FIELD(cairn_section, offset);
    FIELD(cairn_section, capacity_bytes);
    FIELD(cairn_section, used_bytes);
    FIELD(cairn_packed_block, stored_bytes);
    FIELD(cairn_packed_block, plain_bytes);
    FIELD(cairn_totals, epoch);
    FIELD(cairn_totals, peak_epoch);
    FIELD(cairn_totals, peak_bytes);
    FIELD(cairn_totals, peak_blocks);
    FIELD(cairn_totals, peak_ns);
    FIELD(cairn_totals, batch_bytes);
    FIELD(cairn_totals, generation);
    FIELD(cairn_totals, snapshot_epoch);
    FIELD(cairn_totals, live_bytes);
    FIELD(cairn_totals, live_blocks);
    FIELD(cairn_totals, allocated_bytes);
    FIELD(cairn_totals, allocations);
    FIELD(cairn_totals, point_ns);
    FIELD(cairn_totals, point_lock);
    FIELD(cairn_totals, is_threaded);
    FIELD(cairn_control, is_off);
    FIELD(cairn_control, is_tool_gone);
    FIELD(cairn_control, tool_pid);
    FIELD(cairn_control, clock_ms);
    FIELD(cairn_control, was_off);
    FIELD(cairn_control, is_leave_wanted);
    FIELD(cairn_control, end_wait_ms);
    FIELD(cairn_control, events_wanted);
    FIELD(cairn_control, events_state);
    FIELD(cairn_control, events_taken);
    FIELD(cairn_control, events_refused);
    FIELD(cairn_control, has_event_taker);
    FIELD(cairn_control, events_for_ms);
    FIELD(cairn_control, events_for_high);
}

static void test_symbols(void **state) {
    (void)state;
    FIELD(cairn_symbols_header, magic);
    FIELD(cairn_symbols_header, version);
    FIELD(cairn_symbols_header, header_bytes);
    FIELD(cairn_symbols_header, module_count);
    FIELD(cairn_symbols_header, symbol_count);
    FIELD(cairn_symbols_header, frame_count);
    FIELD(cairn_symbols_header, string_bytes);
    FIELD(cairn_symbols_module, path);
    FIELD(cairn_symbols_module, build_id_bytes);
    FIELD(cairn_symbols_module, build_id);
    FIELD(cairn_symbols_module, source);
    FIELD(cairn_symbols_module, source_path);
    FIELD(cairn_symbols_module, note);
    FIELD(cairn_symbols_module, first_symbol);
    FIELD(cairn_symbols_module, symbol_count);
    FIELD(cairn_symbols_module, flags);
    FIELD(cairn_symbols_module, stamp);
    FIELD(cairn_symbols_module, code_key);
    FIELD(cairn_symbol, address);
    FIELD(cairn_symbol, first_frame);
    FIELD(cairn_symbol, frame_count);
    FIELD(cairn_code, bytes);
    FIELD(cairn_code, first_line);
    FIELD(cairn_code, function_bytes);
    FIELD(cairn_code, file_bytes);
    FIELD(cairn_symbol_frame, function);
    FIELD(cairn_symbol_frame, file);
    FIELD(cairn_symbol_frame, line);
    FIELD(cairn_symbol_frame, declared_line);
    FIELD(cairn_symbol_frame, flags);
}

static void test_mappers(void **state) {
    (void)state;
    FIELD(cairn_mapper, cell);
    FIELD(cairn_mapper, kind);
    FIELD(cairn_mapper, epoch);
    FIELD(cairn_mapper, is_ready);
    FIELD(cairn_mapper, calls);
    FIELD(cairn_mapper, mapped_bytes);
    FIELD(cairn_mapper, unmapped_bytes);
    FIELD(cairn_mapper, live_ranges);
    FIELD(cairn_mapper, peak_bytes);
    FIELD(cairn_mapper, peak_ranges);
    FIELD(cairn_mapper, highest_bytes);
    FIELD(cairn_mapper, inherited_ranges);
}

static void test_scopes(void **state) {
    (void)state;
    FIELD(cairn_scope, kind);
    FIELD(cairn_scope, name);
    FIELD(cairn_scope, parent);
    FIELD(cairn_scope, is_ready);
    FIELD(cairn_scope, entries);
    FIELD(cairn_scope, rise_bytes);
    FIELD(cairn_scope, allocations);
    FIELD(cairn_scope, frees);
    FIELD(cairn_scope, allocated_bytes);
    FIELD(cairn_scope, freed_bytes);
    FIELD(cairn_scope, peak_bytes);
    FIELD(cairn_scope, ended);
    FIELD(cairn_scope, heap_peak_bytes);
    FIELD(cairn_scope, heap_peak_ns);
    FIELD(cairn_scope, heap_epoch);
}

static void test_heap_stacks(void **state) {
    (void)state;
    FIELD(cairn_heap_stack, cell);
    FIELD(cairn_heap_stack, scope);
    FIELD(cairn_heap_stack, epoch);
    FIELD(cairn_heap_stack, is_ready);
    FIELD(cairn_heap_stack, calls);
    FIELD(cairn_heap_stack, frees);
    FIELD(cairn_heap_stack, allocated_bytes);
    FIELD(cairn_heap_stack, freed_bytes);
    FIELD(cairn_heap_stack, peak_bytes);
    FIELD(cairn_heap_stack, peak_blocks);
    FIELD(cairn_heap_stack, size);
    FIELD(cairn_heap_stack, sizes);
    FIELD(cairn_heap_stack, ages);
    FIELD(cairn_heap_stack, snapshot_epoch);
}

static void test_heap_points(void **state) {
    (void)state;
    FIELD(cairn_heap_points, scope);
    FIELD(cairn_heap_points, is_ready);
    FIELD(cairn_heap_points, point_ns);
    FIELD(cairn_heap_points, points);
}

static void test_modules(void **state) {
    (void)state;
    FIELD(cairn_module, start);
    FIELD(cairn_module, end);
    FIELD(cairn_module, bias);
    FIELD(cairn_module, loaded_ns);
    FIELD(cairn_module, unloaded_ns);
    FIELD(cairn_module, path);
    FIELD(cairn_module, build_id_bytes);
    FIELD(cairn_module, build_id);
    FIELD(cairn_module, segment_count);
    FIELD(cairn_module, is_ready);
    FIELD(cairn_module, segments);
    FIELD(cairn_module, file_bytes);
    FIELD(cairn_module, file_modified_ns);
    FIELD(cairn_module, file_inode);
    FIELD(cairn_module, code_hash);
}

static void test_entries(void **state) {
    (void)state;
    FIELD(cairn_thread, tid);
    FIELD(cairn_thread, slot);
    FIELD(cairn_thread, folded_count);
    FIELD(cairn_thread, is_ended);
    FIELD(cairn_thread, start_ns);
    FIELD(cairn_thread, end_ns);
    FIELD(cairn_thread, name);
    FIELD(cairn_thread, allocations);
    FIELD(cairn_thread, allocated_bytes);
    FIELD(cairn_thread, frees);
    FIELD(cairn_thread, net_bytes);
    FIELD(cairn_thread, failed);
    FIELD(cairn_thread, own_ns);
    FIELD(cairn_thread, estimated_blocks);
    FIELD(cairn_thread, is_sampled);
    FIELD(cairn_point, min_bytes);
    FIELD(cairn_point, max_bytes);
    FIELD(cairn_point, last_bytes);
    FIELD(cairn_point, last_blocks);
    FIELD(cairn_point, allocated_bytes);
    FIELD(cairn_point, allocations);
    FIELD(cairn_point, is_used);
    FIELD(cairn_resident, at_ns);
    FIELD(cairn_resident, rss_bytes);
    FIELD(cairn_resident, pss_bytes);
    FIELD(cairn_resident, swap_bytes);
    FIELD(cairn_picture, at_ns);
    FIELD(cairn_picture, rss_bytes);
    FIELD(cairn_picture, heap_bytes);
    FIELD(cairn_picture, stacks_bytes);
    FIELD(cairn_picture, files_bytes);
    FIELD(cairn_picture, shared_bytes);
    FIELD(cairn_picture, own_bytes);
    FIELD(cairn_picture, other_bytes);
    FIELD(cairn_picture, pss_bytes);
    FIELD(cairn_picture, swap_bytes);
    FIELD(cairn_picture, live_bytes);
    FIELD(cairn_picture, live_blocks);
    FIELD(cairn_picture, free_chunk_bytes);
    FIELD(cairn_picture, free_top_bytes);
    FIELD(cairn_picture, arena_bytes);
    FIELD(cairn_picture, arena_count);
    FIELD(cairn_picture, is_cut);
    FIELD(cairn_picture, stack_count);
    FIELD(cairn_picture, knows);
    FIELD(cairn_picture, free_resident_bytes);
    FIELD(cairn_picture, mapped_bytes);
    FIELD(cairn_picture, slack_bytes);
    FIELD(cairn_picture, untouched_bytes);
    FIELD(cairn_picture, huge_bytes);
}

static void test_cells(void **state) {
    (void)state;
    FIELD(cairn_cell, allocated_bytes);
    FIELD(cairn_cell, freed_bytes);
    FIELD(cairn_cell, calls);
    FIELD(cairn_cell, frees);
    FIELD(cairn_cell, epoch);
    FIELD(cairn_cell, check);
    FIELD(cairn_cell, size);
    FIELD(cairn_cell, slack_bytes);
    FIELD(cairn_cell, temporary);
    FIELD(cairn_cell, rare);
    FIELD(cairn_cell, peak_bytes);
    FIELD(cairn_cell, peak_blocks);
    FIELD(cairn_cell, record);
    FIELD(cairn_cell_rare, calls_high);
    FIELD(cairn_cell_rare, frees_high);
    FIELD(cairn_cell_rare, slack_high);
    FIELD(cairn_cell_rare, temporary_high);
    FIELD(cairn_cell_rare, generation);
    FIELD(cairn_cell_rare, sizes);
    FIELD(cairn_cell_rare, reallocs);
    FIELD(cairn_cell_rare, ages);
    FIELD(cairn_cell_rare, aligned);
    FIELD(cairn_cell_rare, watched);
    FIELD(cairn_cell_rare, short_lived);
}

static void test_uses(void **state) {
    (void)state;
    FIELD(cairn_sizes, cell);
    FIELD(cairn_sizes, heap_stack);
    FIELD(cairn_sizes, unknown_calls);
    FIELD(cairn_sizes, sizes);
    FIELD(cairn_sizes, counts);
    FIELD(cairn_sizes, errors);
    FIELD(cairn_sizes, buckets);
    FIELD(cairn_reallocs, cell);
    FIELD(cairn_reallocs, calls);
    FIELD(cairn_reallocs, in_place);
    FIELD(cairn_reallocs, grown);
    FIELD(cairn_reallocs, copied_bytes);
    FIELD(cairn_aligned, cell);
    FIELD(cairn_aligned, slack_bytes);
    FIELD(cairn_aligned, waste_bytes);
    FIELD(cairn_aligned, calls);
    FIELD(cairn_ages, cell);
    FIELD(cairn_ages, heap_stack);
    FIELD(cairn_ages, calls);
    FIELD(cairn_ages, ms);
}

static void test_waste(void **state) {
    (void)state;
    FIELD(cairn_waste, held_bytes);
    FIELD(cairn_waste, held_blocks);
    FIELD(cairn_waste, untouched_bytes);
    FIELD(cairn_waste, zero_bytes);
    FIELD(cairn_waste, duplicate_bytes);
    FIELD(cairn_waste, tail_bytes);
    FIELD(cairn_waste, slack_bytes);
    FIELD(cairn_waste, sparse_bytes);
    FIELD(cairn_waste, copies);
    FIELD(cairn_waste, contents);
    FIELD(cairn_waste, string_bytes);
    FIELD(cairn_waste, string_copies);
    FIELD(cairn_waste, strings);
    FIELD(cairn_waste, most);
    FIELD(cairn_waste, most_strings);
}

static void test_looks(void **state) {
    (void)state;
    FIELD(cairn_look, at_ns);
    FIELD(cairn_look, rss_bytes);
    FIELD(cairn_look, live_bytes);
    FIELD(cairn_look, pause_ns);
    FIELD(cairn_look, copied_bytes);
    FIELD(cairn_look, answers_offset);
    FIELD(cairn_look, answers_bytes);
    FIELD(cairn_look, answer_count);
    FIELD(cairn_look, is_at_end);
    FIELD(cairn_look, reason);
}

static void test_snapshots(void **state) {
    (void)state;
    FIELD(cairn_snapshot, epoch);
    FIELD(cairn_snapshot, reason);
    FIELD(cairn_snapshot, generation);
    FIELD(cairn_snapshot, missing_values);
    FIELD(cairn_snapshot, time_ns);
    FIELD(cairn_snapshot, live_bytes);
    FIELD(cairn_snapshot, live_blocks);
    FIELD(cairn_snapshot, allocated_bytes);
    FIELD(cairn_snapshot, allocations);
    FIELD(cairn_snapshot, is_inherited);
    FIELD(cairn_snapshot, heap);
    FIELD(cairn_snapshot, label);
    FIELD(cairn_value, cell);
    FIELD(cairn_value, from_epoch);
    FIELD(cairn_value, to_epoch);
    FIELD(cairn_value, blocks);
    FIELD(cairn_value, bytes);
    FIELD(cairn_pace, lock);
    FIELD(cairn_pace, thin_count);
    FIELD(cairn_pace, every_bytes);
    FIELD(cairn_pace, next_churn_bytes);
    FIELD(cairn_pace, next_high_bytes);
    FIELD(cairn_pace, step_permille);
    FIELD(cairn_pace, refused);
    FIELD(cairn_pace, missing_values);
    FIELD(cairn_left_out, count);
    FIELD(cairn_left_out, programs);
    FIELD(cairn_left_out_program, reason);
    FIELD(cairn_left_out_program, count);
    FIELD(cairn_left_out_program, name);
    FIELD(cairn_unkept, processes);
    FIELD(cairn_unkept, allocations);
    FIELD(cairn_unkept, allocated_bytes);
}

static void test_samples(void **state) {
    (void)state;
    FIELD(cairn_sampling, is_on);
    FIELD(cairn_sampling, start_ns);
    FIELD(cairn_sampling, rate_bytes);
    FIELD(cairn_sampling, rate_now_bytes);
    FIELD(cairn_sampling, rate_most_bytes);
    FIELD(cairn_sampling, seed);
    FIELD(cairn_sampling, max_samples);
    FIELD(cairn_sampling, live_samples);
    FIELD(cairn_sampling, thinned_count);
    FIELD(cairn_sampling, slowed_count);
    FIELD(cairn_sampling, cpu_budget_millionths);
    FIELD(cairn_sampling, min_bytes);
    FIELD(cairn_sampling, max_bytes);
    FIELD(cairn_sampling, wanted_bytes);
    FIELD(cairn_sampling, found_blocks);
    FIELD(cairn_sampling, found_bytes);
    FIELD(cairn_sample_cell, extra_calls);
    FIELD(cairn_sample_cell, extra_frees);
    FIELD(cairn_sample_cell, allocated_variance);
    FIELD(cairn_sample_cell, freed_variance);
    FIELD(cairn_sample_cell, calls_variance);
    FIELD(cairn_sample_cell, frees_variance);
    FIELD(cairn_sample_cell, peak_extra);
    FIELD(cairn_sample_cell, peak_bytes_variance);
    FIELD(cairn_sample_cell, peak_blocks_variance);
    FIELD(cairn_live_samples, keys);
    FIELD(cairn_live_samples, entries);
    FIELD(cairn_live_samples, count);
    FIELD(cairn_live_sample, size_bytes);
    FIELD(cairn_live_sample, rate_bytes);
    FIELD(cairn_live_sample, cell);
    FIELD(cairn_sample_value, calls);
    FIELD(cairn_sample_value, frees);
    FIELD(cairn_sample_value, extra);
    FIELD(cairn_sample_value, allocated_variance);
    FIELD(cairn_sample_value, freed_variance);
    FIELD(cairn_sample_value, calls_variance);
    FIELD(cairn_sample_value, frees_variance);
    FIELD(cairn_sample_size, least_bytes);
    FIELD(cairn_sample_size, most_bytes);
    FIELD(cairn_sample_size, calls);
    FIELD(cairn_sample_size, samples);
    FIELD(cairn_sample_size, variance);
}

static struct making making;
enum { PROGRAM = 0x400000, SIX = 6 };
static const uint64_t library = 0x7f1200000000u;

// The recording of the worked example.
static void make_example(void) {
    const uint64_t first[] = {PROGRAM + 0x1100, PROGRAM + 0x1234, library + 0x5678};
    making_start(&making);
    making.has_use = true;
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_module(&making, "/usr/lib/liba.so", library, 0x20000, library, 0x22);
    making_module(&making, "/usr/lib/libb.so", library, 0x20000, library, 0x33);
    making_thread(&making, 4242, "example");
    making_thread(&making, 4243, "worker");
    uint32_t a = making_stack(&making, 0, first, 3);
    const uint32_t code = making_code(&making, PROGRAM + 0x1256);
    uint32_t b = making_short(&making, 0, a, 2, &code, 1, 1);
    const uint32_t codes[SIX] = {CAIRN_CODE_CUT | CAIRN_CUT_NO_CFI,
                                 CAIRN_CODE_MODULE | 2,
                                 0x1f40,
                                 CAIRN_CODE_FULL,
                                 0x12345678,
                                 0x7ffe};
    uint32_t c = making_cell(&making, 1, 0, 0, codes, SIX, 3);
    uint32_t d = making_foreign(&making, 1, a);
    making_book(&making, a, 10, 1000, 0, 0);
    making_book(&making, b, 1, 200, 0, 0);
    making_peak(&making, 250000000);
    making_book(&making, d, 0, 0, 4, 400);
    making_book(&making, a, 0, 0, 1, 100);
    making_book(&making, c, 1, 50, 0, 0);
}

// Numbers of a block "```text NAME" in the document: after a "label:" hexadecimal words up to the
// end of the line or a ';'.
static size_t read_words(const char *name, uint32_t *words, size_t room) {
    char fence[64];
    snprintf(fence, sizeof fence, "```text %s\n", name);
    const char *at = strstr(document, fence);
    if (!at) fail_msg("docs/reference/format.md has no block \"%s\"", name);
    at += strlen(fence);
    size_t count = 0;
    while (strncmp(at, "```", 3) != 0) {
        const char *end = strchr(at, '\n'), *word = strchr(at, ':');
        if (word && word < end) {
            for (word++; word < end && *word != ';';) {
                char *behind;
                uint32_t value = (uint32_t)strtoul(word, &behind, 16);
                if (behind == word || behind > end) break;
                assert_true(count < room);
                words[count++] = value;
                word = behind + strspn(behind, " ");
            }
        }
        at = end + 1;
    }
    return count;
}

static void check_words(const char *name, const void *bytes, size_t count) {
    enum { WORDS_MAX = 256 };
    uint32_t expected[WORDS_MAX], words[WORDS_MAX];
    memcpy(words, bytes, count * sizeof *words);
    size_t found = read_words(name, expected, WORDS_MAX);
    for (size_t i = 0; i < count && i < found; i++)
        if (expected[i] != words[i])
            fail_msg("docs/reference/format.md, %s: word %zu is %08x, not %08x", name, i, words[i],
                     expected[i]);
    assert_int_equal(found, count);
}

static void test_worked_example(void **state) {
    (void)state;
    make_example();
    check_words("records", making.words, making.word_count);
    check_words("cell 16", &making.cells[16], sizeof making.cells[16] / sizeof(uint32_t));
    check_words("cell 33", &making.cells[33], sizeof making.cells[33] / sizeof(uint32_t));
    uint32_t owners[] = {making.owners[0], making.owners[1], making.owners[2]};
    check_words("owners", owners, sizeof owners / sizeof *owners);
}

// The numbers that the document's last part works out.
static void test_what_a_reader_makes_of_it(void **state) {
    (void)state;
    make_example();
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    struct recording recording;
    struct profile profile;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    assert_int_equal(profile.stack_count, 3);
    const struct stack *first = &profile.stacks[0];
    assert_int_equal(first->allocations, 10);
    assert_int_equal(first->frees, 5);
    assert_int_equal(first->exit_bytes, 500);
    assert_int_equal(first->peak_bytes, 1000);
    assert_int_equal(first->peak_blocks, 10);
    assert_int_equal(profile.stacks[1].peak_bytes, 200);
    assert_int_equal(profile.stacks[2].peak_bytes, 0);
    assert_int_equal(profile.peak.bytes, 1200);
    assert_int_equal(profile.peak.blocks, 11);
    assert_int_equal(profile.exit_bytes, 750);
    assert_int_equal(profile.threads[0].exit_bytes, 700);
    assert_int_equal(profile.threads[1].exit_bytes, 50);
    assert_int_equal(profile.incomplete[CAIRN_CUT_NO_CFI], 1);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_stack_fields),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_parts_of_the_header),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_heap_stacks),
        cmocka_unit_test(test_heap_points),
        cmocka_unit_test(test_mappers),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_waste),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_what_a_reader_makes_of_it),
    };
    return cmocka_run_group_tests(tests, read_document, free_document);
}
