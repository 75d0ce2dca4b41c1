// SPDX-License-Identifier: Apache-2.0
// Binds the functions that glibc 2.34 moved from libdl into libc to their old version, so that a
// library built on a new system loads on an old one. dev/check-runtime.sh watches the result.
#ifndef RUNTIME_SYS_VERSION_H
#define RUNTIME_SYS_VERSION_H

#if defined(CAIRN_STATIC)
// Nothing is asked of a dynamic linker.
#elif defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

#endif
