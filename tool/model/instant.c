// SPDX-License-Identifier: Apache-2.0
#include "tool/model/instant.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum {
    LABELS_BYTES = 256,
    LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES,
    MINUTE_S = 60,
    DAY_S = 24 * 60 * 60
};
static const uint64_t second_ns = 1000000000;

static uint64_t end_ns(const struct moments *moments) {
    uint64_t end = recording_last_ns(moments->profile->recording);
    for (size_t i = 0; i < moments->count; i++)
        if (moments->list[i].at_ns > end) end = moments->list[i].at_ns;
    return end > moments->profile->peak.at_ns ? end : moments->profile->peak.at_ns;
}

static struct instant at_moment(const struct moments *moments, size_t index) {
    return (struct instant){
        .kind = INSTANT_MOMENT, .moment = index, .at_ns = moments->list[index].at_ns};
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

static struct instant nearest(const struct moments *moments, uint64_t wanted_ns) {
    struct instant best = {.kind = INSTANT_PEAK, .at_ns = moments->profile->peak.at_ns};
    struct instant last = {.kind = INSTANT_EXIT, .at_ns = end_ns(moments)};
    if (distance(last.at_ns, wanted_ns) < distance(best.at_ns, wanted_ns)) best = last;
    for (size_t i = 0; i < moments->count; i++) {
        const struct moment *moment = &moments->list[i];
        bool is_nearer = distance(moment->at_ns, wanted_ns) < distance(best.at_ns, wanted_ns);
        if (moment->has_values && is_nearer) best = at_moment(moments, i);
    }
    best.is_nearest = true;
    best.wanted_ns = wanted_ns;
    return best;
}

// Two digits and what must follow them.
static bool read_two(const char **text, int *number) {
    if (!isdigit((unsigned char)(*text)[0]) || !isdigit((unsigned char)(*text)[1])) return false;
    *number = ((*text)[0] - '0') * 10 + (*text)[1] - '0';
    *text += 2;
    return true;
}

// "14:30" or "14:30:05".
static bool read_clock(const char *text, struct tm *tm) {
    tm->tm_sec = 0;
    if (!read_two(&text, &tm->tm_hour) || *text++ != ':' || !read_two(&text, &tm->tm_min))
        return false;
    if (*text == ':' && (text++, !read_two(&text, &tm->tm_sec))) return false;
    return !*text && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

// "2026-11-21 " or "2026-11-21T" in front; what follows it, or NULL.
static const char *read_date(const char *text, struct tm *tm) {
    int year, month, day, length = 0;
    char separator = 0;
    if (sscanf(text, "%4d-%2d-%2d%c%n", &year, &month, &day, &separator, &length) < 4 ||
        (separator != ' ' && separator != 'T'))
        return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return text + length;
}

// A time of the clock as an offset; a time without a date is the first one not before the start, or
// the second or minute of the start itself.
static bool read_wall_time(const struct moments *moments, const char *text, uint64_t *ns) {
    const struct cairn_header *header = &moments->profile->recording->header;
    time_t start = (time_t)(header->start_unix_ns / second_ns);
    struct tm tm;
    tzset();
    if (!localtime_r(&start, &tm)) return false;
    const char *clock = read_date(text, &tm);
    if (!read_clock(clock ? clock : text, &tm)) return false;
    tm.tm_isdst = -1;
    time_t wanted = mktime(&tm), length = strchr(strchr(text, ':') + 1, ':') ? 1 : MINUTE_S;
    if (!clock && wanted + length < start) wanted += DAY_S;
    *ns = wanted > start ? (uint64_t)(wanted - start) * second_ns : 0;
    return true;
}

static bool read_time(const struct moments *moments, const char *text, uint64_t *ns) {
    uint64_t end = end_ns(moments);
    bool is_from_end = *text == '-';
    if (!units_duration_parse(text + is_from_end, ns)) return read_wall_time(moments, text, ns);
    if (is_from_end) *ns = *ns < end ? end - *ns : 0;
    return true;
}

// The last moment of that label.
static bool find_label(const struct moments *moments, const char *text, struct instant *instant) {
    for (size_t i = moments->count; i-- > 0;) {
        if (!*moments->list[i].label || strcmp(moments->list[i].label, text) != 0) continue;
        *instant = at_moment(moments, i);
        return true;
    }
    return false;
}

// "; labels: warm, load" or nothing.
static void list_labels(const struct moments *moments, bool are_marks, char *out, size_t size) {
    const char *separator = are_marks ? "; marks: " : "; labels: ";
    *out = 0;
    for (size_t i = 0; i < moments->count; i++) {
        const struct moment *moment = &moments->list[i];
        if (!*moment->label || (are_marks && moment->reason != CAIRN_MOMENT_MARK)) continue;
        char label[LABEL_TEXT_BYTES];
        size_t used = strlen(out);
        text_escape(label, sizeof label, moment->label);
        snprintf(out + used, size - used, "%s%s", separator, label);
        separator = ", ";
    }
}

static bool refuse(const struct moments *moments, const char *text, bool are_marks,
                   struct error *error) {
    char labels[LABELS_BYTES];
    list_labels(moments, are_marks, labels, sizeof labels);
    error_set(error, "\"%s\" is no %s, nor a time such as 10s, -1m or 14:30%s", text,
              are_marks ? "mark" : "label", labels);
    return false;
}

bool instant_find(const struct moments *moments, const char *text, struct instant *instant,
                  struct error *error) {
    uint64_t wanted_ns;
    if (find_label(moments, text, instant)) {
        if (moments->list[instant->moment].has_values) return true;
        return error_set(error,
                         "what stacks held at \"%s\" is not in this recording: --since %s works "
                         "for marks",
                         text, text);
    }
    if (!strcmp(text, "peak")) {
        *instant = (struct instant){.kind = INSTANT_PEAK, .at_ns = moments->profile->peak.at_ns};
        return true;
    }
    if (!strcmp(text, "exit") || !strcmp(text, "now")) {
        *instant = (struct instant){.kind = INSTANT_EXIT, .at_ns = end_ns(moments)};
        return true;
    }
    if (!read_time(moments, text, &wanted_ns)) return refuse(moments, text, false, error);
    *instant = nearest(moments, wanted_ns);
    return true;
}

bool instant_find_mark(const struct moments *moments, const char *text, struct instant *instant,
                       struct error *error) {
    uint64_t wanted_ns;
    if (find_label(moments, text, instant)) {
        if (moments->list[instant->moment].reason == CAIRN_MOMENT_MARK) return true;
        return error_set(error,
                         "\"%s\" is a snapshot: what was allocated since is known of marks "
                         "(cairn ctl mark); --between %s,exit has the difference",
                         text, text);
    }
    if (!read_time(moments, text, &wanted_ns)) return refuse(moments, text, true, error);
    for (size_t i = moments->count; i-- > 0;) {
        const struct moment *moment = &moments->list[i];
        if (moment->reason != CAIRN_MOMENT_MARK || moment->at_ns > wanted_ns) continue;
        *instant = at_moment(moments, i);
        instant->is_nearest = true;
        instant->wanted_ns = wanted_ns;
        return true;
    }
    char labels[LABELS_BYTES];
    list_labels(moments, true, labels, sizeof labels);
    return error_set(error, "there was no mark before %s%s", units_duration(wanted_ns).text,
                     labels);
}

struct held *instant_held(const struct moments *moments, const struct instant *instant) {
    const struct profile *profile = moments->profile;
    if (instant->kind == INSTANT_MOMENT) return moments_held(moments, instant->moment);
    struct held *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t i = 0; held && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool is_peak = instant->kind == INSTANT_PEAK;
        held[stack->number].bytes = is_peak ? stack->peak_bytes : stack->exit_bytes;
        held[stack->number].blocks = is_peak ? stack->peak_blocks : stack->exit_blocks;
    }
    return held;
}

void instant_text(const struct moments *moments, const struct instant *instant, char *out,
                  size_t size) {
    char what[LABEL_TEXT_BYTES + 16] = "the peak", near[64] = "";
    if (instant->kind == INSTANT_EXIT)
        snprintf(what, sizeof what,
                 profile_has_ended(moments->profile) ? "the end" : "the present");
    if (instant->kind == INSTANT_MOMENT) {
        const struct moment *moment = &moments->list[instant->moment];
        char label[LABEL_TEXT_BYTES];
        text_escape(label, sizeof label, moment->label);
        const char *kind = moment->reason == CAIRN_MOMENT_MARK ? "mark" : "snapshot";
        snprintf(what, sizeof what, "%s%s%s%s", kind, *label ? " \"" : "", label,
                 *label ? "\"" : "");
    }
    if (instant->is_nearest && instant->at_ns != instant->wanted_ns)
        snprintf(near, sizeof near, ", nearest to %s", units_duration(instant->wanted_ns).text);
    snprintf(out, size, "%s, at %s%s", what, units_duration(instant->at_ns).text, near);
}
