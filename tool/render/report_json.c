// SPDX-License-Identifier: Apache-2.0
#include "tool/render/report_json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/model/run.h"
#include "tool/model/shape.h"
#include "tool/model/threads.h"
#include "tool/render/claims_find.h"
#include "tool/render/contexts_screen.h"
#include "tool/render/growth.h"
#include "tool/render/json_values.h"
#include "tool/render/memory.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/reachability.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/shapes.h"
#include "tool/render/snapshots_screen.h"
#include "tool/render/stacks_json.h"
#include "tool/render/trust.h"
#include "tool/render/trust_json.h"

// A word as a shell would read it back.
static char *quote_word(const char *word, char *out, const char *end) {
    static const char quoted_quote[] = "'\\''";
    enum { WORST = sizeof quoted_quote + 2 };
    bool is_plain = *word != 0;
    for (const char *at = word; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("%+,-./:=@_", *at)) is_plain = false;
    if (!is_plain) *out++ = '\'';
    for (; *word && end - out > WORST; word++) {
        if (*word == '\'') {
            memcpy(out, quoted_quote, sizeof quoted_quote - 1);
            out += sizeof quoted_quote - 1;
        } else {
            *out++ = *word;
        }
    }
    if (!is_plain) *out++ = '\'';
    return out;
}

// Arguments end where nothing follows an empty one; an empty argument in the middle is kept.
void report_command_line(const struct cairn_header *header, char *out, size_t size) {
    enum { ROOM_FOR_ONE = 8 };
    const char *end = out + size, *argument = header->command;
    const char *last = header->command + CAIRN_TEXT_COMMAND;
    while (last > argument && !last[-1]) last--;
    while (argument < last && end - out > ROOM_FOR_ONE) {
        if (argument > header->command) *out++ = ' ';
        out = quote_word(argument, out, end);
        argument += strlen(argument) + 1;
    }
    *out = 0;
}

static void put_exit(struct json *json, bool has_exit, int32_t status, int32_t exit_signal) {
    if (!has_exit) {
        json_put_null(json, "exit");
        return;
    }
    json_open_object(json, "exit");
    json_put_int(json, "status", status);
    json_put_int(json, "signal", exit_signal);
    json_close(json);
}

// What both a recording and a row in the index of a run have of a process. A row does not have all
// figures: those are UNKNOWN, and null.
#define UNKNOWN INT64_MIN
static const char *const total_keys[] = {
    "allocations", "frees",   "allocated_bytes",     "freed_bytes", "failed",
    "temporary",   "watched", "watched_short_lived", "slack_bytes", "alignment_waste_bytes"};
static const char *const inherited_keys[] = {"blocks",     "bytes",          "peak_blocks",
                                             "peak_bytes", "at_exit_blocks", "at_exit_bytes"};
static const char *const peak_keys[] = {"bytes", "blocks", "at_ns", "from_ns", "error_bytes"};
static const char *const exit_keys[] = {"bytes", "blocks"};

#define PUT_FIGURES(json, key, keys, ...)                                                          \
    do {                                                                                           \
        const int64_t values[] = {__VA_ARGS__};                                                    \
        _Static_assert(sizeof values / sizeof *values == sizeof(keys) / sizeof *(keys),            \
                       "a value for each key");                                                    \
        put_known(json, key, keys, values, sizeof values / sizeof *values);                        \
    } while (0)

static void put_known(struct json *json, const char *key, const char *const *keys,
                      const int64_t *values, size_t count) {
    json_open_object(json, key);
    for (size_t i = 0; i < count; i++) {
        if (values[i] == UNKNOWN)
            json_put_null(json, keys[i]);
        else
            json_put_int(json, keys[i], values[i]);
    }
    json_close(json);
}

struct process_facts {
    uint32_t pid, ppid;
    const char *command;
    uint64_t start_unix_ns, duration_ns;
    bool has_exit;
    int32_t exit_status, exit_signal;
};

static void put_process(struct json *json, const struct process_facts *facts) {
    json_open_object(json, "process");
    json_put_uint(json, "pid", facts->pid);
    json_put_uint(json, "ppid", facts->ppid);
    json_put_string(json, "command", facts->command);
    json_put_uint(json, "start_unix_ns", facts->start_unix_ns);
    json_put_uint(json, "duration_ns", facts->duration_ns);
    put_exit(json, facts->has_exit, facts->exit_status, facts->exit_signal);
    json_close(json);
}

