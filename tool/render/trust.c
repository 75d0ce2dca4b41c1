// SPDX-License-Identifier: Apache-2.0
#include "tool/render/trust.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/figures.h"
#include "tool/model/left_out.h"
#include "tool/render/claims_summary.h"
#include "tool/render/frames.h"
#include "tool/render/interval.h"

enum { PART_BYTES = 160 };

static const struct {
    const char *key, *one, *many;
} losses[] = {
    [CAIRN_LOST_NESTED] = {"nested", "event in a signal handler", "events in signal handlers"},
    [CAIRN_LOST_NO_THREAD] = {"no_thread", "event of a thread beyond cairn's table",
                              "events of threads beyond cairn's table"},
    [CAIRN_LOST_NO_MEMORY] = {"no_memory", "event without its stack, for lack of memory",
                              "events without their stack, for lack of memory"},
    [CAIRN_LOST_NO_LIVE_MAP] = {"no_live_map", "block whose free will not be seen",
                                "blocks whose free will not be seen"},
    [CAIRN_LOST_IMPLIED_FREE] = {"implied_free", "block whose free was not seen",
                                 "blocks whose free was not seen"},
    [CAIRN_LOST_UNKNOWN_FREE] = {"unknown_free", "free of an unknown block",
                                 "frees of unknown blocks"},
    [CAIRN_LOST_MODULES] = {"modules", "module or Python code beyond cairn's table",
                            "modules or Python code beyond cairn's table"},
    [CAIRN_LOST_DEEPBIND] = {"deepbind", "library opened so that its calls bypass cairn",
                             "libraries opened so that their calls bypass cairn"},
    [CAIRN_LOST_EVENTS] = {"events", "event missing in the event log, though counted",
                           "events missing in the event log, though counted"},
    [CAIRN_LOST_PROCESSES] = {"processes",
                              "process unrecorded: no room, a limit, seccomp or a sandbox",
                              "processes unrecorded: no room, a limit, seccomp or a sandbox"},
    [CAIRN_LOST_REST] =
        {"rest", "process unrecorded since it limited its memory or had too many threads",
         "processes unrecorded since they limited their memory or had too many threads"},
    [CAIRN_LOST_BUDGET] = {"budget", "event without its stack, for the limit on overhead",
                           "events without their stack, for the limit on overhead"},
};

static bool is_known_loss(size_t kind) {
    return kind < sizeof losses / sizeof *losses && losses[kind].key;
}

const char *loss_key(size_t kind) {
    return is_known_loss(kind) ? losses[kind].key : NULL;
}

const char *loss_sentence(size_t kind, uint64_t count) {
    if (!is_known_loss(kind)) return "of an unknown kind";
    return units_noun((int64_t)count, losses[kind].one, losses[kind].many);
}

const char *earlier_frees_sentence(uint64_t count) {
    return units_noun((int64_t)count, "free of an earlier block (expected)",
                      "frees of earlier blocks (expected)");
}

static void add_earlier(struct parts *line, uint64_t count) {
    if (!count) return;
    parts_add(line, STYLE_PLAIN, "%s %s", units_count((int64_t)count).text,
              earlier_frees_sentence(count));
}

static void add_sampling(struct parts *line, const struct cairn_sampling *sampling) {
    parts_add(line, STYLE_PLAIN, "%s", interval_rate(sampling).text);
    if (sampling->start_ns && sampling->rate_most_bytes)
        parts_add(line, STYLE_PLAIN, "since %s", units_duration(sampling->start_ns).text);
}

static void add_exactness(struct parts *line, const struct profile *profile) {
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    if (profile->sampling.is_on) add_sampling(line, &profile->sampling);
    claim_of_exactness(&claim, profile);
    claim_sentence(&claim, false, sentence);
    parts_add(line, claim.key == CLAIM_NOT_EXACT ? STYLE_WARNING : STYLE_PLAIN, "%s", sentence);
    if (profile->recording->header.control.was_off)
        parts_add(line, STYLE_PLAIN, "switched off at times: allocations then are not counted");
}

