// SPDX-License-Identifier: Apache-2.0
// Writes small valid recordings into a directory, for the fuzzer of the reader to start from.
#include <stdio.h>
#include <stdlib.h>

#include "tests/tools/make_recording.h"

static struct making making;

static void write_seed(const char *directory, const char *name, bool is_compact) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    size_t size;
    uint8_t *bytes = making_finish(&making, is_compact, &size);
    making_write(path, bytes, size);
    free(bytes);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: reader_seeds DIRECTORY\n");
        return 2;
    }
    making_start(&making);
    write_seed(argv[1], "empty", true);
    making_sample(&making);
    write_seed(argv[1], "compact", true);
    making_sample(&making);
    making.header.state = CAIRN_STATE_RUNNING;
    making.header.has_exit = 0;
    making.header.end_ns = 0;
    making.header.lost[CAIRN_LOST_NESTED] = 1;
    write_seed(argv[1], "raw", false);
    making_sample(&making);
    making.header.totals.point_ns = 1 << 14;
    for (uint32_t i = 0; i < 20; i += 3) making_point(&making, i, 100 * i, 200 * i, 150 * i);
    write_seed(argv[1], "points", true);
    return 0;
}
