// SPDX-License-Identifier: Apache-2.0
// Functions given as bytes: moved, overwritten by a jump and executed, they return what they did;
// those whose shape does not allow it are refused, and say why.
#include "tool/attach/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGE = 4096, MOVED_AT = 2048, OTHER_AT = 3072, JUMPED_AT = 3500, ARGUMENT = 5 };

// One page: the function at its start, another one that it may call, where it is moved to.
static uint8_t *page;

static int make_page(void **state) {
    (void)state;
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : 0;
}

static int drop_page(void **state) {
    (void)state;
    return munmap(page, PAGE);
}

static struct code_function function_of(size_t size, size_t available) {
    return (struct code_function){page, size, available, (uint64_t)(uintptr_t)page};
}

static void place(const char *code, size_t size) {
    // returns twice its argument
    static const uint8_t other[] = {0x48, 0x8d, 0x04, 0x3f, 0xc3};
    memset(page, 0xcc, PAGE);
    memcpy(page, code, size);
    memcpy(page + OTHER_AT, other, sizeof other);
}

static long call(size_t at, long argument) {
    long (*function)(long);
    void *address = page + at;
    memcpy(&function, &address, sizeof function);
    return function(argument);
}

// The jump leads to a thunk that adds 1000 to the argument and goes on to what was moved.
static void check_moved(const char *code, size_t size) {
    static const uint8_t add[] = {0x48, 0x81, 0xc7, 0xe8, 0x03, 0, 0};
    struct code_function function = function_of(size, size + CODE_PADDING_MAX);
    struct code_moved moved;
    struct error error;
    uint8_t jump[CODE_JUMP_BYTES];
    place(code, size);
    long before[] = {call(0, ARGUMENT), call(0, 0), call(0, ARGUMENT + 1000)};
    if (!code_move(&function, function.address + MOVED_AT, &moved, &error))
        fail_msg("%s", error.text);
    assert_true(moved.count <= CODE_MOVED_MAX);
    memcpy(page + MOVED_AT, moved.bytes, moved.count);
    memcpy(page + JUMPED_AT, add, sizeof add);
    assert_true(code_jump(page + JUMPED_AT + sizeof add, function.address + JUMPED_AT + sizeof add,
                          function.address + MOVED_AT));
    assert_true(code_jump(jump, function.address, function.address + JUMPED_AT));
    memcpy(page, jump, sizeof jump);
    assert_int_equal(call(MOVED_AT, ARGUMENT), before[0]);
    assert_int_equal(call(MOVED_AT, 0), before[1]);
    assert_int_equal(call(0, ARGUMENT), before[2]);
}

static void check_refused(const char *code, size_t size, size_t available, const char *reason) {
    struct code_function function = function_of(size, available);
    struct code_moved moved;
    struct error error;
    place(code, size);
    assert_false(code_move(&function, function.address + MOVED_AT, &moved, &error));
    if (!strstr(error.text, reason)) fail_msg("%s, instead of %s", error.text, reason);
}

#define BYTES(text) text, sizeof(text) - 1

static void plain_instructions(void **state) {
    (void)state;
    // push rbp; mov rbp,rsp; lea rax,[rdi+7]; pop rbp; ret
    check_moved(BYTES("\x55\x48\x89\xe5\x48\x8d\x47\x07\x5d\xc3"));
    // endbr64; lea rax,[rdi+rdi+1]; ret
    check_moved(BYTES("\xf3\x0f\x1e\xfa\x48\x8d\x44\x3f\x01\xc3"));
    // movabs rax, 0x1122334455667788; add rax, rdi; ret
    check_moved(BYTES("\x48\xb8\x88\x77\x66\x55\x44\x33\x22\x11\x48\x01\xf8\xc3"));
}

static void addresses_from_here(void **state) {
    (void)state;
    // mov rax,[rip+4]; add rax,rdi; ret; the word
    check_moved(BYTES("\x48\x8b\x05\x04\0\0\0\x48\x01\xf8\xc3\x39\x30\0\0\0\0\0\0"));
    // add edi,[rip+3], an operand of memory before one of a register; mov eax,edi; ret; the word
    check_moved(BYTES("\x03\x3d\x03\0\0\0\x89\xf8\xc3\x05\0\0\0"));
    // cmp dword [rip+8], 3: an immediate behind the distance; sete al; movzx eax,al; ret
    check_moved(BYTES("\x83\x3d\x08\0\0\0\x03\x0f\x94\xc0\x0f\xb6\xc0\xc3\x90\x03\0\0\0"));
}

static void jumps_elsewhere(void **state) {
    (void)state;
    // test rdi,rdi; je +5 (8 bits); lea rax,[rdi+3]; ret; xor eax,eax; ret
    check_moved(BYTES("\x48\x85\xff\x74\x05\x48\x8d\x47\x03\xc3\x31\xc0\xc3"));
    // test edi,edi; je +6 (32 bits); mov eax,9; ret; xor eax,eax; ret
    check_moved(BYTES("\x85\xff\x0f\x84\x06\0\0\0\xb8\x09\0\0\0\xc3\x31\xc0\xc3"));
    // jmp +4 (8 bits) over a trap; lea rax,[rdi+1]; ret
    check_moved(BYTES("\xeb\x04\x0f\x0b\x0f\x0b\x48\x8d\x47\x01\xc3"));
}

