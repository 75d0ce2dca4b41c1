// SPDX-License-Identifier: Apache-2.0
#include "tool/query/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { MESSAGE_BYTES = 1024 };

int command_fail(int status, const struct error *error) {
    char text[MESSAGE_BYTES];
    text_escape(text, sizeof text, error->text);
    fprintf(stderr, "cairn: %s\n", text);
    return status;
}

const struct option_row *option_row_of(const struct command *command, enum option_id option) {
    const struct option_row *row = command->options;
    while (row->name && row->id != option) row++;
    return row->name ? row : NULL;
}

bool args_has(const struct command_args *args, enum option_id option) {
    return args->values[option] != NULL;
}

const char *args_text(const struct command_args *args, enum option_id option,
                      const char *otherwise) {
    return args->values[option] ? args->values[option] : otherwise;
}

const char *args_next(const struct command_args *args, enum option_id option, size_t *index) {
    while (*index < args->given_count) {
        const struct given_option *given = &args->given[(*index)++];
        if (given->id == option) return given->value;
    }
    return NULL;
}

bool args_number(const struct command_args *args, enum option_id option, uint64_t otherwise,
                 uint64_t most, uint64_t *number, struct error *error) {
    const char *text = args->values[option];
    *number = otherwise;
    if (!text) return true;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool is_number = isdigit((unsigned char)*text) && !*end && !errno && value <= most;
    if (!is_number) {
        const struct option_row *row = option_row_of(args->command, option);
        return error_set(error, "%s: --%s needs a number, not \"%s\"", args->command->name,
                         row ? row->name : "option", text);
    }
    *number = value;
    return true;
}

bool args_size(const struct command_args *args, enum option_id option, uint64_t *bytes,
               struct error *error) {
    const char *text = args->values[option];
    *bytes = 0;
    if (!text || (units_size_parse(text, bytes) && *bytes)) return true;
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a size such as 64M, not \"%s\"", args->command->name,
                     row ? row->name : "option", text);
}

bool args_size_or_none(const struct command_args *args, enum option_id option, uint64_t *bytes,
                       struct error *error) {
    const char *text = args->values[option];
    *bytes = 0;
    return (text && !strcmp(text, "0")) || args_size(args, option, bytes, error);
}

bool args_duration(const struct command_args *args, enum option_id option, uint64_t *ns,
                   struct error *error) {
    const char *text = args->values[option];
    *ns = 0;
    if (!text || (units_duration_parse(text, ns) && *ns)) return true;
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a time such as 10s, 500ms, 2m or 1h, not \"%s\"",
                     args->command->name, row ? row->name : "option", text);
}

bool args_percent(const struct command_args *args, enum option_id option, double otherwise,
                  double *share, struct error *error) {
    const double whole = 100;
    const char *text = args->values[option];
    *share = otherwise;
    if (!text) return true;
    char *end;
    double value = strtod(text, &end);
    bool is_right = isdigit((unsigned char)*text) && value >= 0 && value <= whole;
    if (is_right && (!*end || !strcmp(end, "%"))) {
        *share = value / whole;
        return true;
    }
    const struct option_row *row = option_row_of(args->command, option);
    return error_set(error, "%s: --%s needs a share from 0 to 100 such as 0.2%%, not \"%s\"",
                     args->command->name, row ? row->name : "option", text);
}

enum { NAME_BYTES = 64, NAMES_BYTES = 256 };

#define OTHERS(...)                                                                                \
    (const int[]) {                                                                                \
        __VA_ARGS__, CIRCUMSTANCE_END                                                              \
    }
#define EXCLUDES(...) OTHERS(__VA_ARGS__), false
#define NEEDS(...) OTHERS(__VA_ARGS__), true

#define EVERY_STACK "it needs the stack of every block"
#define STACKS_ALONE "of a snapshot it is known what stacks held, and nothing else"

