// SPDX-License-Identifier: Apache-2.0
// Options of the sanitizers in the tool that dev/check-asan.sh tests. Reports go to files: a test
// that expects the tool to fail, or does not read what a child of it prints, would pass over them.
// The tool's own statuses are lower than 99.
//
// Leaks are looked for when a command succeeds: one that fails ends the process and leaves the rest
// to the system. Nor are they in children that it forked, each of which ends with its one answer,
// and beside other threads, which may end while the search stops them: it gives up then.

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_OF_ONE_THREAD = 3 };  // of /proc/self/task: a thread, . and ..

const char *__asan_default_options(void);
int __lsan_is_turned_off(void);

static int status_at_end;
static pid_t command;

const char *__asan_default_options(void) {
    return "exitcode=99:log_path=" CAIRN_REPORTS;
}

static bool is_only_thread(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == LINKS_OF_ONE_THREAD;
}

int __lsan_is_turned_off(void) {
    return status_at_end != 0 || getpid() != command || !is_only_thread();
}

static void note_status(int status, void *unused) {
    (void)unused;
    status_at_end = status;
}

// Registered after the sanitizer's own handler, so called before it.
__attribute__((constructor)) static void watch_end(void) {
    command = getpid();
    on_exit(note_status, NULL);
}
