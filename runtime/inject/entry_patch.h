// SPDX-License-Identifier: Apache-2.0
// An allocator in the executable is led to the hooks (entries.h) by the process itself: in programs
// that `cairn run --exec` became, beside which there is no tool. The tool has worked out what has
// to be written where (struct cairn_lead) and left it in the environment.
//
// It is for one executable: where the bytes are others, in another program that inherited the
// variable, nothing is done. All functions are led or none.
#ifndef RUNTIME_INJECT_ENTRY_PATCH_H
#define RUNTIME_INJECT_ENTRY_PATCH_H

#if defined(CAIRN_STATIC)
static inline void entry_patch_entries(void) {}
#else
// Only while the process has one thread, which is asked for.
void entry_patch_entries(void);
#endif

#endif
