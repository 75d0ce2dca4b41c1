// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened with RTLD_DEEPBIND search what they depend on before the program and
// its preloaded libraries: their malloc is libc's, past the hooks. So libc's own table of symbols
// is led to the hooks before the first such call, for the rest of the process: everybody else finds
// these hooks anyway, before libc.
//
// An allocator that such a library brings is left alone, counted, and named in the recording.
#ifndef RUNTIME_INJECT_DEEPBIND_H
#define RUNTIME_INJECT_DEEPBIND_H

#if defined(CAIRN_STATIC)
static inline void deepbind_begin(const char *path) {
    (void)path;
}
static inline void deepbind_look_if_expected(void) {}
#else

// Leads what the library that is about to be opened will find; counts it as bypassing us, and names
// it as the program does, if that is not possible.
void deepbind_begin(const char *path);

// Looks whether the library that was opened last brought an allocator of its own.
void deepbind_look_if_expected(void);
#endif

#endif