// "imported from massif", and what was not in it, in as many parts as it has.
static void add_imported(struct parts *line, struct recording *recording) {
    const char *note = recording_imported(recording);
    if (!note) return;
    char text[FRAME_TEXT_BYTES];
    text_escape(text, sizeof text, note);
    if (recording_is_of_owners(recording)) {
        parts_add(line, STYLE_PLAIN, "%s", text + strlen(RECORDING_OF_OWNERS ": "));
        return;
    }
    char *lacks = strstr(text, ": ");
    if (lacks) *lacks = 0;
    parts_add(line, STYLE_PLAIN, "imported from %s", text);
    if (!lacks || !lacks[2]) return;
    const char *word = "not available: ";
    char *rest = NULL;
    for (char *part = strtok_r(lacks + 2, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        parts_add(line, STYLE_PLAIN, "%s%s", word, part + strspn(part, " "));
        word = "";
    }
}

static const char *const nothing_recorded =
    "lost: everything, without room in memory or on the disk";

// The time up to which the recording is there.
static void add_checkpoint(struct parts *line, const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    if (!recording_is_checkpoint(recording)) return;
    const uint64_t due_ns = header->checkpoint_ns + header->checkpoint_pause_ns;
    parts_add(line, STYLE_WARNING, "checkpoint at %s%s%s",
              units_duration(header->checkpoint_ns).text,
              header->checkpoint_pause_ns ? ", the next due at " : "",
              header->checkpoint_pause_ns ? units_duration(due_ns).text : "");
    parts_add(line, STYLE_WARNING, "lost: what came after it");
}

// "past cairn: liballocator.so", of several the first.
static void add_bypassing(struct parts *line, struct recording *recording) {
    char text[FRAME_TEXT_BYTES];
    const char *path = recording_bypassing(recording);
    if (!path) return;
    text_escape(text, sizeof text, text_base_name(path));
    parts_add(line, STYLE_WARNING, "past cairn: %s%s", text,
              recording_lost(recording, CAIRN_LOST_DEEPBIND) > 1 ? " and others" : "");
}

// "not recorded: w (statically linked), 3 x env (...)".
static void add_left_out(struct parts *line, const struct cairn_left_out *list) {
    enum { SHOWN = 3 };
    char text[FRAME_TEXT_BYTES], name[CAIRN_LEFT_OUT_NAME * 4];
    size_t shown = 0;
    uint64_t rest = list->count;
    const char *word = "not recorded: ";
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS && shown < SHOWN; i++) {
        const struct cairn_left_out_program *program = &list->programs[i];
        if (!program->count) continue;
        char times[32] = "";
        text_escape(name, sizeof name, program->name);
        if (program->count > 1) snprintf(times, sizeof times, "%" PRIu32 " x ", program->count);
        snprintf(text, sizeof text, "%s%s%s (%s)", word, times, name,
                 left_out_words(program->reason));
        parts_add(line, STYLE_WARNING, "%s", text);
        rest -= program->count < rest ? program->count : rest;
        word = "";
        shown++;
    }
    if (rest) parts_add(line, STYLE_WARNING, "%s%s more", word, units_count((int64_t)rest).text);
}

// `is_cut`: a part of the recording is missing, so that nobody knows what was in it.
static void add_losses(struct parts *line, const uint64_t *lost, uint64_t elsewhere, bool is_cut,
                       const struct cairn_left_out *left_out) {
    bool has_lost = elsewhere != 0;
    if (elsewhere)
        parts_add(line, STYLE_WARNING, "lost: %s in processes without a recording",
                  units_counted((int64_t)elsewhere, "event", "events").text);
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        if (!lost[kind]) continue;
        parts_add(line, STYLE_WARNING, "%s%s %s",
                  has_lost ? "" : "lost: ", units_count((int64_t)lost[kind]).text,
                  loss_sentence(kind, lost[kind]));
        has_lost = true;
    }
    if (!has_lost && !is_cut)
        parts_add(line, STYLE_PLAIN,
                  left_out->count ? "nothing lost of what was recorded" : "nothing lost");
    if (left_out->count) add_left_out(line, left_out);
}

// "not kept: 5 processes of few calls, 2,500 calls, 2.4 MiB".
static void add_unkept(struct parts *line, const struct cairn_unkept *unkept) {
    if (!unkept->processes) return;
    parts_add(line, STYLE_PLAIN, "not kept: %s of few calls (%s, %s)",
              units_counted((int64_t)unkept->processes, "process", "processes").text,
              units_counted((int64_t)unkept->allocations, "call", "calls").text,
              units_size((int64_t)unkept->allocated_bytes).text);
}