static void other_functions(void **state) {
    char tail[] = "\xe9\0\0\0\0", call_first[] = "\xe8\0\0\0\0\x48\xff\xc0\xc3";
    char call_second[] = "\x48\x83\xec\x08\xe8\0\0\0\0\x48\x83\xc4\x08\x48\xff\xc0\xc3";
    int32_t distance = OTHER_AT - 5;
    (void)state;
    memcpy(tail + 1, &distance, sizeof distance);
    check_moved(tail, sizeof tail - 1);
    memcpy(call_first + 1, &distance, sizeof distance);
    check_moved(call_first, sizeof call_first - 1);
    distance = OTHER_AT - 9;
    memcpy(call_second + 5, &distance, sizeof distance);
    check_moved(call_second, sizeof call_second - 1);
}

// Shorter than the jump, with bytes behind it that nobody needs.
static void short_functions(void **state) {
    (void)state;
    check_moved(BYTES("\x31\xc0\xc3"));  // xor eax,eax; ret
    check_moved(BYTES("\x89\xf8\xc3"));  // mov eax,edi; ret
}

static void refused_shapes(void **state) {
    (void)state;
    // nop; dec rdi; jnz to the dec; ret
    check_refused(BYTES("\x90\x48\xff\xcf\x75\xfb\x48\x89\xf8\xc3"), 26, "jumps back");
    // a jump from further on
    check_refused(BYTES("\x90\x90\x90\x90\x90\x90\x90\x90\xeb\xf9\xc3"), 27, "jumps back");
    // the next function comes at once
    check_refused(BYTES("\x31\xc0\xc3"), 3, "too short");
    check_refused(BYTES("\xc3"), 1, "too short");
    check_refused(BYTES("\x31\xc0"), 18, "too short");
    check_refused(BYTES("\xff\xd0\x90\x90\x90\xc3"), 22, "call through a pointer");
    check_refused(BYTES("\xe3\x03\x90\x90\x90\xc3"), 22, "cannot be moved");  // jrcxz
    check_refused(BYTES("\x06\x90\x90\x90\x90\xc3"), 22, "none that is known");
}

static void calls_of_others(void **state) {
    static const struct {
        const char *code;
        size_t size;
        bool calls;
    } cases[] = {{BYTES("\x31\xc0\xc3"), false},
                 {BYTES("\x31\xc0\x74\xfc\xc3"), false},  // je to itself
                 {BYTES("\x31\xc0\x74\x70\xc3"), true},   // je elsewhere
                 {BYTES("\xe8\0\0\0\0\xc3"), true},
                 {BYTES("\xff\xe0"), true},  // jmp rax
                 {BYTES("\xff\x15\0\0\0\0\xc3"), true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct code_function function = function_of(cases[i].size, cases[i].size);
        place(cases[i].code, cases[i].size);
        assert_int_equal(code_calls_others(&function), cases[i].calls);
    }
}

static void far_places(void **state) {
    // mov rax,[rip+4]; ret
    static const char code[] = "\x48\x8b\x05\x04\0\0\0\xc3";
    struct code_function function = function_of(sizeof code - 1, sizeof code - 1);
    struct code_moved moved;
    struct error error;
    uint8_t jump[CODE_JUMP_BYTES];
    const uint64_t far = UINT64_C(3) << 30;
    (void)state;
    place(code, sizeof code - 1);
    assert_false(code_move(&function, function.address + far, &moved, &error));
    assert_true(code_move(&function, function.address + (far >> 1), &moved, &error));
    assert_false(code_jump(jump, function.address, function.address + far));
    assert_true(code_jump(jump, function.address, function.address - (far >> 1)));
}

// The hook, which returns its sixth argument, gets the address of what lies behind the thunk.
static void the_way_to_a_hook(void **state) {
    static const char hook[] = "\x4c\x89\xc8\xc3";  // mov rax, r9; ret
    (void)state;
    place(hook, sizeof hook - 1);
    code_thunk(page + MOVED_AT, (uint64_t)(uintptr_t)page);
    assert_int_equal(call(MOVED_AT, ARGUMENT), (uintptr_t)page + MOVED_AT + CODE_THUNK_BYTES);
}

// What was moved is the same wherever function and copy are, if the distance is.
static void moved_by_distance(void **state) {
    // sub rsp,8; call elsewhere; add rsp,8; ret
    static const char code[] = "\x48\x83\xec\x08\xe8\x10\x20\0\0\x48\x83\xc4\x08\xc3";
    struct code_function function = function_of(sizeof code - 1, sizeof code - 1);
    struct code_moved here, there;
    struct error error;
    (void)state;
    place(code, sizeof code - 1);
    assert_true(code_move(&function, function.address - PAGE, &here, &error));
    function.address = PAGE / 2;
    assert_true(code_move(&function, function.address - PAGE, &there, &error));
    assert_int_equal(here.count, there.count);
    assert_memory_equal(here.bytes, there.bytes, here.count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_instructions), cmocka_unit_test(addresses_from_here),
        cmocka_unit_test(jumps_elsewhere),    cmocka_unit_test(other_functions),
        cmocka_unit_test(short_functions),    cmocka_unit_test(refused_shapes),
        cmocka_unit_test(calls_of_others),    cmocka_unit_test(far_places),
        cmocka_unit_test(the_way_to_a_hook),  cmocka_unit_test(moved_by_distance),
    };
    return cmocka_run_group_tests(tests, make_page, drop_page);
}
