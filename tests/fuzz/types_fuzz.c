// SPDX-License-Identifier: Apache-2.0
// Any bytes as a module's ELF file: its variables are read, their types down to a depth, and the
// pointers of objects that have them, whose bytes are the file's own. libdw reads most of it, and
// is not built for fuzzing; a finding inside of it is told from one of ours by its stack.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/types/layout.h"

enum { DEPTH = 6, VARIABLES_MAX = 64, POINTERS_MAX = 4096, FIELDS_MAX = 64 };

struct trial {
    struct types *types;
    const uint8_t *bytes;
    size_t size;
    size_t variables, pointers;
};

static void require(bool is_true) {
    if (!is_true) abort();
}

static void look_at(const struct type *type, int depth) {
    char name[256];
    uint64_t offset;
    const struct type *found;
    type_write_name(type, name, sizeof name);
    require(strlen(name) < sizeof name);
    const struct type_fields fields = type_fields(type);
    if (depth == DEPTH) return;
    for (size_t i = 0; i < fields.count && i < FIELDS_MAX; i++)
        look_at(fields.items[i].type, depth + 1);
    if (type_target(type)) look_at(type_target(type), depth + 1);
    if (type_parameter(type, 0)) look_at(type_parameter(type, 0), depth + 1);
    type_elements(type);
    layout_member(type, "_M_start", &offset, &found);
}

static bool see_pointer(void *context, const struct layout_pointer *pointer) {
    struct trial *trial = context;
    require(pointer->offset <= trial->size && trial->size - pointer->offset >= sizeof(uint64_t));
    require(pointer->target && pointer->declared);
    return ++trial->pointers < POINTERS_MAX;
}

static bool see_variable(void *context, const struct type_variable *variable) {
    struct trial *trial = context;
    static const enum layout_words words[] = {LAYOUT_NONE, LAYOUT_SHORT, LAYOUT_EXACT};
    look_at(variable->type, 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct layout *layout = calloc(1, sizeof *layout);
        require(layout);
        trial->pointers = 0;
        layout->bytes = trial->bytes;
        layout->size = trial->size;
        layout->see = see_pointer;
        layout->context = trial;
        layout->words = words[i];
        layout_walk(layout, variable->type, 0);
        require(strlen(layout->text) < sizeof layout->text);
        free(layout);
    }
    return ++trial->variables < VARIABLES_MAX;
}

static bool see_local(void *context, const struct type_local *local) {
    struct trial *trial = context;
    look_at(local->type, DEPTH - 1);
    return ++trial->variables < VARIABLES_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const struct symbol_options options;
    static int file;
    static char path[64];
    if (!file) file = memfd_create("types", MFD_CLOEXEC);
    require(file > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    require(!ftruncate(file, (off_t)size) && pwrite(file, bytes, size, 0) == (ssize_t)size);
    struct string_pool *store = string_pool_open();
    const struct symbol_module module = {.path = path};
    struct located files;
    require(store);
    locate_open(&files, &module, &options, store);
    struct trial trial = {types_open(&files, &options), bytes, size, 0, 0};
    if (trial.types) {
        types_each_variable(trial.types, see_variable, &trial);
        for (uint64_t pc = 0x1000; pc < 0x1100; pc += 16)
            types_each_local(trial.types, pc, see_local, &trial);
    }
    types_close(trial.types);
    locate_close(&files);
    string_pool_close(store);
    return 0;
}
