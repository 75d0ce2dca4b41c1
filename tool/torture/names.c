// SPDX-License-Identifier: Apache-2.0
#include "tool/torture/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/symbol/internal_frames.h"

struct torture_map *torture_map_open(const char *path, struct error *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0) {
        error_set(error, "%s: %s", path, strerror(errno));
        return NULL;
    }
    void *map = MAP_FAILED;
    if (!fstat(file, &status) && status.st_size == (off_t)sizeof(struct torture_map))
        map = mmap(NULL, sizeof(struct torture_map), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (map == MAP_FAILED) error_set(error, "%s: it is damaged", path);
    return map == MAP_FAILED ? NULL : map;
}

void torture_map_close(struct torture_map *map) {
    if (map) munmap(map, sizeof *map);
}

static const char *keep_text(struct torture_plan *plan, const char *text) {
    char *copy = strdup(text), **slot = copy ? array_push(&plan->texts) : NULL;
    if (!slot) {
        free(copy);
        return NULL;
    }
    return *slot = copy;
}

struct torture_names *torture_names_start(struct torture_plan *plan,
                                          const struct torture_map *map) {
    struct torture_names *names = calloc(1, sizeof *names);
    for (unsigned i = 0; names && i < TORTURE_MODULES; i++) {
        char path[TORTURE_PATH_BYTES];
        snprintf(path, sizeof path, "%.*s", TORTURE_PATH_BYTES - 1, map->modules[i].path);
        names->paths[i] = *path ? keep_text(plan, path) : "";
        if (names->paths[i]) continue;
        free(names);
        return NULL;
    }
    if (names) names->plan = plan;
    return names;
}

void torture_names_free(struct torture_names *names) {
    for (unsigned i = 0; names && i < TORTURE_MODULES; i++) free(names->jobs[i].queries);
    free(names);
}

static unsigned module_of(uint64_t frame) {
    return (unsigned)(frame >> TORTURE_ADDRESS_BITS) % TORTURE_MODULES;
}

static uint64_t address_of(uint64_t frame) {
    return frame & (((uint64_t)1 << TORTURE_ADDRESS_BITS) - 1);
}

bool torture_names_ask(struct torture_names *names, uint64_t frame) {
    unsigned module = module_of(frame);
    struct symbol_job *job = &names->jobs[module];
    if (job->count == names->rooms[module]) {
        size_t room = names->rooms[module] ? 2 * names->rooms[module] : 64;
        struct symbol_query *grown = reallocarray(job->queries, room, sizeof *grown);
        if (!grown) return false;
        job->queries = grown;
        names->rooms[module] = room;
    }
    job->queries[job->count++] = (struct symbol_query){.address = address_of(frame)};
    return true;
}

static int compare_queries(const void *a, const void *b) {
    const struct symbol_query *one = a, *other = b;
    return (one->address > other->address) - (one->address < other->address);
}

// Each address once, ascending.
static void make_unique(struct symbol_job *job) {
    size_t kept = 0;
    if (!job->count) return;
    qsort(job->queries, job->count, sizeof *job->queries, compare_queries);
    for (size_t i = 0; i < job->count; i++)
        if (!kept || job->queries[kept - 1].address != job->queries[i].address)
            job->queries[kept++] = job->queries[i];
    job->count = kept;
}

bool torture_names_look_up(struct torture_names *names, struct error *error) {
    for (unsigned i = 0; i < TORTURE_MODULES; i++) {
        struct symbol_job *job = &names->jobs[i];
        if (!job->count) continue;
        make_unique(job);
        job->module = (struct symbol_module){.path = names->paths[i]};
        if (*names->paths[i] == '/' &&
            !symbol_resolve_all(names->plan->symbols, job, 1, NULL, error))
            return false;
    }
    return true;
}

static size_t frame_count_of(const struct symbol_query *query) {
    return query && query->frame_count ? query->frame_count : 1;
}

static const struct symbol_query *answer_of(const struct torture_names *names, uint64_t frame) {
    const struct symbol_job *job = &names->jobs[module_of(frame)];
    const struct symbol_query wanted = {.address = address_of(frame)};
    return job->count ? bsearch(&wanted, job->queries, job->count, sizeof wanted, compare_queries)
                      : NULL;
}

static struct torture_frame frame_of(const struct symbol_frame *symbol, const char *module,
                                     uint64_t address) {
    struct torture_frame frame = {.module = module, .address = address};
    if (symbol) {
        frame.function = symbol->function;
        frame.file = symbol->file;
        frame.line = symbol->line;
    }
    frame.is_internal = internal_is_hidden(frame.function, module) ||
                        internal_is_library(frame.function, frame.file);
    return frame;
}

struct torture_frame *torture_names_frames(const struct torture_names *names,
                                           const uint64_t *frames, size_t count, size_t *found) {
    size_t room = 1;
    *found = 0;
    for (size_t i = 0; i < count; i++) room += frame_count_of(answer_of(names, frames[i]));
    struct torture_frame *list = calloc(room, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        const struct symbol_query *query = answer_of(names, frames[i]);
        const char *module = names->paths[module_of(frames[i])];
        for (size_t at = 0; at < frame_count_of(query); at++)
            list[(*found)++] = frame_of(query && query->frame_count ? &query->frames[at] : NULL,
                                        module, address_of(frames[i]));
    }
    return list;
}
