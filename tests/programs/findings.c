// SPDX-License-Identifier: Apache-2.0
// What each finding is about, once as it should not be and once mended: `findings KIND [fixed]`.
// What a finding says that a fix saves can so be compared with what the fix saves
// (tests/e2e/findings.py, docs/howto/findings.md).
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline))

enum {
    REQUESTS = 8000,
    SESSION_BYTES = 1000,
    PAGE_BYTES = 100000,
    STEP_BYTES = 1000,
    LIST_NODES = 20,
    NAME_BYTES = 120,
    ROWS = 200000,
    COUNTRIES = 25,
    BUFFERS = 4,
    BUFFER_BYTES = 64 << 20,
    USED_BYTES = 1 << 20,
    MESSAGES = 20000,
    MESSAGE_BYTES = 200,
    RING = 64,
    PIECES = 60000,
    PIECE_BYTES = 1000,
    KEPT_EVERY = 20,
    WORKERS = 6,
    STACKS_LOG2 = 18,
    PAUSE_EVERY = 100,
    PAUSE_MS = 27,  // growth is known of two seconds
    WAIT_MS = 800,  // resident memory is looked at from time to time
};

static void *volatile seen;  // what the compiler must not think away

static void wait_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void wait_a_while(void) {
    wait_ms(WAIT_MS);
}

APART static void serve_page(void) {
    char *page = malloc(PAGE_BYTES);
    seen = page;
    free(page);
}

APART static void open_session(bool is_fixed) {
    char *session = memset(malloc(SESSION_BYTES), 1, SESSION_BYTES);
    seen = session;
    if (is_fixed) free(session);
}

static void growth(bool is_fixed) {
    for (int i = 0; i < REQUESTS; i++) {
        if (i % PAUSE_EVERY == 0) wait_ms(PAUSE_MS);
        open_session(is_fixed);
        serve_page();
    }
}

APART static void append_lines(bool is_fixed) {
    size_t room = is_fixed ? (size_t)REQUESTS * STEP_BYTES : STEP_BYTES;
    char *text = malloc(room);
    for (size_t used = 0; used < (size_t)REQUESTS * STEP_BYTES; used += STEP_BYTES) {
        if (used + STEP_BYTES > room) text = realloc(text, room = used + STEP_BYTES);
        memset(text + used, 'x', STEP_BYTES);
        // so that it cannot be grown where it is
        if (used % (100 * STEP_BYTES) == 0) seen = malloc(STEP_BYTES);
    }
    free(text);
}

struct node {
    struct node *next;
    long value[4];
};

APART static void parse_request(bool is_fixed) {
    static struct node kept[LIST_NODES];
    struct node *list = NULL;
    for (int i = 0; i < LIST_NODES; i++) {
        struct node *node = is_fixed ? &kept[i] : malloc(sizeof *node);
        node->next = list;
        list = node;
    }
    seen = list;
    while (!is_fixed && list) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
}

static void temporary(bool is_fixed) {
    seen = malloc(1);
    for (int i = 0; i < REQUESTS; i++) parse_request(is_fixed);
}

APART static void greet(int number, bool is_fixed) {
    char on_stack[NAME_BYTES];
    char *name = is_fixed ? on_stack : malloc(NAME_BYTES);
    snprintf(name, NAME_BYTES, "user %d", number);
    seen = name;
    seen = NULL;
    if (!is_fixed) free(name);
}

static void reuse(bool is_fixed) {
    seen = malloc(1);
    for (int i = 0; i < 3 * REQUESTS; i++) greet(i, is_fixed);
}

struct row {
    long key, value, next;
};

APART static void load_rows(bool is_fixed) {
    static struct row *rows[ROWS];
    struct row *all = is_fixed ? malloc(ROWS * sizeof *all) : NULL;
    for (int i = 0; i < ROWS; i++) {
        rows[i] = is_fixed ? &all[i] : malloc(sizeof **rows);
        rows[i]->key = i;
    }
    seen = rows;
}

APART static void make_buffers(bool is_fixed) {
    for (int i = 0; i < BUFFERS; i++) {
        char *buffer = malloc(is_fixed ? USED_BYTES : BUFFER_BYTES);
        seen = memset(buffer, 1, USED_BYTES);
    }
    wait_a_while();
}

static struct {
    char *messages[RING];
    sem_t full, empty;
    bool is_fixed;
} ring;

static void *consume(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "consumer");
    for (int i = 0; i < MESSAGES; i++) {
        sem_wait(&ring.full);
        if (!ring.is_fixed) free(ring.messages[i % RING]);
        sem_post(&ring.empty);
    }
    return NULL;
}

APART static void send_message(int number) {
    if (!ring.is_fixed) ring.messages[number % RING] = malloc(MESSAGE_BYTES);
    memset(ring.messages[number % RING], number, MESSAGE_BYTES);
}