static void add_stacks(struct parts *line, const struct profile *profile) {
    if (!profile->built_stack_count) return;
    uint64_t incomplete = profile_incomplete_count(profile);
    uint64_t cut = profile->incomplete[CAIRN_CUT_MAX_DEPTH];
    uint32_t depth = recording_max_depth(profile->recording);
    struct unit_text all = units_counted((int64_t)profile->built_stack_count, "stack", "stacks");
    if (depth)
        parts_add(line, STYLE_PLAIN, "stacks cut at %s: %s of %s",
                  units_counted(depth, "frame", "frames").text, units_count((int64_t)cut).text,
                  all.text);
    if (incomplete)
        parts_add(line, STYLE_PLAIN, "%s of %s incomplete", units_count((int64_t)incomplete).text,
                  all.text);
    else if (cut)
        parts_add(line, STYLE_PLAIN, "nothing else of them missing");
    else if (profile->built_stack_count == 1)
        parts_add(line, STYLE_PLAIN, "its one stack complete");
    else
        parts_add(line, STYLE_PLAIN, "all %s complete", all.text);
    uint64_t guessed = profile->incomplete[CAIRN_CUT_GUESSED];
    if (guessed)
        parts_add(line, STYLE_PLAIN, "%s by frame pointers", units_count((int64_t)guessed).text);
}

static void add_damage(struct parts *line, const struct damage *damage) {
    if (damage->missing_bytes)
        parts_add(line, STYLE_WARNING, "recording cut off: %s missing",
                  units_size((int64_t)damage->missing_bytes).text);
    if (damage->bad_stacks)
        parts_add(line, STYLE_WARNING, "recording damaged: %s unreadable",
                  units_counted(damage->bad_stacks, "stack is", "stacks are").text);
    uint32_t others = damage->bad_sections + damage->bad_modules + damage->bad_strings;
    if (others)
        parts_add(line, STYLE_WARNING, "recording damaged: %s unreadable",
                  units_counted(others, "entry is", "entries are").text);
}

// With as many of the modules as a line has room for.
static void add_names(struct parts *line, const struct frame_names *names) {
    enum { AROUND = 8 };  // indent, blank, brackets, comma and ellipsis
    char text[PART_BYTES], modules[PART_BYTES] = "";
    if (!names || !names->unresolved_count) return;
    snprintf(text, sizeof text, "%s of %s without a name",
             units_count((int64_t)names->unresolved_count).text,
             units_counted((int64_t)names->wanted_count, "frame", "frames").text);
    if (names->unresolved_modules)
        snprintf(modules, sizeof modules, "%s", names->unresolved_modules);
    size_t used = text_columns(text) + AROUND, room = line->terminal->columns;
    bool is_cut = false;
    for (char *last; used + text_columns(modules) > room && (last = strrchr(modules, ','));) {
        *last = 0;
        is_cut = true;
    }
    if (*modules)
        parts_add(line, STYLE_PLAIN, "%s (%s%s)", text, modules, is_cut ? ", \xe2\x80\xa6" : "");
    else
        parts_add(line, STYLE_PLAIN, "%s", text);
}

// "cairn itself 4.1 MiB".
static void add_own(struct parts *line, const char *most, uint64_t own_bytes, const char *when) {
    if (!own_bytes) return;
    parts_add(line, STYLE_PLAIN, "cairn itself %s%s%s", most, units_size((int64_t)own_bytes).text,
              when);
}

// Returns " at the end" where another figure of cairn's memory, that of the peak of resident
// memory, stands in the lines above.
static const char *own_moment(const struct profile *profile) {
    const uint64_t own = profile->recording->header.own_bytes;
    struct picture picture;
    if (!profile_has_ended(profile)) return "";
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &picture)) return "";
    const uint64_t then = picture.bytes[PICTURE_OWN];
    return then > own + own / 4 || then < own - own / 4 ? " at the end" : "";
}

// "looked at 3 times, paused for 41 ms", and what is not known of it.
static void add_looks(struct parts *line, const struct recording *recording) {
    struct cairn_look look;
    uint64_t pause_ns = 0, count = 0;
    char reason[PART_BYTES] = "";
    for (size_t i = 0; recording_look(recording, i, &look); i++) {
        count += look.copied_bytes != 0;
        pause_ns += look.pause_ns;
        if (look.reason[0]) text_escape(reason, sizeof reason, look.reason);
    }
    if (count)
        parts_add(line, STYLE_PLAIN, "looked at %s, paused for %s in all",
                  units_counted((int64_t)count, "time", "times").text,
                  units_duration(pause_ns).text);
    if (*reason) parts_add(line, STYLE_WARNING, "a look is not known: %s", reason);
}

