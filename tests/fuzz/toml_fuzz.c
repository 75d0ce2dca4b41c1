// SPDX-License-Identifier: Apache-2.0
// Files of budgets: any bytes end in entries or in an error that names a line.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    struct toml toml;
    struct error error = {""};
    if (!count) return 0;
    FILE *file = fmemopen((void *)(uintptr_t)bytes, count, "r");
    if (!file) return 0;
    bool is_ok = toml_read(file, "fuzz", &toml, &error);
    if (!is_ok && strncmp(error.text, "fuzz:", 5) != 0) abort();
    for (size_t i = 0; i < toml.entries.count; i++)
        if (!memchr(toml.entries.items[i].text, 0, TOML_TEXT_BYTES)) abort();
    toml_free(&toml);
    fclose(file);
    return 0;
}
