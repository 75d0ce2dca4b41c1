// SPDX-License-Identifier: Apache-2.0
// A look that failed is no failure of the run: the recording says why it knows nothing.
#include "tool/cmds/looks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/looks.h"
#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/look_answers.h"
#include "tool/cmds/reachability.h"
#include "tool/model/rewrite.h"

// The first look comes after a quarter of a second at the earliest, a later one when the process is
// three times as old as at the last one: of a program that grows as it starts not all looks are of
// its start.
enum { EARLY_LOOKS = CAIRN_LOOKS_MAX - 1, HIGHER_PERCENT = 25, OLDER_TIMES = 3 };
static const uint64_t first_age_ns = CLOCK_SECOND_NS / 4;

// More than this is not copied while a program runs, and while it waits to end: that would take
// some 0.1 s, and 0.4 s.
static const uint64_t early_most_bytes = UINT64_C(256) << 20, end_most_bytes = UINT64_C(1) << 30;

struct look {
    struct cairn_look facts;
    struct core_subject subject;
    struct remedy_facts remedies;  // of the process, without its heap
    bool is_taken;                 // the subject has memory that nobody has studied
    uint64_t waited_ns;
    char *answers;
    size_t answer_bytes;
};

// Early looks at a process are added by the watch's thread and studied by the writer's, which
// has been given the one before when another is added.
struct looks {
    struct look early[EARLY_LOOKS];
    size_t early_count;
    struct look end;
    bool has_end;
    uint64_t due_rss_bytes, due_age_ns;
};

static bool is_wished(const void *context, enum looks_wish wish) {
    return (uintptr_t)context & wish;
}

static void set_reason(struct look *look, const char *reason) {
    text_escape(look->facts.reason, sizeof look->facts.reason, reason);
}

// Reads what is resident, and of which kind.
static void read_resident(struct look *look, pid_t pid) {
    struct rss_parts resident;
    if (rss_parts_of_process(pid, &resident))
        core_remedies_facts(pid, true, &resident, &look->remedies);
    rss_parts_free(&resident);
}

// Its figures are those behind the copy: a process that grows does so until it is stopped.
static void take_copy(struct look *look, const struct watched *process, uint64_t bytes_max) {
    const struct cairn_header *header = process->memory.header;
    const uint64_t start_ns = clock_now_ns();
    struct run_row row = {.figures = {0}};
    struct error problem;
    *look = (struct look){0};
    look->is_taken = core_subject_take(process->pid, header, bytes_max, &look->subject, &problem);
    const uint64_t end_ns = clock_now_ns();
    look->waited_ns = end_ns - start_ns;
    if (end_ns > header->start_clock_ns) look->facts.at_ns = end_ns - header->start_clock_ns;
    look->facts.rss_bytes = rss_look(process->pid).rss_bytes;
    if (watched_row(process, &row)) look->facts.live_bytes = (uint64_t)row.figures.exit_bytes;
    if (!look->is_taken) {
        set_reason(look, problem.text);
        return;
    }
    look->facts.pause_ns = look->subject.look.live.pause_ns;
    look->facts.copied_bytes = look->subject.look.live.copied_bytes;
    read_resident(look, process->pid);
}

static void free_look(struct look *look) {
    if (look->is_taken) heap_look_close(&look->subject.look);
    free(look->answers);
    remedy_facts_free(&look->remedies);
    *look = (struct look){0};
}

// Reads what resident memory consists of at a look.
static void take_picture(struct watched *process) {
    rss_look_long(&process->rss, process->pid, &process->memory, clock_now_ns());
}

static struct looks *looks_for(const struct watched *process) {
    return process->taken ? process->taken : calloc(1, sizeof(struct looks));
}

// It may have gone on after an end before this one.
static void *take(void *context, struct watched *process) {
    struct looks *looks = looks_for(process);
    if (!looks) return NULL;
    free_look(&looks->end);
    take_copy(&looks->end, process,
              is_wished(context, LOOKS_UNREACHABLE) ? UINT64_MAX : end_most_bytes);
    looks->end.facts.is_at_end = looks->has_end = true;
    if (is_wished(context, LOOKS_AT_HEAP)) take_picture(process);
    return looks;
}

static bool is_due(const struct looks *looks, const struct rss_now *now, uint64_t age_ns) {
    const size_t count = looks ? looks->early_count : 0;
    if (count == EARLY_LOOKS || !now->rss_bytes) return false;
    return looks ? age_ns >= looks->due_age_ns && now->rss_bytes >= looks->due_rss_bytes
                 : age_ns >= first_age_ns;
}

static bool take_early(void *context, struct watched *process, const struct rss_now *now) {
    (void)context;
    const struct cairn_header *header = process->memory.header;
    const uint64_t now_ns = clock_now_ns();
    bool is_running = header->state == CAIRN_STATE_RUNNING && now_ns > header->start_clock_ns;
    const uint64_t age_ns = is_running ? now_ns - header->start_clock_ns : 0;
    if (!is_running || !is_due(process->taken, now, age_ns)) return false;
    struct looks *looks = process->taken = looks_for(process);
    if (!looks) return false;
    struct look *look = &looks->early[looks->early_count++];
    take_copy(look, process, early_most_bytes);
    if (!look->is_taken && (header->state != CAIRN_STATE_RUNNING || watched_is_gone(process))) {
        looks->early_count--;  // it ended meanwhile
        return false;
    }
    looks->due_age_ns = age_ns * OLDER_TIMES;
    looks->due_rss_bytes = look->facts.rss_bytes + look->facts.rss_bytes * HIGHER_PERCENT / 100;
    take_picture(process);
    return look->is_taken;
}

