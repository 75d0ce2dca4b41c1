// SPDX-License-Identifier: Apache-2.0
// Any bytes as a core dump: the recording in it is looked for and copied, the live map followed,
// and glibc's heap walked.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/core/blocks.h"
#include "tool/core/glibc.h"
#include "tool/core/recorded.h"

// Zeros follow the input, which segments may use: see tests/tools/make_core.h.
enum { CELLS = 1000, FILE_BYTES = 600 << 10 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_heap(const struct core_image *core) {
    struct core_heap heap;
    if (!core_read_heap(core, &heap, NULL)) return;
    for (size_t i = 1; i < heap.chunks.count; i++)
        require(heap.chunks.items[i].address >= heap.chunks.items[i - 1].address);
    core_free_heap(&heap);
}

static void check_core(const struct core_image *core) {
    struct cairn_header header;
    struct core_blocks blocks;
    char path[PATH_MAX];
    int file;
    for (size_t i = 1; i < core->segments.count; i++)
        require(core->segments.items[i].start >= core->segments.items[i - 1].end);
    check_heap(core);
    if (!core_find_recording(core, &header)) return;
    if (core_copy_recording(core, &header, path, NULL) &&
        sscanf(path, "/proc/self/fd/%d", &file) == 1)
        close(file);
    if (!core_read_blocks(core, &header, CELLS, &blocks, NULL)) return;
    for (size_t i = 0; i < blocks.items.count; i++)
        require(blocks.items.items[i].cell && blocks.items.items[i].cell < CELLS);
    core_free_blocks(&blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static int file;
    char path[64];
    struct core_image core;
    if (!file) file = memfd_create("core", MFD_CLOEXEC);
    require(file > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (size > FILE_BYTES) return 0;
    require(!ftruncate(file, 0) && !ftruncate(file, FILE_BYTES));
    require(pwrite(file, bytes, size, 0) == (ssize_t)size);
    if (!core_open(path, &core, NULL)) return 0;
    check_core(&core);
    core_close(&core);
    return 0;
}
