// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/watch/library.h"

enum { DIGITS = 16 };

// The driver's part of the file as it was before.
static bool reset(const struct script *script, struct cairn_replay *plan) {
    struct cairn_replay_thread *threads = (void *)((uint8_t *)plan + plan->threads_at);
    const size_t behind = offsetof(struct cairn_replay, state);
    if (plan->bytes != script->bytes) return false;
    memset((uint8_t *)plan + behind, 0, sizeof *plan - behind);
    for (uint32_t i = 0; i < plan->thread_count; i++) {
        threads[i].now_ms = threads[i].done = 0;
        threads[i].live_bytes = 0;
    }
    memset((uint8_t *)plan + plan->blocks_at, 0,
           plan->block_count * sizeof(struct cairn_replay_block));
    return true;
}

// `tool`: whose end is the driver's as well.
static void become_driver(const char *driver, int file, const struct runner_setting *setting,
                          pid_t tool) {
    char number[DIGITS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != tool) _exit(127);
    snprintf(number, sizeof number, "%d", file);
    char *arguments[] = {(char *)(uintptr_t)driver, number, NULL};
    unsetenv("LD_PRELOAD");
    if (*setting->library) setenv("LD_PRELOAD", setting->library, 1);
    for (int i = 0; i < RUNNER_VARIABLES && setting->variables[i]; i++)
        putenv((char *)(uintptr_t)setting->variables[i]);
    execv(driver, arguments);
    _exit(127);
}

static bool judge(const struct cairn_replay *plan, int status, struct error *error) {
    const struct cairn_replay_thread *threads =
        (const void *)((const uint8_t *)plan + plan->threads_at);
    uint64_t done = 0;
    for (uint32_t i = 0; i < plan->thread_count; i++) done += threads[i].done;
    if (plan->state == CAIRN_REPLAY_NO_MEMORY)
        return error_set(error,
                         "the allocator had no memory for a call, after %" PRIu64 " of %" PRIu64,
                         done, plan->call_count);
    if (plan->state == CAIRN_REPLAY_NO_THREAD)
        return error_set(error, "%u threads cannot be started here (--threads 1)",
                         plan->thread_count);
    if (WIFSIGNALED(status))
        return error_set(error,
                         "the allocator crashed (signal %d) after %" PRIu64 " of %" PRIu64 " calls",
                         WTERMSIG(status), done, plan->call_count);
    return (plan->state == CAIRN_REPLAY_DONE && status == 0) ||
           error_set(error, "the driver ended with status %d", WEXITSTATUS(status));
}

static bool run(const struct script *script, const struct runner_setting *setting,
                struct cairn_replay *plan, struct error *error) {
    char driver[PATH_MAX];
    int status = 0;
    if (!library_find_driver(driver, error)) return false;
    int file = dup(script->file);  // without close-on-exec
    if (file < 0) return error_set(error, "%s", strerror(errno));
    const pid_t tool = getpid(), child = fork();
    if (child == 0) become_driver(driver, file, setting, tool);
    close(file);
    if (child < 0) return error_set(error, "cannot start the driver: %s", strerror(errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return judge(plan, status, error);
}

static int by_calls(const void *left, const void *right) {
    const struct cairn_replay_sample *a = left, *b = right;
    return (a->calls > b->calls) - (a->calls < b->calls);
}

static void take(const struct cairn_replay *plan, struct replay_result *result) {
    result->told = *plan;
    if (result->told.sample_count > CAIRN_REPLAY_SAMPLES)
        result->told.sample_count = CAIRN_REPLAY_SAMPLES;
    memcpy(result->samples, (const uint8_t *)plan + plan->samples_at, sizeof result->samples);
    qsort(result->samples, result->told.sample_count, sizeof *result->samples, by_calls);
}

bool runner_run(const struct script *script, const struct runner_setting *setting,
                struct replay_result *result, struct error *error) {
    struct cairn_replay *plan =
        mmap(NULL, script->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, script->file, 0);
    if (plan == MAP_FAILED) return error_set(error, "cannot map the calls: %s", strerror(errno));
    bool is_ok = reset(script, plan) && run(script, setting, plan, error);
    if (is_ok) take(plan, result);
    munmap(plan, script->bytes);
    return is_ok;
}

double replay_ns_each(const struct cairn_replay *told, const struct cairn_replay_times *times) {
    double own = (double)times->timed * (double)told->ticks_of_nothing;
    double all = (double)times->ticks;
    if (!times->timed || all <= own) return 0;
    return (all - own) * told->ns_per_tick / (double)times->timed;
}

double replay_allocator_ns(const struct cairn_replay *told) {
    double sum = 0;
    for (uint32_t i = 0; i < CAIRN_REPLAY_CLASSES; i++)
        sum += replay_ns_each(told, &told->given[i]) * (double)told->given[i].calls +
               replay_ns_each(told, &told->freed[i]) * (double)told->freed[i].calls;
    return sum;
}
