// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits (Fowler, Noll, Vo): a hash that is the same in every run and on every machine,
// for identities and for what is kept in files. No defence against chosen input: tables in memory
// are hashed with a seed (model/index_table.h).
#ifndef TOOL_BASE_FNV_H
#define TOOL_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