const struct option_rule option_rules[] = {
    // what is recorded
    {OPTION_EXACT, EXCLUDES(OPTION_SAMPLE), NULL},
    {OPTION_SCAN_HEAP, EXCLUDES(OPTION_NO_SCAN_HEAP), NULL},
    {OPTION_MAX_DEPTH, EXCLUDES(OPTION_NO_STACKS), NULL},
    {OPTION_GUARD, EXCLUDES(OPTION_NO_STACKS, SAMPLED), EVERY_STACK},
    {OPTION_AGES, EXCLUDES(OPTION_NO_STACKS, SAMPLED), EVERY_STACK},
    {OPTION_FREE_STACKS, EXCLUDES(OPTION_NO_STACKS, SAMPLED), EVERY_STACK},
    {OPTION_UNREACHABLE, EXCLUDES(SAMPLED), "which blocks there are is known only if all are"},
    {OPTION_EVENTS, EXCLUDES(OPTION_NO_STACKS, SAMPLED), EVERY_STACK},
    {OPTION_EVENTS, EXCLUDES(OPTION_AGES), "the log tells them: its turns lie where ages would"},
    {OPTION_EVENTS_WAIT, NEEDS(OPTION_EVENTS), NULL},
    {OPTION_EVENTS_KEEP, NEEDS(OPTION_EVENTS), NULL},
    {OPTION_PYTHON, EXCLUDES(OPTION_AGES, OPTION_FREE_STACKS), NULL},
    {OPTION_FRAMES, EXCLUDES(OPTION_AGES, OPTION_FREE_STACKS, OPTION_NO_STACKS), NULL},
    {OPTION_RATE, NEEDS(SAMPLED, OPTION_MAX_OVERHEAD), NULL},
    {OPTION_SEED, NEEDS(SAMPLED, OPTION_MAX_OVERHEAD), NULL},
    {OPTION_MAX_SAMPLES, NEEDS(SAMPLED, OPTION_MAX_OVERHEAD), NULL},
    {OPTION_CPU_BUDGET, NEEDS(SAMPLED, OPTION_MAX_OVERHEAD), NULL},
    {OPTION_OFF, EXCLUDES(OPTION_START_AFTER), NULL},
    {OPTION_EXEC,
     EXCLUDES(OPTION_OPEN, OPTION_SYMBOLS, OPTION_OFF, OPTION_START_AFTER, OPTION_RECORD_FOR,
              OPTION_MARK_EVERY, OPTION_WHEN, OPTION_LOG, OPTION_UNREACHABLE, OPTION_LOOK,
              OPTION_EVENTS),
     "with --exec no cairn is left that could do it"},
    {OPTION_CGROUP,
     EXCLUDES(OPTION_CHILDREN, OPTION_EXACT, OPTION_RECORD_FOR, OPTION_OUTPUT, OPTION_SCAN_HEAP,
              OPTION_NO_SCAN_HEAP),
     "it records what it finds as far as memory allows"},
    {OPTION_CGROUP,
     EXCLUDES(OPTION_VIEW, OPTION_BY, OPTION_BLOCKS, OPTION_TOP, OPTION_DEPTH, OPTION_THRESHOLD,
              OPTION_MIN_BYTES, OPTION_FOCUS, OPTION_IGNORE, OPTION_HIDE, OPTION_MODULE,
              OPTION_THREAD, OPTION_REGION, OPTION_CONTEXT, OPTION_HEAP, OPTION_PROCESS,
              OPTION_LIFESPAN, OPTION_AT, OPTION_BETWEEN, OPTION_SINCE, OPTION_GROUP, OPTION_SHORT,
              OPTION_INVERTED, OPTION_LINES, OPTION_PRINT, OPTION_SOURCE, OPTION_SUPPRESSIONS,
              OPTION_NO_SUPPRESSIONS, OPTION_BASELINE, OPTION_ERROR_EXITCODE, OPTION_SUMMARY,
              OPTION_ALL_FRAMES, OPTION_BYTES, OPTION_NO_STOP, OPTION_WASTE_SEED),
     "it is of a cgroup and all of its processes"},
    // what is shown
    {OPTION_JSON, EXCLUDES(OPTION_FORMAT), "--json is --format json"},
    {OPTION_AT, EXCLUDES(OPTION_BETWEEN, OPTION_SINCE), NULL},
    {OPTION_BETWEEN, EXCLUDES(OPTION_SINCE), NULL},
    {OPTION_AT, EXCLUDES(OPTION_BY, OPTION_THREAD, OPTION_LIFESPAN), STACKS_ALONE},
    {OPTION_BETWEEN, EXCLUDES(OPTION_BY, OPTION_THREAD, OPTION_LIFESPAN), STACKS_ALONE},
    {OPTION_SINCE, EXCLUDES(OPTION_BY, OPTION_THREAD, OPTION_LIFESPAN), STACKS_ALONE},
    {OF_SNAPSHOTS, EXCLUDES(OPTION_BY, OPTION_LIFESPAN, OPTION_AT, OPTION_BETWEEN, OPTION_SINCE),
     STACKS_ALONE},
    {OPTION_HEAP, EXCLUDES(OPTION_UNREACHABLE),
     "what can be reached is looked at block by block of malloc's heap"},
    {OF_MAPPINGS,
     EXCLUDES(OPTION_THREAD, OPTION_REGION, OPTION_CONTEXT, OPTION_LIFESPAN, OPTION_AT,
              OPTION_BETWEEN, OPTION_SINCE),
     "of mappings only their stacks are known"},
    {OF_HEAP_NOW,
     EXCLUDES(OPTION_BY, OPTION_BLOCKS, OPTION_THRESHOLD, OPTION_MIN_BYTES, OPTION_FOCUS,
              OPTION_IGNORE, OPTION_HIDE, OPTION_MODULE, OPTION_THREAD, OPTION_REGION,
              OPTION_CONTEXT, OPTION_PROCESS, OPTION_AT, OPTION_BETWEEN, OPTION_SINCE,
              OPTION_LIFESPAN, OPTION_INVERTED, OPTION_GROUP, OPTION_SHORT, OPTION_SOURCE,
              OPTION_PRINT, OPTION_SUPPRESSIONS, OPTION_NO_SUPPRESSIONS, OPTION_BASELINE,
              OPTION_ERROR_EXITCODE),
     NULL},
    {OF_UNREACHABLE_NOW,
     EXCLUDES(OPTION_BY, OPTION_BLOCKS, OPTION_THRESHOLD, OPTION_MIN_BYTES, OPTION_FOCUS,
              OPTION_IGNORE, OPTION_HIDE, OPTION_MODULE, OPTION_THREAD, OPTION_REGION,
              OPTION_CONTEXT, OPTION_PROCESS, OPTION_AT, OPTION_BETWEEN, OPTION_SINCE,
              OPTION_LIFESPAN, OPTION_SUPPRESSIONS, OPTION_NO_SUPPRESSIONS, OPTION_BASELINE),
     NULL},
    {OPTION_SNAPSHOTS, EXCLUDES(OPTION_THREAD, OPTION_LIFESPAN), STACKS_ALONE},
    {OPTION_UNREACHABLE, EXCLUDES(OPTION_AT, OPTION_BETWEEN, OPTION_SINCE), STACKS_ALONE},
    {OPTION_SUPPRESSIONS, NEEDS(OF_LEAKS), NULL},
    {OPTION_NO_SUPPRESSIONS, NEEDS(OF_LEAKS), NULL},
    {OPTION_BASELINE, NEEDS(OF_LEAKS), NULL},
    {OPTION_ERROR_EXITCODE, NEEDS(OF_LEAKS), NULL},
    {0, NULL, false, NULL},
};

