// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/sys/frame.h"
#include "runtime/sys/object.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { ROUNDS = 100000, MODULES = 4 };
static const uintptr_t place = 0x7f5500000000, size = 0x100000;

static const struct cairn_module *entry_at(uint32_t index) {
    return (const struct cairn_module *)modules.entries.base + index;
}

static uint32_t encode_one(uintptr_t pc, uint32_t code[MODULE_CODE_WORDS]) {
    struct frame frame = {.pc = pc};
    struct module_near near = {0};
    return (uint32_t)(module_encode(&frame, 1, code, &near) - code);
}

static struct read_frame encode_and_read(uintptr_t pc) {
    uint32_t code[MODULE_CODE_WORDS] = {0};
    struct read_frame frame;
    uint32_t words = encode_one(pc, code);
    assert_true(words >= 1 && words <= MODULE_CODE_WORDS);
    assert_int_equal(read_code(code, &frame), words);
    return frame;
}

static void check_code(uintptr_t pc) {
    struct read_frame frame = encode_and_read(pc);
    assert_int_equal(frame.value, pc);
    assert_int_equal(frame.is_cut, pc < CAIRN_CUT_LIMIT);
    assert_int_equal(frame.module, 0);
    assert_int_equal(module_identity(pc), pc);
}

static enum module_news note(uintptr_t pc) {
    struct module_place last = {0, 0};
    return module_note(pc, &last);
}

static const uintptr_t window = (uintptr_t)1 << CAIRN_WINDOW_BITS;

// In one of 25 places, often at a border.
static uintptr_t random_address(uint64_t *seed) {
    uintptr_t base = random_below(seed, 25) * 37 * window;
    if (random_chance(seed, 10)) return base + (random_chance(seed, 50) ? 0 : window - 1);
    return base + random_below(seed, window);
}

// Stacks whose frames lie near each other for a while, then elsewhere; cuts among them. What is
// kept from stack to stack outlives a recording, whose windows have other numbers. Each frame has
// the code that it has alone.
static void test_codes_of_stacks(void **state) {
    (void)state;
    enum { DEPTH = 40, STACKS = 5000, CUT_PERCENT = 5, MOVE_PERCENT = 20 };
    uint64_t seed = 2;
    struct module_near kept = {0};
    recording_start(1 << 10, 1 << 12);
    for (int round = 0; round < STACKS; round++) {
        if (random_chance(&seed, 1)) recording_start(1 << 10, 1 << 12);
        struct frame frames[DEPTH];
        uint32_t codes[DEPTH * MODULE_CODE_WORDS], *code = codes;
        uintptr_t near = random_address(&seed);
        for (int i = 0; i < DEPTH; i++) {
            if (random_chance(&seed, MOVE_PERCENT)) near = random_address(&seed);
            bool is_cut = random_chance(&seed, CUT_PERCENT);
            frames[i].pc = is_cut ? 1 + random_below(&seed, CAIRN_CUT_LIMIT - 1)
                                  : near + random_below(&seed, window / 2);
        }
        const uint32_t *end = module_encode(frames, DEPTH, codes, &kept);
        for (int i = 0; i < DEPTH; i++) {
            struct read_frame frame;
            uint32_t alone[MODULE_CODE_WORDS], words = encode_one(frames[i].pc, alone);
            assert_memory_equal(code, alone, words * sizeof *alone);
            code += read_code(code, &frame);
            assert_int_equal(frame.value, frames[i].pc);
            assert_int_equal(frame.is_cut, frames[i].pc < CAIRN_CUT_LIMIT);
        }
        assert_ptr_equal(code, end);
    }
}

// More windows than there are numbers for: the rest is written in full.
static void test_codes_of_plain_addresses(void **state) {
    (void)state;
    uint64_t seed = 1;
    recording_start(1 << 10, 1 << 12);
    static const uintptr_t fixed[] = {1, 5, 15, 16, 0x400000, 0x7fffffffffff, 1, UINTPTR_MAX};
    for (int i = 0; i < 8; i++) check_code(fixed[i]);
    for (int i = 0; i < ROUNDS; i++) check_code(random_address(&seed));
    for (uint32_t i = 0; i < CAIRN_WINDOW_COUNT; i++) {
        assert_int_equal(recording_header.windows[i] % window, 0);
        for (uint32_t k = 0; k < i; k++)
            assert_true(recording_header.windows[i] != recording_header.windows[k]);
    }
}

