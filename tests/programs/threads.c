// SPDX-License-Identifier: Apache-2.0
// Threads whose totals are known. `threads short`: 40 threads one after the other and 40 at once,
// each 1,000 pairs and one leak of 10 bytes. `threads pipe`: a producer allocates 20,000 blocks, a
// consumer frees them. `threads relay`: the one allocates all and ends before the other begins to
// free. `threads late`: a thread frees and allocates in a destructor of thread data. `threads
// jobs`: threads job0 to job11, one after the other, of which each but the last leaves what it
// allocated, then tidy0 to tidy3, which leave nothing. `threads crowd N`: N threads at once, each
// with a block; says "ready" with its pid, and goes on at the end of its input. `threads deep N`:
// as crowd, and each thread allocates from 300 calls further down too. `threads unheard N`: 80 that
// stay, and N one after the other that end by a system call, so that no destructor hears of it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_THREADS 40
#define STAYING_THREADS 80
#define PAIRS 1000
#define PIPE_BLOCKS 20000
#define PIPE_ROOM 64

static void *volatile sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *room[PIPE_ROOM];
static size_t put_count, got_count;
static pthread_key_t key;

static void *short_body(void *argument) {
    size_t number = (size_t)argument;
    for (int i = 0; i < PAIRS; i++) free(malloc(number + 1));
    sink = malloc(10);
    return NULL;
}

static void run_short(void) {
    pthread_t threads[SHORT_THREADS];
    for (size_t i = 0; i < SHORT_THREADS; i++) {
        pthread_create(&threads[i], NULL, short_body, (void *)i);
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < SHORT_THREADS; i++)
        pthread_create(&threads[i], NULL, short_body, (void *)i);
    for (size_t i = 0; i < SHORT_THREADS; i++) pthread_join(threads[i], NULL);
}

static void *produce(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "producer");
    for (size_t i = 0; i < PIPE_BLOCKS; i++) {
        void *block = malloc(100);
        pthread_mutex_lock(&mutex);
        while (put_count - got_count == PIPE_ROOM) pthread_cond_wait(&changed, &mutex);
        room[put_count++ % PIPE_ROOM] = block;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *consume(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "consumer");
    for (size_t i = 0; i < PIPE_BLOCKS; i++) {
        pthread_mutex_lock(&mutex);
        while (put_count == got_count) pthread_cond_wait(&changed, &mutex);
        void *block = room[got_count++ % PIPE_ROOM];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        free(block);
    }
    return NULL;
}

static void run_pipe(void) {
    pthread_t producer, consumer;
    pthread_create(&producer, NULL, produce, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
}

#define RELAY_BLOCKS 100
static void *relayed[RELAY_BLOCKS];

static void *make(void *argument) {
    pthread_setname_np(pthread_self(), "maker");
    for (size_t i = 0; i < RELAY_BLOCKS; i++) relayed[i] = malloc(10000);
    return argument;
}

static void *eat(void *argument) {
    pthread_setname_np(pthread_self(), "eater");
    for (size_t i = 0; i < RELAY_BLOCKS; i++) free(relayed[i]);
    return argument;
}

static void run_relay(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, make, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, eat, NULL);
    pthread_join(thread, NULL);
}

static void late_destructor(void *block) {
    free(block);
    free(malloc(33));
    sink = malloc(77);
}

static void *late_body(void *argument) {
    (void)argument;
    pthread_setspecific(key, malloc(55));
    return NULL;
}

static void run_late(void) {
    pthread_key_create(&key, late_destructor);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, late_body, NULL);
        pthread_join(thread, NULL);
    }
}

#define JOBS 12
#define TIDY 4

static void *job_body(void *argument) {
    size_t number = (size_t)argument;
    char name[16];
    snprintf(name, sizeof name, number < JOBS ? "job%zu" : "tidy%zu", number % JOBS);
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < PAIRS; i++) {
        void *block = malloc(100);
        if (number >= JOBS - 1 || i >= 10) free(block);
        sink = block;
    }
    return NULL;
}

static void run_jobs(void) {
    for (size_t i = 0; i < JOBS + TIDY; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, job_body, (void *)i);
        pthread_join(thread, NULL);
    }
}

#define DEEP_CALLS 300
static pthread_barrier_t together;

__attribute__((noinline)) static int go_down(int calls) {
    if (calls) return go_down(calls - 1) + (sink != NULL);
    sink = malloc(70);
    return 1;
}

static void *crowd_body(void *argument) {
    void *block = malloc(100);
    if (argument) go_down(DEEP_CALLS);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    free(block);
    return NULL;
}

static void run_crowd(unsigned count, void *is_deep) {
    const size_t stack_bytes = 128 << 10;
    pthread_t *threads = malloc((count + 1) * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, stack_bytes);
    pthread_barrier_init(&together, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], &small, crowd_body, is_deep)) exit(2);
    pthread_barrier_wait(&together);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (getchar() != EOF) {
    }
    pthread_barrier_wait(&together);
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
    free(threads);
}

static void *unheard_body(void *argument) {
    free(malloc(100));
    syscall(SYS_exit, 0);
    return argument;
}

static void run_unheard(unsigned count) {
    pthread_t staying[STAYING_THREADS], thread;
    pthread_barrier_init(&together, NULL, STAYING_THREADS + 1);
    for (int i = 0; i < STAYING_THREADS; i++)
        if (pthread_create(&staying[i], NULL, crowd_body, NULL)) exit(2);
    pthread_barrier_wait(&together);
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&thread, NULL, unheard_body, NULL)) exit(2);
        pthread_join(thread, NULL);
    }
    pthread_barrier_wait(&together);
    for (int i = 0; i < STAYING_THREADS; i++) pthread_join(staying[i], NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "short";
    if (!strcmp(what, "pipe"))
        run_pipe();
    else if (!strcmp(what, "relay"))
        run_relay();
    else if (!strcmp(what, "late"))
        run_late();
    else if (!strcmp(what, "jobs"))
        run_jobs();
    else if (!strcmp(what, "crowd") || !strcmp(what, "deep"))
        run_crowd(argc > 2 ? (unsigned)atoi(argv[2]) : 1, *what == 'd' ? &together : NULL);
    else if (!strcmp(what, "unheard"))
        run_unheard(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    else
        run_short();
    printf("%s done\n", what);
    return 0;
}
