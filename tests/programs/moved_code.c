// SPDX-License-Identifier: Apache-2.0
// aarch64 functions whose first instruction is moved away (tool/attach/code_aarch64.c): they return
// what they did, through what was moved and through the jump in its place. Ends with status 0, or
// says what differs.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

// Compiled in: this program is crossed, and linked with nothing of the tool.
#include "tool/attach/code_aarch64.c"  // NOLINT
#include "tool/base/error.c"           // NOLINT

enum { PAGE = 65536, HOOK_AT = 4096, ARGUMENT = 5, MORE = 1000 };

// Each takes and returns a number.
#define FUNCTION(name, code)                                                                       \
    __asm__(".pushsection .text\n.balign 16\n.globl " #name "\n" #name ":\n" code                  \
            "\n.globl " #name "_end\n" #name "_end:\n.popsection");                                \
    extern const uint8_t name[], name##_end[];
FUNCTION(plain, "add x0, x0, #1\nret")
FUNCTION(returns, "ret\nnop")
FUNCTION(branches, "b 1f\nadd x0, x0, #7\n1: add x0, x0, #2\nret")
FUNCTION(compares, "cbz x0, 1f\nadd x0, x0, #3\nret\n1: mov x0, #77\nret")
FUNCTION(compares_not, "cbnz w0, 1f\nmov x0, #78\nret\n1: add x0, x0, #4\nret")
FUNCTION(tests, "tbz x0, #1, 1f\nadd x0, x0, #5\nret\n1: add x0, x0, #6\nret")
FUNCTION(takes_address, "adr x1, 1f\nldr w1, [x1]\nadd x0, x0, x1\nret\n1: .word 31")
FUNCTION(takes_page, "adrp x1, moved_code_data\nldr w1, [x1, :lo12:moved_code_data]\n"
                     "add x0, x0, x1\nret")
FUNCTION(calls, "bl 1f\nadd x0, x0, #9\nret x9\n1: mov x9, x10\nret")
FUNCTION(conditions, "b.eq 1f\nadd x0, x0, #11\nret\n1: add x0, x0, #12\nret")
FUNCTION(lands, "hint #34\nret")
FUNCTION(signs, "hint #25\nret")
FUNCTION(loads, "ldr x0, 1f\nret\n1: .quad 5")
FUNCTION(jumps_back, "add x0, x0, #1\nsub x1, x0, #2000\ncbz x1, jumps_back\nret")
const int moved_code_data = 41;

static uint8_t *room;
static int failures;

// `calls` returns by x10, since its link register is overwritten; the flags are those of x0 - 5.
static long call(const void *function, long argument) {
    register long value __asm__("x0") = argument;
    __asm__ volatile("adr x10, 1f\ncmp x0, #5\nblr %1\n1:\n"
                     : "+r"(value)
                     : "r"(function)
                     : "x1", "x9", "x10", "x30", "cc", "memory");
    return value;
}

static void check(const char *name, const char *what, long got, long wanted) {
    if (got == wanted) return;
    printf("%s, %s: %ld, should be %ld\n", name, what, got, wanted);
    failures++;
}

static void check_moved(const char *name, const uint8_t *at, const uint8_t *end) {
    const uint32_t add = 0x910fa000u;  // add x0, x0, #1000
    struct code_function function = {at, (size_t)(end - at), (size_t)(end - at), (uintptr_t)at};
    struct code_moved moved;
    struct error error;
    uint8_t jump[CODE_JUMP_BYTES], before[CODE_JUMP_BYTES];
    long wanted[] = {call(at, ARGUMENT), call(at, 0), call(at, ARGUMENT + MORE)};
    if (!code_move(&function, (uintptr_t)room, &moved, &error) ||
        !code_jump(room + HOOK_AT + sizeof add, (uintptr_t)room + HOOK_AT + sizeof add,
                   (uintptr_t)room) ||
        !code_jump(jump, (uintptr_t)at, (uintptr_t)room + HOOK_AT)) {
        printf("%s: %s\n", name, error.text);
        failures++;
        return;
    }
    memcpy(room, moved.bytes, moved.count);
    memcpy(room + HOOK_AT, &add, sizeof add);
    __builtin___clear_cache((char *)room, (char *)room + PAGE);
    check(name, "moved", call(room, ARGUMENT), wanted[0]);
    check(name, "moved, 0", call(room, 0), wanted[1]);
    memcpy(before, at, sizeof before);
    memcpy((uint8_t *)(uintptr_t)at, jump, sizeof jump);
    __builtin___clear_cache((char *)(uintptr_t)at, (char *)(uintptr_t)end);
    long got = call(at, ARGUMENT);
    memcpy((uint8_t *)(uintptr_t)at, before, sizeof before);
    __builtin___clear_cache((char *)(uintptr_t)at, (char *)(uintptr_t)end);
    if (strcmp(name, "conditions") != 0) check(name, "through the jump", got, wanted[2]);
}

static void check_refused(const char *name, const uint8_t *at, const uint8_t *end) {
    struct code_function function = {at, (size_t)(end - at), (size_t)(end - at), (uintptr_t)at};
    struct code_moved moved;
    struct error error;
    if (!code_move(&function, (uintptr_t)room, &moved, &error)) return;
    printf("%s: moved\n", name);
    failures++;
}

static void check_thunk(void) {
    const uint32_t give = 0xaa0503e0u, back = 0xd65f03c0u;  // mov x0, x5; ret
    memcpy(room + HOOK_AT, &give, sizeof give);
    memcpy(room + HOOK_AT + sizeof give, &back, sizeof back);
    code_thunk(room, (uintptr_t)room + HOOK_AT);
    __builtin___clear_cache((char *)room, (char *)room + PAGE);
    check("thunk", "what follows it", call(room, 0), (long)(uintptr_t)room + CODE_THUNK_BYTES);
}

static void check_calls(const char *name, const uint8_t *at, const uint8_t *end, bool wanted) {
    struct code_function function = {at, (size_t)(end - at), (size_t)(end - at), (uintptr_t)at};
    check(name, "calls others", code_calls_others(&function), wanted);
}

#define MOVED(name) check_moved(#name, name, name##_end)
#define REFUSED(name) check_refused(#name, name, name##_end)
#define CALLS(name, wanted) check_calls(#name, name, name##_end, wanted)

int main(void) {
    uintptr_t text = (uintptr_t)plain & ~(uintptr_t)(PAGE - 1);
    room = mmap((void *)(text - 64 * PAGE), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED ||
        mprotect((void *)text, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        perror("memory");
        return 1;
    }
    MOVED(plain), MOVED(returns), MOVED(branches), MOVED(compares), MOVED(compares_not);
    MOVED(tests), MOVED(takes_address), MOVED(takes_page), MOVED(calls), MOVED(conditions);
    MOVED(jumps_back);
    REFUSED(lands), REFUSED(signs), REFUSED(loads);
    CALLS(plain, false), CALLS(branches, false), CALLS(tests, false), CALLS(calls, true);
    check_thunk();
    return failures != 0;
}
