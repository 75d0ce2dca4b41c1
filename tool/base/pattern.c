// SPDX-License-Identifier: Apache-2.0
#include "tool/base/pattern.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
};

static bool refuse(const char *text, int number, size_t offset, struct error *error) {
    enum { REASON_BYTES = 160 };
    PCRE2_UCHAR reason[REASON_BYTES];
    if (pcre2_get_error_message(number, reason, sizeof reason) < 0) *reason = 0;
    return error_set(error, "%s, behind character %zu of \"%s\": \"%.*s\" <- here", (char *)reason,
                     offset, text, (int)offset, text);
}

bool pattern_compile(const char *text, struct pattern **pattern, struct error *error) {
    int number;
    PCRE2_SIZE offset;
    struct pattern *made = calloc(1, sizeof *made);
    *pattern = made;
    if (!made) return error_set(error, "no memory for an expression");
    made->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &number, &offset, NULL);
    bool is_ok = made->code || refuse(text, number, offset, error);
    if (is_ok) {
        pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE);  // without it searches are slower
        made->match = pcre2_match_data_create_from_pattern(made->code, NULL);
        is_ok = made->match || error_set(error, "no memory for an expression");
    }
    if (is_ok) return true;
    pattern_free(made);
    *pattern = NULL;
    return false;
}

void pattern_free(struct pattern *pattern) {
    if (!pattern) return;
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text) {
    const uint32_t options = PCRE2_NO_UTF_CHECK;
    int count = pcre2_match(pattern->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, options,
                            pattern->match, NULL);
    return count >= 0;
}