static void put_header(struct json *json, const struct cairn_header *header) {
    char command[REPORT_COMMAND_BYTES];
    report_command_line(header, command, sizeof command);
    put_process(json, &(struct process_facts){
                          header->pid, header->ppid, command, header->start_unix_ns, header->end_ns,
                          header->has_exit != 0, header->exit_status, header->exit_signal});
}

// Of an import without frees.
static void put_calls(struct json *json, const struct profile_totals *totals) {
    PUT_FIGURES(json, "totals", total_keys, (int64_t)totals->allocations, UNKNOWN,
                (int64_t)totals->allocated_bytes, UNKNOWN, (int64_t)totals->failed, UNKNOWN,
                UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
    PUT_FIGURES(json, "peak", peak_keys, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
    PUT_FIGURES(json, "at_exit", exit_keys, UNKNOWN, UNKNOWN);
}

static int64_t if_calls(const struct profile *profile, uint64_t value) {
    return profile_has_calls(profile) ? (int64_t)value : UNKNOWN;
}

static int64_t if_blocks(const struct profile *profile, int64_t blocks) {
    return profile_has_blocks(profile) ? blocks : UNKNOWN;
}

static void put_figures(struct json *json, const struct profile *profile) {
    const struct profile_totals *totals = &profile->totals;
    const struct inherited *inherited = &profile->inherited;
    if (!profile_has_frees(profile)) {
        put_calls(json, totals);
        return;
    }
    PUT_FIGURES(json, "totals", total_keys, if_calls(profile, totals->allocations),
                if_calls(profile, totals->frees), if_calls(profile, totals->allocated_bytes),
                if_calls(profile, totals->freed_bytes), (int64_t)totals->failed,
                (int64_t)totals->temporary, (int64_t)totals->watched.blocks,
                (int64_t)totals->watched.short_lived, (int64_t)totals->slack_bytes,
                (int64_t)totals->waste_bytes);
    PUT_FIGURES(json, "inherited", inherited_keys, (int64_t)inherited->blocks,
                (int64_t)inherited->bytes, inherited->peak_blocks, inherited->peak_bytes,
                inherited->exit_blocks, inherited->exit_bytes);
    PUT_FIGURES(json, "peak", peak_keys, profile->peak.bytes,
                if_blocks(profile, profile->peak.blocks), (int64_t)profile->peak.at_ns,
                profile->peak.from_ns ? (int64_t)profile->peak.from_ns : UNKNOWN,
                (int64_t)profile->peak.error_bytes);
    PUT_FIGURES(json, "at_exit", exit_keys, profile->exit_bytes,
                if_blocks(profile, profile->exit_blocks));
    reachability_put(json, profile);
    trust_json_put_looks(json, profile->recording);
    json_open_object(json, "rss");
    json_put_uint(json, "peak_bytes", profile->recording->header.rss_peak_bytes);
    memory_json_put(json, profile->recording);
    json_close(json);
}

static void put_sampling(struct json *json, const struct profile *profile) {
    const struct cairn_sampling *sampling = &profile->sampling;
    if (!sampling->is_on) return;
    json_open_object(json, "sampling");
    json_put_uint(json, "start_ns", sampling->start_ns);
    json_put_uint(json, "rate_bytes", sampling->rate_bytes);
    json_put_uint(json, "rate_most_bytes", sampling->rate_most_bytes);
    json_put_uint(json, "seed", sampling->seed);
    json_put_uint(json, "max_samples", sampling->max_samples);
    json_put_uint(json, "thinned", sampling->thinned_count);
    json_put_uint(json, "slowed", sampling->slowed_count);
    if (sampling->found_blocks) {
        json_put_uint(json, "found_blocks", sampling->found_blocks);
        json_put_uint(json, "found_bytes", sampling->found_bytes);
    }
    json_values_put_estimate(json, "peak_estimate", &profile->estimates[ESTIMATED_PEAK]);
    json_values_put_estimate(json, "at_exit_estimate", &profile->estimates[ESTIMATED_EXIT]);
    json_close(json);
}

static void put_losses(struct json *json, const struct profile *profile) {
    const struct recording *recording = profile->recording;
    uint64_t unknown = 0;
    json_open_object(json, "lost");
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        uint64_t count = recording_lost(recording, kind);
        if (count && loss_key(kind)) json_put_uint(json, loss_key(kind), count);
        if (!loss_key(kind)) unknown += count;
    }
    if (unknown) json_put_uint(json, "unknown", unknown);
    if (recording_is_checkpoint(recording)) json_put_uint(json, "end", 1);
    const struct damage *damage = &recording->damage;
    if (damage->missing_bytes) json_put_uint(json, "damage_missing_bytes", damage->missing_bytes);
    if (damage->bad_stacks) json_put_uint(json, "damage_stacks", damage->bad_stacks);
    uint32_t others = damage->bad_sections + damage->bad_modules + damage->bad_strings;
    if (others) json_put_uint(json, "damage_entries", others);
    json_close(json);
}

static void put_checkpoint(struct json *json, const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    if (!recording_is_checkpoint(recording)) return;
    json_open_object(json, "checkpoint");
    json_put_uint(json, "at_ns", header->checkpoint_ns);
    if (header->checkpoint_pause_ns)
        json_put_uint(json, "next_due_ns", header->checkpoint_ns + header->checkpoint_pause_ns);
    else
        json_put_null(json, "next_due_ns");
    json_close(json);
}

static void put_ages_error(struct json *json, const struct recording *recording) {
    const uint64_t error_ms = shape_ages_error_ms(recording);
    if (!recording_count(recording, CAIRN_SECTION_AGES)) return;
    if (error_ms == UINT64_MAX)
        json_put_null(json, "ages_error_ms");
    else
        json_put_uint(json, "ages_error_ms", error_ms);
}

static void put_trust(struct json *json, const struct profile *profile,
                      const struct frame_names *names) {
    json_open_object(json, "trust");
    json_put_bool(json, "exact", profile_is_exact(profile));
    put_losses(json, profile);
    const char *bypassing = recording_bypassing(profile->recording);
    if (bypassing) json_put_string(json, "bypassing", bypassing);
    put_checkpoint(json, profile->recording);
    trust_json_put_left_out(json, profile->recording);
    trust_json_put_unkept(json, &profile->recording->header.unkept);
    json_put_uint(json, "earlier_frees", recording_earlier_frees(profile->recording));
    const char *imported = recording_imported(profile->recording);
    if (imported) json_put_string(json, "imported", imported);
    json_open_object(json, "stacks_incomplete");
    uint64_t unknown = 0;
    for (uint32_t cut = 1; cut < CAIRN_CUT_LIMIT; cut++) {
        uint64_t count = profile->incomplete[cut];
        if (count && strcmp(cut_key(cut), "unknown") != 0)
            json_put_uint(json, cut_key(cut), count);
        else
            unknown += count;
    }
    if (unknown) json_put_uint(json, "unknown", unknown);
    json_close(json);
    const uint32_t max_depth = recording_max_depth(profile->recording);
    if (max_depth) json_put_uint(json, "max_depth", max_depth);
    put_ages_error(json, profile->recording);
    json_put_uint(json, "own_bytes", profile->recording->header.own_bytes);
    json_put_uint(json, "frames_unresolved", names->unresolved_count);
    json_close(json);
}

void report_json_put_facts(struct json *json, const struct profile *profile,
                           const struct frame_names *names) {
    put_header(json, &profile->recording->header);
    put_figures(json, profile);
    put_sampling(json, profile);
    put_trust(json, profile, names);
}

// Of threads that shared a slot only the sum is known to so much.
static void put_thread_estimate(struct json *json, const char *key,
                                const struct profile_thread *thread,
                                const struct estimate *estimate) {
    if (thread->is_shared)
        json_put_null(json, key);
    else
        json_values_put_estimate(json, key, estimate);
}

static void put_if_known(struct json *json, const char *key, int64_t value, bool is_known) {
    if (is_known)
        json_put_int(json, key, value);
    else
        json_put_null(json, key);
}

static void put_account(struct json *json, const struct profile *profile,
                        const struct thread_row *row) {
    char text[THREAD_TEXT_BYTES];
    bool has_frees = profile_has_frees(profile);
    thread_row_text(row, text, sizeof text);
    json_open_object(json, NULL);
    json_put_uint(json, "account", row->sums.account);
    json_put_uint(json, "slot", row->sums.slot);
    json_put_string(json, "name", text);
    json_put_uint(json, "threads", row->sharing_count);
    json_put_uint(json, "allocations", row->sums.allocations);
    json_put_uint(json, "allocated_bytes", row->sums.allocated_bytes);
    put_if_known(json, "peak_bytes", row->sums.peak_bytes, has_frees);
    put_if_known(json, "at_exit_bytes", row->sums.exit_bytes, has_frees);
    if (profile->sampling.is_on) {
        json_values_put_estimate(json, "peak_estimate", &row->sums.peak_estimate);
        json_values_put_estimate(json, "at_exit_estimate", &row->sums.exit_estimate);
    }
    json_close(json);
}

// Puts the threads that share an account; left out where none do.
static void put_accounts(struct json *json, const struct profile *profile) {
    size_t count = 0, shared = 0;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    if (rows && threads_rows(profile, rows, &count))
        for (size_t i = 0; i < count; i++) shared += rows[i].sharing_count > 1;
    if (shared) {
        json_open_array(json, "thread_accounts");
        for (size_t i = 0; i < count; i++)
            if (rows[i].sharing_count > 1) put_account(json, profile, &rows[i]);
        json_close(json);
    }
    free(rows);
}

void report_json_put_threads(struct json *json, const struct profile *profile) {
    put_accounts(json, profile);
    json_open_array(json, "threads");
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        json_open_object(json, NULL);
        json_put_string(json, "name", thread->name);
        json_put_uint(json, "tid", thread->tid);
        json_put_uint(json, "slot", thread->slot);
        json_put_uint(json, "start_ns", thread->start_ns);
        if (thread->end_ns)
            json_put_uint(json, "end_ns", thread->end_ns);
        else
            json_put_null(json, "end_ns");
        json_put_uint(json, "allocations", thread->allocations);
        json_put_uint(json, "allocated_bytes", thread->allocated_bytes);
        bool is_known = profile_has_frees(profile) && !thread->is_shared;
        put_if_known(json, "peak_bytes", thread->peak_bytes, is_known);
        put_if_known(json, "at_exit_bytes", thread->exit_bytes, is_known);
        if (thread->is_shared) json_put_uint(json, "account", thread->account);
        if (profile->sampling.is_on) {
            put_thread_estimate(json, "peak_estimate", thread, &thread->peak_estimate);
            put_thread_estimate(json, "at_exit_estimate", thread, &thread->exit_estimate);
        }
        json_close(json);
    }
    json_close(json);
}

