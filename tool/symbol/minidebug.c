// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/minidebug.h"

#include <lzma.h>
#include <stdlib.h>

// Symbol tables of the largest known libraries unpack to some 10 MiB; more is an attack.
#define UNPACKED_BYTES_MAX ((size_t)128 << 20)
#define FIRST_BYTES ((size_t)1 << 20)
#define DECODER_MEMORY_MAX ((uint64_t)256 << 20)

// Returns malloc memory with the decoded stream, NULL if it is broken or too large.
static uint8_t *unpack(const uint8_t *from, size_t from_bytes, size_t *bytes) {
    for (size_t size = FIRST_BYTES; size <= UNPACKED_BYTES_MAX; size *= 2) {
        uint8_t *to = malloc(size);
        uint64_t memory = DECODER_MEMORY_MAX;
        size_t from_used = 0, to_used = 0;
        if (!to) return NULL;
        lzma_ret result = lzma_stream_buffer_decode(&memory, 0, NULL, from, &from_used, from_bytes,
                                                    to, &to_used, size);
        *bytes = to_used;
        if (result == LZMA_OK) return to;
        free(to);
        if (result != LZMA_BUF_ERROR) return NULL;
    }
    return NULL;
}

void minidebug_open(struct image *packed, const struct image *module) {
    *packed = (struct image)IMAGE_CLOSED;
    GElf_Shdr header;
    Elf_Scn *section = image_section(module, ".gnu_debugdata", &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    if (!data || !data->d_buf) return;
    size_t bytes;
    uint8_t *content = unpack(data->d_buf, data->d_size, &bytes);
    if (content) image_open_memory(packed, content, bytes);
}
