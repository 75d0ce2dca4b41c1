// SPDX-License-Identifier: Apache-2.0
// Views of what is in blocks, asked of a recording: what a look at the heap said while the process
// was there (cairn run --look). The look at which most was live answers, or,
// of a view of free memory, at which most was resident and not live.
#ifndef TOOL_QUERY_KEPT_LOOKS_H
#define TOOL_QUERY_KEPT_LOOKS_H

#include "tool/query/views.h"

// Returns true if a look of the recording answers this view. A view that a recording has as well is
// the recording's if a measure or a filter is asked for.
bool kept_looks_answer(const struct recording *recording, const struct request *request);

// Prints that answer.
bool kept_looks_print(FILE *out, const struct profile *profile, const struct request *request,
                      struct error *error);

// False, with the reason, of views that neither the recording nor a look at it can answer.
bool kept_looks_check(const struct recording *recording, const struct request *request,
                      struct error *error);

#endif
