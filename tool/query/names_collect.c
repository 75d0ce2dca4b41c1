// SPDX-License-Identifier: Apache-2.0
// Asks the sources of names about places, and collects the names of a recording as bytes that are
// kept in it.
#include <stdlib.h>

#include "tool/query/names.h"
#include "tool/query/names_state.h"
#include "tool/query/progress.h"

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

bool names_is_code(const struct names *names, size_t place) {
    uint32_t line;
    return !names->profile->places.list.items[place].cut &&
           !place_code(&names->profile->places, (uint32_t)place, &line);
}

static struct symbol_module module_of(const struct names *names, uint32_t index) {
    if (index == MODULE_NONE) return (struct symbol_module){.path = ""};
    const struct module *module = &names->profile->modules.modules[index];
    return (struct symbol_module){.path = module->path,
                                  .build_id = module->build_id_bytes ? module->build_id : NULL,
                                  .build_id_bytes = module->build_id_bytes,
                                  .file = module->file,
                                  .code_hash = module->code_hash,
                                  .code_key = module->code_key,
                                  .segments = module->segments,
                                  .segment_count = module->segment_count};
}

// A job for each module of the places in `list`, which is sorted by module; `queries` has one of
// each place.
static size_t make_jobs(const struct names *names, const uint32_t *list, size_t count,
                        struct symbol_query *queries, struct symbol_job *jobs) {
    const struct place *places = names->profile->places.list.items;
    size_t job_count = 0;
    for (size_t i = 0; i < count; i++) {
        queries[i].address = places[list[i]].address;
        if (!i || places[list[i]].module != places[list[i - 1]].module)
            jobs[job_count++] = (struct symbol_job){
                .module = module_of(names, places[list[i]].module), .queries = &queries[i]};
        jobs[job_count - 1].count++;
    }
    return job_count;
}

void names_asked_free(struct asked *asked) {
    free(asked->list);
    free(asked->queries);
    free(asked->jobs);
}

bool names_ask(struct names *names, struct asked *asked, struct error *error) {
    const struct place *places = names->profile->places.list.items;
    asked->queries = calloc(asked->count + 1, sizeof *asked->queries);
    asked->jobs = calloc(asked->count + 1, sizeof *asked->jobs);
    if (!asked->queries || !asked->jobs) return error_set(error, "no memory for names");
    asked->job_count = make_jobs(names, asked->list, asked->count, asked->queries, asked->jobs);
    struct progress progress;
    const struct symbol_progress shown = progress_start(&progress, "looking up names");
    bool is_ok = symbol_resolve_all(names->table, asked->jobs, asked->job_count, &shown, error);
    progress_end(&progress);
    size_t first = 0;
    for (size_t i = 0; i < asked->job_count && is_ok; first += asked->jobs[i++].count) {
        uint32_t module = places[asked->list[first]].module;
        size_t slot = module == MODULE_NONE ? names->profile->modules.count : module;
        names->reports[slot] = asked->jobs[i].report;
    }
    return is_ok;
}

// What is of no module comes last.
static size_t slot_of(const struct names *names, size_t place) {
    uint32_t module = names->profile->places.list.items[place].module;
    return module == MODULE_NONE ? names->profile->modules.count : module;
}

bool names_list(const struct names *names,
                bool (*is_wanted)(const struct names *names, size_t place), struct asked *asked,
                struct error *error) {
    size_t place_count = names->profile->places.list.count;
    size_t module_count = names->profile->modules.count;
    // by module, in the order of places: where the next one of each belongs
    size_t *next = calloc(module_count + 2, sizeof *next);
    bool *are_wanted = calloc(place_count + 1, sizeof *are_wanted);
    asked->list = calloc(place_count + 1, sizeof *asked->list);
    bool has_memory = next && are_wanted && asked->list;
    for (size_t i = 0; has_memory && i < place_count; i++) {
        are_wanted[i] = is_wanted(names, i);
        next[slot_of(names, i) + 1] += are_wanted[i];
    }
    for (size_t slot = 0; has_memory && slot <= module_count; slot++) next[slot + 1] += next[slot];
    for (size_t i = 0; has_memory && i < place_count; i++)
        if (are_wanted[i]) asked->list[next[slot_of(names, i)]++] = (uint32_t)i;
    if (has_memory) asked->count = next[module_count];
    free(next);
    free(are_wanted);
    return has_memory || error_set(error, "no memory for names");
}
