// SPDX-License-Identifier: Apache-2.0
// Writes small core dumps for the fuzzer of their reader to start from: core_seeds DIRECTORY.
#include <stdio.h>

#include "tests/tools/make_core.h"

static int write_core(const char *directory, const char *name, bool is_wide) {
    char path[4096];
    uint8_t bytes[MAKE_CORE_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (!file) return 1;
    make_core(bytes, is_wide);
    size_t written = fwrite(bytes, 1, sizeof bytes, file);
    return fclose(file) || written != sizeof bytes;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    return write_core(argv[1], "narrow", false) || write_core(argv[1], "wide", true);
}
