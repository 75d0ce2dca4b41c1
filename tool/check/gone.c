// SPDX-License-Identifier: Apache-2.0
#include "tool/check/gone.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/check/offenders.h"
#include "tool/model/heap_state.h"
#include "tool/model/shape.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
#include "tool/render/findings.h"

enum { NAME_COLUMNS = FRAME_TEXT_BYTES - 1, HAS_BYTES = 400 };

// One recording, with the finding that was asked for.
struct side {
    const char *path;
    struct opened opened;
    struct suppressions suppressions;
    struct findings findings;
    const struct finding *found;      // NULL: it has none
    char function[FRAME_TEXT_BYTES];  // that the finding is about; "": about none
    uint64_t part;                    // blocks, or bytes that are left, of that function
    bool is_open;
};

struct question {
    const char *key;
    size_t key_length;
    const char *function;  // "": any
};

static struct question question_of(const char *claim) {
    const size_t length = strcspn(claim, ":");
    return (struct question){claim, length, claim[length] ? claim + length + 1 : ""};
}

static bool is_key(const struct question *question, const char *key) {
    return question->key_length == strlen(key) && !strncmp(question->key, key, strlen(key));
}

static bool is_left(const struct question *question) {
    return is_key(question, claim_row(CLAIM_LEFT)->key);
}

static bool is_meant(const struct question *question, const char *function) {
    return !*question->function || !strcmp(question->function, function);
}

// "": the stack has no frame of its own.
static bool name_function(const struct side *side, const struct stack *stack,
                          char name[FRAME_TEXT_BYTES]) {
    const struct frame_names names = names_frames(side->opened.names);
    const struct frame *frame;
    *name = 0;
    if (!findings_own_frame(&side->opened.profile, &names, stack->node, false, &frame))
        return false;
    if (frame) frame_label(frame, name, FRAME_TEXT_BYTES, NAME_COLUMNS);
    return true;
}

static bool open_side(struct side *side, const char *path, const struct question *question,
                      const struct command_args *args, struct error *error) {
    struct subject subject;
    side->path = path;
    if (!subject_find(path, &subject, error)) return false;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (process && !subject_enter(&subject, process, error)) return false;
    if (subject.is_run)
        return error_set(error, "%s: a run of several processes: --process names one", path);
    side->is_open = offenders_open(args, subject.path, &side->opened,
                                   is_left(question) ? &side->suppressions : NULL, error);
    if (!side->is_open) return false;
    const struct frame_names names = names_frames(side->opened.names);
    return findings_find(&side->findings, &side->opened.profile, error) &&
           findings_settle(&side->findings, &side->opened.profile, &names, error);
}

static void close_side(struct side *side) {
    suppressions_free(&side->suppressions);
    if (side->is_open) opened_close(&side->opened);
}

// Names what a side has instead, for the one who asked for another: "temporary:parse, growth:load".
static bool list_findings(const struct side *side, char out[HAS_BYTES]) {
    size_t used = 0;
    snprintf(out, HAS_BYTES, "none");
    for (size_t i = 0; i < side->findings.count; i++) {
        const struct finding *finding = &side->findings.list[i];
        char name[FRAME_TEXT_BYTES] = "";
        if (finding->stack && !name_function(side, finding->stack, name)) return false;
        const int length = snprintf(out + used, HAS_BYTES - used, "%s%s%s%.100s", used ? ", " : "",
                                    finding_name(finding->kind), *name ? ":" : "", name);
        if ((size_t)length >= HAS_BYTES - used) break;
        used += (size_t)length;
    }
    return true;
}

static bool find_finding(struct side *side, const struct question *question, struct error *error) {
    for (size_t i = 0; i < side->findings.count && !side->found; i++) {
        const struct finding *finding = &side->findings.list[i];
        if (!is_key(question, finding_name(finding->kind)) &&
            !(finding->is_estimate && is_key(question, claim_row(CLAIM_SHORT)->key)))
            continue;
        *side->function = 0;
        if (finding->stack && !name_function(side, finding->stack, side->function))
            return error_set(error, "no memory for names");
        if (is_meant(question, side->function)) side->found = finding;
    }
    if (!side->found) *side->function = 0;
    return true;
}

// Adds up what the finding is made of, in the stacks of the function.
static bool sum_up(struct side *side, bool is_of_left, enum finding_kind kind,
                   const struct question *question, struct error *error) {
    const struct profile *profile = &side->opened.profile;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        char name[FRAME_TEXT_BYTES];
        uint64_t part = kind == FINDING_TEMPORARY ? stack->temporary
                        : kind == FINDING_ALIKE   ? stack->allocations
                                                  : 0;
        if (is_of_left) part = stack->exit_bytes > 0 ? (uint64_t)stack->exit_bytes : 0;
        if (!part) continue;
        if (!name_function(side, stack, name)) return error_set(error, "no memory for names");
        if (is_meant(question, name)) side->part += part;
    }
    return true;
}

