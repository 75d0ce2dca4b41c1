// SPDX-License-Identifier: Apache-2.0
// Asking the sources of names about places.
#include <stdlib.h>

#include "tool/query/names.h"
#include "tool/query/names_state.h"
#include "tool/query/progress.h"

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

static int compare(const void *a, const void *b, void *context) {
    const struct place *places = context;
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    uint32_t x = places[first].module, y = places[second].module;
    if (x != y) return x < y ? -1 : 1;
    return (first > second) - (first < second);
}

bool names_list(const struct names *names,
                bool (*is_wanted)(const struct names *names, size_t place), struct asked *asked,
                struct error *error) {
    struct place *places = names->profile->places.list.items;
    size_t place_count = names->profile->places.list.count;
    asked->list = calloc(place_count + 1, sizeof *asked->list);
    if (!asked->list) return error_set(error, "no memory for names");
    for (size_t i = 0; i < place_count; i++)
        if (is_wanted(names, i)) asked->list[asked->count++] = (uint32_t)i;
    qsort_r(asked->list, asked->count, sizeof *asked->list, compare, places);
    return true;
}
