// SPDX-License-Identifier: Apache-2.0
// A day of `cairn push` in a second: the clock is the test's, the engine a function. It goes away
// for less and for more than an engine's hour, is busy, is slow. What was allocated arrives, once,
// in order, but for what is older than the engine takes, which is counted; memory and files stay
// flat.
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/base/clock.h"
#include "tool/base/unnamed_file.h"
#include "tool/push/pushing.h"

#define BASE 0x555555554000u
#define SECOND CLOCK_SECOND_NS
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define EVERY MINUTE
#define UNIX_START (1795564800 * SECOND)
enum { LOOKS = DAY / EVERY, CAPACITY = 1 << 18, BUSY = 429, STACKS = 40 };

// Of gcc's and clang's sanitizers, with which unit tests are built.
__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

// By the sanitizer's allocator, or by glibc's in a build without one (make coverage).
static size_t allocated_bytes(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : mallinfo2().uordblks;
}

static struct pushing pushing;
static struct target target;
static struct making making;
static uint32_t cells[STACKS];
static int recording;
static struct error error;
static char directory[64], path[96];

// The engine: what it is given, and when it answers.
static struct {
    uint64_t now_ns;  // of the day
    uint64_t answer_ns;
    size_t count;
    uint64_t times[DELIVERY_BATCH];
    uint8_t has_arrived[LOOKS + 1];  // by look
    uint64_t last_unix_ns, arrived, tries;
} engine;

static bool is_within(uint64_t from_ns, uint64_t to_ns) {
    return engine.now_ns >= from_ns && engine.now_ns < to_ns;
}

static bool is_away(void) {
    return is_within(6 * HOUR, 6 * HOUR + 50 * MINUTE) || is_within(12 * HOUR, 15 * HOUR);
}

static bool is_busy(void) {
    return is_within(10 * HOUR, 10 * HOUR + 5 * MINUTE);
}

static bool begin(void *context, const struct queue *queue, size_t count, struct error *problem) {
    (void)context, (void)problem;
    assert_in_range(count, 1, DELIVERY_BATCH);
    bool is_slow = is_within(18 * HOUR, 18 * HOUR + 10 * MINUTE);
    engine.count = count;
    engine.answer_ns = engine.now_ns + (is_slow ? 40 * SECOND : SECOND / 100);
    engine.tries++;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        char body[PATH_MAX];
        queue_body_path(queue, i, body);
        assert_int_equal(stat(body, &status), 0);
        assert_int_equal(status.st_size, queue->requests.items[i].bytes);
        assert_true(strstr(queue->requests.items[i].query, "?name=sample%7B") != NULL);
        engine.times[i] = queue->requests.items[i].made_unix_ns;
    }
    return true;
}

static void arrive(uint64_t unix_ns) {
    uint64_t look = (unix_ns - UNIX_START) / EVERY;
    assert_in_range(look, 1, LOOKS);
    assert_false(engine.has_arrived[look]);
    assert_true(unix_ns > engine.last_unix_ns);
    assert_true(unix_ns + HOUR >= UNIX_START + engine.now_ns - MINUTE);
    engine.has_arrived[look] = true;
    engine.last_unix_ns = unix_ns;
    engine.arrived++;
}

static bool poll_engine(void *context, struct outcome *outcomes, size_t count) {
    (void)context;
    if (engine.now_ns < engine.answer_ns) return false;
    assert_int_equal(count, engine.count);
    for (size_t i = 0; i < count; i++) {
        outcomes[i] = (struct outcome){.status = 200};
        if (is_away()) outcomes[i] = (struct outcome){.text = "Connection refused"};
        if (is_busy()) outcomes[i] = (struct outcome){.status = BUSY, .retry_after_s = 60};
        if (outcomes[i].status == 200) arrive(engine.times[i]);
    }
    engine.answer_ns = 0;
    return true;
}

static void look(uint64_t number) {
    making_book(&making, cells[number % STACKS], 2, 100 + number, 2, 100 + number);
    making_write_sparse(&making, path, CAPACITY);
    assert_true(target_look(&target, engine.now_ns, &error));
    assert_true(pushing_add_target(&pushing, &target, UNIX_START + engine.now_ns, &error));
}

