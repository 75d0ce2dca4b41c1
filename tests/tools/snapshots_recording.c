// SPDX-License-Identifier: Apache-2.0
// Writes a made-up recording with snapshots: OUT. One stack grows by 1 MiB from each snapshot to
// the next, one holds 3 MiB all the time; the second snapshot is called "warm".
#include <stdio.h>
#include <stdlib.h>

#include "tests/tools/make_recording.h"

enum { PROGRAM = 0x400000, MIB = 1 << 20, SNAPSHOTS = 5 };

int main(int argc, char **argv) {
    static struct making making;
    static const uint64_t grows = PROGRAM + 0x100, stays = PROGRAM + 0x200, step_ns = 780000000;
    size_t size;
    if (argc != 2) {
        fprintf(stderr, "usage: snapshots_recording OUT\n");
        return 2;
    }
    making_start(&making);
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "example");
    uint32_t growing = making_stack(&making, 0, &grows, 1);
    uint32_t staying = making_stack(&making, 0, &stays, 1);
    making_book(&making, staying, 3, 3 * MIB, 0, 0);
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        int64_t held = (int64_t)(i + 4) * MIB;
        making_book(&making, growing, 1, MIB, 0, 0);
        making_point(&making, i, held - MIB, held, held);
        making_snapshot(&making, i == 1 ? CAIRN_SNAPSHOT_MARK : CAIRN_SNAPSHOT_ASKED,
                        i == 1 ? "warm" : "", (i + 1) * step_ns);
    }
    making.header.end_ns = SNAPSHOTS * step_ns + step_ns / 5;
    making_peak(&making, SNAPSHOTS * step_ns + step_ns / 10);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(argv[1], bytes, size);
    free(bytes);
    return 0;
}
