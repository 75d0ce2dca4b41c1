// SPDX-License-Identifier: Apache-2.0
// Names of a recording as bytes that are kept in it.
#include <stdlib.h>

#include "tool/cmds/names_state.h"

static bool is_generated(const struct names *names, size_t place) {
    return names_is_code(names, place) &&
           names->profile->places.list.items[place].module == MODULE_NONE;
}

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
                                        .note = job->report.note,
                                        .queries = job->queries,
                                        .count = job->count};
    }
    bool is_made = bundle_make(parts, asked->job_count, bytes, size);
    free(parts);
    return is_made || error_set(error, "no memory for names");
}

bool names_collect(struct names *names, enum names_part part, void **bytes, size_t *size,
                   struct error *error) {
    struct asked asked = {.count = 0}, older = {.count = 0};
    bool is_anew = names->options.is_anew = part == NAMES_ANEW;
    bool is_ok =
        names_list(names, part == NAMES_GENERATED ? is_generated : names_is_code, &asked, error) &&
        names_ask(names, &asked, error);
    names->options.is_anew = false;
    // what no source knows any more may have been kept
    is_ok = is_ok && (!is_anew || (names_list(names, names_is_code, &older, error) &&
                                   names_ask(names, &older, error)));
    names->wanted_count = asked.count;
    names->unresolved_count = 0;
    for (size_t i = 0; i < asked.count && is_ok; i++) {
        if (is_anew && !asked.queries[i].frame_count) asked.queries[i] = older.queries[i];
        names->unresolved_count += !asked.queries[i].frame_count;
    }
    is_ok = is_ok && make_bundle(&asked, bytes, size, error);
    names_asked_free(&asked);
    names_asked_free(&older);
    return is_ok;
}