static int setup(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "day_test.%d", (int)getpid());
    recording = unnamed_file_make("day");  // no disk: it is written anew for every look
    assert_true(recording >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", recording);
    making_start(&making);
    making.header.state = CAIRN_STATE_RUNNING;
    making.header.end_ns = 0;
    making_module(&making, "/bin/sample", BASE, 0x10000, BASE, 0x11);
    making_thread(&making, 4242, "sample");
    for (uint32_t i = 0; i < STACKS; i++) {
        const uint64_t addresses[] = {BASE + 1, BASE + 2 + i};
        cells[i] = making_stack(&making, 0, addresses, 2);
        making_book(&making, cells[i], 1, 100, 0, 0);
    }
    making_write_sparse(&making, path, CAPACITY);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    target_close(&target);
    pushing_close(&pushing);
    while (pushing.queue.requests.count) queue_remove(&pushing.queue, 0);
    queue_close(&pushing.queue, true);
    close(recording);
    return 0;
}

static void start(void) {
    const struct sender sender = {begin, poll_engine, NULL};
    struct live_process process = {.pid = 4242};
    snprintf(process.path, sizeof process.path, "%s", path);
    snprintf(process.name, sizeof process.name, "sample");
    assert_true(destination_read("http://localhost:4040", NULL, &pushing.destination, &error));
    snprintf(pushing.host, sizeof pushing.host, "host");
    assert_true(queue_open(directory, 64 << 20, &pushing.queue, &error));
    pushing.delivery = (struct delivery){.queue = &pushing.queue,
                                         .sender = sender,
                                         .age_most_ns = pushing.destination.engine->age_most_ns};
    assert_true(target_open(&process, false, 0, UNIX_START, &target, &error));
}

static void test_day(void **state) {
    (void)state;
    size_t early_bytes = 0;
    uint64_t most_waiting = 0, tries_before = 0, tries_away = 0;
    start();
    for (uint64_t number = 1; number <= LOOKS;) {
        uint64_t due_ns =
            delivery_turn(&pushing.delivery, engine.now_ns, UNIX_START + engine.now_ns);
        uint64_t next_ns = number * EVERY;
        if (due_ns < next_ns) next_ns = due_ns;
        if (engine.answer_ns && engine.answer_ns < next_ns) next_ns = engine.answer_ns;
        if (next_ns < engine.now_ns) next_ns = engine.now_ns;
        engine.now_ns = next_ns;
        if (next_ns != number * EVERY) continue;
        look(number++);
        if (pushing.queue.bytes > most_waiting) most_waiting = pushing.queue.bytes;
        if (number == LOOKS / 4) early_bytes = allocated_bytes();
        if (next_ns == 12 * HOUR) tries_before = engine.tries;
        if (next_ns == 15 * HOUR) tries_away = engine.tries - tries_before;
    }
    size_t late_bytes = allocated_bytes();
    uint64_t waiting = pushing.queue.requests.count;
    const struct delivery *delivery = &pushing.delivery;

    // every interval arrived once, waits, or was too old and is counted
    assert_int_equal(engine.arrived + delivery->too_old + waiting, LOOKS);
    assert_int_equal(delivery->sent, engine.arrived);
    assert_in_range(waiting, 0, 2);
    assert_int_equal(delivery->refused + pushing.queue.crowded_out + pushing.unmade, 0);
    // away for three hours: what is older than the engine's hour is lost, and nothing else
    for (uint64_t number = 1; number + waiting <= LOOKS; number++)
        if (!engine.has_arrived[number])
            assert_in_range(number * EVERY, 12 * HOUR - MINUTE, 14 * HOUR + 7 * MINUTE);
    assert_in_range(delivery->too_old, 2 * HOUR / EVERY - 4, (2 * HOUR + 7 * MINUTE) / EVERY);
    // it was not pestered: ever longer pauses, up to five minutes
    assert_in_range(tries_away, 3 * HOUR / (7 * MINUTE), 3 * HOUR / (5 * MINUTE) + 12);
    // an hour of requests waits at most; memory is that of a quarter of a day
    assert_true(most_waiting < 16 << 20);
    assert_true(late_bytes < early_bytes + (64 << 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_day, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
