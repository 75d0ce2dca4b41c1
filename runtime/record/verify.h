// SPDX-License-Identifier: Apache-2.0
// EVENT_VERIFIED (CAIRN_VERIFY=1, and the check build): every allocation's cell is found a second
// time without any memory of the past, by a full walk that nothing shortens and a hash of all its
// frames. Where the two differ the process says so and aborts: a program may only ask for this
// itself.
#ifndef RUNTIME_RECORD_VERIFY_H
#define RUNTIME_RECORD_VERIFY_H

#include <stdint.h>

#include "runtime/thread/gate.h"

// `cell` was found for the hook with this frame.
void verify_cell(struct thread *thread, uintptr_t *frame, uint32_t cell);

#endif