static const struct {
    const char *name;
    enum option_id cause;
} circumstances[] = {[SAMPLED - OPTION_COUNT] = {"--sample", OPTION_SAMPLE},
                     [OF_MAPPINGS - OPTION_COUNT] = {"--view mappings", OPTION_VIEW},
                     [OF_HEAP_NOW - OPTION_COUNT] = {"--view heap or pages", OPTION_VIEW},
                     [OF_UNREACHABLE_NOW -
                         OPTION_COUNT] = {"--unreachable of a process or core", OPTION_UNREACHABLE},
                     [OF_LEAKS - OPTION_COUNT] = {"--view leaks", OPTION_VIEW},
                     [OF_SNAPSHOTS - OPTION_COUNT] = {"SUBJECT@SNAPSHOT", OPTION_COUNT}};

const char *circumstance_name(int circumstance) {
    return circumstances[circumstance - OPTION_COUNT].name;
}

enum option_id circumstance_cause(int circumstance) {
    return circumstances[circumstance - OPTION_COUNT].cause;
}

// "--guard"; of a circumstance its name.
static const char *name_of(const struct command_args *args, int which, char *name) {
    if (which >= OPTION_COUNT) return circumstance_name(which);
    snprintf(name, NAME_BYTES, "--%s", option_row_of(args->command, (enum option_id)which)->name);
    return name;
}

