// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define COUNT_OF(rules) (sizeof(rules) / sizeof *(rules))
#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define JUMP(how, k, then, otherwise) BPF_JUMP(BPF_JMP | (how) | BPF_K, k, then, otherwise)
#define END(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

#if defined(__x86_64__)
#define NATIVE ((uint32_t)AUDIT_ARCH_X86_64)
#else
#define NATIVE ((uint32_t)AUDIT_ARCH_AARCH64)
#endif

static bool is_harmless(struct sock_filter *rules, size_t count) {
    return seccomp_note(&(struct sock_fprog){(unsigned short)count, rules});
}

#define CHECK(expected, ...)                                                                       \
    do {                                                                                           \
        struct sock_filter rules[] = {__VA_ARGS__};                                                \
        assert_int_equal(is_harmless(rules, COUNT_OF(rules)), expected);                           \
    } while (0)

static void test_what_fails_or_is_made_is_harmless(void **state) {
    (void)state;
    CHECK(true, END(SECCOMP_RET_ALLOW));
    CHECK(true, END(SECCOMP_RET_LOG));
    CHECK(true, LOAD(nr), JUMP(BPF_JEQ, SYS_mincore, 0, 1), END(REFUSE), END(SECCOMP_RET_ALLOW));
    CHECK(true, LOAD(nr), JUMP(BPF_JEQ, SYS_openat, 0, 3), LOAD(args[2]), JUMP(BPF_JSET, 64, 0, 1),
          END(REFUSE), END(SECCOMP_RET_ALLOW));
}

static void test_what_punishes_is_not(void **state) {
    (void)state;
    CHECK(false, END(SECCOMP_RET_KILL_PROCESS));
    CHECK(false, LOAD(nr), JUMP(BPF_JEQ, SYS_mincore, 0, 1), END(SECCOMP_RET_KILL_THREAD),
          END(SECCOMP_RET_ALLOW));
    CHECK(false, LOAD(nr), JUMP(BPF_JGE, SYS_mincore, 0, 1), END(SECCOMP_RET_TRAP),
          END(SECCOMP_RET_ALLOW));
    CHECK(false, LOAD(args[0]), JUMP(BPF_JEQ, 1, 1, 0), END(SECCOMP_RET_TRACE | 1),
          END(SECCOMP_RET_ALLOW));
    CHECK(false, LOAD(instruction_pointer), JUMP(BPF_JGT, 9, 0, 1), END(SECCOMP_RET_USER_NOTIF),
          END(SECCOMP_RET_ALLOW));
}

static void test_a_failure_that_passes_for_success_is_not(void **state) {
    (void)state;
    CHECK(false, END(SECCOMP_RET_ERRNO | 0));
}

static void test_a_result_that_is_computed_is_not(void **state) {
    (void)state;
    CHECK(false, LOAD(nr), BPF_STMT(BPF_RET | BPF_A, 0));
    CHECK(false, LOAD(arch), BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1), JUMP(BPF_JEQ, NATIVE, 0, 1),
          END(SECCOMP_RET_ALLOW), END(SECCOMP_RET_KILL_PROCESS));
}

// As libseccomp begins its filters: other machines' calls, and those of x32, end the process.
static void test_what_no_native_call_meets_does_not_count(void **state) {
    (void)state;
    CHECK(true, LOAD(arch), JUMP(BPF_JEQ, NATIVE, 1, 0), END(SECCOMP_RET_KILL_THREAD), LOAD(nr),
          JUMP(BPF_JGE, 0x40000000, 0, 1), END(SECCOMP_RET_KILL_THREAD),
          JUMP(BPF_JEQ, SYS_mincore, 0, 1), END(REFUSE), END(SECCOMP_RET_ALLOW));
    CHECK(true, LOAD(arch), JUMP(BPF_JEQ, NATIVE, 0, 4), LOAD(nr), JUMP(BPF_JSET, 0x40000000, 2, 0),
          JUMP(BPF_JEQ, SYS_mincore, 0, 2), END(REFUSE), END(SECCOMP_RET_KILL_THREAD),
          END(SECCOMP_RET_ALLOW));
    CHECK(false, LOAD(arch), JUMP(BPF_JEQ, NATIVE, 0, 1), END(SECCOMP_RET_KILL_THREAD),
          END(SECCOMP_RET_ALLOW));
}

static void test_nonsense_is_not(void **state) {
    (void)state;
    struct sock_filter *gone = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(false, LOAD(nr), JUMP(BPF_JEQ, SYS_mincore, 9, 0), END(SECCOMP_RET_ALLOW));
    CHECK(false, LOAD(nr));
    assert_false(is_harmless(NULL, 0));
    assert_false(is_harmless(gone, 3));
    assert_false(seccomp_note(gone));
    munmap(gone, 1 << 16);
}

// Nobody sets a filter for the tests, or they run in a container, and process 1 has the same.
static void test_own_surroundings_are_not_foreign(void **state) {
    (void)state;
    long more = -1;
    assert_false(seccomp_is_foreign(&more));
    assert_int_equal(more, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fails_or_is_made_is_harmless),
        cmocka_unit_test(test_what_punishes_is_not),
        cmocka_unit_test(test_a_failure_that_passes_for_success_is_not),
        cmocka_unit_test(test_a_result_that_is_computed_is_not),
        cmocka_unit_test(test_what_no_native_call_meets_does_not_count),
        cmocka_unit_test(test_nonsense_is_not),
        cmocka_unit_test(test_own_surroundings_are_not_foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
