// SPDX-License-Identifier: Apache-2.0
#include "tool/render/interval.h"

#include <stdio.h>

static const char plus_minus[] = "\xc2\xb1 ";

struct unit_text interval_text(struct measured measured, bool is_bytes, bool is_plain_number) {
    struct unit_text text = {""};
    int64_t interval = measured_interval(measured);
    if (!interval) return text;
    struct unit_text value =
        is_bytes ? units_size_as(interval, is_plain_number) : units_count(interval);
    snprintf(text.text, sizeof text.text, " %s%s", plus_minus, value.text);
    return text;
}

struct unit_text interval_note(struct measured measured) {
    struct unit_text text = {"exact"};
    int64_t interval = measured_interval(measured);
    struct unit_text count = units_count(measured.samples);
    const char *plural = measured.samples == 1 ? "" : "s";
    if (!interval) return text;
    if (measured_is_unreliable(measured))
        snprintf(text.text, sizeof text.text, "%s sample%s, unreliable", count.text, plural);
    else
        snprintf(text.text, sizeof text.text, "%s%s, %s sample%s", plus_minus,
                 units_percent(interval, measured.value).text, count.text, plural);
    return text;
}

struct unit_text interval_rate(const struct cairn_sampling *sampling) {
    struct unit_text text;
    uint64_t least = sampling->rate_bytes, now = sampling->rate_now_bytes;
    if (now && now < least) least = now;  // cairn ctl rate
    struct unit_text rate = units_size((int64_t)least);
    struct unit_text most = units_size((int64_t)sampling->rate_most_bytes);
    bool is_steady = sampling->rate_most_bytes == least;
    snprintf(text.text, sizeof text.text, "sampled, 1 in %s%s%s", rate.text,
             is_steady ? "" : " to ", is_steady ? "" : most.text);
    return text;
}
