// SPDX-License-Identifier: Apache-2.0
#include "tool/query/exported.h"
#include "tool/base/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/query/arguments.h"
#include "tool/render/interval.h"
#include "tool/render/trust.h"

enum { LINE_COLUMNS = 4000, FILTER_TEXT_BYTES = 1024 };

char *exported_trust_text(const struct profile *profile, const struct frame_names *names) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    struct terminal terminal = {.out = out, .columns = LINE_COLUMNS};
    trust_print(&terminal, profile, names);
    if (fclose(out) || !text) {
        free(text);
        return NULL;
    }
    text[strcspn(text, "\n")] = 0;
    size_t blanks = strspn(text, " ");
    memmove(text, text + blanks, strlen(text + blanks) + 1);
    return text;
}

// In front of the trust line of one: what adding up means.
static bool say_sum(const struct opened *opened, char **trust) {
    char *alone = *trust;
    char lost[96] = "";
    if (opened->bad_files)
        snprintf(lost, sizeof lost, " (%s could not be read)",
                 units_counted((int64_t)opened->bad_files, "recording", "recordings").text);
    int length = asprintf(
        trust, "%s, each at its own peak%s \xc2\xb7 %s",
        units_counted((int64_t)opened->process_count, "process", "processes").text, lost, alone);
    free(alone);
    if (length < 0) *trust = NULL;
    return length >= 0;
}

// Whose figures these are, where they are not malloc's.
static bool say_heap(const char *heap, char **trust) {
    char name[CAIRN_LABEL_TEXT], *alone = *trust;
    text_escape(name, sizeof name, heap);
    int length = asprintf(trust, "heap %s, as its row of --wrap says \xc2\xb7 %s", name, alone);
    free(alone);
    if (length < 0) *trust = NULL;
    return length >= 0;
}

static bool say_all_heaps(char **trust) {
    char *alone = *trust;
    int length = asprintf(trust,
                          "all heaps, each at its own peak, those by name as their rows of --wrap "
                          "say; backing is what they took from malloc \xc2\xb7 %s",
                          alone);
    free(alone);
    if (length < 0) *trust = NULL;
    return length >= 0;
}

bool exported_prepare_with(struct opened *opened, const struct frame_names *names,
                           struct exported *exported, struct error *error) {
    const struct profile *profile = &opened->profile;
    memset(exported, 0, sizeof *exported);
    exported->names = *names;
    exported->trust = exported_trust_text(profile, &exported->names);
    bool is_ok = exported->trust && (!opened->merge || say_sum(opened, &exported->trust)) &&
                 (!profile->heap || say_heap(profile->heap, &exported->trust)) &&
                 (!profile->heap_names || say_all_heaps(&exported->trust));
    if (!is_ok) return error_set(error, "no memory for the trust line");
    program_name(profile, exported->program, sizeof exported->program);
    report_command_line(&profile->recording->header, exported->command, sizeof exported->command);
    exported->export = (struct export){.profile = profile,
                                       .names = &exported->names,
                                       .process_count = opened->process_count,
                                       .program = exported->program,
                                       .command = exported->command,
                                       .trust = exported->trust,
                                       .tool_version = CAIRN_TOOL_VERSION};
    return true;
}

bool exported_say_part(struct exported *exported, const struct filter *filter,
                       struct error *error) {
    char text[FILTER_TEXT_BYTES];
    char *whole = exported->trust;
    filter_text(filter, text, sizeof text);
    int length =
        asprintf(&exported->trust, "a part%s%s \xc2\xb7 %s", *text ? ": " : "", text, whole);
    free(whole);
    if (length < 0) exported->trust = NULL;
    exported->export.trust = exported->trust;
    return length >= 0 || error_set(error, "no memory for the trust line");
}

bool exported_say_estimates(struct exported *exported, struct error *error) {
    const struct profile *profile = exported->export.profile;
    char *whole = exported->trust;
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    struct measured left = measure_total(MEASURE_EXIT, profile);
    if (!profile->sampling.is_on) return true;
    int length =
        asprintf(&exported->trust, "%s \xc2\xb7 estimates: peak %s%s%s, at the end %s%s%s", whole,
                 units_size(measured_shown(peak)).text, interval_amount(peak, true, false).text,
                 interval_samples(peak).text, units_size(measured_shown(left)).text,
                 interval_amount(left, true, false).text, interval_samples(left).text);
    free(whole);
    if (length < 0) exported->trust = NULL;
    exported->export.trust = exported->trust;
    return length >= 0 || error_set(error, "no memory for the trust line");
}

bool exported_prepare(struct opened *opened, struct exported *exported, struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    // findings say who frees
    for (size_t i = 0; i < profile->freed_at.count; i++)
        names_want_stack(opened->names, profile->freed_at.items[i].node, 0);
    // the page has heaps by name beside malloc's
    for (size_t i = 0; !profile->heap && i < profile->heap_part_count; i++)
        names_want_stack(opened->names, profile->heap_parts[i].node, 0);
    if (!names_resolve(opened->names, error)) return false;
    const struct frame_names names = names_frames(opened->names);
    return exported_prepare_with(opened, &names, exported, error);
}

void exported_free(struct exported *exported) {
    free(exported->trust);
    exported->trust = NULL;
}
