// SPDX-License-Identifier: Apache-2.0
// What was found, for people and for programs. Findings of one kind whose allocations have the same
// site are told once, with the number of the others.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/units.h"
#include "tool/torture/torture.h"

enum { FRAMES_SHOWN = 6, LINE_BYTES = 1024, ID_BYTES = 48 };

const struct torture_result *torture_result_of(const struct torture_report *report, size_t step) {
    const struct torture_step *of = &report->plan->steps.items[step];
    return torture_results_find(report->results, report->plan->targets.items[of->target].hash,
                                of->nth);
}

static bool is_wrong(const struct torture_report *report, const struct torture_result *result) {
    return result && result->outcome.kind > TORTURE_MISSED &&
           !(report->allowed >> result->outcome.kind & 1);
}

static bool is_left_out(const struct torture_report *report, const struct torture_result *result) {
    return is_wrong(report, result) && report->allowed_in && *result->outcome.within &&
           pattern_matches(report->allowed_in, result->outcome.within);
}

static bool is_finding(const struct torture_report *report, const struct torture_result *result) {
    return is_wrong(report, result) && !is_left_out(report, result);
}

size_t torture_left_out(const struct torture_report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->plan->steps.count; i++)
        count += is_left_out(report, torture_result_of(report, i));
    return count;
}

size_t torture_count(const struct torture_report *report, enum torture_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < report->plan->steps.count; i++) {
        const struct torture_result *result = torture_result_of(report, i);
        count += result && result->outcome.kind == kind;
    }
    return count;
}

size_t torture_findings(const struct torture_report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->plan->steps.count; i++)
        count += is_finding(report, torture_result_of(report, i));
    return count;
}

const struct torture_target *torture_target_of(const struct torture_report *report, size_t step) {
    return &report->plan->targets.items[report->plan->steps.items[step].target];
}

static bool has_same_site(const struct torture_target *one, const struct torture_target *other) {
    if (!one->frame_count || !other->frame_count) return one == other;
    const struct torture_frame *a = &one->frames[one->site], *b = &other->frames[other->site];
    if (strcmp(a->module, b->module) != 0 || !a->function != !b->function) return false;
    if (!a->function) return a->address == b->address;
    return a->line == b->line && !strcmp(a->function, b->function);
}

// Leaks are told by what leaks, everything else by what failed.
static bool is_alike(const struct torture_report *report, size_t one, size_t other) {
    const struct torture_outcome *a = &torture_result_of(report, one)->outcome;
    const struct torture_outcome *b = &torture_result_of(report, other)->outcome;
    if (a->kind != b->kind) return false;
    if (a->kind == TORTURE_LEAK) return !strcmp(a->detail, b->detail);
    return has_same_site(torture_target_of(report, one), torture_target_of(report, other));
}

// A finding before it that is alike.
static bool is_told(const struct torture_report *report, size_t step) {
    for (size_t i = 0; i < step; i++)
        if (is_finding(report, torture_result_of(report, i)) && is_alike(report, i, step))
            return true;
    return false;
}

bool torture_is_told(const struct torture_report *report, size_t step) {
    return is_finding(report, torture_result_of(report, step)) && !is_told(report, step);
}

const struct torture_frame *torture_site_of(const struct torture_target *target) {
    return target->frame_count ? &target->frames[target->site] : NULL;
}

static size_t others_of(const struct torture_report *report, size_t step) {
    size_t count = 0;
    for (size_t i = step + 1; i < report->plan->steps.count; i++)
        count += is_finding(report, torture_result_of(report, i)) && is_alike(report, i, step);
    return count;
}

static void put_safe(FILE *out, const char *text) {
    char safe[2 * LINE_BYTES];
    text_escape(safe, sizeof safe, text);
    fputs(safe, out);
}