// Opens the recording of what was copied; false, with the reason noted, if it does not fit.
static bool enter(struct look *look, const char *path) {
    struct error problem;
    if (!look->is_taken) return false;
    look->is_taken = false;
    if (core_subject_enter(&look->subject, path, &problem)) return true;
    set_reason(look, problem.text);
    return false;
}

static void find_answers(struct look *look) {
    struct look_answers answers = look_answers_find(&look->subject, &look->remedies);
    look->answers = answers.bytes;
    look->answer_bytes = answers.size;
    look->facts.answer_count = answers.count;
    set_reason(look, answers.problem.text);
}

static void study_one(struct look *look, const char *path) {
    if (!enter(look, path)) return;
    find_answers(look);
    core_subject_close(&look->subject);
}

static void study(void *context, const struct watched *process, const char *path) {
    (void)context;
    const struct looks *looks = process->taken;
    for (size_t i = 0; i < EARLY_LOOKS; i++) {
        struct look *look = (struct look *)&looks->early[i];
        if (look->is_taken && path) study_one(look, path);
    }
}

// --- at the end

// Says why a process has not waited at its end.
static void end_reason(const struct memory_end *end, char text[CAIRN_REASON_BYTES]) {
    snprintf(text, CAIRN_REASON_BYTES, "its end was not seen");
    if (end->has_exit && end->exit_signal)
        snprintf(text, CAIRN_REASON_BYTES, "signal %d ended it (%s)", end->exit_signal,
                 strsignal(end->exit_signal));
    else if (end->has_exit)
        snprintf(text, CAIRN_REASON_BYTES, "it ended without a call that cairn sees");
}

// Keeps what its memory says at the end, beside what nothing leads to.
static bool study_end(const void *context, struct look *look, const char *path,
                      struct error *error) {
    bool is_ok = true;
    if (!enter(look, path))
        return !is_wished(context, LOOKS_UNREACHABLE) ||
               reachability_keep_reason(look->facts.reason, path, error);
    if (is_wished(context, LOOKS_AT_HEAP)) find_answers(look);
    core_forget_map(&look->subject);
    if (is_wished(context, LOOKS_UNREACHABLE))
        is_ok = reachability_keep(&look->subject, look->waited_ns, path, error);
    core_subject_close(&look->subject);
    return is_ok;
}

struct kept {
    struct cairn_look facts[CAIRN_LOOKS_MAX];
    size_t count;
    char *bytes;
    size_t size;
};

static bool add(struct kept *kept, const struct look *look) {
    char *grown = realloc(kept->bytes, kept->size + look->answer_bytes + 1);
    struct cairn_look *facts = &kept->facts[kept->count++];
    if (!grown) return false;
    kept->bytes = grown;
    if (look->answer_bytes) memcpy(grown + kept->size, look->answers, look->answer_bytes);
    *facts = look->facts;
    facts->answers_offset = kept->size;
    facts->answers_bytes = look->answer_bytes;
    kept->size += look->answer_bytes;
    return true;
}

static bool save(const struct looks *looks, const char *path, struct error *error) {
    struct kept kept = {.count = 0};
    bool is_ok = true;
    for (size_t i = 0; i < looks->early_count && is_ok; i++) is_ok = add(&kept, &looks->early[i]);
    is_ok = (is_ok && add(&kept, &looks->end)) || error_set(error, "no memory to keep looks");
    is_ok = is_ok &&
            recording_set_section(path, CAIRN_SECTION_LOOKS, sizeof *kept.facts, kept.facts,
                                  kept.count * sizeof *kept.facts, error) &&
            (!kept.size || recording_set_section(path, CAIRN_SECTION_LOOK_ANSWERS, 1, kept.bytes,
                                                 kept.size, error));
    free(kept.bytes);
    return is_ok;
}

static bool keep_all(const void *context, struct looks *looks, const struct memory_end *end,
                     const char *path, struct error *error) {
    struct look *last = &looks->end;
    bool is_ok = true;
    char reason[CAIRN_REASON_BYTES];
    if (looks->has_end) {
        is_ok = study_end(context, last, path, error);
    } else {
        end_reason(end, reason);
        set_reason(last, reason);
        last->facts.is_at_end = true;
        is_ok =
            !is_wished(context, LOOKS_UNREACHABLE) || reachability_keep_reason(reason, path, error);
    }
    return is_ok && (!is_wished(context, LOOKS_AT_HEAP) || save(looks, path, error));
}

// A process that became another program has no end of its own.
static bool keep(void *context, const struct watched *process, const char *path,
                 struct error *error) {
    struct looks nothing = {0}, *looks = process->taken ? process->taken : &nothing;
    bool is_replaced = process->memory.header->stop_reason == CAIRN_STOP_EXEC;
    bool is_ok = !path || is_replaced || keep_all(context, looks, &process->end, path, error);
    for (size_t i = 0; i < EARLY_LOOKS; i++) free_look(&looks->early[i]);
    free_look(&looks->end);
    free(process->taken);
    return is_ok;
}

struct last_look looks_of(unsigned wish) {
    bool has_early = wish & LOOKS_AT_HEAP;
    return (struct last_look){.context = (void *)(uintptr_t)wish,
                              .take = take,
                              .take_early = has_early ? take_early : NULL,
                              .study = has_early ? study : NULL,
                              .keep = keep};
}
