// SPDX-License-Identifier: Apache-2.0
#include "tool/query/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { MESSAGE_BYTES = 1024 };

int command_fail(int status, const struct error *error) {
    char text[MESSAGE_BYTES];
    text_escape(text, sizeof text, error->text);
    fprintf(stderr, "cairn: %s\n", text);
    return status;
}

const struct option_row *option_row_of(const struct command *command, enum option_id option) {
    const struct option_row *row = command->options;
    while (row->name && row->id != option) row++;
    return row->name ? row : NULL;
}

bool args_has(const struct command_args *args, enum option_id option) {
    return args->values[option] != NULL;
}

const char *args_text(const struct command_args *args, enum option_id option,
                      const char *otherwise) {
    return args->values[option] ? args->values[option] : otherwise;
}

const char *args_next(const struct command_args *args, enum option_id option, size_t *index) {
    while (*index < args->given_count) {
        const struct given_option *given = &args->given[(*index)++];
        if (given->id == option) return given->value;
    }
    return NULL;
}

bool args_number(const struct command_args *args, enum option_id option, uint64_t otherwise,
                 uint64_t most, uint64_t *number, struct error *error) {
    const char *text = args->values[option];
    *number = otherwise;
    if (!text) return true;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool is_number = isdigit((unsigned char)*text) && !*end && !errno && value <= most;
    if (!is_number) {
        const struct option_row *row = option_row_of(args->command, option);
        return error_set(error, "%s: --%s needs a number, not \"%s\"", args->command->name,
                         row ? row->name : "option", text);
    }
    *number = value;
    return true;
}

bool args_size(const struct command_args *args, enum option_id option, uint64_t *bytes,
               struct error *error) {
    const char *text = args->values[option];
    *bytes = 0;
    if (!text || (units_size_parse(text, bytes) && *bytes)) return true;
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a size such as 64M, not \"%s\"", args->command->name,
                     row ? row->name : "option", text);
}

bool args_size_or_none(const struct command_args *args, enum option_id option, uint64_t *bytes,
                       struct error *error) {
    const char *text = args->values[option];
    *bytes = 0;
    return (text && !strcmp(text, "0")) || args_size(args, option, bytes, error);
}

bool args_duration(const struct command_args *args, enum option_id option, uint64_t *ns,
                   struct error *error) {
    const char *text = args->values[option];
    *ns = 0;
    if (!text || (units_duration_parse(text, ns) && *ns)) return true;
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a time such as 10s, 500ms, 2m or 1h, not \"%s\"",
                     args->command->name, row ? row->name : "option", text);
}

bool args_percent(const struct command_args *args, enum option_id option, double otherwise,
                  double *share, struct error *error) {
    const double whole = 100;
    const char *text = args->values[option];
    *share = otherwise;
    if (!text) return true;
    char *end;
    double value = strtod(text, &end);
    bool is_right = isdigit((unsigned char)*text) && value >= 0 && value <= whole;
    if (is_right && (!*end || !strcmp(end, "%"))) {
        *share = value / whole;
        return true;
    }
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a share from 0 to 100 such as 0.2%%, not \"%s\"",
                     args->command->name, row ? row->name : "option", text);
}
