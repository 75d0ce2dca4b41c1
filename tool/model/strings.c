// SPDX-License-Identifier: Apache-2.0
#include "tool/model/strings.h"

#include <string.h>

#include "tool/base/text.h"

enum { ESCAPE_BYTES = 4 };  // what a byte may become: \xNN

void strings_start(struct strings *strings) {
    *strings = (struct strings){0};
    strings_number(strings, "");
}

void strings_free(struct strings *strings) {
    for (size_t i = 0; i < strings->list.count; i++) free(strings->list.items[i]);
    array_free(&strings->list);
    index_table_free(&strings->table);
}

static uint64_t hash_of(const char *text) {
    uint64_t hash = index_table_seed();
    for (; *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

// The place of a text that is safe to print; UINT32_MAX: it is not in the list.
static uint32_t find(const struct strings *strings, const char *text, uint64_t hash) {
    struct index_probe probe = index_probe_start(&strings->table, hash);
    for (uint32_t index; index_probe_next(&strings->table, &probe, &index);)
        if (!strcmp(strings->list.items[index], text)) return index;
    return UINT32_MAX;
}

// `text` becomes the list's, or is freed.
static uint32_t intern(struct strings *strings, char *text) {
    uint64_t hash = hash_of(text);
    uint32_t known = find(strings, text, hash);
    if (known != UINT32_MAX) {
        free(text);
        return known;
    }
    uint32_t added = (uint32_t)strings->list.count;
    char **slot = array_push(&strings->list);
    if (slot) *slot = text;
    if (slot && index_table_insert(&strings->table, hash, added)) return added;
    if (!slot) free(text);
    strings->has_failed = true;
    return 0;
}

uint32_t strings_number(struct strings *strings, const char *text) {
    if (!text) return 0;
    // Most texts are known, and are their own escaped form. A text that is not is never equal to
    // one of the list: those are all safe.
    uint32_t known = find(strings, text, hash_of(text));
    if (known != UINT32_MAX) return known;
    size_t size = strlen(text) * ESCAPE_BYTES + 1;
    char *safe = malloc(size);
    if (!safe) {
        strings->has_failed = true;
        return 0;
    }
    text_escape(safe, size, text);
    return intern(strings, safe);
}
