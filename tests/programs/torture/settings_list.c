// SPDX-License-Identifier: Apache-2.0
// Reads "name=value" lines into a list and sorts it. Planted: the copy of a value is not looked at.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setting {
    struct setting *next;
    char *name, *value;
};

static void free_settings(struct setting *list) {
    while (list) {
        struct setting *next = list->next;
        free(list->name);
        free(list->value);
        free(list);
        list = next;
    }
}

// False without memory; nothing is added then.
static int add_setting(struct setting **list, const char *line) {
    size_t length = strcspn(line, "=");
    struct setting *added = calloc(1, sizeof *added);
    if (!added) return 0;
    added->name = strndup(line, length);
    added->value = strdup(line + length + 1);
#ifdef RIGHT
    if (!added->name || !added->value) {
        free_settings(added);
        return 0;
    }
#else
    if (!added->name) {
        free_settings(added);
        return 0;
    }
#endif
    while (*list && strcmp((*list)->name, added->name) < 0) list = &(*list)->next;
    added->next = *list;
    *list = added;
    return 1;
}

static void print_settings(const struct setting *list) {
    for (; list; list = list->next) printf("%s is %zu bytes\n", list->name, strlen(list->value));
}

int main(void) {
    static const char *const lines[] = {"user=root", "home=/root", "shell=/bin/sh"};
    struct setting *list = NULL;
    int is_ok = 1;
    for (size_t i = 0; is_ok && i < sizeof lines / sizeof *lines; i++)
        is_ok = add_setting(&list, lines[i]);
    if (is_ok) print_settings(list);
    free_settings(list);
    if (!is_ok) fputs("no memory for the settings\n", stderr);
    return !is_ok;
}
