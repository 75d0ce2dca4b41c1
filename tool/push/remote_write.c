// SPDX-License-Identifier: Apache-2.0
#include "tool/push/remote_write.h"

#include <stdlib.h>
#include <string.h>

enum { REQUEST_SERIES = 1, SERIES_LABEL = 1, SERIES_SAMPLE = 2 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2, SAMPLE_VALUE = 1, SAMPLE_TIME_MS = 2 };
enum { NS_PER_MS = 1000000, LABELS_MOST = 64 };

// A row of the text: NAME{label="value",...} number. The text is changed: names and values end with
// a 0.
struct row {
    struct export_label labels[LABELS_MOST];
    size_t count;
    double value;
};

static bool add_label(struct row *row, const char *name, const char *value) {
    if (row->count == LABELS_MOST) return false;
    row->labels[row->count++] = (struct export_label){name, value};
    return true;
}

// A quoted value at `text`, without its backslashes; behind it, or NULL.
static char *read_value(char *text, const char **value) {
    if (*text++ != '"') return NULL;
    char *to = text;
    *value = text;
    for (; *text && *text != '"'; text++) {
        if (*text == '\\' && text[1]) text++;
        *to++ = *text == 'n' && text[-1] == '\\' ? '\n' : *text;
    }
    if (!*text) return NULL;
    *to = 0;
    return text + 1;
}

static char *read_labels(char *text, struct row *row) {
    while (*text && *text != '}') {
        const char *name = text, *value;
        text = strchr(text, '=');
        if (!text) return NULL;
        *text++ = 0;
        text = read_value(text, &value);
        if (!text || !add_label(row, name, value)) return NULL;
        if (*text == ',') text++;
    }
    return *text ? text + 1 : NULL;
}

static bool read_row(char *line, struct row *row) {
    size_t name = strcspn(line, "{ ");
    char *rest = line + name, *end;
    bool has_labels = *rest == '{';
    row->count = 0;
    if (!*rest || !add_label(row, "__name__", line)) return false;
    *rest++ = 0;
    if (has_labels) rest = read_labels(rest, row);
    if (!rest) return false;
    row->value = strtod(rest, &end);
    return end > rest;
}

static bool has_label(const struct row *row, const char *name) {
    for (size_t i = 0; i < row->count; i++)
        if (!strcmp(row->labels[i].name, name)) return true;
    return false;
}

static int compare_labels(const void *a, const void *b) {
    const struct export_label *first = a, *second = b;
    return strcmp(first->name, second->name);
}

static void put_row(struct row *row, uint64_t unix_ns, struct byte_buffer *series,
                    struct byte_buffer *inner) {
    qsort(row->labels, row->count, sizeof *row->labels, compare_labels);
    for (size_t i = 0; i < row->count; i++) {
        if (!*row->labels[i].value) continue;
        message_put_text(inner, LABEL_NAME, row->labels[i].name);
        message_put_text(inner, LABEL_VALUE, row->labels[i].value);
        message_put_message(series, SERIES_LABEL, inner);
    }
    message_put_double(inner, SAMPLE_VALUE, row->value);
    message_put(inner, SAMPLE_TIME_MS, unix_ns / NS_PER_MS);
    message_put_message(series, SERIES_SAMPLE, inner);
}

bool remote_write_encode(const char *metrics, const struct export_label *labels, size_t count,
                         uint64_t unix_ns, struct byte_buffer *request, struct error *error) {
    struct byte_buffer series = {0}, inner = {0};
    char *text = strdup(metrics), *next = text;
    bool is_ok = text != NULL;
    for (char *line; is_ok && (line = strsep(&next, "\n"));) {
        struct row row;
        if (!*line || *line == '#') continue;
        is_ok = read_row(line, &row);
        for (size_t i = 0; is_ok && i < count; i++)
            if (!has_label(&row, labels[i].name))
                is_ok = add_label(&row, labels[i].name, labels[i].value);
        if (!is_ok) break;
        put_row(&row, unix_ns, &series, &inner);
        message_put_message(request, REQUEST_SERIES, &series);
    }
    is_ok = is_ok && !request->has_failed && !series.has_failed && !inner.has_failed;
    byte_buffer_free(&series);
    byte_buffer_free(&inner);
    free(text);
    return is_ok || error_set(error, "no memory for the metrics, or they have too many labels");
}

bool snappy_pack(const struct byte_buffer *plain, struct byte_buffer *packed) {
    enum { LITERAL_MOST = 65536, TWO_BYTES = 61 << 2, BYTE_BITS = 8 };
    message_put_bare(packed, plain->size);
    for (size_t at = 0; at < plain->size; at += LITERAL_MOST) {
        size_t size = plain->size - at < LITERAL_MOST ? plain->size - at : LITERAL_MOST;
        const uint8_t head[] = {TWO_BYTES, (uint8_t)(size - 1), (uint8_t)((size - 1) >> BYTE_BITS)};
        byte_buffer_put(packed, head, sizeof head);
        byte_buffer_put(packed, plain->bytes + at, size);
    }
    return !packed->has_failed;
}