static void hand_over(bool is_fixed) {
    pthread_t thread;
    ring.is_fixed = is_fixed;
    for (int i = 0; is_fixed && i < RING; i++) ring.messages[i] = malloc(MESSAGE_BYTES);
    sem_init(&ring.full, 0, 0);
    sem_init(&ring.empty, 0, RING);
    pthread_setname_np(pthread_self(), "producer");
    if (pthread_create(&thread, NULL, consume, NULL)) abort();
    for (int i = 0; i < MESSAGES; i++) {
        sem_wait(&ring.empty);
        send_message(i);
        sem_post(&ring.full);
    }
    pthread_join(thread, NULL);
}

// What is kept lies among what is freed, or apart from it.
static void fragmentation(bool is_fixed) {
    static char *pieces[PIECES];
    char *kept = malloc((size_t)(PIECES / KEPT_EVERY) * PIECE_BYTES);
    for (int i = 0; i < PIECES; i++) pieces[i] = memset(malloc(PIECE_BYTES), 1, PIECE_BYTES);
    for (int i = 0; i < PIECES; i++) {
        bool is_kept = i % KEPT_EVERY == 0;
        if (is_kept && is_fixed)
            memcpy(kept + (size_t)(i / KEPT_EVERY) * PIECE_BYTES, pieces[i], PIECE_BYTES);
        if (!is_kept || is_fixed) free(pieces[i]);
    }
    seen = kept;
    wait_a_while();
    wait_a_while();
}

static pthread_barrier_t all_are_there;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

// One after the other needs memory, each out of the arena that it got as it began.
static void *work(void *unused) {
    static _Thread_local char *pieces[PIECES / WORKERS];
    (void)unused;
    seen = malloc(1);
    pthread_barrier_wait(&all_are_there);
    pthread_mutex_lock(&turn);
    for (int i = 0; i < PIECES / WORKERS; i++)
        pieces[i] = memset(malloc(PIECE_BYTES), 1, PIECE_BYTES);
    for (int i = 0; i < PIECES / WORKERS; i++)
        if (i % KEPT_EVERY) free(pieces[i]);
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&all_are_there);
    wait_a_while();
    pthread_barrier_wait(&all_are_there);
    return NULL;
}

// The fix is not in the program: MALLOC_ARENA_MAX.
static void arenas(bool is_fixed) {
    pthread_t threads[WORKERS];
    (void)is_fixed;
    pthread_barrier_init(&all_are_there, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) abort();
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
}

// Looked into while it waits for its input to end.
APART static char *take_name(int number, bool is_fixed) {
    static char *names[COUNTRIES];
    int country = number % COUNTRIES;
    if (is_fixed && names[country]) return names[country];
    char *name = calloc(1, NAME_BYTES);
    snprintf(name, NAME_BYTES, "the long name of the country with the number %d", country);
    names[country] = name;
    return name;
}

static void strings(bool is_fixed) {
    static char *kept[ROWS];
    for (int i = 0; i < ROWS / 10; i++) kept[i] = take_name(i, is_fixed);
    seen = kept;
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
}

APART static void go_right(unsigned way, int depth);

// A block from a stack of its own for each way: nothing is at fault, and cairn's tables are larger
// than the heap.
APART static void go_left(unsigned way, int depth) {
    if (!depth)
        seen = malloc(LIST_NODES);
    else if (way & 1)
        go_left(way >> 1, depth - 1);
    else
        go_right(way >> 1, depth - 1);
    __asm__ volatile("");  // no tail call
}

APART static void go_right(unsigned way, int depth) {
    if (!depth)
        seen = malloc(LIST_NODES);
    else if (way & 1)
        go_left(way >> 1, depth - 1);
    else
        go_right(way >> 1, depth - 1);
    __asm__ volatile("");  // no tail call
}

static void stacks(bool is_fixed) {
    (void)is_fixed;
    for (unsigned way = 0; way < 1u << STACKS_LOG2; way++) go_left(way, STACKS_LOG2);
}

// The fix is not in the program: GLIBC_TUNABLES=glibc.malloc.hugetlb=1.
static void small_pages(bool is_fixed) {
    (void)is_fixed;
    for (int i = 0; i < BUFFERS; i++) seen = memset(malloc(BUFFER_BYTES), 1, BUFFER_BYTES);
    wait_a_while();
    wait_a_while();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(bool is_fixed);
    } kinds[] = {
        {"growth", growth},      {"realloc", append_lines}, {"temporary", temporary},
        {"reuse", reuse},        {"alike", load_rows},      {"untouched", make_buffers},
        {"freed_by", hand_over}, {"free", fragmentation},   {"arenas", arenas},
        {"huge", small_pages},   {"strings", strings},      {"stacks", stacks},
    };
    bool is_fixed = argc > 2 && !strcmp(argv[2], "fixed");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 2 || strcmp(argv[1], kinds[i].name) != 0) continue;
        kinds[i].run(is_fixed);
        return 0;
    }
    fprintf(stderr, "findings KIND [fixed]\n");
    return 2;
}
