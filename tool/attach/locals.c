// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/locals.h"

#include <string.h>

// Programs may give threads that they make by system calls a pointer to something else.
static bool is_thread(const struct attach *attach, uint64_t pointer) {
    uint64_t word;
    return pointer &&
           (!REGISTERS_THREAD_IS_MARKED ||
            (remote_read(&attach->remote, pointer, &word, sizeof word) && word == pointer));
}

// The address at which a thread has them; 0: nowhere. With musl, in the block of a table
// (cairn_attachment.tls_module).
static uint64_t locals_of(const struct attach *attach, const struct registers *registers) {
    uint64_t pointer = registers_thread_pointer(registers), table, count, block;
    const uint64_t module = attach->known.tls_module, word = sizeof(uint64_t);
    if (!is_thread(attach, pointer)) return 0;
    if (!module) return pointer + (uint64_t)attach->known.tls_offset;
    bool is_there = remote_read(&attach->remote, pointer + word, &table, word) &&
                    remote_read(&attach->remote, table, &count, word) && module <= count &&
                    remote_read(&attach->remote, table + module * word, &block, word);
    return is_there ? block : 0;
}

// The first of them leads to the thread's state in the library's own memory, or to where the image
// says.
static bool are_sound(const struct attach *attach, uint64_t at) {
    const struct cairn_attachment *known = &attach->known;
    uint64_t state, initial;
    memcpy(&initial, known->tls_image, sizeof initial);
    return !remote_read(&attach->remote, at, &state, sizeof state) || state == initial ||
           (state >= known->space_start && state < known->space_end);
}

static void write_images(const struct attach *attach, bool has_doubts) {
    const struct cairn_attachment *known = &attach->known;
    if (known->tls_bytes > sizeof known->tls_image) return;
    for (size_t i = 0; i < attach->threads.stopped.count; i++) {
        uint64_t at = locals_of(attach, &attach->threads.stopped.items[i].registers);
        if (at && !(has_doubts && are_sound(attach, at)))
            remote_write(&attach->remote, at, known->tls_image, known->tls_bytes);
    }
}

void locals_reset(const struct attach *attach) {
    write_images(attach, false);
}

void locals_repair(const struct attach *attach) {
    write_images(attach, true);
}