void trust_print(const struct terminal *terminal, const struct profile *profile,
                 const struct frame_names *names) {
    const struct cairn_header *header = &profile->recording->header;
    struct parts line = {.terminal = terminal};
    add_exactness(&line, profile);
    add_imported(&line, profile->recording);
    uint64_t lost[CAIRN_LOSS_MAX];
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++)
        lost[kind] = recording_lost(profile->recording, kind);
    const bool is_checkpoint = recording_is_checkpoint(profile->recording);
    add_checkpoint(&line, profile->recording);
    struct cairn_left_out left_out = {0};
    left_out_add_recording(&left_out, profile->recording);
    if (recording_has_begun(profile->recording))
        add_losses(&line, lost, 0, profile->recording->damage.missing_bytes || is_checkpoint,
                   &left_out);
    else
        parts_add(&line, STYLE_WARNING, "%s", nothing_recorded);
    add_bypassing(&line, profile->recording);
    add_unkept(&line, &header->unkept);
    add_earlier(&line, recording_earlier_frees(profile->recording));
    add_stacks(&line, profile);
    add_names(&line, names);
    add_damage(&line, &profile->recording->damage);
    add_looks(&line, profile->recording);
    add_own(&line, "", header->own_bytes, own_moment(profile));
    parts_end(&line);
}

void trust_add_short(struct parts *line, const struct profile *profile) {
    add_exactness(line, profile);
    add_checkpoint(line, profile->recording);
    if (profile->recording->header.control.was_off)
        parts_add(line, STYLE_WARNING, "switched off at times");
    add_damage(line, &profile->recording->damage);
}

void trust_sums_add(struct trust_sums *sums, const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++)
        sums->lost[kind] += recording_lost(recording, kind);
    left_out_add_recording(&sums->left_out, recording);
    unkept_add(&sums->unkept, &header->unkept);
    sums->earlier_frees += recording_earlier_frees(recording);
    if (header->own_bytes > sums->own_bytes) sums->own_bytes = header->own_bytes;
    sums->inexact_count += !recording_is_whole(recording);
    sums->sampled_count += recording_is_sampled(recording);
    sums->checkpoints += recording_is_checkpoint(recording);
    struct cairn_guard guard;
    if (recording_guard(recording, &guard)) sums->overrun_blocks += guard.overrun_blocks;
}

bool trust_sums_are_whole(const struct trust_sums *sums) {
    return !sums->inexact_count && !sums->bad_files && !sums->bad_lines && !sums->lost_files;
}

void trust_sums_print(const struct terminal *terminal, const struct trust_sums *sums) {
    struct parts line = {.terminal = terminal};
    if (sums->inexact_count)
        parts_add(&line, STYLE_WARNING, "%s of the processes not exact",
                  units_count((int64_t)sums->inexact_count).text);
    else if (!trust_sums_are_whole(sums))
        parts_add(&line, STYLE_WARNING, "not exact");
    else if (!sums->sampled_count)
        parts_add(&line, STYLE_PLAIN, "exact");
    if (sums->sampled_count)
        parts_add(&line, STYLE_PLAIN, "%s of the processes sampled",
                  units_count((int64_t)sums->sampled_count).text);
    if (sums->overrun_blocks)
        parts_add(&line, STYLE_WARNING, "%s written past: --view overruns",
                  units_counted((int64_t)sums->overrun_blocks, "block was", "blocks were").text);
    if (sums->checkpoints)
        parts_add(&line, STYLE_WARNING, "lost: what came after the last checkpoint of %s",
                  units_counted((int64_t)sums->checkpoints, "process", "processes").text);
    if (sums->lost_files)
        parts_add(&line, STYLE_WARNING, "lost: %s",
                  units_counted((int64_t)sums->lost_files, "recording", "recordings").text);
    add_losses(&line, sums->lost, sums->lost_elsewhere, !trust_sums_are_whole(sums),
               &sums->left_out);
    add_unkept(&line, &sums->unkept);
    add_earlier(&line, sums->earlier_frees);
    if (sums->bad_files)
        parts_add(&line, STYLE_WARNING, "%s unreadable",
                  units_counted((int64_t)sums->bad_files, "recording is", "recordings are").text);
    if (sums->bad_lines)
        parts_add(&line, STYLE_WARNING, "%s unreadable",
                  units_counted((int64_t)sums->bad_lines, "line of the index is",
                                "lines of the index are")
                      .text);
    add_own(&line, "up to ", sums->own_bytes, "");
    parts_end(&line);
}

