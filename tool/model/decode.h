// SPDX-License-Identifier: Apache-2.0
// From cells to stacks: follows the records (format/format.h, docs/reference/format.md) and puts
// their frames into the prefix tree. Each cell is decoded once; cells that refer to each other in a
// circle, or records that lead outside, end in the empty stack and are counted as damage.
#ifndef TOOL_MODEL_DECODE_H
#define TOOL_MODEL_DECODE_H

#include "tool/base/array.h"
#include "tool/model/reader.h"
#include "tool/model/tree.h"

// A record's head.
struct record {
    uint32_t older;  // cell, 0: none
    uint32_t keep;   // frames of it, from the outermost; UINT32_MAX: all but `drop`
    uint32_t drop;   // of a short record: so many inner ones go…
    uint32_t tail;   // …of which so many innermost come again behind those that follow
    uint32_t added;  // frames that follow
    bool is_short;
    bool is_foreign;     // frees of blocks that the older cell counts
    uint32_t freer;      // of a foreign one: the cell whose stack freed them; 0: not recorded
    size_t first_frame;  // word index
};

struct decoder {
    struct recording *recording;
    const struct module_map *modules;
    struct places *places;
    struct tree *tree;
    uint32_t *cell_states;      // by cell: 0 unknown, 1 being followed, else node + 2
    uint32_t *cell_regions;     // by cell: scope id of the region it was seen in, 0: none
    uint32_t depth;             // machine frames at which stacks are cut here; 0: as recorded
    ARRAY(uint32_t) cut_nodes;  // by node: the one of the cut stack, plus 1; 0: not known
    ARRAY(uint32_t) path;       // places of a stack that is cut, innermost first
    uint64_t frames_left;     // a whole recording has no more than this, even if records are shared
    ARRAY(uint32_t) pending;  // cells whose older cell comes first
};

// All parts must outlive the decoder. False without memory.
bool decoder_start(struct decoder *decoder, struct recording *recording,
                   const struct module_map *modules, struct places *places, struct tree *tree);
void decoder_free(struct decoder *decoder);

// The recording has more cells and records than it had. False without memory.
bool decoder_extend(struct decoder *decoder, size_t old_cells, size_t old_words);

// The stack of a cell as a node of the tree; false only without memory.
bool decoder_stack(struct decoder *decoder, uint32_t cell, uint32_t *node);
// The same with the cell's record; all zero: it has none.
bool decoder_stack_record(struct decoder *decoder, uint32_t cell, uint32_t *node,
                          struct record *record);

// False if the cell or its record does not exist.
bool decoder_record(const struct decoder *decoder, uint32_t cell, struct record *record);

#endif
