// SPDX-License-Identifier: Apache-2.0
// Any bytes as the executable of a static program: its allocator's functions are found, its program
// headers and thread-locals laid out anew, its unwind information indexed and made of instructions.
// The library that would be put into it is one of 24 bytes of thread-locals. libelf reads most of
// the file, and is not built for fuzzing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/attach/entries.h"
#include "tool/attach/executable.h"
#include "tool/attach/static_headers.h"

enum { LOCALS_BYTES = 24, WORD_BYTES = 8 };
#define PLACE UINT64_C(0x10000000)

static void require(bool is_true) {
    if (!is_true) abort();
}

static bool check_entry(void *context, const struct entry *entry, const struct code_function *code,
                        struct error *error) {
    (void)context, (void)error;
    require(entry->size && code->size == entry->size && code->available >= code->size);
    return true;
}

static void find_entries(const char *path) {
    struct entries entries;
    struct error error;
    entries_find_in_file(&entries, path, check_entry, NULL, &error);
    entries_free(&entries);
}

static void lay_out(const char *path) {
    uint8_t image[LOCALS_BYTES] = {0};
    const struct bare_library library = {.image = image,
                                         .bytes = sizeof image,
                                         .locals = {.p_type = PT_TLS,
                                                    .p_filesz = WORD_BYTES,
                                                    .p_memsz = sizeof image,
                                                    .p_align = WORD_BYTES}};
    struct executable executable;
    struct error error;
    struct static_headers *headers = calloc(1, sizeof *headers);
    struct cairn_bare *bare = calloc(1, sizeof *bare);
    require(headers && bare);
    if (executable_open_file(&executable, path) &&
        static_headers_read(headers, executable.elf, 0, &library, &error)) {
        require(static_headers_locals(headers) <= -(int64_t)sizeof image);
        uint8_t *bytes = static_headers_make(headers, PLACE, &library, bare);
        require(!bytes || bare->segments >= PLACE);
        free(bytes);
    }
    static_headers_free(headers);
    executable_close(&executable);
    free(bare);
    free(headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[64];
    int file = memfd_create("static", MFD_CLOEXEC);
    require(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    find_entries(path);
    lay_out(path);
    close(file);
    return 0;
}
