// SPDX-License-Identifier: Apache-2.0
// What became of a run, the worst first. That a program ends with an error when it has no memory is
// as it should be; so is a program that does without. What is not: to die of a signal, to go on
// forever, to lose what it had allocated, to lose a part of its work and call that success.
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "tool/torture/leaks.h"

const char *const torture_kind_names[TORTURE_KINDS] = {
    [TORTURE_CLEAN] = "clean",   [TORTURE_MISSED] = "missed", [TORTURE_CRASH] = "crash",
    [TORTURE_ABORT] = "abort",   [TORTURE_HANG] = "hang",     [TORTURE_SANITIZER] = "sanitizer",
    [TORTURE_SILENT] = "silent", [TORTURE_LEAK] = "leak",     [TORTURE_FLOOD] = "flood"};

const char *const torture_kind_texts[TORTURE_KINDS] = {
    [TORTURE_CLEAN] = "nothing wrong",
    [TORTURE_MISSED] = "the allocation did not come",
    [TORTURE_CRASH] = "crashes",
    [TORTURE_ABORT] = "aborts",
    [TORTURE_HANG] = "does not end",
    [TORTURE_SANITIZER] = "a sanitizer reports",
    [TORTURE_SILENT] = "other output, but exit status 0 as usual",
    [TORTURE_LEAK] = "leaks",
    [TORTURE_FLOOD] = "writes too much"};

static const char *const damage_words[] = {
    "double free", "free(): invalid",    "corrupted",     "munmap_chunk(): invalid",
    "malloc(): ",  "realloc(): invalid", "stack smashing"};

static bool has_damage(const struct torture_outcome *outcome) {
    for (size_t i = 0; i < sizeof damage_words / sizeof *damage_words; i++)
        if (strstr(outcome->tail, damage_words[i])) return true;
    return false;
}

static bool is_telling(const char *line, size_t length) {
    static const char *const words[] = {"memory", "rror", "ssert", "bad_alloc", "ailed"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(line, length, words[i], strlen(words[i]))) return true;
    return false;
}

static bool has_letter(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (isalpha((unsigned char)line[i])) return true;
    return false;
}

// The last line that tells of an error, or else the last with a word in it.
static void copy_line(struct torture_outcome *outcome) {
    const char *telling = NULL, *other = "";
    for (const char *line = outcome->tail; *line;) {
        size_t length = strcspn(line, "\n");
        if (is_telling(line, length)) telling = line;
        if (has_letter(line, length)) other = line;
        line += length + (line[length] == '\n');
    }
    const char *line = telling ? telling : other;
    snprintf(outcome->detail, sizeof outcome->detail, "%.*s", (int)strcspn(line, "\n"), line);
}

static enum torture_kind kind_of_signal(const struct torture_outcome *outcome) {
    switch (outcome->signal) {
    case SIGABRT:
        return has_damage(outcome) ? TORTURE_CRASH : TORTURE_ABORT;
    case SIGXFSZ:
        return TORTURE_FLOOD;
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
        return TORTURE_CRASH;
    default:
        return TORTURE_CLEAN;
    }
}

static bool has_new_leaks(const struct torture_outcome *outcome,
                          const struct torture_outcome *usual) {
    return usual->leaks && !outcome->has_given_up &&
           torture_leaks_are_new(outcome->leaks, usual->leaks);
}

void torture_judge(struct torture_outcome *outcome, const struct torture_outcome *usual,
                   bool has_same_output) {
    bool is_reported = outcome->kind == TORTURE_SANITIZER && usual->kind != TORTURE_SANITIZER;
    bool is_signal = outcome->signal && outcome->signal != usual->signal;
    enum torture_kind of_signal = is_signal ? kind_of_signal(outcome) : TORTURE_CLEAN;
    outcome->kind = TORTURE_CLEAN;
    if (!outcome->is_reached) {
        outcome->kind = TORTURE_MISSED;
    } else if (is_reported) {
        outcome->kind = TORTURE_SANITIZER;  // its line is there already
        return;
    } else if (outcome->is_flood) {
        outcome->kind = TORTURE_FLOOD;
    } else if (outcome->is_over_time) {
        outcome->kind = TORTURE_HANG;
    } else if (of_signal != TORTURE_CLEAN) {
        outcome->kind = of_signal;
    } else if (has_new_leaks(outcome, usual)) {
        outcome->kind = TORTURE_LEAK;
    } else if (has_same_output && !outcome->status && !usual->status &&
               outcome->output_hash != usual->output_hash) {
        outcome->kind = TORTURE_SILENT;
    }
    copy_line(outcome);
}