bool report_json_put(struct json *json, const char *file, const struct profile *profile,
                     const struct frame_names *names, const struct findings *findings,
                     const struct view_options *view, struct error *error) {
    json_open_object(json, NULL);
    json_put_string(json, "schema", REPORT_SCHEMA);
    if (file) json_put_string(json, "file", file);
    report_json_put_facts(json, profile, names);
    bool is_ok = claims_put_json(json, findings, profile, names);
    is_ok = stacks_json_put(json, profile, names, view) && is_ok;
    is_ok = stacks_json_put_mapped(json, profile, names, view) && is_ok;
    report_json_put_threads(json, profile);
    is_ok = snapshots_json_put(json, profile) && is_ok;
    is_ok = scopes_put_json(json, profile) && is_ok;
    is_ok = contexts_put_json(json, profile) && is_ok;
    is_ok = shape_json_put_freed_by(json, profile) && is_ok;
    is_ok = overruns_put_json(json, profile, names) && is_ok;
    return is_ok || error_set(error, "no memory for the list of stacks");
}

bool report_json_print(FILE *out, const struct profile *profile, const struct frame_names *names,
                       const struct findings *findings, const struct view_options *view,
                       struct error *error) {
    struct json json;
    json_start(&json, out);
    bool is_ok = report_json_put(&json, NULL, profile, names, findings, view, error);
    json_close(&json);
    return is_ok;
}