// `now` is the circumstance that is known to hold; CIRCUMSTANCE_END: none is.
static bool is_there(const struct command_args *args, int which, int now) {
    return which < OPTION_COUNT ? args_has(args, (enum option_id)which) : which == now;
}

static bool refuse_pair(const struct command_args *args, const struct option_rule *rule, int other,
                        struct error *error) {
    char first[NAME_BYTES], second[NAME_BYTES];
    return error_set(error, "%s: %s and %s exclude each other%s%s", args->command->name,
                     name_of(args, rule->subject, first), name_of(args, other, second),
                     rule->reason ? ": " : "", rule->reason ? rule->reason : "");
}

static bool refuse_alone(const struct command_args *args, const struct option_rule *rule,
                         struct error *error) {
    char names[NAMES_BYTES] = "", name[NAME_BYTES];
    for (const int *other = rule->others; *other != CIRCUMSTANCE_END; other++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? " or " : "",
                 name_of(args, *other, name));
    }
    return error_set(error, "%s: %s needs %s", args->command->name,
                     name_of(args, rule->subject, name), names);
}

// The rules that exclude. Without a circumstance those of options alone; else those in which the
// circumstance has a part.
static bool check_pairs(const struct command_args *args, int now, struct error *error) {
    for (const struct option_rule *rule = option_rules; rule->others; rule++) {
        if (rule->is_needed || !is_there(args, rule->subject, now)) continue;
        for (const int *other = rule->others; *other != CIRCUMSTANCE_END; other++)
            if (is_there(args, *other, now)) return refuse_pair(args, rule, *other, error);
    }
    return true;
}

// What an option needs is another option, whatever the circumstances.
static bool is_about_options(const struct option_rule *rule) {
    const int *other = rule->others;
    while (*other < OPTION_COUNT) other++;
    return rule->is_needed && *other == CIRCUMSTANCE_END;
}

static bool is_met(const struct command_args *args, const struct option_rule *rule) {
    const int *other = rule->others;
    while (*other != CIRCUMSTANCE_END && !is_there(args, *other, CIRCUMSTANCE_END)) other++;
    return *other != CIRCUMSTANCE_END;
}

bool options_check(const struct command_args *args, struct error *error) {
    for (const struct option_rule *rule = option_rules; rule->others; rule++)
        if (is_about_options(rule) && is_there(args, rule->subject, CIRCUMSTANCE_END) &&
            !is_met(args, rule))
            return refuse_alone(args, rule, error);
    return check_pairs(args, CIRCUMSTANCE_END, error);
}

bool options_check_under(const struct command_args *args, enum circumstance circumstance,
                         struct error *error) {
    return check_pairs(args, (int)circumstance, error);
}

bool options_check_without(const struct command_args *args, enum circumstance circumstance,
                           struct error *error) {
    for (const struct option_rule *rule = option_rules; rule->others; rule++) {
        bool is_about = false;
        if (!rule->is_needed || !is_there(args, rule->subject, CIRCUMSTANCE_END)) continue;
        for (const int *other = rule->others; *other != CIRCUMSTANCE_END; other++)
            is_about = is_about || *other == (int)circumstance;
        if (is_about && !is_met(args, rule)) return refuse_alone(args, rule, error);
    }
    return true;
}
