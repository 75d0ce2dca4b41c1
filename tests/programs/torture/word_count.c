// SPDX-License-Identifier: Apache-2.0
// Counts words in a hash table that grows. Planted: the table is lost before the larger one is
// there, and what was counted so far is looked at all the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *text;
    size_t count;
};
struct table {
    struct word *slots;
    size_t size, used;
};

static struct word *find_slot(const struct table *table, const char *text) {
    size_t at = 0;
    for (const char *c = text; *c; c++) at = at * 31 + (unsigned char)*c;
    at %= table->size;
    while (table->slots[at].text && strcmp(table->slots[at].text, text) != 0)
        at = (at + 1) % table->size;
    return &table->slots[at];
}

static int grow(struct table *table) {
    struct table old = *table;
    table->size *= 2;
    table->slots = calloc(table->size, sizeof *table->slots);
    if (!table->slots) {
#ifdef RIGHT
        *table = old;
#endif
        return 0;
    }
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].text) *find_slot(table, old.slots[i].text) = old.slots[i];
    free(old.slots);
    return 1;
}

static int count_word(struct table *table, const char *text) {
    if (table->used * 2 >= table->size && !grow(table)) return 0;
    struct word *slot = find_slot(table, text);
    table->used += !slot->count++;
    slot->text = text;
    return 1;
}

static const struct word *most_frequent(const struct table *table) {
    const struct word *most = NULL;
    for (size_t i = 0; i < table->size; i++)
        if (table->slots[i].text && (!most || table->slots[i].count > most->count))
            most = &table->slots[i];
    return most;
}

int main(void) {
    static char text[] = "a rose is a rose is a rose and so are the others in this old garden";
    struct table table = {calloc(8, sizeof(struct word)), 8, 0};
    if (!table.slots) return 1;
    int is_whole = 1;
    for (char *word = strtok(text, " "); is_whole && word; word = strtok(NULL, " "))
        is_whole = count_word(&table, word);
    if (!is_whole) fputs("no memory: not all words were counted\n", stderr);
    const struct word *most = most_frequent(&table);
    printf("%s: %zu times\n", most->text, most->count);
    free(table.slots);
    return !is_whole;
}
