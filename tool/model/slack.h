// SPDX-License-Identifier: Apache-2.0
// What glibc takes for the live blocks beyond what was asked for: rounding and headers.
//
// Of each stack the rounding of all its blocks together is known, not which of them are live: its
// live blocks are taken for average ones. With one size by stack, which most have, that is exact.
#ifndef TOOL_MODEL_SLACK_H
#define TOOL_MODEL_SLACK_H

#include "tool/model/reader.h"

uint64_t slack_of_live(const struct recording *recording);

#endif
