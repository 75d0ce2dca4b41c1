// SPDX-License-Identifier: Apache-2.0
#include "tool/render/interval.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"

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

static struct unit_text amount_text(int64_t amount, bool is_bytes, bool is_plain_number) {
    return is_bytes ? units_size_as(amount, is_plain_number) : units_count(amount);
}

struct unit_text interval_amount(struct measured measured, bool is_bytes, bool is_plain_number) {
    int64_t interval = measured_interval(measured), value = measured.value;
    int64_t least = measured_least(measured);
    struct unit_text text;
    int64_t end = measured_most(measured);
    bool is_whole = least == value - interval && end == value + interval;
    if (!interval || value < 0 || is_whole)
        return interval_text(measured, is_bytes, is_plain_number);
    int64_t shown = measured_shown(measured);
    struct unit_text own = amount_text(shown, is_bytes, is_plain_number);
    struct unit_text low = amount_text(least, is_bytes, is_plain_number);
    struct unit_text most = amount_text(end, is_bytes, is_plain_number);
    bool is_alike = !strcmp(own.text, most.text) && !strcmp(own.text, low.text);
    int64_t half = end - shown > shown - least ? end - shown : shown - least;
    if (end < value && least >= end)
        snprintf(text.text, sizeof text.text, " (at most)");
    else if (is_alike)
        snprintf(text.text, sizeof text.text, " (%s%.10s)", least >= shown ? "+ " : plus_minus,
                 units_percent(half, shown).text);
    else if (least >= value)
        snprintf(text.text, sizeof text.text, " (up to %.30s)", most.text);
    else
        snprintf(text.text, sizeof text.text, " (%.16s to %.16s)", low.text, most.text);
    return text;
}

struct unit_text interval_samples(struct measured measured) {
    struct unit_text text = {""};
    int64_t samples = measured_samples(measured), certain = estimate_certain(&measured.estimate);
    if (!measured_interval(measured)) return text;
    const char *warning = measured_is_unreliable(measured) ? ", unreliable" : "";
    if (!certain && !samples) return text;
    if (!certain)
        snprintf(text.text, sizeof text.text, " (%.20s%s)",
                 units_counted(samples, "sample", "samples").text, warning);
    else if (!samples)
        snprintf(text.text, sizeof text.text, " (%.12s certain%s)", units_count(certain).text,
                 warning);
    else
        snprintf(text.text, sizeof text.text, " (%.20s, %.12s certain%s)",
                 units_counted(samples, "sample", "samples").text, units_count(certain).text,
                 warning);
    return text;
}

// `is_narrow`: without the word for what is counted.
static struct unit_text note_of(struct measured measured, bool is_narrow) {
    struct unit_text text;
    int64_t interval = measured_interval(measured);
    int64_t samples = measured_samples(measured), certain = estimate_certain(&measured.estimate);
    struct unit_text count = units_count(samples);
    const char *word = is_narrow ? "" : samples == 1 ? " sample" : " samples";
    bool is_nothing = !samples && !certain && !measured.value;
    bool is_bound = !samples && certain && measured.value > 0;
    if (is_bound && interval)
        snprintf(text.text, sizeof text.text, "+ %.10s, %s%scertain",
                 units_percent(interval, measured.value).text,
                 is_narrow ? "" : units_count(certain).text, is_narrow ? "" : " ");
    else if (!interval || is_nothing)
        snprintf(text.text, sizeof text.text, "%s",
                 !is_nothing ? "exact"
                 : is_narrow ? "none"
                             : "no sample");
    else if (measured_is_unreliable(measured))
        snprintf(text.text, sizeof text.text, "%s%s, unreliable", count.text, word);
    else if (measured_most(measured) < measured.value)
        snprintf(text.text, sizeof text.text, "%s, %s%s", is_narrow ? "\xe2\x89\xa4" : "at most",
                 count.text, word);
    else
        snprintf(text.text, sizeof text.text, "%s%s, %s%s", plus_minus,
                 units_percent(interval, measured.value).text, count.text, word);
    return text;
}

struct unit_text interval_note(struct measured measured) {
    return note_of(measured, false);
}

void interval_print(const struct terminal *terminal, struct measured measured, bool is_narrow) {
    struct unit_text note = note_of(measured, is_narrow);
    size_t room = is_narrow ? INTERVAL_NARROW_COLUMNS : INTERVAL_NOTE_COLUMNS;
    size_t columns = text_columns(note.text);
    terminal_indent(terminal, 2);
    terminal_print(terminal, measured_is_unreliable(measured) ? STYLE_WARNING : STYLE_DIM, "%s",
                   note.text);
    terminal_indent(terminal, room > columns ? room - columns : 0);
}

void interval_add_part(struct parts *parts, const char *name, struct measured measured,
                       bool is_bytes, bool is_plain_number) {
    if (measured_interval(measured))
        parts_add(parts, measured_is_unreliable(measured) ? STYLE_WARNING : STYLE_DIM, "%s%s%s",
                  name, interval_amount(measured, is_bytes, is_plain_number).text,
                  interval_samples(measured).text);
    else
        parts_add(parts, STYLE_DIM, "%s %s", name, interval_note(measured).text);
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
