// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/context.h"

#include <string.h>

#include "runtime/stack/scope.h"
#include "runtime/thread/region_stack.h"

static uint32_t label_count;  // (atomic) scopes that are labels

// Labels, by key. The texts are the recording's, or the caller's.
struct labels {
    uint32_t count;
    const char *texts[CAIRN_CONTEXT_LABELS];
};

static size_t key_bytes(const char *label) {
    return strcspn(label, "=");
}

// Less than, equal to, or greater than 0, by key alone.
static int compare_keys(const char *one, const char *other) {
    size_t one_bytes = key_bytes(one), other_bytes = key_bytes(other);
    int order = memcmp(one, other, one_bytes < other_bytes ? one_bytes : other_bytes);
    return order ? order : (one_bytes > other_bytes) - (one_bytes < other_bytes);
}

// Puts a label in its place. One of the same key goes, unless it is to stay.
static void labels_add(struct labels *labels, const char *text, bool may_replace) {
    uint32_t at = 0;
    while (at < labels->count && compare_keys(labels->texts[at], text) < 0) at++;
    bool is_there = at < labels->count && !compare_keys(labels->texts[at], text);
    if (is_there && !may_replace) return;
    if (!is_there && labels->count == CAIRN_CONTEXT_LABELS) return;
    if (!is_there)
        memmove(&labels->texts[at + 1], &labels->texts[at],
                (labels->count++ - at) * sizeof *labels->texts);
    labels->texts[at] = text;
}

// Those of a scope and what it lies in; what is nearest counts.
static void labels_of(uint32_t id, struct labels *labels) {
    labels->count = 0;
    if (id >= scope_limit()) return;
    for (; id; id = scope_at(id)->parent)
        if (scope_at(id)->kind == CAIRN_SCOPE_LABEL)
            labels_add(labels, scope_name(scope_at(id)), false);
}

// The label within `parent`. There are as many as may be: its value is that of all others.
static uint32_t label_within(uint32_t parent, const char *text) {
    char other[CAIRN_LABEL_TEXT];
    uint32_t id = scope_seek(CAIRN_SCOPE_LABEL, parent, text);
    if (id) return id;
    if (__atomic_fetch_add(&label_count, 1, __ATOMIC_RELAXED) < CAIRN_LABEL_LIMIT)
        return scope_of_name(CAIRN_SCOPE_LABEL, parent, text);
    __atomic_fetch_sub(&label_count, 1, __ATOMIC_RELAXED);
    size_t length = key_bytes(text) + 1;
    if (length + sizeof CAIRN_LABEL_OTHER > sizeof other) return 0;
    memcpy(other, text, length);
    memcpy(other + length, CAIRN_LABEL_OTHER, sizeof CAIRN_LABEL_OTHER);
    return scope_of_name(CAIRN_SCOPE_LABEL, parent, other);
}

static uint32_t labels_within(uint32_t parent, const struct labels *labels) {
    for (uint32_t i = 0; i < labels->count; i++) {
        uint32_t id = label_within(parent, labels->texts[i]);
        if (id) parent = id;
    }
    return parent;
}

uint32_t context_with(uint32_t context, const char *key, const char *value) {
    struct labels labels;
    char text[CAIRN_LABEL_TEXT];
    size_t length = key ? strnlen(key, sizeof text) : 0;
    if (!length || length >= sizeof text / 2 || key_bytes(key) != length || !value) return context;
    size_t value_bytes = strnlen(value, sizeof text - length - 2);
    memcpy(text, key, length);
    text[length] = '=';
    memcpy(text + length + 1, value, value_bytes);
    text[length + 1 + value_bytes] = 0;
    labels_of(context, &labels);
    labels_add(&labels, text, true);
    return labels_within(0, &labels);
}

uint32_t context_of_thread(const struct thread *thread) {
    struct labels labels;
    labels_of(thread->nest.id, &labels);
    return labels_within(0, &labels);
}

// Labels that the thread has already are not put on again.
void context_enter(struct thread *thread, uint32_t context) {
    struct labels labels, there, wanted = {0};
    uint32_t id = context;
    if (thread->nest.id) {
        labels_of(context, &labels);
        labels_of(thread->nest.id, &there);
        for (uint32_t i = 0, at = 0; i < labels.count; i++) {
            while (at < there.count && compare_keys(there.texts[at], labels.texts[i]) < 0) at++;
            bool has_it = at < there.count && !strcmp(there.texts[at], labels.texts[i]);
            if (!has_it) labels_add(&wanted, labels.texts[i], true);
        }
        id = labels_within(thread->nest.id, &wanted);
    }
    region_stack_begin_scope(thread, id < scope_limit() ? id : 0);
}
