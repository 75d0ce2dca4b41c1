// SPDX-License-Identifier: Apache-2.0
// cfi_seeds DIR: writes seeds for tests/fuzz/cfi_fuzz.c, each a module that consists of the unwind
// information of one function of this program, libc or the dynamic linker.
#include <dlfcn.h>
#include <stdio.h>

#include "tests/unit/runtime/unwind/image.h"

enum { SEEDS_PER_FILE = 40, HDR_BYTES = 20, CODE_OFFSET = 0x1000, ENTRY_MAX = 2000 };

// As tests/fuzz/cfi_fuzz.c reads it.
struct head {
    uint16_t hdr_offset;
    uint16_t pc_count;
    int32_t pc_offset;
};

static uint32_t word_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static void word_put(uint8_t *bytes, int64_t value) {
    uint32_t word = (uint32_t)value;
    memcpy(bytes, &word, sizeof word);
}

// header of the table, common part, entry; all addresses relative to the module's start.
static size_t module_make(const struct image *image, uint64_t entry, uint8_t *module) {
    static const uint8_t hdr[] = {1, 0x1b, 0x03, 0x3b};
    uint64_t common = entry + 4 - word_at(image->memory + entry + 4);
    uint32_t common_bytes = 4 + word_at(image->memory + common);
    uint32_t entry_bytes = 4 + word_at(image->memory + entry);
    if (common_bytes > ENTRY_MAX || entry_bytes > ENTRY_MAX) return 0;
    uint32_t entry_at = HDR_BYTES + common_bytes;
    memcpy(module, hdr, sizeof hdr);
    word_put(module + 4, HDR_BYTES - 4);
    word_put(module + 8, 1);
    word_put(module + 12, CODE_OFFSET);
    word_put(module + 16, entry_at);
    memcpy(module + HDR_BYTES, image->memory + common, common_bytes);
    memcpy(module + entry_at, image->memory + entry, entry_bytes);
    word_put(module + entry_at + 4, entry_at + 4 - HDR_BYTES);
    word_put(module + entry_at + 8, (int64_t)CODE_OFFSET - (entry_at + 8));
    return entry_at + entry_bytes;
}

static bool seed_write(const char *directory, int number, const struct head *head,
                       const uint8_t *module, size_t bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/function-%d", directory, number);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    fwrite(head, sizeof *head, 1, file);
    fwrite(module, bytes, 1, file);
    return fclose(file) == 0;
}

static int seeds_of(const char *path, const char *directory, int number) {
    struct image image;
    uint8_t module[HDR_BYTES + 2 * ENTRY_MAX];
    if (!image_load(&image, path)) return number;
    uint32_t count = image_function_count(&image);
    uint32_t step = count / SEEDS_PER_FILE + 1;
    for (uint32_t i = 0; i < count; i += step) {
        size_t bytes = module_make(&image, image_function(&image, i).entry, module);
        struct head head = {.pc_count = 32, .pc_offset = CODE_OFFSET};
        if (bytes && seed_write(directory, number, &head, module, bytes)) number++;
    }
    image_free(&image);
    return number;
}

int main(int argc, char **argv) {
    Dl_info libc;
    int number = 0;
    if (argc != 2) return 2;
    number = seeds_of("/proc/self/exe", argv[1], number);
    number = seeds_of("/lib64/ld-linux-x86-64.so.2", argv[1], number);
    if (dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc))
        number = seeds_of(libc.dli_fname, argv[1], number);
    return number > 0 ? 0 : 1;
}
