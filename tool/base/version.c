// SPDX-License-Identifier: Apache-2.0
// A file of its own, because the Makefile gives this object alone the commit and its date: another
// commit renews this object, not the tool.
#include "tool/base/version.h"

// Unit tests and fuzzers are built without them.
#ifndef CAIRN_COMMIT
#define CAIRN_COMMIT "unknown"
#define CAIRN_DATE "unknown date"
#endif

#if defined(__clang__) || !defined(__GNUC__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
#else
#define PROCESSOR "unknown"
#endif

void version_print(FILE *out) {
    fputs("cairn " CAIRN_TOOL_VERSION "\n"
          "commit    " CAIRN_COMMIT "\n"
          "built by  " COMPILER ", sources of " CAIRN_DATE "\n"
          "for       " PROCESSOR "\n",
          out);
}

const char *version_commit(void) {
    return CAIRN_COMMIT;
}
