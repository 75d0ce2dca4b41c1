// SPDX-License-Identifier: Apache-2.0
// A heap as programs in C have it, for tests of types: a hash table, lists, a tree, arrays of
// pointers, a union, an array without an end, what only a pointer into its midst leads to. It says
// "ready" and waits for its input to end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 16,
    ENTRIES = 60,
    ROWS = 12,
    COLUMNS = 5,
    DEPTH = 5,
    TEXT = 40,
    MIDST = 24,
    HEADER = 16
};

struct entry {
    struct entry *next;
    char *key;
    union {
        long number;
        char *text;
    } value;
    int kind;
};

struct table {
    struct entry **buckets;
    size_t bucket_count;
};

struct server {
    struct table tables[2];
    struct client *clients;
    char ***rows;
};

struct client {
    struct client *next, *back;
    struct server *server;
    int text_bytes;
    char *parts[3];
    char text[];
};

struct tree {
    struct tree *below[2];
    void *anything;
};

struct server server;
struct tree *tree;
char *cursor;                 // into the midst of a block
struct client *after_header;  // behind a header of its own, as some allocators have it

static char *text(int number) {
    char *made = malloc(TEXT);
    snprintf(made, TEXT, "text number %d", number);
    return made;
}

static void fill(struct table *table) {
    table->bucket_count = BUCKETS;
    table->buckets = calloc(BUCKETS, sizeof *table->buckets);
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *entry = calloc(1, sizeof *entry);
        entry->key = text(i);
        entry->kind = i % 2;
        if (entry->kind) entry->value.text = text(1000 + i);
        entry->next = table->buckets[i % BUCKETS];
        table->buckets[i % BUCKETS] = entry;
    }
}

static struct tree *grow(int depth) {
    struct tree *node = calloc(1, sizeof *node);
    node->anything = text(depth);
    for (int i = 0; depth && i < 2; i++) node->below[i] = grow(depth - 1);
    return node;
}

static struct client *connect_client(struct server *to, int number) {
    struct client *client = calloc(1, sizeof *client + (size_t)number);
    client->text_bytes = number;
    client->server = to;
    client->next = to->clients;
    if (client->next) client->next->back = client;
    for (int i = 0; i < 3; i++) client->parts[i] = text(number + i);
    return to->clients = client;
}

int main(void) {
    static struct entry *of_main[3];
    struct tree *volatile local = grow(1);
    fill(&server.tables[0]);
    fill(&server.tables[1]);
    for (int i = 0; i < ROWS; i++) connect_client(&server, i);
    server.rows = calloc(ROWS, sizeof *server.rows);
    for (int i = 0; i < ROWS; i++) {
        server.rows[i] = calloc(COLUMNS, sizeof **server.rows);
        for (int k = 0; k < COLUMNS; k++) server.rows[i][k] = text(i * k);
    }
    tree = grow(DEPTH);
    cursor = (char *)malloc(TEXT) + MIDST;
    after_header = (struct client *)((char *)calloc(1, HEADER + sizeof *after_header) + HEADER);
    after_header->parts[1] = text(1);
    for (int i = 0; i < 3; i++) {
        of_main[i] = calloc(1, sizeof **of_main);
        of_main[i]->key = text(i);
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return local->anything && of_main[1]->key ? 3 : 1;
}
