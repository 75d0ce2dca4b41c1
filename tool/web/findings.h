// SPDX-License-Identifier: Apache-2.0
// What is worth fixing first, as the terminal has it, for the page.
#ifndef TOOL_WEB_FINDINGS_H
#define TOOL_WEB_FINDINGS_H

#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/web/sink.h"

// Member "first": the sentences that the summary begins with. False without memory.
bool findings_put_first(struct json *json, const struct profile *profile,
                        const struct frame_names *names);

// Chunk "findings" (JSON): findings, then the pools that would spare most, where they were looked
// for. False with an error.
bool findings_put(struct sink *sink, const struct profile *profile, const struct frame_names *names,
                  struct error *error);

#endif
