// SPDX-License-Identifier: Apache-2.0
// Writes a made-up recording of any size, to measure reports and exports with: OUT [STACKS [SEED]].
// A stack is the one before it with some of its inner frames replaced by a random walk through a
// call graph, so that they share frames as those of a real program do: about 40 frames deep, about
// 6 nodes a stack, as a compiler's are. The timeline has all its points. The same seed gives the
// same recording.
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "tool/import/import.h"

enum { STACKS = 100000, FUNCTIONS = 5000, CALLEES = 4, MODULES = 20, LINES = 900 };
enum { DEPTH_USUAL = 40, CHANGED_MOST = 12, DEPTH_MOST = 64 };
enum { BLOCK_MOST = 4096, CALLS_MOST = 64, STEP_NS = 1000000 };

static uint64_t state;

// xorshift64*: good enough to be different everywhere.
static uint32_t random_below(uint32_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1du >> 33) % limit);
}

static void require(bool is_true, const char *what) {
    if (is_true) return;
    fprintf(stderr, "large_recording: %s\n", what);
    exit(1);
}

// A place for each call of a function by another: its caller and the line there.
static void make_places(struct imported *imported) {
    char name[64], file[64], module[64];
    for (uint32_t i = 0; i < FUNCTIONS * CALLEES; i++) {
        uint32_t function = i / CALLEES;
        snprintf(module, sizeof module, "/usr/lib/liblarge%u.so.1", function % MODULES);
        snprintf(name, sizeof name, "large::component_%u::function_%u", function / 64, function);
        snprintf(file, sizeof file, "/src/large/component_%u.cc", function / 64);
        uint32_t place = import_place(imported, import_module(imported, module));
        require(place == i, "no memory");
        require(import_frame(imported, name, file, 1 + random_below(LINES)), "no memory");
    }
}

static struct import_values make_values(void) {
    int64_t bytes = 1 + random_below(BLOCK_MOST), calls = 1 + random_below(CALLS_MOST);
    int64_t at_peak = random_below((uint32_t)calls + 1),
            at_exit = random_below(3) ? 0 : at_peak / 2;
    return (struct import_values){.calls = calls,
                                  .allocated_bytes = calls * bytes,
                                  .peak_blocks = at_peak,
                                  .peak_bytes = at_peak * bytes,
                                  .exit_blocks = at_exit,
                                  .exit_bytes = at_exit * bytes};
}

// The walk's next function: any other one, but each function calls few.
static uint32_t callee_of(uint32_t function, uint32_t callee) {
    const uint32_t factor = 2654435761u;
    return (function * CALLEES + callee + 1) * factor % FUNCTIONS;
}

static void make_stack(struct imported *imported) {
    static uint32_t nodes[DEPTH_MOST + 1], functions[DEPTH_MOST + 1], depth;
    uint32_t removed = random_below(CHANGED_MOST), added = 1 + random_below(CHANGED_MOST);
    if (depth < DEPTH_USUAL) removed /= 2;
    depth -= removed < depth ? removed : depth;
    for (; added && depth < DEPTH_MOST; added--, depth++) {
        uint32_t callee = random_below(CALLEES), place = functions[depth] * CALLEES + callee;
        require(tree_child(&imported->tree, nodes[depth], place, &nodes[depth + 1]), "no memory");
        functions[depth + 1] = callee_of(functions[depth], callee);
    }
    uint32_t node = nodes[depth];
    struct import_values values = make_values();
    require(import_node(imported, node, &values), "no memory");
}

static void make_points(struct imported *imported) {
    imported->duration_ns = (uint64_t)CAIRN_POINT_LIMIT * STEP_NS - 1;
    imported->peak_ns = imported->duration_ns / 2;
    for (uint64_t i = 0; i < CAIRN_POINT_LIMIT; i++) {
        struct import_point *point = array_push(&imported->points);
        require(point != NULL, "no memory");
        *point = (struct import_point){i * STEP_NS, 1000000 + random_below(1000000)};
    }
}

int main(int argc, char **argv) {
    struct imported imported;
    if (argc < 2) {
        fprintf(stderr, "usage: large_recording OUT [STACKS [SEED]]\n");
        return 2;
    }
    size_t stacks = argc > 2 ? strtoul(argv[2], NULL, 10) : STACKS;
    state = 0x9e3779b97f4a7c15u + (argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    require(import_start(&imported, NULL), "no memory");
    snprintf(imported.command, sizeof imported.command, "/usr/bin/large --made-up");
    imported.pid = 4242;
    make_places(&imported);
    while (imported.stacks.count < stacks) make_stack(&imported);
    make_points(&imported);
    FILE *out = fopen(argv[1], "wb");
    require(out != NULL, "cannot open the output");
    require(import_write(out, &imported, "large_recording", NULL), "no memory");
    require(!fclose(out), "cannot write the output");
    import_free(&imported);
    return 0;
}
