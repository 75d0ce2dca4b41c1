// SPDX-License-Identifier: Apache-2.0
#include "tool/go/spans.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tool/go/pages.h"

// Places of fields, the first three as words: of the heap the list of all spans, of a span where it
// starts, how many pages it has, and how large its objects are.
struct layout {
    unsigned first_minor, last_minor;
    uint32_t all_spans;
    uint32_t start, pages, object_bytes;
    uint32_t objects, class, state;  // 2, 1 and 1 bytes
};
static const struct layout layouts[] = {
    {19, 19, 65856, 24, 32, 104, 96, 98, 99},
    {21, 21, 65864, 24, 32, 112, 104, 106, 107},
    {22, 27, 65864, 24, 32, 104, 96, 98, 99},
};

enum { PAGE_BYTES = 8192, SPAN_BYTES = 120, CLASSES = 128, SPANS_MOST = 1 << 26 };
enum { STATE_DEAD, STATE_IN_USE, STATE_MANUAL };

static const uint64_t addresses_end = UINT64_C(1) << 57;

struct reading {
    struct go_pages pages;
    const struct layout *layout;
    struct go_class classes[CLASSES];  // by number, 0: large objects
    struct go_spans *spans;
};

static const struct layout *layout_of(unsigned minor) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (minor >= layouts[i].first_minor && minor <= layouts[i].last_minor) return &layouts[i];
    return NULL;
}

static uint64_t number_at(const uint8_t *bytes, size_t size) {
    uint64_t number = 0;
    memcpy(&number, bytes, size);
    return number;
}

static void count_objects(struct reading *reading, unsigned class, uint64_t object_bytes,
                          uint64_t bytes, uint64_t objects) {
    struct go_class *sum = &reading->classes[class];
    if (class) sum->object_bytes = object_bytes;
    sum->spans++;
    sum->bytes += bytes;
    sum->objects += objects;
    sum->object_sum += objects * object_bytes;
}

// False if it contradicts itself.
static bool count_span(struct reading *reading, const uint8_t span[SPAN_BYTES]) {
    enum { WORD = sizeof(uint64_t) };
    const struct layout *layout = reading->layout;
    const uint64_t start = number_at(span + layout->start, WORD);
    const uint64_t pages = number_at(span + layout->pages, WORD);
    const uint64_t object_bytes = number_at(span + layout->object_bytes, WORD);
    const uint64_t objects = number_at(span + layout->objects, sizeof(uint16_t));
    const unsigned class = span[layout->class] >> 1, state = span[layout->state];
    if (state == STATE_DEAD) return true;
    if (state > STATE_MANUAL || start % PAGE_BYTES || !start || start >= addresses_end || !pages ||
        pages > (addresses_end - start) / PAGE_BYTES)
        return false;
    const uint64_t bytes = pages * PAGE_BYTES;
    if (state == STATE_MANUAL) {
        reading->spans->stack_bytes += bytes;
        return true;
    }
    const uint64_t known_bytes = reading->classes[class].object_bytes;
    if (class >= CLASSES || !object_bytes || object_bytes > bytes ||
        objects > bytes / object_bytes || (class && known_bytes && known_bytes != object_bytes))
        return false;
    count_objects(reading, class, object_bytes, bytes, objects);
    return true;
}

static bool read_spans(struct reading *reading, uint64_t list, uint64_t count,
                       struct error *error) {
    for (uint64_t i = 0; i < count; i++) {
        uint8_t span[SPAN_BYTES];
        uint64_t address;
        if (!go_pages_read(&reading->pages, list + i * sizeof address, &address, sizeof address) ||
            !go_pages_read(&reading->pages, address, span, sizeof span))
            return error_set(error,
                             "the spans of Go's heap cannot be read: of number %" PRIu64
                             " there is no memory",
                             i);
        if (!count_span(reading, span)) reading->spans->odd_count++;
    }
    return true;
}

static bool has_spans(const struct reading *reading) {
    for (size_t i = 0; i < CLASSES; i++)
        if (reading->classes[i].spans) return true;
    return false;
}

static int compare(const void *left, const void *right) {
    const struct go_class *a = left, *b = right;
    const uint64_t x = a->object_bytes - 1, y = b->object_bytes - 1;  // 0 is the largest
    return (x > y) - (x < y);
}

static bool settle(struct reading *reading) {
    struct go_spans *spans = reading->spans;
    for (size_t i = 0; i < CLASSES; i++) {
        const struct go_class *class = &reading->classes[i];
        if (!class->spans) continue;
        struct go_class *slot = array_push(&spans->classes);
        if (!slot) return false;
        *slot = *class;
        spans->bytes += class->bytes;
        spans->object_sum += class->object_sum;
    }
    if (spans->classes.count)
        qsort(spans->classes.items, spans->classes.count, sizeof *spans->classes.items, compare);
    return true;
}

static bool read_all(struct reading *reading, uint64_t heap, struct error *error) {
    uint64_t list[2];
    if (!go_pages_read(&reading->pages, heap + reading->layout->all_spans, list, sizeof list))
        return error_set(error, "the spans of Go's heap cannot be read: the heap is not there");
    const uint64_t count = list[1];
    if (count > SPANS_MOST || (count && list[0] % sizeof(uint64_t)))
        return error_set(
            error, "the spans of Go's heap cannot be read: it says %" PRIu64 " of them", count);
    if (!read_spans(reading, list[0], count, error)) return false;
    // some may be changing, but no large part
    if (reading->spans->odd_count > count / 16)
        return error_set(error,
                         "the spans of Go's heap cannot be read: %" PRIu64 " of %" PRIu64
                         " contradict themselves",
                         reading->spans->odd_count, count);
    return settle(reading) || error_set(error, "no memory for the spans of Go's heap");
}

bool go_spans_read(const struct memory_reader *memory, uint64_t heap, unsigned minor,
                   struct go_spans *spans, struct error *error) {
    const struct layout *layout = layout_of(minor);
    *spans = (struct go_spans){0};
    if (!layout)
        return error_set(
            error, "the spans of Go 1.%u's heap are not read: only of Go 1.19 and 1.21 to 1.27",
            minor);
    struct reading *reading = malloc(sizeof *reading);
    if (!reading) return error_set(error, "no memory for the spans of Go's heap");
    *reading = (struct reading){.layout = layout, .spans = spans};
    go_pages_start(&reading->pages, memory);
    bool is_ok = read_all(reading, heap, error);
    free(reading);
    if (!is_ok) go_spans_free(spans);
    return is_ok;
}

uint64_t go_spans_list_place(unsigned minor) {
    const struct layout *layout = layout_of(minor);
    return layout ? layout->all_spans : 0;
}

bool go_spans_is_list(const struct memory_reader *memory, uint64_t list, uint64_t count,
                      unsigned minor) {
    enum { TRIED = 16 };
    struct go_spans spans = {0};
    struct reading *reading = calloc(1, sizeof *reading);
    bool is_list = false;
    if (reading) {
        reading->layout = layout_of(minor);
        reading->spans = &spans;
        go_pages_start(&reading->pages, memory);
        const uint64_t tried = count < TRIED ? count : TRIED;
        is_list = reading->layout && read_spans(reading, list, tried, NULL) && !spans.odd_count &&
                  has_spans(reading);
    }
    free(reading);
    return is_list;
}

void go_spans_free(struct go_spans *spans) {
    array_free(&spans->classes);
    *spans = (struct go_spans){0};
}
