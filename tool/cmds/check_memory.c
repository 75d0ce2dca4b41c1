// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/check_memory.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/check/budgets.h"
#include "tool/check/offenders.h"
#include "tool/cmds/core_unreachable.h"
#include "tool/model/narrow.h"
#include "tool/query/heap_views.h"

static const double percent = 100;

bool memory_budgets_read(const struct command_args *args, struct memory_budgets *budgets,
                         struct error *error) {
    const char *waste = args_text(args, OPTION_MAX_WASTE, NULL);
    const char *lost = args_text(args, OPTION_MAX_LOST, NULL);
    uint64_t bytes;
    *budgets = (struct memory_budgets){.waste = -1, .lost = -1, .wasted = -1};
    if (!waste_wish_read(args, &budgets->wish, error)) return false;
    if (waste && !budgets_parse_share(waste, &budgets->waste))
        return error_set(error, "check: --max-waste needs a share such as 20%%, not \"%s\"", waste);
    if (!lost) return true;
    if (!units_size_parse(lost, &bytes) || bytes > INT64_MAX)
        return error_set(error, "check: --max-leaked needs a size such as 0 or 64KiB, not \"%s\"",
                         lost);
    budgets->lost = (int64_t)bytes;
    return true;
}

static bool add(struct results *results, struct result *result, const char *word, bool holds,
                char *offenders, struct error *error) {
    text_escape(result->subject, sizeof result->subject, word);
    result->holds = holds;
    result->offenders = offenders;
    if (holds) {
        free(offenders);
        result->offenders = NULL;
    }
    return results_add(results, result) || error_set(error, "no memory for results");
}

// An estimate breaks a budget when all of its interval does.
static bool evaluate_waste(struct memory_budgets *budgets, const char *word,
                           struct results *results, struct error *error) {
    double most = budgets->waste;
    struct core_waste waste;
    struct result result = {.budget = "waste"};
    char interval[48] = "";
    if (!core_waste_measure(word, &budgets->wish, &waste, error)) return false;
    if (!waste.is_estimate) budgets->wasted = (int64_t)waste.wasted.value;
    if (waste.is_estimate)
        snprintf(interval, sizeof interval, " (%.1f %% to %.1f %%)", percent * waste.share.low,
                 percent * waste.share.high);
    snprintf(result.text, sizeof result.text, "%.1f %%%s of %s%s, of %.1f %%%s%s",
             percent * waste.share.value, interval, waste.is_estimate ? "about " : "",
             units_size((int64_t)waste.bytes.value).text, percent * most, *waste.part ? ": " : "",
             waste.part);
    return add(results, &result, word, waste.share.low <= most, waste.offenders, error);
}

static bool evaluate_lost(int64_t most, const char *word, struct results *results,
                          struct error *error) {
    struct core_lost lost;
    struct result result = {.budget = "leaked"};
    if (!core_unreachable_measure(word, false, &lost, error)) return false;
    snprintf(result.text, sizeof result.text, "%s in %s that nothing leads to, of %s",
             units_size((int64_t)lost.bytes).text,
             units_counted((int64_t)lost.blocks, "block", "blocks").text, units_size(most).text);
    return add(results, &result, word, lost.bytes <= (uint64_t)most, lost.offenders, error);
}

static bool narrow_lost(const void *context, struct profile *profile, struct error *error) {
    (void)context, (void)error;
    profile_keep_lost(profile);
    return true;
}

// Of what is not known for all of its processes nothing holds.
static bool judge_recorded(int64_t most, const struct opened *opened, struct result *result,
                           struct error *error) {
    const struct reachability *reachability = &opened->profile.reachability;
    const struct cairn_reachability *sums = &reachability->sums;
    uint64_t bytes = sums->direct_bytes + sums->indirect_bytes,
             blocks = sums->direct_blocks + sums->indirect_blocks;
    if (!reachability->known_count && !reachability->unknown_count)
        return error_set(error, "check: --max-leaked: what can be reached was not looked at when "
                                "it was recorded: cairn run --unreachable");
    snprintf(result->text, sizeof result->text, "%s in %s that nothing led to, of %s",
             units_size((int64_t)bytes).text,
             units_counted((int64_t)blocks, "block", "blocks").text, units_size(most).text);
    if (reachability->unknown_count)
        snprintf(result->text, sizeof result->text, "reachability not known: %s", sums->reason);
    result->holds = !reachability->unknown_count && bytes <= (uint64_t)most;
    return !blocks || result->holds || offenders_of(opened, MEASURE_EXIT, result, error);
}

// `word` NULL: the newest recording here.
static bool evaluate_lost_recorded(int64_t most, const char *word, struct results *results,
                                   struct error *error) {
    char *words[] = {(char *)(uintptr_t)word, NULL};
    const struct opening opening = {.words = words, .count = word != NULL, .narrow = narrow_lost};
    struct result result = {.budget = "leaked"};
    struct opened opened;
    if (!opening_open(&opening, &opened, error)) return false;
    bool is_ok = judge_recorded(most, &opened, &result, error) &&
                 add(results, &result, text_base_name(opened.recording.header.executable),
                     result.holds, result.offenders, error);
    opened_close(&opened);
    return is_ok;
}

bool memory_budgets_evaluate(struct memory_budgets *budgets, const char *word,
                             struct results *results, struct error *error) {
    bool has_memory = word && heap_views_have_memory(word);
    if (!has_memory && budgets->waste >= 0)
        return error_set(error, "check: --max-waste is of a running process or a core dump: what "
                                "is in blocks is not in a recording");
    if (!has_memory)
        return budgets->lost < 0 || evaluate_lost_recorded(budgets->lost, word, results, error);
    return (budgets->waste < 0 || evaluate_waste(budgets, word, results, error)) &&
           (budgets->lost < 0 || evaluate_lost(budgets->lost, word, results, error));
}