// With Python's frames there, such an address is one of them; without, it is what a damaged stack
// held.
static void test_python(void **state) {
    (void)state;
    const uint32_t number = 0x7ffffff, line = 4711;
    uintptr_t pc = frame_python(number, line);
    uint32_t code[MODULE_CODE_WORDS] = {0};
    recording_start(1 << 10, 1 << 12);
    check_code(pc);
    recording_header.has_python_frames = 1;
    assert_int_equal(encode_one(pc, code), 3);
    assert_int_equal(code[0], CAIRN_CODE_PYTHON);
    assert_int_equal(code[1], number);
    assert_int_equal(code[2], line);
    assert_int_equal(module_identity(pc), pc);
    recording_header.has_python_frames = 0;
}

// Modules one after another at overlapping places; `current` is loaded, the others are gone.
static void modules_stack_up(uint32_t current) {
    for (uint32_t i = 0; i < MODULES; i++) {
        struct cairn_module *entry = region_take(&modules.entries, sizeof *entry);
        entry->start = place + i * size / 4;
        entry->end = entry->start + size;
        entry->unloaded_ns = i != current;
        entry->is_ready = 1;
    }
    modules.reused_low = place;
    modules.reused_high = place + (MODULES - 1) * size / 4 + size;
}

// By the rule of format.h: a plain address belongs to the first module that covers it.
static uint32_t expected_module(uintptr_t pc, uint32_t current) {
    bool is_current = pc >= entry_at(current)->start && pc < entry_at(current)->end;
    for (uint32_t i = 0; i < MODULES; i++)
        if (pc >= entry_at(i)->start && pc < entry_at(i)->end)
            return is_current && i != current ? current + 1 : 0;
    return 0;
}

static void test_two_modules_at_one_address(void **state) {
    (void)state;
    for (uint32_t current = 0; current < MODULES; current++) {
        uint64_t seed = current;
        recording_start(1 << 10, 1 << 12);
        modules_stack_up(current);
        for (int i = 0; i < ROUNDS / 10; i++) {
            uintptr_t pc = place - 4096 + random_below(&seed, 3 * size);
            uint32_t module = expected_module(pc, current);
            struct read_frame frame = encode_and_read(pc);
            assert_int_equal(frame.module, module);
            assert_int_equal(frame.value, module ? pc - entry_at(current)->start : pc);
            assert_int_equal(module_variant(pc), module);
            assert_int_equal(module_identity(pc) == pc, module == 0);
        }
    }
}

struct wanted {
    uintptr_t pc, bias, start, end;
    uint32_t code_segments;
};

static int wanted_visit(struct dl_phdr_info *info, size_t bytes, void *data) {
    struct wanted *wanted = data;
    struct wanted found = {.pc = wanted->pc, .bias = info->dlpi_addr, .start = UINTPTR_MAX};
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD) continue;
        if (start < found.start) found.start = start & ~(uintptr_t)(sys_page_bytes() - 1);
        if (start + segment->p_memsz > found.end) found.end = start + segment->p_memsz;
        found.code_segments += (segment->p_flags & PF_X) != 0;
    }
    if (wanted->pc < found.start || wanted->pc >= found.end) return 0;
    *wanted = found;
    return 1;
}

// The build-id as it stands in the file: the first note of that name.
static bool is_build_id_in_file(const char *path, const struct cairn_module *entry) {
    static uint8_t bytes[16384];
    static const uint8_t head[] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    int file = open(path, O_RDONLY);
    ssize_t got = pread(file, bytes, sizeof bytes, 0);
    close(file);
    const uint8_t *note = memmem(bytes, (size_t)got, head, sizeof head);
    return note && entry->build_id_bytes == 20 &&
           memcmp(note + sizeof head, entry->build_id, 20) == 0;
}

