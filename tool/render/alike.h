// SPDX-License-Identifier: Apache-2.0
// Stacks that read the same: frame by frame the same function at the same line of the same file,
// from the innermost to the outermost that is shown. They differ in addresses alone, as the calls
// of an unrolled loop do. In lists of stacks they are one row, whatever writes it.
#ifndef TOOL_RENDER_ALIKE_H
#define TOOL_RENDER_ALIKE_H

#include "tool/model/measure.h"
#include "tool/render/frames.h"

// Says how stacks are read: people see the base name of a file, or of a module where no file is
// known; programs get both whole.
struct alike_reading {
    bool is_by_programs;
    bool are_all_shown;  // internal frames, too
};

// Makes one stack of those that read the same, in place: the first of them in the ranking by `by`
// stays and has the values of all (tool/model/join.h). Places that freed are one likewise.
// `names` has every name. False, with an error, without memory.
bool alike_join(struct profile *profile, const struct frame_names *names, enum measure by,
                struct alike_reading reading, struct error *error);

// Lists the ids of the stacks that this one stands for beside itself, with blanks between them; for
// free(). NULL: it is one alone, or there is no memory.
char *alike_other_ids(const struct profile *profile, const struct stack *stack);

#endif
