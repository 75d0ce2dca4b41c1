// SPDX-License-Identifier: Apache-2.0
// A text that grows by realloc. Planted: its only pointer is overwritten with NULL.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    char *text;
    size_t length, room;
};

static int reserve(struct builder *builder, size_t more) {
    size_t room = builder->room ? builder->room : 64;
    while (room < builder->length + more + 1) room *= 2;
    if (room == builder->room) return 1;
#ifdef RIGHT
    char *grown = realloc(builder->text, room);
    if (!grown) return 0;
    builder->text = grown;
#else
    builder->text = realloc(builder->text, room);
    if (!builder->text) return 0;
#endif
    builder->room = room;
    return 1;
}

static int append(struct builder *builder, const char *text) {
    size_t length = strlen(text);
    if (!reserve(builder, length)) return 0;
    memcpy(builder->text + builder->length, text, length + 1);
    builder->length += length;
    return 1;
}

int main(void) {
    struct builder builder = {0};
    char line[64];
    int is_ok = 1;
    for (int i = 0; is_ok && i < 40; i++) {
        snprintf(line, sizeof line, "line %d of the report\n", i);
        is_ok = append(&builder, line);
    }
    if (is_ok) fwrite(builder.text, 1, builder.length, stdout);
    free(builder.text);
    return !is_ok;
}