static void put_frame(FILE *out, const struct torture_frame *frame) {
    put_safe(out, frame->function ? frame->function : text_base_name(frame->module));
    if (!frame->function) fprintf(out, "+0x%" PRIx64, frame->address);
    if (frame->file && frame->line) {
        fputs("  ", out);
        put_safe(out, text_base_name(frame->file));
        fprintf(out, ":%u", frame->line);
    } else if (frame->function) {
        fputs("  ", out);
        put_safe(out, text_base_name(frame->module));
    }
}

static void put_stack(FILE *out, const struct torture_target *target, const char *indent) {
    size_t shown = 0;
    for (size_t i = target->first;
         target->frames && i < target->frame_count && shown < FRAMES_SHOWN; i++) {
        if (i > target->first && target->frames[i].is_internal) continue;
        shown++;
        fputs(indent, out);
        put_frame(out, &target->frames[i]);
        fputc('\n', out);
    }
}

static void put_command(FILE *out, const struct torture_report *report, size_t step) {
    char quoted[LINE_BYTES];
    fprintf(out, "cairn torture --only %016" PRIx64 ":%" PRIu64,
            torture_target_of(report, step)->hash, report->plan->steps.items[step].nth);
    if (report->input) {
        text_quote(quoted, sizeof quoted, report->input);
        fprintf(out, " --stdin %s", quoted);
    }
    fputs(" --", out);
    for (char *const *word = report->command; *word; word++) {
        size_t dashes = strspn(*word, "-");  // text_quote would make a path of them
        text_quote(quoted, sizeof quoted, *word + dashes);
        fprintf(out, " %.*s%s", (int)dashes, *word, (*word)[dashes] || !dashes ? quoted : "");
    }
}

static void put_end(FILE *out, const struct torture_outcome *outcome) {
    if (outcome->signal)
        fprintf(out, " (SIG%s)",
                sigabbrev_np(outcome->signal) ? sigabbrev_np(outcome->signal) : "?");
    else if (outcome->kind == TORTURE_SILENT)
        fprintf(out, " %d", outcome->status);
}

void torture_print_finding(const struct torture_report *report, size_t step, FILE *out) {
    const struct torture_outcome *outcome = &torture_result_of(report, step)->outcome;
    const struct torture_target *target = torture_target_of(report, step);
    uint64_t nth = report->plan->steps.items[step].nth;
    size_t others = others_of(report, step);
    fprintf(out, "\n%s", torture_kind_texts[outcome->kind]);
    put_end(out, outcome);
    fputs(" when this allocation fails", out);
    if (nth > 1) fprintf(out, ", the %" PRIu64 ". of %" PRIu64 " of its stack", nth, target->count);
    fputs(":\n", out);
    put_stack(out, target, "    ");
    if (*outcome->detail) {
        fputs("  says: ", out);
        put_safe(out, outcome->detail);
        fputc('\n', out);
    }
    if (*outcome->died_at) {
        fputs("  dies at: ", out);
        put_safe(out, outcome->died_at);
        fputc('\n', out);
    }
    if (*outcome->within) {
        fputs("  this is within ", out);
        put_safe(out, outcome->within);
        fputs(", not in the program\n", out);
    }
    if (others)
        fprintf(out, "  the same for %s too\n",
                units_counted((int64_t)others, "other allocation", "other allocations").text);
    fputs("  again: ", out);
    put_command(out, report, step);
    fputc('\n', out);
}

static size_t done_count(const struct torture_report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->plan->steps.count; i++)
        count += torture_result_of(report, i) != NULL;
    return count;
}

static const char *const nouns[TORTURE_KINDS][2] = {
    [TORTURE_CRASH] = {"crash", "crashes"},
    [TORTURE_ABORT] = {"abort", "aborts"},
    [TORTURE_HANG] = {"hang", "hangs"},
    [TORTURE_SANITIZER] = {"sanitizer's report", "sanitizer's reports"},
    [TORTURE_SILENT] = {"silent loss", "silent losses"},
    [TORTURE_LEAK] = {"leak", "leaks"},
    [TORTURE_FLOOD] = {"flood", "floods"}};

static size_t wanted_count(const struct torture_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->targets.count; i++) count += plan->targets.items[i].is_wanted;
    return count;
}

