// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: `20.7 MiB`, `31,204`, `3.1 M/s`, `0.52 s`, `62 %`; and sizes back.
// Sizes are base 1024 in both directions. The texts come back by value, so that they can be used
// in the middle of a printf.
#ifndef TOOL_BASE_UNITS_H
#define TOOL_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

struct unit_text {
    char text[64];
};

struct unit_text units_size(int64_t bytes);   // "9.6 KiB", "-12 B"
struct unit_text units_count(int64_t count);  // "1,626,574"

// The form of a noun that goes with the number, and both: "1 block", "1,024 blocks".
const char *units_noun(int64_t count, const char *one, const char *many);
struct unit_text units_counted(int64_t count, const char *one, const char *many);

struct unit_text units_rate(uint64_t count, uint64_t duration_ns);    // "3.1 M/s"; "" for no time
struct unit_text units_duration(uint64_t duration_ns);                // "0.52 s", "2 min 05 s"
struct unit_text units_percent(int64_t part, int64_t whole);          // "62 %", "3.4 %"
struct unit_text units_size_as(int64_t bytes, bool is_plain_number);  // plain: "9830"

// Reads "4096", "10K", "1.5 MiB", "2g"; false if `text` is something else or does not fit.
bool units_size_parse(const char *text, uint64_t *bytes);

// Reads "10s", "500 ms", "1.5m", "2h", "1d", "10" (seconds); false if `text` is something else or
// does not fit.
bool units_duration_parse(const char *text, uint64_t *ns);

#endif
