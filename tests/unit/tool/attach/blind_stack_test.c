// SPDX-License-Identifier: Apache-2.0
// What may be a frame, in a made-up process: libc, cairn and the program have a page of code each,
// in which every address but three follows a call.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "tool/attach/blind_stack.h"
#include "tool/proc/registers.h"

enum { LIBC = 0x10000, OWN = 0x20000, PROGRAM = 0x30000, CODE_BYTES = 0x1000, STACK = 0x7f0000 };
enum { RESTORER = LIBC + 0x800, DLOPEN = LIBC + 0x100, FORK = OWN + 0x100, DATA = PROGRAM + 0x800 };
enum { WORDS = 16, COMPUTING = -1 };

static uint64_t words[WORDS];
static struct blind_stack found;

static enum blind_place place(void *context, uint64_t address) {
    (void)context;
    switch (address & ~(uint64_t)(CODE_BYTES - 1)) {
    case LIBC:
        return BLIND_LIBC;
    case OWN:
        return BLIND_OWN;
    case PROGRAM:
        return BLIND_PROGRAM;
    default:
        return BLIND_NO_CODE;
    }
}

static bool read_code(uint64_t address, uint64_t *word) {
    static const uint8_t restorer[16] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t calls[2][8] = {{0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4},
                                        {0x90, 0x90, 0x90, 0x41, 0xff, 0x54, 0x24, 8}};
    static const uint8_t no_call[8] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x25};
    const uint8_t *bytes = calls[address / 16 % 2];
    if (address >= RESTORER && address - RESTORER < sizeof restorer)
        bytes = restorer + (address - RESTORER);
    else if (address >= DATA - sizeof no_call && address < DATA)
        bytes = no_call;
    memcpy(word, bytes, sizeof *word);
    return true;
}

static bool read_memory(void *context, uint64_t address, uint64_t *word) {
    if (place(context, address) != BLIND_NO_CODE) return read_code(address, word);
    uint64_t index = (address - STACK) / sizeof *words;
    if (address < STACK || index >= WORDS) return false;
    *word = words[index];
    return true;
}

static const char *name_of(void *context, uint64_t pc) {
    (void)context;
    return pc == DLOPEN - 1 ? "dlopen" : pc == FORK - 1 ? "fork" : NULL;
}

// The thread is at `pc`, in a system call or not, with these words on its stack.
static void look(uint64_t pc, long number, bool is_for_calls, const uint64_t *stack, size_t bytes) {
    const struct blind_view view = {read_memory, place, name_of, NULL};
    struct stopped_thread thread = {0};
    thread.registers.words.rip = pc;
    thread.registers.words.rsp = STACK;
    thread.registers.words.orig_rax = (uint64_t)number;
    memset(words, 0, sizeof words);
    memcpy(words, stack, bytes);
    blind_stack_read(&found, &view, &thread, is_for_calls);
}

#define LOOK(pc, number, is_for_calls, ...)                                                        \
    look((pc), (number), (is_for_calls), (const uint64_t[]){__VA_ARGS__},                          \
         sizeof(const uint64_t[]){__VA_ARGS__})

static bool has(enum blind_place wanted) {
    for (size_t i = 0; i < found.count; i++)
        if (found.frames[i].place == wanted) return true;
    return false;
}

static void test_program(void **state) {
    (void)state;
    // what an earlier call left there is no frame
    LOOK(PROGRAM, COMPUTING, true, 7, OWN + 16, LIBC + 16, PROGRAM + 16);
    assert_true(found.is_known && found.count == 1);
    LOOK(PROGRAM, COMPUTING, false, 7, OWN + 16, LIBC + 16, PROGRAM + 16);
    assert_true(found.is_known && found.count == 1);
    // a handler of pthread_atfork
    LOOK(PROGRAM, COMPUTING, false, LIBC + 16, FORK, PROGRAM + 16);
    assert_true(has(BLIND_OWN));
}

static void test_waiting(void **state) {
    (void)state;
    LOOK(LIBC, SYS_read, true, LIBC + 16, 0, OWN + 16, 3, PROGRAM + 32, OWN + 32);
    assert_true(found.is_known);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.frames[1].pc, PROGRAM + 32 - 1);
    LOOK(LIBC, SYS_read, false, LIBC + 16, OWN + 16, PROGRAM + 32);
    assert_false(has(BLIND_OWN));
    // the linker reads files
    LOOK(LIBC, SYS_read, true, LIBC + 16, DLOPEN, PROGRAM + 32);
    assert_int_equal(found.frames[1].pc, DLOPEN - 1);
    // who waits is nowhere to be seen
    LOOK(LIBC, SYS_read, true, LIBC + 16, OWN + 16);
    assert_false(found.is_known);
    // no call leads there
    LOOK(LIBC, SYS_read, true, LIBC + 16, DATA);
    assert_false(found.is_known);
}

static void test_inside(void **state) {
    (void)state;
    const long numbers[] = {COMPUTING, SYS_mmap, SYS_munmap, SYS_futex, SYS_madvise};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        LOOK(LIBC, numbers[i], false, PROGRAM + 16, LIBC + 16, OWN + 16, PROGRAM + 32);
        assert_true(!found.is_known && has(BLIND_OWN));
    }
    LOOK(LIBC, SYS_futex, true, LIBC + 16, OWN + 16, PROGRAM + 32);
    assert_true(found.is_known);
    LOOK(LIBC, SYS_mmap, true, LIBC + 16, OWN + 16, PROGRAM + 32);
    assert_false(found.is_known);
    LOOK(OWN, COMPUTING, false, PROGRAM + 16);
    assert_true(!found.is_known && found.frames[0].place == BLIND_OWN);
}

// Whatever the handler does, it may have interrupted anything.
static void test_handler(void **state) {
    (void)state;
    for (int is_for_calls = 0; is_for_calls < 2; is_for_calls++) {
        LOOK(PROGRAM, COMPUTING, is_for_calls, RESTORER, LIBC + 16, OWN + 16, PROGRAM + 16);
        assert_true(!found.is_known && has(BLIND_OWN));
        LOOK(LIBC, SYS_nanosleep, is_for_calls, LIBC + 16, PROGRAM + 32, RESTORER, OWN + 16);
        assert_true(!found.is_known && has(BLIND_OWN));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
