// SPDX-License-Identifier: Apache-2.0
// What every stack held at the moments that a recording kept, for the page.
#ifndef TOOL_WEB_HISTORY_H
#define TOOL_WEB_HISTORY_H

#include "tool/model/profile.h"
#include "tool/web/sink.h"

// A chunk "moments": [{"at_ns": 1, "reason": "mark", "label": "warm"}, ...], in the order of time,
// then one chunk "moment.bytes" for each: by stack, as a change of the one before. Nothing without
// moments. False without memory.
bool history_put(struct sink *sink, const struct profile *profile, struct error *error);

#endif
