// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/requests.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool request_cut_pid(const char **path, pid_t *pid) {
    static const char prefix[] = "/pid/";
    const long most = 1 << 22;  // PID_MAX_LIMIT of the kernel
    if (strncmp(*path, prefix, strlen(prefix)) != 0) return false;
    const char *digits = *path + strlen(prefix);
    size_t count = strspn(digits, "0123456789");
    if (!count || count > REQUEST_PID_DIGITS || (digits[count] && digits[count] != '/'))
        return false;
    long number = strtol(digits, NULL, 10);
    *pid = number <= most ? (pid_t)number : 0;
    *path = digits + count;
    return true;
}

bool request_seconds(const char *text, unsigned *seconds) {
    enum { DIGITS_MAX = 4 };
    *seconds = 0;
    if (!text) return true;
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > DIGITS_MAX || text[digits]) return false;
    *seconds = (unsigned)strtoul(text, NULL, 10);
    return *seconds <= REQUEST_SECONDS_MAX;
}

bool request_next_address(const char **text, const char *end, uint64_t *address) {
    enum { DIGITS_MAX = 16, BASE = 16 };
    const char *at = *text;
    char digits[DIGITS_MAX + 1];
    size_t count = 0;
    while (at < end && (isspace((unsigned char)*at) || *at == '+')) at++;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) at += 2;
    for (; at < end && isxdigit((unsigned char)*at); at++) {
        if (count == DIGITS_MAX) return false;
        digits[count++] = *at;
    }
    digits[count] = 0;
    *text = at;
    *address = strtoull(digits, NULL, BASE);
    return count > 0;
}
