// SPDX-License-Identifier: Apache-2.0
// The timeline of two threads against all totals that they published: what a point was not told
// changes neither its lowest nor its highest value.
#include "runtime/record/timeline.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { THREADS = 2, NOTES = 300000, STEP_BYTES = 1000, LAST_NOTES = 8 };

struct note {
    uint64_t at_ns;
    int64_t bytes;
};

static struct note notes[NOTES];
static struct cairn_totals totals;
static uint64_t used_bytes;

static const struct cairn_point *timeline_start(void) {
    const size_t bytes = CAIRN_POINT_LIMIT * sizeof(struct cairn_point);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    used_bytes = 0;
    memset(&totals, 0, sizeof totals);
    struct region region = {
        .base = memory, .capacity_bytes = bytes, .chunk_bytes = bytes, .used_bytes = &used_bytes};
    timeline_open(region, &totals);
    return memory;
}

// Publishes totals that go up and down, up to `step_ns` apart. How many points took no note of.
static unsigned publish(uint64_t seed, uint64_t step_ns) {
    struct point_seen seen[THREADS] = {0};
    int64_t bytes = 0;
    uint64_t now_ns = 0;
    unsigned left_out = 0;
    for (int i = 0; i < NOTES; i++) {
        struct point_seen *own = &seen[random_below(&seed, THREADS)];
        bytes += (int64_t)random_below(&seed, 2 * STEP_BYTES) - STEP_BYTES;
        now_ns += random_below(&seed, step_ns);
        notes[i] = (struct note){now_ns, bytes};
        if (timeline_has(own, bytes, now_ns))
            left_out++;
        else
            timeline_note(own, bytes, i, now_ns);
    }
    return left_out;
}

// last_blocks of a point is the number of the note that it was told last.
static void check_point(const struct cairn_point *point, int first, int end) {
    int64_t min = notes[first].bytes, max = min;
    for (int i = first; i < end; i++) {
        if (notes[i].bytes < min) min = notes[i].bytes;
        if (notes[i].bytes > max) max = notes[i].bytes;
    }
    assert_int_equal(point->is_used, 1);
    assert_int_equal(point->min_bytes, min);
    assert_int_equal(point->max_bytes, max);
    assert_in_range(point->last_blocks, first, end - 1);
    assert_int_equal(point->last_bytes, notes[point->last_blocks].bytes);
}

static void check_timeline(const struct cairn_point *points) {
    for (int first = 0, end; first < NOTES; first = end) {
        uint64_t number = notes[first].at_ns / totals.point_ns;
        for (end = first; end < NOTES && notes[end].at_ns / totals.point_ns == number;) end++;
        check_point(&points[number], first, end);
    }
}

static void test_extremes_are_kept(void **state) {
    (void)state;
    // the last one leaves points out, so that an odd number of them is thinned
    static const uint64_t steps_ns[] = {200, 5000, 100000, 30000000};
    for (int i = 0; i < 4; i++) {
        const struct cairn_point *points = timeline_start();
        unsigned left_out = publish((uint64_t)i + 1, steps_ns[i]);
        check_timeline(points);
        if (i == 0) assert_true(left_out > NOTES / 2);
    }
}

// A thread that does not move the total tells its point so from time to time.
static void test_last_value_is_not_old(void **state) {
    (void)state;
    struct point_seen seen = {0};
    const struct cairn_point *points = timeline_start();
    timeline_note(&seen, 0, 0, 1);
    timeline_note(&seen, STEP_BYTES, 0, 1);
    for (int i = 1; i < 1000; i++) {
        if (!timeline_has(&seen, i % STEP_BYTES, 1)) timeline_note(&seen, i % STEP_BYTES, i, 1);
        assert_in_range(points[0].last_blocks, i < LAST_NOTES ? 0 : i - LAST_NOTES + 1, i);
    }
}

// How many points there are after so long at a heap of so many bytes, noted 20,000 times.
static uint64_t points_after(int64_t bytes, uint64_t run_ns) {
    const uint64_t times = 20000;
    struct point_seen seen = {0};
    timeline_start();
    for (uint64_t i = 0; i < times; i++) timeline_note(&seen, bytes, 1, i * (run_ns / times));
    assert_in_range(used_bytes / sizeof(struct cairn_point), 1, CAIRN_POINT_LIMIT);
    return used_bytes / sizeof(struct cairn_point);
}

// The timeline of a small heap is small, however long the run; that of a large one is not.
static void test_points_go_by_the_heap(void **state) {
    (void)state;
    const uint64_t hour_ns = 3600000000000;
    assert_in_range(points_after(1 << 20, hour_ns), 256, 512);
    assert_in_range(points_after(8 << 20, hour_ns), 1024, 2048);
    assert_in_range(points_after(1 << 30, hour_ns), 2048, 4096);
}

// Stops a thread that is about to double the interval, when it asks the kernel for its own number
// (a filter sends it a signal instead), until another one has done so.
static const uint64_t too_late_ns = (uint64_t)POINT_FIRST_NS * 512;
static sem_t asked, done;
static long own_tid;

static void answer_asked(int number, siginfo_t *info, void *context) {
    ucontext_t *stopped = context;
    (void)number, (void)info;
    sem_post(&asked);
    while (sem_wait(&done) != 0) {
    }
#if defined(__x86_64__)
    stopped->uc_mcontext.gregs[REG_RAX] = own_tid;
#else
    stopped->uc_mcontext.regs[0] = (unsigned long)own_tid;
#endif
}

static void trap_questions(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void *note_slowly(void *argument) {
    struct point_seen seen = {0};
    (void)argument;
    own_tid = syscall(SYS_gettid);
    trap_questions();
    timeline_note(&seen, 0, 0, too_late_ns);
    return NULL;
}

// Two threads find the interval too short; one of them doubles it.
static void test_interval_is_doubled_once(void **state) {
    (void)state;
    struct point_seen seen = {0};
    pthread_t slow;
    const struct sigaction action = {.sa_sigaction = answer_asked, .sa_flags = SA_SIGINFO};
    timeline_start();
    sem_init(&asked, 0, 0);
    sem_init(&done, 0, 0);
    sigaction(SIGSYS, &action, NULL);
    assert_int_equal(pthread_create(&slow, NULL, note_slowly, NULL), 0);
    while (sem_wait(&asked) != 0) {
    }
    timeline_note(&seen, 0, 0, too_late_ns);
    sem_post(&done);
    pthread_join(slow, NULL);
    assert_int_equal(totals.point_ns, 2 * POINT_FIRST_NS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_go_by_the_heap),
        cmocka_unit_test(test_extremes_are_kept),
        cmocka_unit_test(test_last_value_is_not_old),
        cmocka_unit_test(test_interval_is_doubled_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
