// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/lead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/code.h"
#include "tool/attach/entries.h"
#include "tool/attach/patch.h"
#include "tool/base/array.h"

struct making {
    struct entries entries;
    struct cairn_lead lead;
    ARRAY(struct cairn_lead_part) parts;
};

static bool note_part(void *context, const struct entry *entry, const struct code_function *code,
                      struct error *error) {
    struct making *making = context;
    struct cairn_lead_part *part = array_push(&making->parts);
    struct code_moved moved;
    if (!part) return error_set(error, "out of memory");
    *part = (struct cairn_lead_part){.address = entry->address, .kind = (uint16_t)entry->kind};
    size_t number = making->parts.count - 1;
    if (number == 0) {
        uint64_t bytes = making->entries.items.count * CAIRN_LEAD_CODE_BYTES;
        making->lead.place = patch_place_below(making->entries.low, bytes);
    }
    uint64_t place = making->lead.place + number * CAIRN_LEAD_CODE_BYTES;
    memcpy(part->before, code->bytes, sizeof part->before);
    code_thunk(part->code, 0);
    if (!code_move(code, place + CODE_THUNK_BYTES, &moved, error))
        return error_wrap(error, "%s", entry->name);
    memcpy(part->code + CODE_THUNK_BYTES, moved.bytes, moved.count);
    return code_jump(part->jump, entry->address, place) ||
           error_set(error, "%s: it is too far from free memory", entry->name);
}

static char *put_digits(char *at, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) at += sprintf(at, "%02x", byte[i]);
    return at;
}

static char *digits_of(const struct making *making) {
    size_t bytes = sizeof making->lead + making->parts.count * sizeof *making->parts.items;
    char *digits = malloc(2 * bytes + 1);
    if (!digits) return NULL;
    char *at = put_digits(digits, &making->lead, sizeof making->lead);
    put_digits(at, making->parts.items, making->parts.count * sizeof *making->parts.items);
    return digits;
}

bool lead_make(const char *path, char **digits, struct error *error) {
    struct making making = {.lead = {.magic = CAIRN_LEAD_MAGIC}};
    *digits = NULL;
    bool is_ok = entries_find_in_file(&making.entries, path, note_part, &making, error);
    if (is_ok && making.parts.count) {
        making.lead.start = making.entries.start;
        making.lead.count = making.parts.count;
        *digits = digits_of(&making);
        is_ok = *digits || error_set(error, "out of memory");
    }
    array_free(&making.parts);
    entries_free(&making.entries);
    return is_ok;
}
