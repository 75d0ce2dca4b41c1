// SPDX-License-Identifier: Apache-2.0
// Names of a recording as bytes that are kept in it.
#include <stdlib.h>

#include "tool/query/names.h"
#include "tool/query/names_state.h"

static int by_address(const void *left, const void *right) {
    const struct symbol_query *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static bool make_bundle(const struct asked *asked, void **bytes, size_t *size,
                        struct error *error) {
    struct bundle_part *parts = calloc(asked->job_count + 1, sizeof *parts);
    if (!parts) return error_set(error, "no memory for names");
    for (size_t i = 0; i < asked->job_count; i++) {
        struct symbol_job *job = &asked->jobs[i];
        qsort(job->queries, job->count, sizeof *job->queries, by_address);
        parts[i] = (struct bundle_part){.module = job->module,
                                        .source = job->report.source,
                                        .source_path = job->report.path,
                                        .note = job->report.is_partial ? NULL : job->report.note,
                                        .is_partial = job->report.is_partial,
                                        .queries = job->queries,
                                        .count = job->count};
    }
    bool is_made = bundle_make(parts, asked->job_count, bytes, size);
    free(parts);
    return is_made || error_set(error, "no memory for names");
}

// Asks about the places of the list with what the sources are to keep to.
static bool ask(struct names *names, const struct names_effort *effort, bool is_anew,
                struct asked *asked, struct error *error) {
    const struct symbol_options usual = names->options;
    names->options.is_anew = is_anew;
    names->options.is_raw = true;
    names->options.foreign_bytes_max = effort->foreign_bytes_max;
    names->options.deadline_ns = effort->deadline_ns;
    bool is_ok = names_list(names, names_is_code, asked, error) && names_ask(names, asked, error);
    names->options = usual;
    return is_ok;
}

bool names_collect(struct names *names, const struct names_effort *effort,
                   struct names_collected *collected, struct error *error) {
    struct asked asked = {.count = 0}, older = {.count = 0};
    *collected = (struct names_collected){.bytes = NULL};
    bool is_anew = effort->is_anew;
    bool is_ok = ask(names, effort, is_anew, &asked, error);
    // what no source knows any more may have been kept
    is_ok = is_ok && (!is_anew || ask(names, effort, false, &older, error));
    for (size_t i = 0; i < asked.count && is_ok; i++) {
        if (is_anew && !asked.queries[i].frame_count) asked.queries[i] = older.queries[i];
        collected->unnamed_count += !asked.queries[i].frame_count;
    }
    collected->frame_count = asked.count;
    for (size_t i = 0; i < asked.job_count; i++)
        collected->late_count += asked.jobs[i].report.is_late;
    is_ok = is_ok && make_bundle(&asked, &collected->bytes, &collected->size, error);
    names_asked_free(&asked);
    names_asked_free(&older);
    return is_ok;
}

bool names_keep(struct names *names, struct names_collected *collected, struct error *error) {
    free(names->kept_bytes);
    names->kept_bytes = collected->bytes;
    bool is_ok = bundle_open(&names->kept, collected->bytes, collected->size);
    collected->bytes = NULL;
    if (!is_ok) return error_set(error, "no memory for names");
    symbol_table_keep(names->table, &names->kept);
    names->options.is_closed = true;
    return true;
}
