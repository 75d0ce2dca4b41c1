// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/variables.h"

#include <stdint.h>
#include <string.h>

#include "format/run_mark.h"
#include "runtime/sys/image.h"
#include "runtime/sys/linker.h"

static const char preload_is[] = "LD_PRELOAD=";

char *variables_preload(char *const variables[]) {
    char *const *variable = variables;
    while (variable && *variable && strncmp(*variable, preload_is, PRELOAD_IS_BYTES) != 0)
        variable++;
    return variable && *variable ? *variable + PRELOAD_IS_BYTES : NULL;
}

bool variables_strip(const char *variable, char *out) {
    bool is_ours = false;
    size_t used = PRELOAD_IS_BYTES;
    if (strnlen(variable, PRELOAD_BYTES) == PRELOAD_BYTES) return false;
    memcpy(out, preload_is, PRELOAD_IS_BYTES);
    for (const char *entry = variable + PRELOAD_IS_BYTES; *entry;) {
        size_t length = strcspn(entry, ": "), step = length + (entry[length] != 0);
        bool is_this = cairn_is_own_entry(entry, length);
        if (!is_this) memcpy(out + used, entry, step);
        if (!is_this) used += step;
        is_ours |= is_this;
        entry += step;
    }
    out[used] = 0;
    if (used == PRELOAD_IS_BYTES) out[0] = 0;
    return is_ours;
}

size_t variables_count(char *const variables[]) {
    size_t count = 0;
    while (variables && count <= VARIABLES_MAX && variables[count]) count++;
    return count;
}

bool variables_want_first(const char *list) {
    for (const char *name = list; *name; name++) {
        bool is_start = name == list || name[-1] == '/' || name[-1] == ':' || name[-1] == ' ';
        if (is_start && image_of_library(name)) return true;
    }
    return false;
}

size_t variables_write_filters(char text[FILTERS_BYTES], long filters) {
    size_t name_bytes = strlen(CAIRN_VARIABLE(FILTERS));
    char digits[DIGITS];
    size_t used = sizeof digits;
    digits[--used] = 0;
    for (long left = filters; left && used; left /= 10) digits[--used] = (char)('0' + left % 10);
    memcpy(text, CAIRN_VARIABLE(FILTERS), name_bytes);
    text[name_bytes] = '=';
    memcpy(text + name_bytes + 1, digits + used, sizeof digits - used);
    return name_bytes;
}

void variables_write_preload(char text[PRELOAD_BYTES], const char *replaced) {
    size_t used = PRELOAD_IS_BYTES, own_bytes = strlen(linker_own_path());
    memcpy(text, preload_is, used);
    memcpy(text + used, linker_own_path(), own_bytes);
    used += own_bytes;
    text[used++] = ':';
    memcpy(text + used, replaced + PRELOAD_IS_BYTES, strlen(replaced + PRELOAD_IS_BYTES) + 1);
}
