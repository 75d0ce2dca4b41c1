// SPDX-License-Identifier: Apache-2.0
// A cache of the last texts. Planted: the one that makes room is freed before the new one is there,
// and found later. Built with AddressSanitizer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 2 };
static struct {
    int key;
    char *text;
} cache[ENTRIES];

static char *compute(int key) {
    char *text = malloc(100);
    if (text) snprintf(text, 100, "the square of %d is %d", key, key * key);
    return text;
}

static const char *look_up(int key) {
    for (int i = 0; i < ENTRIES; i++)
        if (cache[i].text && cache[i].key == key) return cache[i].text;
    free(cache[key % ENTRIES].text);
#ifdef RIGHT
    cache[key % ENTRIES].text = NULL;
#endif
    char *text = compute(key);
    if (!text) return NULL;
    cache[key % ENTRIES].key = key;
    cache[key % ENTRIES].text = text;
    return text;
}

static int fill(void) {
    return look_up(1) && look_up(2);
}

int main(void) {
    static const int keys[] = {3, 4, 1, 2, 3};
    int is_filled = fill(), missing = !is_filled;
    for (size_t i = 0; is_filled && i < sizeof keys / sizeof *keys; i++) {
        const char *text = look_up(keys[i]);
        missing += !text;
        puts(text ? text : "not now");
    }
    for (int i = 0; i < ENTRIES; i++) free(cache[i].text);
    return missing != 0;
}
