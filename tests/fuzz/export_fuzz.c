// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording (recording_form.h) in a format that is exported, with names of
// functions that are no better: a format is written or says why not, text stays text and JSON stays
// JSON.
#include "tests/fuzz/shown.h"
#include "tool/export/export.h"

static void check_text(const struct text *text) {
    for (size_t i = 0; i < text->size; i++)
        require((unsigned char)text->bytes[i] >= ' ' || strchr("\n\r\t", text->bytes[i]));
}

// A value a line.
static void check_json_lines(const struct text *text) {
    for (size_t at = 0; at < text->size;) {
        const char *line = text->bytes + at, *end = memchr(line, '\n', text->size - at);
        require(end);
        check_json(&(struct text){.bytes = (char *)line, .size = (size_t)(end - line)});
        at += (size_t)(end - line) + 1;
    }
}

static void accept_any(const struct text *text) {
    (void)text;
}

static const struct export_format *chosen;

// heaptrack's format has two lines for each call, up to 200 million of them.
static bool is_long(const struct profile *profile) {
    const uint64_t most = 100000;
    uint64_t calls = 0;
    if (strcmp(chosen->name, "heaptrack") != 0) return false;
    for (size_t i = 0; i < profile->stack_count && calls <= most; i++) {
        const struct stack *stack = &profile->stacks[i];
        if (stack->allocations > most || (uint64_t)stack_more(stack)->inherited.blocks > most)
            return true;
        calls += stack->allocations + (uint64_t)stack_more(stack)->inherited.blocks;
    }
    return calls > most;
}

static void show(const struct profile *profile) {
    struct frame_names names = {.of_place = badly_named, .context = (void *)profile};
    struct export export = export_of(profile, &names);
    struct text text;
    struct error error = {""};
    bool are_lines = !strcmp(chosen->name, "ndjson");
    bool is_json = !are_lines && strstr(chosen->ending, "json");
    if (chosen->write_file || is_long(profile)) return;
    export.has_snapshots = true;
    text_start(&text);
    bool is_written = export_stream(chosen, text.out, &export, &error);
    require(is_written || *error.text);
    text_end(&text, is_json && is_written     ? check_json
                    : are_lines && is_written ? check_json_lines
                    : chosen->is_binary       ? accept_any
                                              : check_text);
}

// One format an input: all of them at once are slow.
int LLVMFuzzerTestOneInput(const uint8_t *form, size_t form_size) {
    size_t count = 0;
    while (export_formats[count].name) count++;
    chosen = &export_formats[form_size % count];
    show_form(form, form_size, show);
    return 0;
}
