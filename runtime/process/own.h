// SPDX-License-Identifier: Apache-2.0
// Memory that cairn takes in the process, as it is told (own_bytes in the header). While the
// process runs it is what was mapped to be used; at its end it is also asked what of that was
// touched.
#ifndef RUNTIME_PROCESS_OWN_H
#define RUNTIME_PROCESS_OWN_H

#include <stdint.h>

// Bytes taken so far, by what was touched.
int64_t own_taken_bytes(void);

// Begins when the recording is there. Memory that a forked child found taken is not its own:
// it shares those pages with its parent.
void own_begin(int64_t found_bytes);

// At the end.
void own_tell(void);

#endif
