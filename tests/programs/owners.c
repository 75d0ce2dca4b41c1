// SPDX-License-Identifier: Apache-2.0
// A graph of blocks whose owners are known: a table with lists, a block that two variables lead to,
// a ring that nothing leads to, a list that only the stack leads to. Says "ready" and waits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOTS = 16,
    ITEMS = 400,
    TEXT_BYTES = 1000,
    SHARED_BYTES = 50000,
    LOCAL_BYTES = 30000,
    MIDST_BYTES = 5000,
    THREAD_LOCAL_BYTES = 7000
};

struct item {
    struct item *next;
    char *text;
};
struct table {
    long count;
    struct item *slots[SLOTS];
};

static struct table *sessions;
struct item *first_of_two, *second_of_two;
char *midst;  // of a block
_Thread_local char *thread_local_text;
char *kept_text;

__attribute__((noinline)) static struct item *make_item(struct item *next) {
    struct item *item = malloc(sizeof *item);
    item->next = next;
    item->text = NULL;
    return item;
}

__attribute__((noinline)) static char *make_text(size_t bytes) {
    char *text = malloc(bytes);
    memset(text, 1, bytes);
    return text;
}

__attribute__((noinline)) static void fill(int items) {
    sessions = calloc(1, sizeof *sessions);
    for (int i = 0; i < items; i++) {
        struct item **slot = &sessions->slots[i % SLOTS];
        *slot = make_item(*slot);
        (*slot)->text = make_text(TEXT_BYTES);
    }
}

__attribute__((noinline)) static void share(void) {
    struct item *both = make_item(NULL);
    both->text = make_text(SHARED_BYTES);
    first_of_two = make_item(both);
    second_of_two = make_item(both);
}

__attribute__((noinline)) static void lose_ring(void) {
    struct item *one = make_item(NULL), *other = make_item(one);
    one->next = other;
    one->text = make_text(TEXT_BYTES);
}

// What calls left on the stack and in registers.
__attribute__((noinline)) static void forget(void) {
    volatile char old[1 << 14];
    memset((void *)old, 0, sizeof old);
}

// Arguments: how many items, if not the usual ones.
int main(int argc, char **argv) {
    char byte;
    fill(argc > 1 ? atoi(argv[1]) : ITEMS);
    share();
    midst = make_text(MIDST_BYTES) + MIDST_BYTES / 2;
    thread_local_text = make_text(THREAD_LOCAL_BYTES);
    kept_text = strdup("a secret of forty-eight letters or of some more x, of a page");
    lose_ring();
    forget();
    struct item *volatile local = make_item(NULL);
    local->text = make_text(LOCAL_BYTES);
    forget();
    write(STDOUT_FILENO, "ready\n", 6);
    while (read(STDIN_FILENO, &byte, 1) == 1) {
    }
    return local ? 3 : 0;
}
