// SPDX-License-Identifier: Apache-2.0
// What commands that hand a recording to another format have to put together: every name, and the
// texts about program and trust.
#ifndef TOOL_QUERY_EXPORTED_H
#define TOOL_QUERY_EXPORTED_H

#include "tool/export/export.h"
#include "tool/query/merged.h"
#include "tool/render/filter.h"
#include "tool/render/report_json.h"

#define EXPORTED_NAME_BYTES 256

struct exported {
    struct export export;  // points into the rest and into what was opened
    struct frame_names names;
    char program[EXPORTED_NAME_BYTES];
    char command[REPORT_COMMAND_BYTES];
    char *trust;
};

// Resolves all names. `exported` must not be moved afterwards; the measure is the caller's to set.
// For formats that show no intervals: the trust line ends with those of all stacks together.
bool exported_say_estimates(struct exported *exported, struct error *error);
bool exported_prepare(struct opened *opened, struct exported *exported, struct error *error);
// The same with names that were found already, and filtered.
bool exported_prepare_with(struct opened *opened, const struct frame_names *names,
                           struct exported *exported, struct error *error);
// Says in front of the trust line what was left by a filter.
bool exported_say_part(struct exported *exported, const struct filter *filter, struct error *error);

// The trust line in one piece, for free(); NULL without memory. `names` may be NULL.
char *exported_trust_text(const struct profile *profile, const struct frame_names *names);

void exported_free(struct exported *exported);

#endif
