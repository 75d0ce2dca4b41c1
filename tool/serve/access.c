// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tool/base/text.h"

enum { HEADER_MAX = 2048, HOST_MAX = 256 };

bool access_read_token(struct access_rule *rule, const char *path, struct error *error) {
    char line[ACCESS_TOKEN_MAX + 2];
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "--token %s: %s", path, strerror(errno));
    bool has_line = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    size_t length = has_line ? strcspn(line, "\r\n") : 0;
    if (length > ACCESS_TOKEN_MAX)
        return error_set(error, "--token %s: longer than %d characters", path, ACCESS_TOKEN_MAX);
    if (length < ACCESS_TOKEN_MIN)
        return error_set(error, "--token %s: its first line has to have %d characters or more",
                         path, ACCESS_TOKEN_MIN);
    for (size_t i = 0; i < length; i++)
        if (line[i] <= ' ' || line[i] > '~')
            return error_set(error, "--token %s: a blank, or no printable ASCII, in its first line",
                             path);
    memcpy(rule->token, line, length);
    rule->token[length] = 0;
    return true;
}

// Looks at each byte of the given text once, whatever it is.
static bool is_token(const struct access_rule *rule, const char *given, size_t length) {
    size_t wanted = strlen(rule->token);
    volatile unsigned differs = length != wanted;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned)((unsigned char)given[i] ^ (unsigned char)rule->token[i % wanted]);
    return !differs;
}

static int letter_value(char letter) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? (int)(found - letters) : -1;
}

// Stops at what is no letter of base64; `out` has room for as many bytes as there are letters.
static size_t decode_base64(const char *text, size_t length, char *out) {
    const unsigned letter_bits = 6, byte_bits = 8;
    uint32_t held = 0;
    unsigned bits = 0;
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        int value = letter_value(text[i]);
        if (value < 0) break;
        held = held << letter_bits | (uint32_t)value;
        bits += letter_bits;
        if (bits < byte_bits) continue;
        bits -= byte_bits;
        out[size++] = (char)(held >> bits);
    }
    return size;
}

static bool is_password(const struct access_rule *rule, const char *text, size_t length) {
    char decoded[HEADER_MAX];
    size_t size = decode_base64(text, length, decoded);
    const char *colon = memchr(decoded, ':', size);
    if (!colon) return false;
    return is_token(rule, colon + 1, size - (size_t)(colon + 1 - decoded));
}

bool access_is_allowed(const struct access_rule *rule, const char *authorization) {
    static const char bearer[] = "Bearer ", basic[] = "Basic ";
    if (!*rule->token) return true;
    size_t length = authorization ? strnlen(authorization, HEADER_MAX) : HEADER_MAX;
    if (length >= HEADER_MAX) return false;
    const char *value = strchr(authorization, ' ');
    if (!value) return false;
    value += strspn(value, " ");
    length -= (size_t)(value - authorization);
    if (!strncasecmp(authorization, bearer, strlen(bearer))) return is_token(rule, value, length);
    return !strncasecmp(authorization, basic, strlen(basic)) && is_password(rule, value, length);
}

bool access_host_is_right(const struct access_rule *rule, const char *host) {
    char name[HOST_MAX];
    struct in6_addr address;
    if (rule->is_unix || *rule->token || !host) return true;
    size_t length = strnlen(host, sizeof name);
    if (length == sizeof name) return false;
    memcpy(name, host, length + 1);
    char *colon = strrchr(name, ':'), *bracket = strrchr(name, ']');
    if (colon && colon > bracket && !colon[1 + strspn(colon + 1, "0123456789")]) *colon = 0;
    if (*name == '[') {
        if (!bracket || bracket[1]) return false;
        *bracket = 0;
        return inet_pton(AF_INET6, name + 1, &address) == 1;
    }
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1;
}
