// SPDX-License-Identifier: Apache-2.0
#include "tool/render/moments_screen.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/moments.h"

enum { TIME_COLUMNS = 10, SIZE_COLUMNS = 12, LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES };

static const char *reason_text(enum cairn_moment_reason reason) {
    static const char *const texts[] = {[CAIRN_MOMENT_CHURN] = "much was allocated and freed",
                                        [CAIRN_MOMENT_HIGH] = "a new height",
                                        [CAIRN_MOMENT_ASKED] = "snapshot",
                                        [CAIRN_MOMENT_MARK] = "mark",
                                        [CAIRN_MOMENT_EXIT] = "the exit handlers had run"};
    return texts[reason];
}

// A mark of a fork is from before it was one: only its name is known.
static void print_moment(const struct terminal *terminal, const struct moment *moment,
                         const struct view_options *view) {
    char label[LABEL_TEXT_BYTES];
    text_escape(label, sizeof label, moment->label);
    if (moment->has_values)
        fprintf(terminal->out, "%*s%*s%*s%*s  ", TIME_COLUMNS, units_duration(moment->at_ns).text,
                SIZE_COLUMNS, units_size_as(moment->live_bytes, view->is_plain_number).text,
                SIZE_COLUMNS, units_count(moment->live_blocks).text, SIZE_COLUMNS,
                units_size_as((int64_t)moment->allocated_bytes, view->is_plain_number).text);
    else
        terminal_print(terminal, STYLE_DIM, "%*s  ", TIME_COLUMNS + 3 * SIZE_COLUMNS,
                       "what stacks held is not known");
    fprintf(terminal->out, "%s%s%s%s", reason_text(moment->reason), *label ? " \"" : "", label,
            *label ? "\"" : "");
    if (moment->missing_values)
        terminal_print(
            terminal, STYLE_WARNING, "  %s missing",
            units_counted((int64_t)moment->missing_values, "value is", "values are").text);
    fputc('\n', terminal->out);
}

bool moments_print(const struct terminal *terminal, const struct profile *profile,
                   const struct view_options *view, struct error *error) {
    struct moments moments;
    if (profile_is_sum(profile))
        return error_set(error, "moments are known of each process alone: -p PID or NAME");
    if (!moments_build(&moments, profile, error)) return false;
    terminal_print(terminal, STYLE_STRONG, "%s",
                   units_counted((int64_t)moments.count, "moment", "moments").text);
    terminal_print(terminal, STYLE_DIM, ": what stacks held is known of %s, the peak and the end\n",
                   moments.count ? "these" : "no others than");
    if (moments.count)
        terminal_print(terminal, STYLE_DIM, "%*s%*s%*s%*s\n", TIME_COLUMNS, "at", SIZE_COLUMNS,
                       "live", SIZE_COLUMNS, "blocks", SIZE_COLUMNS, "allocated");
    for (size_t i = 0; i < moments.count; i++) print_moment(terminal, &moments.list[i], view);
    moments_free(&moments);
    return true;
}

bool moments_json_put(struct json *json, const struct profile *profile) {
    struct moments moments;
    struct error error;
    bool is_ok = moments_build(&moments, profile, &error);
    json_open_array(json, "moments");
    for (size_t i = 0; is_ok && i < moments.count; i++) {
        const struct moment *moment = &moments.list[i];
        json_open_object(json, NULL);
        json_put_uint(json, "at_ns", moment->at_ns);
        json_put_string(json, "reason", moment_reason_name(moment->reason));
        json_put_string(json, "label", moment->label);
        json_put_uint(json, "generation", moment->generation);
        json_put_int(json, "live_bytes", moment->live_bytes);
        json_put_int(json, "live_blocks", moment->live_blocks);
        json_put_uint(json, "allocated_bytes", moment->allocated_bytes);
        json_put_uint(json, "allocations", moment->allocations);
        json_put_uint(json, "missing_values", moment->missing_values);
        json_put_bool(json, "has_values", moment->has_values);
        json_close(json);
    }
    json_close(json);
    if (is_ok) moments_free(&moments);
    return is_ok;
}