static void put_row_figures(struct json *json, const struct run_row *row) {
    const struct figures *figures = &row->figures;
    uint64_t had_bytes = figures->allocated_bytes + figures->inherited_bytes;
    PUT_FIGURES(json, "totals", total_keys, (int64_t)figures->allocations, (int64_t)figures->frees,
                (int64_t)figures->allocated_bytes,
                (int64_t)figures_freed(had_bytes, figures->exit_bytes), (int64_t)figures->failed,
                UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
    PUT_FIGURES(json, "inherited", inherited_keys, (int64_t)figures->inherited_blocks,
                (int64_t)figures->inherited_bytes, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
    PUT_FIGURES(json, "peak", peak_keys, (int64_t)figures->peak_bytes, UNKNOWN,
                (int64_t)figures->peak_ns, UNKNOWN, 0);
    PUT_FIGURES(json, "at_exit", exit_keys, figures->exit_bytes, figures->exit_blocks);
    json_open_object(json, "rss");
    json_put_uint(json, "peak_bytes", row->rss_peak_bytes);
    json_close(json);
}

// As of a whole profile, as far as the index has it.
static void put_row_sampling(struct json *json, const struct run_row *row) {
    const struct figures *figures = &row->figures;
    if (!figures->is_sampled) return;
    json_open_object(json, "sampling");
    json_put_uint(json, "rate_bytes", figures->rate_bytes);
    json_open_object(json, "peak_estimate");
    json_put_int(json, "interval_bytes", estimate_bytes_interval(&figures->peak_estimate));
    json_put_null(json, "interval_blocks");
    json_put_int(json, "samples", estimate_samples(&figures->peak_estimate));
    json_close(json);
    json_open_object(json, "at_exit_estimate");
    json_put_int(json, "interval_bytes", estimate_bytes_interval(&figures->exit_estimate));
    json_put_int(json, "interval_blocks", estimate_blocks_interval(&figures->exit_estimate));
    json_put_int(json, "samples", estimate_samples(&figures->exit_estimate));
    json_close(json);
    json_close(json);
}

static void put_row_trust(struct json *json, const struct run_row *row) {
    json_open_object(json, "trust");
    bool is_lost = *row->problem != 0;
    json_put_bool(json, "exact", !row->figures.lost && !row->figures.is_sampled && !is_lost);
    json_open_object(json, "lost");
    if (is_lost) json_put_uint(json, "recording", 1);
    if (row->figures.lost) json_put_uint(json, "unknown", row->figures.lost);
    json_close(json);
    json_open_object(json, "stacks_incomplete");
    json_close(json);
    json_put_null(json, "own_bytes");
    json_put_uint(json, "frames_unresolved", 0);
    if (is_lost) json_put_string(json, "lost_because", row->problem);
    json_close(json);
}

void report_json_put_row(struct json *json, const struct run_row *row) {
    json_open_object(json, NULL);
    json_put_string(json, "schema", REPORT_SCHEMA);
    json_put_null(json, "file");
    put_process(json, &(struct process_facts){row->pid, row->ppid, row->name, row->start_unix_ns,
                                              row->duration_ns, row->has_exit, row->exit_status,
                                              row->exit_signal});
    put_row_figures(json, row);
    put_row_sampling(json, row);
    put_row_trust(json, row);
    json_put_null(json, "claims");
    json_open_array(json, "stacks");
    json_close(json);
    json_put_null(json, "mappings");
    json_open_array(json, "threads");
    json_close(json);
    json_open_array(json, "snapshots");
    json_close(json);
    json_open_array(json, "freed_by");
    json_close(json);
    json_close(json);
}

static void put_run_losses(struct json *json, const struct trust_sums *sums) {
    uint64_t unknown = sums->lost_elsewhere;
    json_open_object(json, "lost");
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        if (sums->lost[kind] && loss_key(kind))
            json_put_uint(json, loss_key(kind), sums->lost[kind]);
        if (!loss_key(kind)) unknown += sums->lost[kind];
    }
    if (unknown) json_put_uint(json, "unknown", unknown);
    if (sums->checkpoints) json_put_uint(json, "end", sums->checkpoints);
    if (sums->lost_files) json_put_uint(json, "recording", sums->lost_files);
    if (sums->bad_files) json_put_uint(json, "unreadable", sums->bad_files);
    json_close(json);
}

void report_json_put_run_trust(struct json *json, const struct run *run,
                               const struct trust_sums *sums) {
    json_open_object(json, "trust");
    json_put_bool(json, "exact", trust_sums_are_whole(sums) && !sums->sampled_count);
    put_run_losses(json, sums);
    trust_json_put_unkept(json, &sums->unkept);
    json_open_array(json, "lost_processes");
    for (size_t i = 0; i < run->rows.count; i++) {
        const struct run_row *row = &run->rows.items[i];
        if (!*row->problem) continue;
        json_open_object(json, NULL);
        json_put_string(json, "command", row->name);
        json_put_uint(json, "pid", row->pid);
        json_put_string(json, "because", row->problem);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}
