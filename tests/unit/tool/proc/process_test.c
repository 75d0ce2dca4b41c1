// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/base/linker_words.h"

static void test_own_state(void **state) {
    (void)state;
    assert_int_equal(process_state(getpid(), 0), 'R');
    assert_int_equal(process_state(getpid(), gettid()), 'R');
}

// The name of a process stands in front of its state and may look like the end of one.
static void test_name_with_brackets(void **state) {
    (void)state;
    char before[16];
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) Z (b"), 0);
    assert_int_equal(process_state(getpid(), 0), 'R');
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

static void test_stopped_then_ended_then_gone(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_true(child > 0);
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_int_equal(process_state(child, 0), 'T');
    assert_false(process_has_ended('T'));
    kill(child, SIGCONT);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_has_ended(process_state(child, 0)));
    assert_int_equal(process_state(child, 0), 'Z');
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(process_state(child, 0), 0);
    assert_true(process_has_ended(0));
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *comm, *executable, *called, *second, *name;
    } cases[] = {
        {"redis-server", "/usr/bin/redis-check-rdb", "redis-server *:7391", "", "redis-server"},
        {"redis-server", "/usr/bin/redis-check-rdb", "/usr/bin/redis-server", "x", "redis-server"},
        {"nginx", "/usr/sbin/nginx", "nginx: master process nginx -p /tmp/a/ng", "", "nginx"},
        {"nginx", "/usr/sbin/nginx (deleted)", "nginx: worker process", "", "nginx"},
        {"python3", "/usr/bin/python3.11", "python3", "-c", "python3"},
        {"serve.py", "/usr/bin/python3.11", "/usr/bin/python3", "./bin/serve.py", "serve.py"},
        {"bash", "/usr/bin/bash", "-bash", "", "bash"},
        {"ls", "/usr/bin/busybox", "ls", "-l", "ls"},
        {"a-name-of-more-", "/opt/a-name-of-more-than-15", "/opt/a-name-of-more-than-15", "",
         "a-name-of-more-than-15"},
        // the main thread was renamed
        {"MainThread", "/usr/bin/node", "node", "x.js", "node"},
        {"GeckoMain", "/usr/lib/firefox-esr/firefox-esr", "/usr/bin/firefox", "", "firefox"},
        {"Main", "/usr/bin/python3.11", "python3", "", "python3"},
        {"Main", "/opt/app (deleted)", "some title", "", "app"},
        // nothing else is known
        {"", "/usr/bin/python3.11", "./python3", "", "python3"},
        {"", "", "commands", "", "commands"},
        {"kworker/0:1", "", "", "", "kworker/0:1"},
        {"", "/usr/bin/only", "", "", "only"},
        {"", "", "", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[NAME_MAX];
        process_name_choose(cases[i].comm, cases[i].executable, cases[i].called, cases[i].second,
                            name);
        assert_string_equal(name, cases[i].name);
    }
}

static void test_program_of_linker(void **state) {
    static const struct {
        const char *words;
        size_t bytes;
        const char *program;
    } cases[] = {
#define WORDS(text) text, sizeof text
        {WORDS("/lib64/ld-linux-x86-64.so.2\0./p\0x"), "./p"},
        {WORDS("ld.so\0--library-path\0lib:x\0--inhibit-cache\0p"), "p"},
        {WORDS("ld.so\0--argv0=x\0./p"), "./p"},
        {WORDS("ld.so\0--list"), ""},
        {WORDS("ld.so\0--preload"), ""},
        {WORDS("ld.so"), ""},
#undef WORDS
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *end = cases[i].words + cases[i].bytes;
        const char *found = linker_words_program(cases[i].words, end);
        assert_string_equal(found < end ? found : "", cases[i].program);
    }
    assert_true(linker_is_called("/lib/ld-musl-x86_64.so.1"));
    assert_false(linker_is_called("/usr/bin/ld"));
}

static void test_own_names(void **state) {
    (void)state;
    char name[NAME_MAX], names[PROCESS_NAMES][NAME_MAX];
    assert_true(process_name(getpid(), name));
    assert_string_equal(name, "process_test");
    assert_true(process_names(getpid(), names));
    for (size_t i = 0; i < PROCESS_NAMES; i++) assert_string_equal(names[i], "process_test");
    assert_int_equal(process_parent(getpid()), getppid());
    assert_false(process_name(-1, name));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_state),
        cmocka_unit_test(test_name_with_brackets),
        cmocka_unit_test(test_stopped_then_ended_then_gone),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_program_of_linker),
        cmocka_unit_test(test_own_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
