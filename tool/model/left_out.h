// SPDX-License-Identifier: Apache-2.0
// Programs that recorded processes started and that were not recorded, and processes whose
// recordings are not kept.
#ifndef TOOL_MODEL_LEFT_OUT_H
#define TOOL_MODEL_LEFT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "tool/model/reader.h"

// Returns why programs of that kind are not recorded, a clause about one of them.
const char *left_out_clause(uint32_t reason);

// Returns the same in a word or two, and as a key of JSON.
const char *left_out_words(uint32_t reason);
const char *left_out_key(uint32_t reason);

// Counts `change` more programs of that name, or fewer.
void left_out_add(struct cairn_left_out *list, uint32_t reason, const char *name, int64_t change);

// Adds what the recording says, with every name ended.
void left_out_add_recording(struct cairn_left_out *list, const struct recording *recording);

// Returns how many were counted that have no entry.
uint64_t left_out_unnamed(const struct cairn_left_out *list);

// Adds what another recording tells of processes that are not kept.
void unkept_add(struct cairn_unkept *sum, const struct cairn_unkept *added);

#endif
