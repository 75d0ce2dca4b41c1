// SPDX-License-Identifier: Apache-2.0
// Programs with one bad habit each, for what a report makes of them:
//
//     habits leak      each request leaves a block that nothing knows any more
//     habits cache     what was asked for once is kept: it grows ever more slowly
//     habits builder   a text grows by small steps, with realloc each time
//     habits server    connections come and go; the state of some of them stays
//     habits tidy      requests alone, which free what they take
//
// Every request takes and frees a buffer of its own, so that much more is allocated than ever
// lives.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS = 8000,
    BUFFER_BYTES = 100000,
    LOST_BYTES = 1000,
    KEYS = 1024,
    ENTRY_BYTES = 2000,
    STEP_BYTES = 4096,
    CONNECTIONS = 64,
    STATE_BYTES = 3000,
    FORGOTTEN_EVERY = 4,
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

int main(int argc, char **argv) {
    const char *habit = argc > 1 ? argv[1] : "tidy";
    for (int request = 0; request < REQUESTS; request++) {
        handle_request();
        if (!strcmp(habit, "leak")) lose_session();
        if (!strcmp(habit, "cache")) cache_look_up(next_random() % KEYS);
        if (!strcmp(habit, "builder")) builder_append();
        if (!strcmp(habit, "server")) serve(request);
    }
    return 0;
}
