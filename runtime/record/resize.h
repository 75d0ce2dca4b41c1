// SPDX-License-Identifier: Apache-2.0
// A block that gets another size, for hooks: it is taken out of the live map before the real
// function is called, since another thread may get its address from then on, and what became of it
// is booked afterwards. `frame` is the hook's.
#ifndef RUNTIME_RECORD_RESIZE_H
#define RUNTIME_RECORD_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/event.h"

// The block's entry, taken out of the live map.
struct live_block resize_take(void *block, uintptr_t *frame);

// Books what realloc did. It freed the block without a new one if it returned NULL for size 0 (as
// glibc does); NULL for any other size is a failure that left the block as it was.
void resize_book(void *block, struct live_block old, void *result, size_t size, uintptr_t *frame);

// Nothing became of it, and that is no failure either.
void resize_keep(void *block, struct live_block old, uintptr_t *frame);

#endif
