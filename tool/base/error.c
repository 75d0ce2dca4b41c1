// SPDX-License-Identifier: Apache-2.0
#include "tool/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *error, const char *format, ...) {
    if (!error) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

bool error_wrap(struct error *error, const char *format, ...) {
    if (!error) return false;
    struct error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (used < 0 || (size_t)used >= sizeof error->text) return false;
    size_t room = sizeof error->text - (size_t)used;
    snprintf(error->text + used, room, ": ");
    if (room > sizeof ": ")
        snprintf(error->text + used + 2, room - 2, "%.*s", (int)(room - sizeof ": "), inner.text);
    return false;
}