static bool has_picture(const struct recording *recording) {
    struct cairn_picture picture;
    for (size_t i = 0; i < CAIRN_PICTURE_COUNT; i++)
        if (recording_picture(recording, i, &picture)) return true;
    return false;
}

// Why a recording would not have the finding even if there was reason for it; NULL: it would.
static const char *why_unknown(const struct side *side, enum finding_kind kind) {
    const struct profile *profile = &side->opened.profile;
    const struct recording *recording = profile->recording;
    switch (kind) {
    case FINDING_GROWTH:
        return side->findings.growth.is_known ? NULL
                                              : "it is too short, or was too seldom looked at";
    case FINDING_TEMPORARY:
        return recording_has_temporary(recording) || profile->sampling.is_on
                   ? NULL
                   : "it does not count such blocks";
    case FINDING_AGES:
        return recording_count(recording, CAIRN_SECTION_AGES) && !profile->sampling.is_on
                   ? NULL
                   : "it was made without --ages";
    case FINDING_REUSE:
        return free_stacks_has_any(profile) && !profile->sampling.is_on
                   ? NULL
                   : "it was made without --free-stacks";
    case FINDING_ALIKE:
        return profile->sampling.is_on ? "it has a sample of the blocks" : NULL;
    case FINDING_FREE:
    case FINDING_UNTOUCHED:
    case FINDING_ARENAS:
    case FINDING_HUGE:
        return has_picture(recording) ? NULL : "nobody looked at its memory";
    case FINDING_STRINGS:
    case FINDING_WASTE:
        return "the contents of its blocks are not in it";
    default:
        return NULL;
    }
}

// Says how much of it each side has, and how many calls each made: a run that did less work has
// fewer findings, too.
static void describe(const struct side *before, const struct side *after, bool is_of_left,
                     const char *words, struct result *result) {
    char parts[128] = "";
    if (before->part && is_of_left)
        snprintf(parts, sizeof parts, "%s before, %s now; ", units_size((int64_t)before->part).text,
                 units_size((int64_t)after->part).text);
    else if (before->part)
        snprintf(parts, sizeof parts, "%s before, %s now; ",
                 units_counted((int64_t)before->part, "block", "blocks").text,
                 units_count((int64_t)after->part).text);
    snprintf(result->text, sizeof result->text, "%s%s%s calls before, %s now", words, parts,
             units_count((int64_t)before->opened.profile.totals.allocations).text,
             units_count((int64_t)after->opened.profile.totals.allocations).text);
}

static void judge(const struct side *before, const struct side *after, bool is_of_left,
                  struct result *result) {
    const char *why = is_of_left || after->found ? NULL : why_unknown(after, before->found->kind);
    const bool is_half = after->part <= before->part / 2;
    char words[128] = "still there; ";
    result->holds = is_of_left ? !after->part : !after->found && !why && is_half;
    if (result->holds) snprintf(words, sizeof words, "gone; ");
    if (why) snprintf(words, sizeof words, "not known, of the later recording: %s; ", why);
    describe(before, after, is_of_left, words, result);
}

// Finds it on both sides: the function that `before` has it of is that of the other one, too.
static bool find_both(struct side *before, struct side *after, struct question *question,
                      struct error *error) {
    const bool is_of_left = is_left(question);
    if (!is_of_left && !find_finding(before, question, error)) return false;
    if (before->found) question->function = before->function;
    const enum finding_kind kind = before->found ? before->found->kind : FINDING_KINDS;
    return (is_of_left || find_finding(after, question, error)) &&
           sum_up(before, is_of_left, kind, question, error) &&
           sum_up(after, is_of_left, kind, question, error);
}

static bool compare(struct side *before, struct side *after, const char *claim,
                    struct result *result, struct error *error) {
    struct question question = question_of(claim);
    char has[HAS_BYTES];
    if (!find_both(before, after, &question, error)) return false;
    if (!before->found && !before->part) {
        if (!list_findings(before, has)) return error_set(error, "no memory for names");
        return error_set(error, "--gone %s: %s has no such finding; it has: %s", claim,
                         before->path, has);
    }
    judge(before, after, is_left(&question), result);
    return result->holds || !is_left(&question) ||
           offenders_of(&after->opened, MEASURE_EXIT, result, error);
}

bool gone_evaluate(const char *claim, const char *before_path, const char *after_path,
                   const struct command_args *args, struct results *results, struct error *error) {
    struct side before = {0}, after = {0};
    const struct question question = question_of(claim);
    struct result result = {.budget = "finding"};
    text_escape(result.subject, sizeof result.subject, claim);
    bool is_ok = open_side(&before, before_path, &question, args, error) &&
                 open_side(&after, after_path, &question, args, error) &&
                 compare(&before, &after, claim, &result, error);
    close_side(&before);
    close_side(&after);
    return is_ok && (results_add(results, &result) || error_set(error, "no memory for results"));
}