void program_name(const struct profile *profile, char *out, size_t size) {
    const struct cairn_header *header = &profile->recording->header;
    char name[NAME_MAX];
    recording_program(header, name);
    text_escape(out, size, *name ? name : "unknown program");
}

// "ended by SIGKILL", or with a status.
static void how_it_ended(const struct ending *ending, char *out, size_t size) {
    const char *name = ending->exit_signal ? sigabbrev_np(ending->exit_signal) : NULL;
    if (!ending->has_exit)
        snprintf(out, size, ending->state == CAIRN_STATE_DIED ? "died" : "ended");
    else if (name)
        snprintf(out, size, "ended by SIG%s", name);
    else if (ending->exit_signal)
        snprintf(out, size, "ended by signal %" PRId32, ending->exit_signal);
    else
        snprintf(out, size, "ended with status %" PRId32, ending->exit_status);
}

void ending_text(const struct ending *ending, bool is_alive, char *out, size_t size) {
    bool is_over = ending->state == CAIRN_STATE_DIED || ending->state == CAIRN_STATE_STOPPED;
    if (is_over && ending->stop_reason == CAIRN_STOP_EXEC)
        snprintf(out, size, "became another program");
    else if (ending->stop_reason == CAIRN_STOP_LEFT)
        snprintf(out, size, "was left running");
    else if (ending->state == CAIRN_STATE_NEW)
        snprintf(out, size, "has not started");
    else if (ending->state == CAIRN_STATE_RUNNING)
        snprintf(out, size, is_alive ? "is running" : "has no end in this recording");
    else if (ending->state != CAIRN_STATE_STOPPED)
        how_it_ended(ending, out, size);
    else if (ending->stop_reason == CAIRN_STOP_NO_MEMORY)
        snprintf(out, size, "could not be recorded: no room in memory or on the disk");
    else
        snprintf(out, size, "was recorded in part");
}

void ending_word(const struct ending *ending, char *out, size_t size) {
    const char *name = ending->exit_signal ? sigabbrev_np(ending->exit_signal) : NULL;
    bool is_over = ending->state == CAIRN_STATE_DIED || ending->state == CAIRN_STATE_ENDED;
    if (ending->stop_reason == CAIRN_STOP_EXEC)
        snprintf(out, size, "exec");
    else if (ending->stop_reason == CAIRN_STOP_LEFT)
        snprintf(out, size, "left");
    else if (ending->state == CAIRN_STATE_RUNNING)
        snprintf(out, size, "no end");
    else if (is_over && !ending->has_exit)
        snprintf(out, size, ending->state == CAIRN_STATE_DIED ? "died" : "ended");
    else if (!is_over)
        snprintf(out, size, "in part");
    else if (name)
        snprintf(out, size, "SIG%s", name);
    else if (ending->exit_signal)
        snprintf(out, size, "signal %" PRId32, ending->exit_signal);
    else
        snprintf(out, size, "status %" PRId32, ending->exit_status);
}

void ending_print(const struct terminal *terminal, const struct profile *profile, bool is_alive) {
    const struct cairn_header *header = &profile->recording->header;
    char name[PART_BYTES], ending[PART_BYTES];
    program_name(profile, name, sizeof name);
    const struct ending how = {header->state, header->stop_reason, header->has_exit != 0,
                               header->exit_status, header->exit_signal};
    ending_text(&how, is_alive, ending, sizeof ending);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    if (recording_is_of_owners(profile->recording)) {
        fputs(" as it stood", terminal->out);
        return;
    }
    bool is_bad = header->has_exit && (header->exit_signal || header->exit_status);
    terminal_print(terminal, is_bad ? STYLE_WARNING : STYLE_PLAIN, " %s", ending);
    if (header->end_ns) fprintf(terminal->out, " after %s", units_duration(header->end_ns).text);
}
