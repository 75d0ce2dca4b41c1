// SPDX-License-Identifier: Apache-2.0
// Five faults beside honest work: faults NAME. The line to be found has its name behind it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    char *name;
    long value;
    struct row *next;
};

static void *take(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) abort();
    return block;
}

static char *copy_text(const char *text) {
    char *copy = take(strlen(text) + 1);
    return strcpy(copy, text);
}

// Honest: a table that is held to the end, and freed.
static struct row *read_table(int count) {
    struct row *rows = NULL;
    for (int i = 0; i < count; i++) {
        char name[32];
        struct row *row = take(sizeof *row);
        snprintf(name, sizeof name, "row %d", i);
        *row = (struct row){copy_text(name), i, rows};
        rows = row;
    }
    return rows;
}

static void free_table(struct row *rows) {
    while (rows) {
        struct row *next = rows->next;
        free(rows->name);
        free(rows);
        rows = next;
    }
}

static void answer(int number, int is_lost) {
    char *reply = take(900);
    char *log = NULL;
    snprintf(reply, 900, "answer %d", number);
    if (number % 10 == 0) log = copy_text(reply);
    free(reply);
    if (!is_lost) free(log);
}

static void sessions(int count) {
    for (int i = 0; i < count; i++) {
        char *session = take(300);  // leak
        snprintf(session, 300, "session %d", i);
        answer(i, 0);
        if (i % 7) free(session);
    }
}

static struct row *cached;

static void look_up(int number) {
    struct row *entry = take(sizeof *entry);
    entry->name = take(2000);  // cache
    memset(entry->name, number, 2000);
    entry->next = cached;
    cached = entry;
}

static void look_ups(int count) {
    for (int i = 0; i < count; i++) {
        look_up(i);
        answer(i, 0);
    }
    free_table(cached);
}

static void sort_table(int count) {
    struct row **sorted = take((size_t)count * 200);  // peak
    memset(sorted, 1, (size_t)count * 200);
    free(sorted);
}

static long parse(int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        char *field = copy_text("the 12th of the fields of a line");  // churn
        sum += strtol(field + 4, NULL, 10);
        free(field);
    }
    return sum;
}

static void join(int count) {
    char *text = NULL;
    for (int i = 1; i <= count; i++) {
        text = realloc(text, (size_t)i * 60);  // grown
        memset(text + (size_t)(i - 1) * 60, 'x', 60);
        char *hole = take(40);
        memset(hole, i, 40);
        answer(i, 0);
        free(hole);
    }
    free(text);
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    struct row *rows = read_table(2000);
    if (!strcmp(name, "leak")) sessions(20000);
    if (!strcmp(name, "cache")) look_ups(5000);
    if (!strcmp(name, "peak")) sort_table(20000);
    if (!strcmp(name, "churn")) printf("%ld\n", parse(200000));
    if (!strcmp(name, "grown")) join(2000);
    free_table(rows);
    return 0;
}
