// SPDX-License-Identifier: Apache-2.0
#include "tool/query/unwrapped.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/scopes.h"
#include "tool/render/frames.h"
#include "tool/symbol/renamed.h"

// The row of a function, a new one if there is none; NULL without memory.
static struct unwrapped_function *row_of(struct unwrapped *unwrapped, const char *heap,
                                         const char *name) {
    for (size_t i = 0; i < unwrapped->functions.count; i++) {
        struct unwrapped_function *function = &unwrapped->functions.items[i];
        if (!strcmp(function->heap, heap) && !strcmp(function->name, name)) return function;
    }
    struct unwrapped_function *added = array_push(&unwrapped->functions);
    if (!added) return NULL;
    *added = (struct unwrapped_function){.is_led = false};
    snprintf(added->heap, sizeof added->heap, "%s", heap);
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

static bool add_scopes(struct unwrapped *unwrapped, const struct scopes *scopes,
                       const char *executable) {
    for (size_t id = 1; id < scopes->count; id++) {
        const struct scope *scope = &scopes->list[id];
        if (scope->kind != CAIRN_SCOPE_WRAPPED) continue;
        const char *heap = scope->parent ? scopes->list[scope->parent].name : "";
        struct unwrapped_function *function = row_of(unwrapped, heap, scope->name);
        if (!function) return false;
        function->is_there |= scope->entry.entries != 0;
        function->is_led |= scope->entry.allocations != 0;
        if (!function->is_there && !*function->renamed)
            renamed_find(executable, scope->name, function->renamed, sizeof function->renamed);
    }
    return true;
}

bool unwrapped_add(struct unwrapped *unwrapped, struct recording *recording) {
    struct scopes scopes;
    if (!scopes_read(&scopes, recording)) return false;
    bool is_ok = add_scopes(unwrapped, &scopes, recording->header.executable);
    scopes_free(&scopes);
    return is_ok;
}

static void print_function(const struct terminal *terminal,
                           const struct unwrapped_function *function, size_t indent) {
    char name[FRAME_TEXT_BYTES], heap[FRAME_TEXT_BYTES], renamed[FRAME_TEXT_BYTES];
    text_escape(name, sizeof name, function->name);
    text_escape(heap, sizeof heap, function->heap);
    text_escape(renamed, sizeof renamed, function->renamed);
    terminal_indent(terminal, indent);
    terminal_print(terminal, STYLE_WARNING, "%s: %s %s", heap, name,
                   function->is_there
                       ? "is not called through the linker, so that its calls are not counted"
                       : "is in no library of the program: nothing of this heap is counted");
    if (*renamed)
        terminal_print(terminal, STYLE_WARNING,
                       "; the compiler made %s of it, which may take other arguments", renamed);
    fputc('\n', terminal->out);
}

void unwrapped_print(const struct terminal *terminal, const struct unwrapped *unwrapped,
                     size_t indent) {
    for (size_t i = 0; i < unwrapped->functions.count; i++)
        if (!unwrapped->functions.items[i].is_led)
            print_function(terminal, &unwrapped->functions.items[i], indent);
}

void unwrapped_free(struct unwrapped *unwrapped) {
    array_free(&unwrapped->functions);
}

bool unwrapped_print_of(const struct terminal *terminal, struct recording *recording,
                        size_t indent) {
    struct unwrapped unwrapped = {0};
    bool is_ok = unwrapped_add(&unwrapped, recording);
    if (is_ok) unwrapped_print(terminal, &unwrapped, indent);
    unwrapped_free(&unwrapped);
    return is_ok;
}
