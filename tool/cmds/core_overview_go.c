// SPDX-License-Identifier: Apache-2.0
// Sections of the overview about the heap that Go's runtime keeps itself.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/cmds/core_overview_internal.h"

enum { CLASSES_SHOWN = 6, FUNCTIONS_SHOWN = 5 };

static int compare_bytes(const void *left, const void *right) {
    const struct go_class *const *a = left, *const *b = right;
    return ((*a)->bytes < (*b)->bytes) - ((*a)->bytes > (*b)->bytes);
}

static void add_class(struct section *section, const struct go_class *class) {
    enum { SMALL_MOST_KIB = 32 };
    char label[KIN_LABEL_BYTES], size[64];
    if (class->object_bytes)
        snprintf(size, sizeof size, "of %" PRIu64 " bytes", class->object_bytes);
    else
        snprintf(size, sizeof size, "above %d KiB", SMALL_MOST_KIB);
    snprintf(label, sizeof label, "%s %s, %s",
             units_counted((int64_t) class->objects, "object", "objects").text, size,
             units_size((int64_t) class->object_sum).text);
    section_add(section, class->bytes, label);
}

static bool fill_spans(const struct go_spans *spans, struct section *section) {
    const size_t count = spans->classes.count;
    const struct go_class **order = calloc(count + 1, sizeof *order);
    struct go_class rest = {0};
    char label[KIN_LABEL_BYTES];
    if (!order) return false;
    for (size_t i = 0; i < count; i++) order[i] = &spans->classes.items[i];
    qsort(order, count, sizeof *order, compare_bytes);
    section->all_bytes = spans->bytes;
    for (size_t i = 0; i < count; i++) {
        if (i < CLASSES_SHOWN) add_class(section, order[i]);
        if (i < CLASSES_SHOWN) continue;
        rest.objects += order[i]->objects;
        rest.object_sum += order[i]->object_sum;
        rest.bytes += order[i]->bytes;
    }
    snprintf(label, sizeof label, "%s of other sizes, %s",
             units_counted((int64_t)rest.objects, "object", "objects").text,
             units_size((int64_t)rest.object_sum).text);
    if (rest.bytes) section_add(section, rest.bytes, label);
    free(order);
    return true;
}

static void fill_functions(const struct go_heap *heap, struct section *section) {
    struct go_function functions[FUNCTIONS_SHOWN];
    struct error why = {""};
    size_t count = FUNCTIONS_SHOWN;
    if (go_heap_functions(heap, functions, &count, &section->all_bytes, &why))
        for (size_t i = 0; i < count; i++)
            section_add(section, functions[i].bytes, functions[i].name);
    else
        snprintf(section->why, sizeof section->why, "%s", why.text);
}

void go_sections_fill(const struct go_heap *heap, struct section *spans,
                      struct section *functions) {
    spans->is_there = functions->is_there = true;
    if (heap->why_no_spans.text[0])
        snprintf(spans->why, sizeof spans->why, "%s", heap->why_no_spans.text);
    else if (!fill_spans(&heap->spans, spans))
        snprintf(spans->why, sizeof spans->why, "out of memory");
    fill_functions(heap, functions);
}

void overview_fill_go(struct overview *overview) {
    struct section *spans = &overview->sections[SECTION_GO_SPANS];
    if (overview->go_finding == GO_FOUND)
        go_sections_fill(&overview->go, spans, &overview->sections[SECTION_GO_FUNCTIONS]);
    if (overview->go_finding != GO_FAILED) return;
    spans->is_there = true;
    snprintf(spans->why, sizeof spans->why, "%s", overview->why_no_go);
}