static size_t findings_of(const struct torture_report *report, enum torture_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < report->plan->steps.count; i++) {
        const struct torture_result *result = torture_result_of(report, i);
        count += is_finding(report, result) && result->outcome.kind == kind;
    }
    return count;
}

static void print_left_out(const struct torture_report *report, FILE *out) {
    size_t left_out = torture_left_out(report);
    if (left_out) fprintf(out, "; %zu left out, within libraries of --allow-in", left_out);
}

static void print_sum(const struct torture_report *report, FILE *out) {
    size_t done = done_count(report), left = report->plan->steps.count - done;
    size_t findings = torture_findings(report), missed = torture_count(report, TORTURE_MISSED);
    fprintf(out, "%s of %s: ",
            units_counted((int64_t)done, "failing allocation", "failing allocations").text,
            units_counted((int64_t)wanted_count(report->plan), "stack", "stacks").text);
    if (!findings) fputs("no findings", out);
    for (int kind = TORTURE_CRASH, is_first = 1; kind < TORTURE_KINDS; kind++) {
        size_t count = findings_of(report, (enum torture_kind)kind);
        if (!count) continue;
        fprintf(out, "%s%s", is_first ? "" : ", ",
                units_counted((int64_t)count, nouns[kind][0], nouns[kind][1]).text);
        is_first = 0;
    }
    print_left_out(report, out);
    if (missed) fprintf(out, "; %zu did not come", missed);
    if (left) fprintf(out, "; %zu left", left);
    fputc('\n', out);
    if (report->plan->lost)
        fprintf(out, "the list was full: %" PRIu64 " allocations are not in it\n",
                report->plan->lost);
    size_t aborts = torture_count(report, TORTURE_ABORT);
    if (aborts > done / 2 && !(report->allowed >> TORTURE_ABORT & 1))
        fputs("it seems to abort on purpose without memory: --allow abort leaves these out\n", out);
    if (report->has_no_leaks) fputs("leaks were not looked for\n", out);
    if (!report->has_same_output)
        fputs("its output differs from run to run: lost work is not looked for\n", out);
}

void torture_print(const struct torture_report *report, FILE *out) {
    for (int kind = TORTURE_CRASH; kind < TORTURE_KINDS; kind++)
        for (size_t i = 0; i < report->plan->steps.count; i++) {
            const struct torture_result *result = torture_result_of(report, i);
            if (is_finding(report, result) && (int)result->outcome.kind == kind &&
                !is_told(report, i))
                torture_print_finding(report, i, out);
        }
    if (torture_findings(report)) fputc('\n', out);
    print_sum(report, out);
}

static void json_put_frames(struct json *json, const struct torture_target *target) {
    json_open_array(json, "frames");
    for (size_t i = 0; i < target->frame_count; i++) {
        const struct torture_frame *frame = &target->frames[i];
        json_open_object(json, NULL);
        json_put_string(json, "function", frame->function);
        json_put_string(json, "file", frame->file);
        json_put_uint(json, "line", frame->line);
        json_put_string(json, "module", frame->module);
        json_put_bool(json, "internal", frame->is_internal);
        json_close(json);
    }
    json_close(json);
}

static void json_put_finding(struct json *json, const struct torture_report *report, size_t step) {
    const struct torture_outcome *outcome = &torture_result_of(report, step)->outcome;
    const struct torture_target *target = torture_target_of(report, step);
    char id[ID_BYTES], *again = NULL;
    size_t size;
    snprintf(id, sizeof id, "%016" PRIx64, target->hash);
    json_open_object(json, NULL);
    json_put_string(json, "kind", torture_kind_names[outcome->kind]);
    json_put_string(json, "stack", id);
    json_put_uint(json, "nth", report->plan->steps.items[step].nth);
    json_put_uint(json, "count", target->count);
    json_put_int(json, "status", outcome->status);
    json_put_int(json, "signal", outcome->signal);
    json_put_uint(json, "duration_ns", outcome->duration_ns);
    json_put_string(json, "detail", outcome->detail);
    json_put_string(json, "stderr", outcome->tail);
    json_put_string(json, "died_at", *outcome->died_at ? outcome->died_at : NULL);
    json_put_string(json, "within", *outcome->within ? outcome->within : NULL);
    FILE *out = open_memstream(&again, &size);
    if (out) put_command(out, report, step);
    if (out) fclose(out);
    json_put_string(json, "again", again);
    free(again);
    json_put_frames(json, target);
    json_close(json);
}

