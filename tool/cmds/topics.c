// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/topics.h"

#include <stddef.h>

// clang-format off
const struct topic topics[] = {
    {"peak", "what held the memory when most was in use",
     "  cairn run PROGRAM                 the five call sites that held most at the peak\n"
     "  cairn report --view tree          from main inwards: where the peak went\n"
     "  cairn report --inverted           from allocating functions to their callers\n"
     "  cairn report --view types         by container and element\n"
     "\n"
     "\"At the peak\" is one point in time: when the whole heap was largest. What each stack held\n"
     "then adds up to the peak; a stack may have held more at another time.\n"
     "--focus REGEX looks at stacks through a function or file, --thread at threads.\n"},
    {"leaks", "what was never freed",
     "  cairn leaks                       what was left at the end, by stack\n"
     "  cairn leaks --view tree           the same as a tree, from main inwards\n"
     "\n"
     "cairn does not search memory for pointers: all that was not freed is shown, also\n"
     "what a program keeps until its end on purpose. Blocks left by stacks that run once\n"
     "are seldom leaks; many blocks of one stack often are.\n"},
    {"growth", "a server or loop that takes more and more",
     "  cairn run SERVER                  in one terminal\n"
     "  cairn top SERVER                  in another: its stacks, live\n"
     "  cairn ctl SERVER mark warm        when it has warmed up\n"
     "  cairn report --since warm PID     what was allocated since then, and still lives\n"
     "  cairn report --view growth PID    stacks that rise: how fast, how steadily\n"
     "\n"
     "PID is the server's, while it runs; afterwards the recording. cairn run --mark-every\n"
     "60s marks by itself. A leak rises in a straight line and its blocks are of every\n"
     "generation; a cache fills up and stays. --view timeline shows the heap over time.\n"},
    {"temporary", "memory that is allocated and freed again at once",
     "  cairn report --view temporary     what its thread frees soon after\n"
     "  cairn report --by calls           what allocates most often\n"
     "  cairn report --by allocated       what allocates most bytes, kept or not\n"
     "  cairn report --lifespan gone      only what was freed before the end\n"
     "\n"
     "Such memory does not make a program large, but slow: each block costs time, and so\n"
     "does clearing and copying it. Reuse a buffer, or reserve room before a loop.\n"},
    {"containers", "programs in containers and images",
     "  cairn run --exec PROGRAM          as the image's command: the program keeps pid 1\n"
     "  cairn env --for docker            variables for an image that cannot start cairn\n"
     "\n"
     "The file is written to CAIRN_OUTPUT; put it on a volume. Names: read the recording\n"
     "beside the image's files, cairn report --sysroot /path/to/root; or keep them in it\n"
     "inside, cairn symbolize RECORDING. While the container runs, --sysroot\n"
     "/proc/PID/root does it from outside.\n"},
    {"ci", "tests that fail when a program takes more memory",
     "  cairn check                       budgets for recordings (cairn help check)\n"
     "  cairn diff old.cairn new.cairn    what changed, function by function\n"
     "  cairn run -q --symbols all -o test.cairn ./test\n"
     "\n"
     "-q prints nothing, the status is the program's own. --symbols all keeps every name,\n"
     "to read the artifact on another machine. cairn report --json is for scripts.\n"},
    {"formats", "files, and the formats of other tools",
     "  NAME.PID.cairn                    a recording, or a directory with one a process\n"
     "  cairn report --json               a report for scripts (docs/reference/json.md)\n"
     "  cairn export --format FORMAT      flame graphs, pprof and others: cairn help export\n"
     "  cairn import FILE                 the other way: cairn help import\n"
     "\n"
     "The bytes of a recording are described in docs/reference/format.md. cairn run and attach\n"
     "keep names in a recording (--symbols), cairn symbolize does so later.\n"},
    {NULL, NULL, NULL},
};
// clang-format on
