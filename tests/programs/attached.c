// SPDX-License-Identifier: Apache-2.0
// A program that is attached to while it runs: `attached THREADS`.
// Threads but the first allocate and free without a pause, and look after what is in their blocks;
// if they are many, they rest soon, since nothing else on the machine would get on.
// The first does what it is told on stdin, a line each, and answers with a line:
//   keep N SIZE    allocates N blocks and keeps them
//   drop           frees all that it kept
//   plugin N SIZE  has libplugin.so (beside the executable), loaded at the first time, allocate
//                  them
//   fork N SIZE    a child does as keep, and its status is told
//   child          starts a child that allocates and frees until it is ended; its pid is told
//   end-child      ends that with SIGTERM; the signal that it ended by is told
//   vfork MS       starts a child in its own memory, which sleeps so long
//   rest           the threads do some hundred rounds each and rest then; how many blocks they
//   have exec PATH      becomes that program end            ends the threads; "sound" if every
//   block was what it should be
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 64,
    KEPT_MAX = 1 << 16,
    THREADS_MAX = 256,
    BUSY_MAX = 32,
    ROUNDS = 500,
    REST_US = 10000
};

static int is_ending;                                        // (atomic)
static int is_damaged;                                       // (atomic)
static int is_resting;                                       // (atomic)
static size_t threads_count, resting_count, resting_blocks;  // (atomic)
static void *kept[KEPT_MAX];
static size_t kept_count;
static void *(*plugin_allocate)(size_t);

struct block {
    uint64_t size, check;
};

static uint64_t check_of(const struct block *block) {
    return (uint64_t)(uintptr_t)block ^ block->size * 0x9E3779B97F4A7C15u;
}

static void rest(struct block *const *blocks) {
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++) count += blocks[i] != NULL;
    __atomic_fetch_add(&resting_blocks, count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&resting_count, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_ending, __ATOMIC_RELAXED)) usleep(REST_US);
}

static size_t rest_all(void) {
    __atomic_store_n(&is_resting, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&resting_count, __ATOMIC_ACQUIRE) < threads_count) usleep(REST_US);
    return __atomic_load_n(&resting_blocks, __ATOMIC_RELAXED);
}

static void *churn(void *argument) {
    struct block *blocks[BLOCKS] = {0};
    uint32_t random = (uint32_t)(uintptr_t)argument + 1;
    for (unsigned round = 0; !__atomic_load_n(&is_ending, __ATOMIC_RELAXED); round++) {
        if (__atomic_load_n(&is_resting, __ATOMIC_RELAXED) && round > ROUNDS) rest(blocks);
        random = random * 1103515245u + 12345u;
        struct block **block = &blocks[random >> 16 & (BLOCKS - 1)];
        uint64_t size = sizeof **block + (random >> 8 & 1023);
        if (*block && (*block)->check != check_of(*block))
            __atomic_store_n(&is_damaged, 1, __ATOMIC_RELAXED);
        if (random >> 30 == 0) {
            *block = realloc(*block, size);
        } else {
            free(*block);
            *block = malloc(size);
        }
        (*block)->size = size;
        (*block)->check = check_of(*block);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

__attribute__((noinline)) static void keep(size_t count, size_t size) {
    for (size_t i = 0; i < count && kept_count < KEPT_MAX; i++) kept[kept_count++] = malloc(size);
}

static void drop(void) {
    while (kept_count) free(kept[--kept_count]);
}

static void load_plugin(const char *own) {
    char path[4096];
    if (plugin_allocate) return;
    const char *slash = strrchr(own, '/');
    snprintf(path, sizeof path, "%.*s/libplugin.so", slash ? (int)(slash - own) : 1,
             slash ? own : ".");
    void *library = dlopen(path, RTLD_NOW);
    *(void **)&plugin_allocate = library ? dlsym(library, "plugin_allocate") : NULL;
    if (!plugin_allocate) exit(3);
}

static int child_status(size_t count, size_t size) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        keep(count, size);
        _exit(7);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t start_child(void) {
    enum { PAUSE_US = 1000 };
    pid_t child = fork();
    if (child) return child;
    close(STDIN_FILENO);
    for (;;) {
        void *volatile block = malloc(PAUSE_US);
        free(block);
        usleep(PAUSE_US);
    }
}

static int end_child(pid_t child) {
    int status = 0;
    kill(child, SIGTERM);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void sleep_in_child(size_t ms) {
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    pid_t child = vfork();
    if (child == 0) {
        nanosleep(&pause, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void obey(const char *own, const char *line) {
    size_t count = 0, size = 0;
    static pid_t child;
    char path[256];
    if (sscanf(line, "keep %zu %zu", &count, &size) == 2) {
        keep(count, size);
    } else if (sscanf(line, "plugin %zu %zu", &count, &size) == 2) {
        load_plugin(own);
        while (count-- && kept_count < KEPT_MAX) kept[kept_count++] = plugin_allocate(size);
    } else if (sscanf(line, "fork %zu %zu", &count, &size) == 2) {
        printf("child %d\n", child_status(count, size));
        return;
    } else if (!strncmp(line, "child", 5)) {
        printf("%d\n", (int)(child = start_child()));
        return;
    } else if (!strncmp(line, "rest", 4)) {
        printf("%zu\n", rest_all());
        return;
    } else if (!strncmp(line, "end-child", 9)) {
        printf("%d\n", end_child(child));
        return;
    } else if (sscanf(line, "vfork %zu", &count) == 1) {
        sleep_in_child(count);
    } else if (sscanf(line, "exec %255s", path) == 1) {
        execl(path, path, "3", (char *)NULL);
    } else if (!strncmp(line, "drop", 4)) {
        drop();
    }
    puts("done");
}

// Leaves free chunks in the arenas that are 16 bytes larger than what a thread's cache takes: those
// of later threads get them as they are.
static void *fragment(void *barrier) {
    enum { CACHE_BYTES = 0x280, GAPS = 20, BETWEEN_BYTES = 100 };
    void *gaps[GAPS];
    for (size_t i = 0; i < GAPS; i++) {
        gaps[i] = malloc(CACHE_BYTES + 24);
        void *volatile between = malloc(BETWEEN_BYTES);
        between = between ? between : NULL;
    }
    __atomic_fetch_add(&resting_blocks, GAPS, __ATOMIC_RELAXED);
    for (size_t i = 0; i < GAPS; i++) free(gaps[i]);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void fragment_all(void) {
    pthread_t threads[BUSY_MAX];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, BUSY_MAX);
    for (int i = 0; i < BUSY_MAX; i++) pthread_create(&threads[i], NULL, fragment, &barrier);
    for (int i = 0; i < BUSY_MAX; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **words) {
    pthread_t threads[THREADS_MAX];
    int thread_count = count > 1 ? atoi(words[1]) - 1 : 0;
    char line[512];
    static char in[4096], out[4096];  // stdio's own would be allocated
    setvbuf(stdin, in, _IOLBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    is_resting = thread_count > BUSY_MAX;
    if (is_resting) fragment_all();
    for (int i = 0; i < thread_count && i < THREADS_MAX; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(intptr_t)i)) return 2;
    threads_count =
        thread_count < THREADS_MAX ? (size_t)(thread_count > 0 ? thread_count : 0) : THREADS_MAX;
    puts("ready");
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) obey(words[0], line);
    __atomic_store_n(&is_ending, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < thread_count && i < THREADS_MAX; i++) pthread_join(threads[i], NULL);
    puts(is_damaged ? "damaged" : "sound");
    return is_damaged;
}
