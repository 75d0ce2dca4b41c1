// SPDX-License-Identifier: Apache-2.0
// The moments of which a recording says what every stack held: the peak, the end (or now), and
// snapshots where the export wants them.
#ifndef TOOL_EXPORT_MOMENTS_H
#define TOOL_EXPORT_MOMENTS_H

#include "tool/export/export.h"
#include "tool/model/snapshot_choice.h"

struct moment {
    struct snapshot_choice choice;
    const char *name;   // "peak", "exit", "snapshot", "mark"
    const char *label;  // of a snapshot or mark; NULL: none
    uint64_t at_ns;     // since the start
};

struct moments {
    const struct profile *profile;
    struct snapshots snapshots;
    ARRAY(struct moment) list;  // ascending times; the end is the last
};

// False without memory. The export must outlive it.
bool moments_find(struct moments *moments, const struct export *export, struct error *error);
void moments_free(struct moments *moments);

// What each stack of the profile held then, and, of samples, how sure that is (else NULL), by its
// place in the profile; for free(). False without memory.
bool moments_live(const struct moments *moments, const struct moment *moment, struct live_at **live,
                  struct estimate **estimates, struct error *error);

#endif
