// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/frame_texts.h"

#include <stdlib.h>

#include "tool/answer/forms.h"
#include "tool/render/json_values.h"

static void write_json(FILE *out, const struct frame *frame) {
    struct json json;
    json_start_members(&json, out);
    json_values_put_frame(&json, frame);
}

static void write_name(FILE *out, const struct frame *frame) {
    char label[FRAME_TEXT_BYTES], *safe = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&safe, &length);
    if (!memory) return;
    if (!frame->function) frame_label(frame, label, sizeof label, sizeof label);
    answer_put_safe(memory, frame->function ? frame->function : label, "", ";", ':');
    bool is_whole = !fclose(memory) && safe;
    for (size_t i = 0; is_whole && i < length; i++) {
        if (safe[i] == '"') fputc('"', out);
        fputc(safe[i], out);
    }
    free(safe);
}

// Returns the text of a frame, written by `write`; NULL without memory.
static const struct frame_text *text_of(struct frame_texts *texts, const struct frame *frame,
                                        void (*write)(FILE *out, const struct frame *frame)) {
    uint64_t hash = hash_mix(index_table_seed(), (uintptr_t)frame);
    struct index_probe probe = index_probe_start(&texts->table, hash);
    for (uint32_t index; index_probe_next(&texts->table, &probe, &index);)
        if (texts->texts.items[index].frame == frame) return &texts->texts.items[index];
    struct frame_text text = {.frame = frame};
    FILE *out = open_memstream(&text.text, &text.length);
    if (!out) return NULL;
    write(out, frame);
    struct frame_text *kept = !fclose(out) && text.text ? array_push(&texts->texts) : NULL;
    if (kept) *kept = text;
    if (kept && index_table_insert(&texts->table, hash, (uint32_t)(texts->texts.count - 1)))
        return kept;
    if (kept) texts->texts.count--;
    free(text.text);
    return NULL;
}

void frame_texts_put_json(struct frame_texts *texts, struct json *json, const struct frame *frame) {
    const struct frame_text *text = text_of(texts, frame, write_json);
    if (text)
        json_put_written(json, text->text, text->length);
    else
        json_values_put_frame(json, frame);
}

void frame_texts_put_name(struct frame_texts *texts, FILE *out, const struct frame *frame) {
    const struct frame_text *text = text_of(texts, frame, write_name);
    if (text)
        fwrite(text->text, 1, text->length, out);
    else
        write_name(out, frame);
}

void frame_texts_free(struct frame_texts *texts) {
    for (size_t i = 0; i < texts->texts.count; i++) free(texts->texts.items[i].text);
    array_free(&texts->texts);
    index_table_free(&texts->table);
}
