// SPDX-License-Identifier: Apache-2.0
// The instrumentation map: for each place that XRay can patch an entry of 32 bytes, in which the
// second word leads to the function; a function has several. Functions are numbered in the order of
// their entries, from 1 on. From version 2 of entries on (LLVM 12), words are relative to where
// they lie.
#include "tool/import/xray.h"

#include <stdlib.h>

#include "tool/base/text.h"
#include "tool/symbol/image.h"

enum { ENTRY_BYTES = 32, WORD_BYTES = 8, REST_BYTES = 13, FUNCTIONS_MAX = 1 << 24 };
enum { RELATIVE_VERSION = 2 };

static bool add(struct xray_map *map, uint64_t function) {
    size_t count = map->functions.count;
    if (count && map->functions.items[count - 1] == function) return true;
    uint64_t *slot = count < FUNCTIONS_MAX ? array_push(&map->functions) : NULL;
    if (slot) *slot = function;
    return slot != NULL;
}

static bool read_entries(struct xray_map *map, struct bytes bytes, uint64_t address,
                         struct error *error) {
    while (bytes_left(&bytes) >= ENTRY_BYTES) {
        bytes_skip(&bytes, WORD_BYTES);
        uint64_t function = bytes_number(&bytes, WORD_BYTES);
        bytes_skip(&bytes, 2);  // of which kind the place is, and whether it is always patched
        uint8_t version = bytes_u8(&bytes);
        bytes_skip(&bytes, REST_BYTES);
        if (version >= RELATIVE_VERSION)
            function += address + WORD_BYTES;
        else if (!function)
            return error_set(error, "its instrumentation map is that of a compiler older than "
                                    "LLVM 12, in a program that is relocated");
        if (!add(map, function)) return import_no_memory(error);
        address += ENTRY_BYTES;
    }
    return true;
}

static bool read_image(struct xray_map *map, const struct image *image, struct error *error) {
    GElf_Shdr header;
    GElf_Ehdr file;
    Elf_Scn *section = image_section(image, "xray_instr_map", &header);
    if (!section)
        return error_set(error, "it has no instrumentation map: it was not built with "
                                "-fxray-instrument");
    if (!gelf_getehdr(image->elf, &file) || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_ident[EI_DATA] != ELFDATA2LSB)
        return error_set(error, "its instrumentation map is not that of a 64-bit program");
    const struct bytes bytes = image_bytes(image, "xray_instr_map", NULL);
    return read_entries(map, bytes, header.sh_addr, error);
}

bool xray_map_read(struct xray_map *map, const char *path, struct error *error) {
    struct image image = IMAGE_CLOSED;
    char safe[IMPORT_TEXT_BYTES];
    text_escape(safe, sizeof safe, path);
    enum image_result result = image_open(&image, path);
    bool is_ok = result == IMAGE_OK ? read_image(map, &image, error)
                                    : error_set(error, "%s",
                                                result == IMAGE_MISSING ? "it cannot be opened"
                                                                        : "it is no ELF file");
    image_close(&image);
    return is_ok || error_wrap(error, "--program %s", safe);
}
