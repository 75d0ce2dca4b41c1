// SPDX-License-Identifier: Apache-2.0
// Names come from files that nobody checked: any text must be survived, and cleaning never makes
// it longer.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/name.h"
#include "tool/symbol/name_clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    char *text = malloc(count + 1);
    if (!text) return 0;
    memcpy(text, bytes, count);
    text[count] = '\0';
    char *clean = name_clean_cxx(text);
    if (!clean || strlen(clean) > strlen(text)) abort();
    free(clean);
    free(name_readable(text));
    free(text);
    return 0;
}