void torture_write_json(const struct torture_report *report, FILE *out) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.torture/1");
    json_open_array(&json, "command");
    for (char *const *word = report->command; *word; word++) json_put_string(&json, NULL, *word);
    json_close(&json);
    json_put_uint(&json, "seed", report->seed);
    json_open_object(&json, "usual");
    json_put_int(&json, "status", report->usual->status);
    json_put_int(&json, "signal", report->usual->signal);
    json_put_uint(&json, "duration_ns", report->usual->duration_ns);
    json_put_bool(&json, "same_output", report->has_same_output);
    json_close(&json);
    json_put_bool(&json, "leaks_looked_for", !report->has_no_leaks);
    json_put_uint(&json, "stacks", report->plan->targets.count);
    json_put_uint(&json, "stacks_lost", report->plan->lost);
    json_put_uint(&json, "planned", report->plan->steps.count);
    json_put_uint(&json, "left_out", torture_left_out(report));
    json_open_object(&json, "results");
    for (int kind = 0; kind < TORTURE_KINDS; kind++)
        json_put_uint(&json, torture_kind_names[kind],
                      torture_count(report, (enum torture_kind)kind));
    json_close(&json);
    json_open_array(&json, "findings");
    for (size_t i = 0; i < report->plan->steps.count; i++)
        if (is_finding(report, torture_result_of(report, i))) json_put_finding(&json, report, i);
    json_close(&json);
    json_close(&json);
    fputc('\n', out);
}

static void put_markup(FILE *out, const char *text) {
    char safe[2 * LINE_BYTES];
    text_escape(safe, sizeof safe, text);
    text_put_markup(out, safe);
}

static void junit_put_case(const struct torture_report *report, size_t step, FILE *out) {
    const struct torture_result *result = torture_result_of(report, step);
    const struct torture_target *target = torture_target_of(report, step);
    char *text = NULL;
    size_t size;
    const struct torture_frame *site = target->frame_count ? &target->frames[target->site] : NULL;
    fputs("    <testcase classname=\"", out);
    put_markup(out, text_base_name(*report->command));
    fputs("\" name=\"", out);
    put_markup(out, site && site->function ? site->function : "?");
    fprintf(out, " %016" PRIx64 ":%" PRIu64 "\"", target->hash,
            report->plan->steps.items[step].nth);
    FILE *told = open_memstream(&text, &size);
    if (told && is_finding(report, result)) torture_print_finding(report, step, told);
    if (told) fclose(told);
    if (!result || result->outcome.kind == TORTURE_MISSED) {
        fprintf(out, "><skipped message=\"%s\"/></testcase>\n",
                result ? torture_kind_texts[TORTURE_MISSED] : "not run");
    } else if (is_finding(report, result)) {
        fprintf(out, "><failure message=\"%s\">", torture_kind_texts[result->outcome.kind]);
        text_put_markup(out, text ? text : "");
        fputs("</failure></testcase>\n", out);
    } else {
        fputs("/>\n", out);
    }
    free(text);
}

void torture_write_junit(const struct torture_report *report, FILE *out) {
    size_t done = done_count(report), missed = torture_count(report, TORTURE_MISSED);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"cairn torture\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
            report->plan->steps.count, torture_findings(report),
            report->plan->steps.count - done + missed);
    for (size_t i = 0; i < report->plan->steps.count; i++) junit_put_case(report, i, out);
    fputs("  </testsuite>\n</testsuites>\n", out);
}