static void check_entry(const struct cairn_module *entry, uintptr_t pc, const char *name) {
    struct wanted wanted = {.pc = pc};
    const char *path = (const char *)modules.strings.base + entry->path;
    assert_int_equal(dl_iterate_phdr(wanted_visit, &wanted), 1);
    assert_int_equal(entry->start, wanted.start);
    assert_true(entry->end >= wanted.end && entry->end < wanted.end + sys_page_bytes());
    assert_int_equal(entry->bias, wanted.bias);
    assert_int_equal(entry->segment_count, wanted.code_segments);
    assert_int_equal(entry->is_ready, 1);
    assert_int_equal(entry->unloaded_ns, 0);
    assert_non_null(strstr(path, name));
    assert_true(is_build_id_in_file(path, entry));
    uintptr_t code = entry->bias + entry->segments[0].address;
    assert_true(pc >= code && pc < code + entry->segments[0].size);
}

static void check_real_modules(void) {
    uintptr_t in_libc = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 1;
    uintptr_t in_cmocka = (uintptr_t)dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests") + 1;
    recording_start(1 << 10, 1 << 12);
    assert_int_equal(module_string(""), 0);
    assert_int_equal(note(in_libc), MODULE_ADDED);
    assert_int_equal(note(in_libc), MODULE_KNOWN);
    assert_int_equal(note(in_cmocka), MODULE_ADDED);
    check_entry(entry_at(0), in_libc, "libc.so");
    check_entry(entry_at(1), in_cmocka, "libcmocka");
    assert_int_equal(note(CAIRN_CUT_DEPTH), MODULE_KNOWN);
    assert_int_equal(note(place), MODULE_KNOWN);
    assert_int_equal(recording_used[0], 2 * sizeof(struct cairn_module));
    assert_false(module_check_unloaded());
}

static void test_real_modules(void **state) {
    (void)state;
    check_real_modules();  // by the linker's list
    object_init();
    check_real_modules();  // by its lookup without locks
}

static void test_unloading(void **state) {
    (void)state;
    recording_start(1 << 10, 1 << 12);
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (!library) skip();
    uintptr_t code = (uintptr_t)dlsym(library, "zlibVersion") + 1;
    assert_int_equal(note(code), MODULE_ADDED);
    assert_false(module_check_unloaded());
    dlclose(library);
    if (dlopen("libz.so.1", RTLD_NOW | RTLD_NOLOAD)) skip();
    assert_true(module_check_unloaded());
    assert_true(entry_at(0)->unloaded_ns != 0);
    assert_false(module_check_unloaded());
    assert_non_null(dlopen("libz.so.1", RTLD_NOW));
}

// What a thread meets while another one enters modules is entered by whoever comes next: the thread
// itself meets a known rule from then on.
static void test_entering_meanwhile(void **state) {
    (void)state;
    enum { OTHER = 1 };  // no thread of this process
    uintptr_t in_libc = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 1;
    uintptr_t in_cmocka = (uintptr_t)dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests") + 1;
    recording_start(1 << 10, 1 << 12);
    modules.locked_by = OTHER;
    assert_int_equal(note(in_cmocka), MODULE_KNOWN);
    assert_int_equal(note(in_cmocka), MODULE_KNOWN);
    assert_int_equal(recording_used[0], 0);
    modules.locked_by = 0;
    assert_int_equal(note(in_libc), MODULE_ADDED);
    assert_int_equal(recording_used[0], 2 * sizeof(struct cairn_module));
    check_entry(entry_at(0), in_cmocka, "libcmocka");
    check_entry(entry_at(1), in_libc, "libc.so");
    assert_int_equal(modules.locked_by, 0);
    assert_int_equal(recording_header.lost[CAIRN_LOST_MODULES], 0);
}

static void test_strings(void **state) {
    (void)state;
    char text[300];
    uint32_t offsets[300], count = 0;
    recording_start(1 << 10, 1 << 12);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    assert_int_equal(module_string(""), 0);
    for (uint32_t at = module_string("a/b"); at; at = module_string(text)) offsets[count++] = at;
    assert_string_equal((char *)modules.strings.base + offsets[0], "a/b");
    for (uint32_t i = 1; i < count; i++)
        assert_string_equal((char *)modules.strings.base + offsets[i], text);
    assert_int_equal(count, 1 + (65536 - 5) / 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_of_plain_addresses),
        cmocka_unit_test(test_codes_of_stacks),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_two_modules_at_one_address),
        cmocka_unit_test(test_real_modules),
        cmocka_unit_test(test_unloading),
        cmocka_unit_test(test_entering_meanwhile),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
