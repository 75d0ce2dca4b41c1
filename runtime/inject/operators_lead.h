// SPDX-License-Identifier: Apache-2.0
// A program whose allocator brings its own operator new and delete is led to our hooks of them, as
// it starts. It may have been started by anybody: a shell, env, another recorded program.
#ifndef RUNTIME_INJECT_OPERATORS_LEAD_H
#define RUNTIME_INJECT_OPERATORS_LEAD_H

#if defined(CAIRN_STATIC)
static inline void operators_lead(void) {}
#else

// Called by the library's constructor, once the linker has bound what was loaded with the program.
void operators_lead(void);
#endif

#endif
