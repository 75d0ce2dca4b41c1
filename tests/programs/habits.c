// SPDX-License-Identifier: Apache-2.0
// Programs with one bad habit each, for what a report makes of them:
//
//     habits leak      each request leaves a block that nothing knows any more
//     habits cache     what was asked for once is kept: it grows ever more slowly
//     habits builder   a text grows by small steps, with realloc each time
//     habits server    connections come and go; the state of some of them stays
//     habits store     each request adds to a store, which is freed before the program ends
//     habits parser    each request makes a list of nodes, and frees it when it is done
//     habits table     a table is built at first, and three quarters of it go at half time
//     habits sieve     a large heap is freed but for one block in 20, and the program goes on
//     habits tidy      requests alone, which free what they take
//
// Every request takes and frees a buffer of its own, so that much more is allocated than ever
// lives. Some go on for two seconds, as growth is known from then on.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REQUESTS = 8000,
    PAUSE_EVERY = 100,
    PAUSE_MS = 27,
    BUFFER_BYTES = 100000,
    LOST_BYTES = 1000,
    KEYS = 1024,
    ENTRY_BYTES = 2000,
    STEP_BYTES = 4096,
    CONNECTIONS = 64,
    STATE_BYTES = 3000,
    FORGOTTEN_EVERY = 4,
    NODES = 20,
    NODE_BYTES = 48,
    ROWS = 2000,
    SIEVE_BLOCKS = 60000,
    SIEVE_KEPT_EVERY = 20,
    SIEVE_MS = 800,
};

// Where blocks go that the compiler must not think away.
static void *volatile seen;

__attribute__((noinline)) static void handle_request(void) {
    char *buffer = malloc(BUFFER_BYTES);
    seen = buffer;
    buffer[0] = 1;
    free(buffer);
}

__attribute__((noinline)) static void lose_session(void) {
    seen = memset(malloc(LOST_BYTES), 1, LOST_BYTES);
}

static unsigned next_random(void) {
    static unsigned state = 12345;
    state = state * 1103515245 + 12345;
    return state >> 16;
}

__attribute__((noinline)) static void *cache_insert(void) {
    return memset(malloc(ENTRY_BYTES), 1, ENTRY_BYTES);
}

static void cache_look_up(unsigned key) {
    static void *entries[KEYS];
    if (!entries[key]) entries[key] = cache_insert();
    seen = entries[key];
}

__attribute__((noinline)) static void builder_append(void) {
    static char *text;
    static size_t length, capacity;
    if (length + LOST_BYTES > capacity) {
        capacity += STEP_BYTES;
        text = realloc(text, capacity);
    }
    memset(text + length, 'x', LOST_BYTES);
    length += LOST_BYTES;
}

__attribute__((noinline)) static void *open_connection(void) {
    return memset(malloc(STATE_BYTES), 1, STATE_BYTES);
}

static void serve(int request) {
    static void *states[CONNECTIONS];
    int slot = request % CONNECTIONS;
    if (request % FORGOTTEN_EVERY) free(states[slot]);
    states[slot] = open_connection();
    seen = states[slot];
}

struct item {
    struct item *next;
};

// `bytes` each, in front of the list.
__attribute__((noinline)) static struct item *add_item(struct item *list, size_t bytes) {
    struct item *item = malloc(bytes);
    item->next = list;
    return item;
}

static void free_items(struct item *list) {
    while (list) {
        struct item *next = list->next;
        free(list);
        list = next;
    }
}

__attribute__((noinline)) static struct item *store_add(struct item *store) {
    return add_item(store, LOST_BYTES);
}

__attribute__((noinline)) static void parse(void) {
    struct item *nodes = NULL;
    for (int i = 0; i < NODES; i++) nodes = add_item(nodes, NODE_BYTES);
    seen = nodes;
    free_items(nodes);
}

static void table_look(int request) {
    static void *rows[ROWS];
    if (request != 0 && request != REQUESTS / 2) return;
    for (int i = 0; i < ROWS; i++)
        if (request == 0)
            rows[i] = cache_insert();
        else if (i % 4)
            free(rows[i]);
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Goes on for longer than it took to get there.
static void sieve(void) {
    static void *blocks[SIEVE_BLOCKS];
    long began = now_ms();
    for (int i = 0; i < SIEVE_BLOCKS; i++) blocks[i] = memset(malloc(LOST_BYTES), 1, LOST_BYTES);
    for (int i = 0; i < SIEVE_BLOCKS; i++)
        if (i % SIEVE_KEPT_EVERY) free(blocks[i]);
    long until = now_ms() + (now_ms() - began) + SIEVE_MS;
    while (now_ms() < until) handle_request();
}

static void wait_for_more(void) {
    const struct timespec time = {0, PAUSE_MS * 1000000L};
    nanosleep(&time, NULL);
}

static bool takes_time(const char *habit) {
    static const char *const slow[] = {"leak", "cache", "store", "server", "tidy"};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (!strcmp(habit, slow[i])) return true;
    return false;
}

int main(int argc, char **argv) {
    const char *habit = argc > 1 ? argv[1] : "tidy";
    struct item *store = NULL;
    for (int request = 0; request < REQUESTS; request++) {
        if (takes_time(habit) && request % PAUSE_EVERY == 0) wait_for_more();
        handle_request();
        if (!strcmp(habit, "leak")) lose_session();
        if (!strcmp(habit, "cache")) cache_look_up(next_random() % KEYS);
        if (!strcmp(habit, "builder")) builder_append();
        if (!strcmp(habit, "server")) serve(request);
        if (!strcmp(habit, "store")) store = store_add(store);
        if (!strcmp(habit, "parser")) parse();
        if (!strcmp(habit, "table")) table_look(request);
    }
    if (!strcmp(habit, "sieve")) sieve();
    free_items(store);
    return 0;
}
