// SPDX-License-Identifier: Apache-2.0
#include "tool/base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KIBI = 1024, KILO = 1000, NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };
enum { S_PER_MIN = 60, S_PER_HOUR = 3600 };

static const char *const size_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
enum { SIZE_UNIT_COUNT = sizeof size_units / sizeof *size_units };

// One decimal below 100, none from there on: three significant digits at most.
static const double one_decimal_below = 99.95;

struct unit_text units_size(int64_t bytes) {
    struct unit_text out;
    double value = (double)bytes;
    unsigned unit = 0;
    // 1023.5 of a unit would be printed as 1024
    while (fabs(value) >= KIBI - 0.5 && unit + 1 < SIZE_UNIT_COUNT) {
        value /= KIBI;
        unit++;
    }
    int decimals = unit > 0 && fabs(value) < one_decimal_below;
    snprintf(out.text, sizeof out.text, "%.*f %s", decimals, value, size_units[unit]);
    return out;
}

struct unit_text units_size_as(int64_t bytes, bool is_plain_number) {
    if (!is_plain_number) return units_size(bytes);
    struct unit_text out;
    snprintf(out.text, sizeof out.text, "%lld", (long long)bytes);
    return out;
}

struct unit_text units_count(int64_t count) {
    enum { GROUP = 3 };
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    struct unit_text out;
    char *end = out.text;
    for (int i = 0; i < length; i++) {
        bool is_group_start = i > 0 && digits[i - 1] != '-' && (length - i) % GROUP == 0;
        if (is_group_start) *end++ = ',';
        *end++ = digits[i];
    }
    *end = 0;
    return out;
}

const char *units_noun(int64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

struct unit_text units_counted(int64_t count, const char *one, const char *many) {
    struct unit_text out;
    snprintf(out.text, sizeof out.text, "%s %s", units_count(count).text,
             units_noun(count, one, many));
    return out;
}

struct unit_text units_rate(uint64_t count, uint64_t duration_ns) {
    static const char *const prefixes[] = {"", "k", "M", "G"};
    enum { LAST_PREFIX = sizeof prefixes / sizeof *prefixes - 1 };
    struct unit_text out = {""};
    if (!duration_ns) return out;
    double rate = (double)count * NS_PER_S / (double)duration_ns;
    unsigned prefix = 0;
    for (; rate >= KILO - 0.5 && prefix < LAST_PREFIX; prefix++) rate /= KILO;
    int decimals = prefix > 0 && rate < one_decimal_below;
    snprintf(out.text, sizeof out.text, "%.*f %s/s", decimals, rate, prefixes[prefix]);
    return out;
}

static struct unit_text long_duration(uint64_t seconds) {
    struct unit_text out;
    if (seconds < S_PER_HOUR)
        snprintf(out.text, sizeof out.text, "%u min %02u s", (unsigned)(seconds / S_PER_MIN),
                 (unsigned)(seconds % S_PER_MIN));
    else
        snprintf(out.text, sizeof out.text, "%llu h %02u min",
                 (unsigned long long)(seconds / S_PER_HOUR),
                 (unsigned)(seconds % S_PER_HOUR / S_PER_MIN));
    return out;
}

struct unit_text units_duration(uint64_t duration_ns) {
    const uint64_t long_from_ns = 100ull * NS_PER_S;
    if (duration_ns >= long_from_ns)
        return long_duration(duration_ns / NS_PER_S + (duration_ns % NS_PER_S >= NS_PER_S / 2));
    struct unit_text out;
    double ns = (double)duration_ns;
    if (duration_ns < NS_PER_MS)
        snprintf(out.text, sizeof out.text, "%.0f us", ns / NS_PER_US);
    else if (duration_ns < 100ull * NS_PER_MS)
        snprintf(out.text, sizeof out.text, "%.1f ms", ns / NS_PER_MS);
    else if (duration_ns < 10ull * NS_PER_S)
        snprintf(out.text, sizeof out.text, "%.2f s", ns / NS_PER_S);
    else
        snprintf(out.text, sizeof out.text, "%.1f s", ns / NS_PER_S);
    return out;
}

struct unit_text units_percent(int64_t part, int64_t whole) {
    struct unit_text out = {"-"};
    if (whole <= 0) return out;
    const double one_decimal_below_percent = 9.95;
    double percent = 100.0 * (double)part / (double)whole;
    int decimals = fabs(percent) < one_decimal_below_percent && part != 0;
    snprintf(out.text, sizeof out.text, "%.*f %%", decimals, percent);
    return out;
}

// "K", "kb", "KiB" and the like all mean base 1024; -1 for what is no unit.
static int unit_exponent(const char *text) {
    static const char letters[] = "bkmgtpe";
    if (!*text) return 0;
    const char *letter = strchr(letters, tolower((unsigned char)*text));
    if (!letter) return -1;
    int exponent = (int)(letter - letters);
    const char *rest = text + 1;
    bool is_known = !*rest || (exponent > 0 && (!strcasecmp(rest, "b") || !strcasecmp(rest, "ib")));
    return is_known ? exponent : -1;
}

bool units_size_parse(const char *text, uint64_t *bytes) {
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    double value = strtod(text, &end);
    while (*end == ' ') end++;
    int exponent = unit_exponent(end);
    if (exponent < 0 || (text[0] == '0' && tolower((unsigned char)text[1]) == 'x')) return false;
    value = ldexp(value, exponent * 10);
    const double limit = 0x1p63;
    if (!(value < limit)) return false;
    *bytes = (uint64_t)value;
    return true;
}

bool units_duration_parse(const char *text, uint64_t *ns) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", NS_PER_S},
                 {"us", NS_PER_US},
                 {"ms", NS_PER_MS},
                 {"s", NS_PER_S},
                 {"min", (double)S_PER_MIN * NS_PER_S},
                 {"m", (double)S_PER_MIN * NS_PER_S},
                 {"h", (double)S_PER_HOUR * NS_PER_S},
                 {"d", 24.0 * S_PER_HOUR * NS_PER_S}};
    const double limit = 0x1p63;
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    double value = strtod(text, &end);
    if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x') return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0 || !(value * units[i].ns < limit)) continue;
        *ns = (uint64_t)(value * units[i].ns + 0.5);
        return true;
    }
    return false;
}
