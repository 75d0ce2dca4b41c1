// SPDX-License-Identifier: Apache-2.0
// Any bytes as a module's ELF file: names, files and lines of some addresses are looked for. The
// file is one in memory that is written anew for each input. libdw reads most of it, and is not
// built for fuzzing; a finding inside of it is told from one of ours by its stack.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/symbol/constant_text.h"
#include "tool/symbol/symbol.h"

// The seeds have their code here (dev/fuzz-seeds.sh).
enum { FIRST_ADDRESS = 0x1000, STEP = 8, QUERIES = 96 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_frames(const struct symbol_query *query) {
    for (size_t i = 0; i < query->frame_count; i++) {
        const struct symbol_frame *frame = &query->frames[i];
        require(!frame->function || strlen(frame->function) < SIZE_MAX / 2);
        require(!frame->file || strlen(frame->file) < SIZE_MAX / 2);
        require(frame->is_inlined == (i + 1 < query->frame_count));
    }
}

static void resolve(const char *path) {
    struct symbol_table *table;
    struct symbol_query queries[QUERIES];
    struct symbol_module module = {.path = path};
    struct symbol_report report;
    for (uint32_t i = 0; i < QUERIES; i++)
        queries[i] = (struct symbol_query){.address = FIRST_ADDRESS + STEP * i};
    require(symbol_table_open(&table, NULL, NULL, NULL));
    require(symbol_resolve(table, &module, queries, QUERIES, &report, NULL));
    require(report.resolved_count <= QUERIES);
    for (size_t i = 0; i < QUERIES; i++) check_frames(&queries[i]);
    symbol_table_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static int file;
    static char path[64];
    if (!file) file = memfd_create("symbol", MFD_CLOEXEC);
    require(file > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    require(!ftruncate(file, (off_t)size) && pwrite(file, bytes, size, 0) == (ssize_t)size);
    resolve(path);
    static const char *const functions[] = {"main", "__lsan_default_suppressions"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char *text;
        constant_text_find(path, NULL, 0, functions[i], &text);
        free(text);
    }
    return 0;
}
