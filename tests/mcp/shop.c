// SPDX-License-Identifier: Apache-2.0
// A shop with three faults, for the workflows of docs/agents/SKILL.md and the questions of
// tests/mcp/answers.txt:
//
//     shop serve        answers requests; every fourth session is never freed
//     shop load         loads rows, and for a moment has them twice
//     shop parse        reads orders, each line in a buffer that is kept
//     shop parse-copies the same after a change: each field of each line is copied
//
// It prints nothing, so that no library allocates for it.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline))

enum {
    REQUESTS = 16000,
    PAGE_BYTES = 64 * 1024,
    SESSION_BYTES = 512,
    LOST_EVERY = 4,
    ROWS = 40000,
    ROW_BYTES = 48,
    ORDERS = 20000,
    LINE_BYTES = 200,
    FIELDS = 3,
    FIELD_BYTES = 40,
};

static void *volatile seen;  // what the compiler must not think away

struct session {
    char state[SESSION_BYTES];
};

APART static struct session *session_open(int number) {
    struct session *session = malloc(sizeof *session);
    memset(session->state, number, sizeof session->state);
    return session;
}

APART static void session_close(struct session *session, int number) {
    if (number % LOST_EVERY) free(session);
}

APART static void render_page(void) {
    char *page = malloc(PAGE_BYTES);
    seen = page;
    free(page);
}

APART static void handle_request(int number) {
    struct session *session = session_open(number);
    render_page();
    seen = session;
    session_close(session, number);
}

// Goes on for two seconds: growth is known from then on.
static void serve(void) {
    enum { PAUSES = 100, PAUSE_MS = 22 };
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    for (int i = 0; i < REQUESTS; i++) {
        if (i % (REQUESTS / PAUSES) == 0) nanosleep(&pause, NULL);
        handle_request(i);
    }
}

static char *rows[ROWS];

APART static char *read_row(int number) {
    char *row = malloc(ROW_BYTES);
    memset(row, number, ROW_BYTES);
    return row;
}

APART static char *sort_rows(void) {
    char *sorted = malloc((size_t)ROWS * ROW_BYTES);
    for (int i = 0; i < ROWS; i++) memcpy(sorted + (size_t)i * ROW_BYTES, rows[i], ROW_BYTES);
    return sorted;
}

static void load(void) {
    for (int i = 0; i < ROWS; i++) rows[i] = read_row(i);
    char *sorted = sort_rows();
    for (int i = 0; i < ROWS; i++) free(rows[i]);
    seen = sorted;
}

APART static char *copy_field(const char *line, int field) {
    char *copy = malloc(FIELD_BYTES);
    memcpy(copy, line + (size_t)field * FIELD_BYTES, FIELD_BYTES);
    return copy;
}

APART static void parse_order(char *line, int number, int has_copies) {
    char *fields[FIELDS];
    memset(line, number, LINE_BYTES);
    for (int i = 0; i < FIELDS; i++)
        fields[i] = has_copies ? copy_field(line, i) : line + (size_t)i * FIELD_BYTES;
    seen = fields;
    for (int i = 0; has_copies && i < FIELDS; i++) free(fields[i]);
}

static void parse(int has_copies) {
    char *line = malloc(LINE_BYTES);
    for (int i = 0; i < ORDERS; i++) parse_order(line, i, has_copies);
    free(line);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "serve")) serve();
    if (!strcmp(what, "load")) load();
    if (!strcmp(what, "parse")) parse(0);
    if (!strcmp(what, "parse-copies")) parse(1);
    return 0;
}
