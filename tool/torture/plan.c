// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/torture.h"
#include "tool/symbol/internal_frames.h"
#include "tool/symbol/symbol.h"
#include "tool/torture/torture.h"

struct reading {
    struct torture_plan *plan;
    const struct torture_map *map;
    struct error *error;
    struct symbol_job jobs[TORTURE_MODULES];
    size_t rooms[TORTURE_MODULES];
    const char *paths[TORTURE_MODULES];
};

static bool no_memory(struct error *error) {
    return error_set(error, "torture: no memory");
}

static const char *keep_text(struct torture_plan *plan, const char *text) {
    char *copy = strdup(text), **slot = copy ? array_push(&plan->texts) : NULL;
    if (!slot) {
        free(copy);
        return NULL;
    }
    return *slot = copy;
}

static unsigned module_of(uint64_t frame) {
    return (unsigned)(frame >> TORTURE_ADDRESS_BITS) % TORTURE_MODULES;
}

static uint64_t address_of(uint64_t frame) {
    return frame & (((uint64_t)1 << TORTURE_ADDRESS_BITS) - 1);
}

// The frames of a stack in the file; false if they are not there, or not within it.
static bool frames_of(const struct torture_map *map, const struct torture_stack *stack,
                      const uint64_t **frames) {
    uint64_t first = stack->first_frame - 1;
    if (!stack->hash || !stack->first_frame || first >= TORTURE_FRAMES ||
        stack->frame_count > TORTURE_DEPTH || stack->frame_count > TORTURE_FRAMES - first)
        return false;
    *frames = map->frames + first;
    return true;
}

static bool ask(struct reading *reading, uint64_t frame) {
    unsigned module = module_of(frame);
    struct symbol_job *job = &reading->jobs[module];
    if (job->count == reading->rooms[module]) {
        size_t room = reading->rooms[module] ? 2 * reading->rooms[module] : 64;
        struct symbol_query *grown = reallocarray(job->queries, room, sizeof *grown);
        if (!grown) return no_memory(reading->error);
        job->queries = grown;
        reading->rooms[module] = room;
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

static bool look_up(struct reading *reading, const struct symbol_options *options) {
    struct torture_plan *plan = reading->plan;
    if (!symbol_table_open(&plan->symbols, options, NULL, reading->error)) return false;
    for (unsigned i = 0; i < TORTURE_MODULES; i++) {
        struct symbol_job *job = &reading->jobs[i];
        if (!job->count) continue;
        make_unique(job);
        job->module = (struct symbol_module){.path = reading->paths[i]};
        if (*reading->paths[i] == '/' &&
            !symbol_resolve_all(plan->symbols, job, 1, NULL, reading->error))
            return false;
    }
    return true;
}

static bool ask_for_all(struct reading *reading) {
    const uint64_t *frames;
    for (size_t i = 0; i < TORTURE_STACKS; i++) {
        const struct torture_stack *stack = &reading->map->stacks[i];
        if (!frames_of(reading->map, stack, &frames)) continue;
        for (uint64_t at = 0; at < stack->frame_count; at++)
            if (!ask(reading, frames[at])) return false;
    }
    return true;
}

static size_t frame_count_of(const struct symbol_query *query) {
    return query && query->frame_count ? query->frame_count : 1;
}

static const struct symbol_query *answer_of(const struct reading *reading, uint64_t frame) {
    const struct symbol_job *job = &reading->jobs[module_of(frame)];
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

static void choose_frames(struct torture_target *target) {
    size_t first = 0, count = target->frame_count;
    while (first < count && target->frames[first].is_internal) first++;
    if (first < count) target->first = first;
    size_t site = first;
    while (site < count &&
           (target->frames[site].is_internal || internal_is_runtime(target->frames[site].module)))
        site++;
    target->site = site < count ? site : target->first;
}

static bool add_target(struct reading *reading, const struct torture_stack *stack,
                       const uint64_t *frames) {
    size_t count = 0;
    for (uint64_t i = 0; i < stack->frame_count; i++)
        count += frame_count_of(answer_of(reading, frames[i]));
    struct torture_target *target = array_push(&reading->plan->targets);
    if (!target) return no_memory(reading->error);
    *target = (struct torture_target){.hash = stack->hash, .count = stack->count};
    target->frames = calloc(count + 1, sizeof *target->frames);
    if (!target->frames) return no_memory(reading->error);
    for (uint64_t i = 0; i < stack->frame_count; i++) {
        const struct symbol_query *query = answer_of(reading, frames[i]);
        const char *module = reading->paths[module_of(frames[i])];
        for (size_t at = 0; at < frame_count_of(query); at++)
            target->frames[target->frame_count++] =
                frame_of(query && query->frame_count ? &query->frames[at] : NULL, module,
                         address_of(frames[i]));
    }
    choose_frames(target);
    return true;
}

static bool is_wanted(const struct torture_target *target, const struct pattern *wanted) {
    if (!wanted) return true;
    for (size_t i = 0; i < target->frame_count; i++) {
        const struct torture_frame *frame = &target->frames[i];
        if ((frame->function && pattern_matches(wanted, frame->function)) ||
            (frame->file && pattern_matches(wanted, frame->file)) ||
            pattern_matches(wanted, frame->module))
            return true;
    }
    return false;
}

static int compare_sites(const struct torture_target *one, const struct torture_target *other) {
    static const struct torture_frame none = {.module = ""};
    const struct torture_frame *a = one->frame_count ? &one->frames[one->site] : &none;
    const struct torture_frame *b = other->frame_count ? &other->frames[other->site] : &none;
    int order = strcmp(a->module, b->module);
    if (!order) order = strcmp(a->function ? a->function : "", b->function ? b->function : "");
    if (!order) order = (a->line > b->line) - (a->line < b->line);
    if (!order && !a->function) order = (a->address > b->address) - (a->address < b->address);
    return order;
}

static int compare_targets(const void *a, const void *b) {
    const struct torture_target *one = a, *other = b;
    int order = compare_sites(one, other);
    return order ? order : (one->hash > other->hash) - (one->hash < other->hash);
}

static int compare_ranks(const void *a, const void *b) {
    const struct torture_target *one = a, *other = b;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return compare_targets(a, b);
}

// The first stack of each site comes first, then the second of each, and so on.
static void order_targets(struct torture_plan *plan) {
    struct torture_target *items = plan->targets.items;
    size_t count = plan->targets.count;
    if (!count) return;
    qsort(items, count, sizeof *items, compare_targets);
    for (size_t i = 1; i < count; i++)
        items[i].rank = compare_sites(&items[i - 1], &items[i]) ? 0 : items[i - 1].rank + 1;
    qsort(items, count, sizeof *items, compare_ranks);
}

static bool add_step(struct torture_plan *plan, size_t target, uint64_t nth) {
    struct torture_step *step = array_push(&plan->steps);
    if (step) *step = (struct torture_step){target, nth};
    return step != NULL;
}

static bool make_steps(struct torture_plan *plan, uint64_t seed) {
    for (size_t i = 0; i < plan->targets.count; i++)
        if (plan->targets.items[i].is_wanted && !add_step(plan, i, 1)) return false;
    for (size_t i = 0; i < plan->targets.count; i++) {
        const struct torture_target *target = &plan->targets.items[i];
        if (!target->is_wanted || target->count < 2) continue;
        uint64_t later = torture_mix(torture_mix(1, seed), target->hash) % (target->count - 1);
        if (!add_step(plan, i, 2 + later)) return false;
    }
    return true;
}

static bool read_map(struct reading *reading, const struct symbol_options *options,
                     const struct pattern *wanted, uint64_t seed) {
    struct torture_plan *plan = reading->plan;
    const struct torture_map *map = reading->map;
    const uint64_t *frames;
    for (unsigned i = 0; i < TORTURE_MODULES; i++) {
        char path[TORTURE_PATH_BYTES];
        snprintf(path, sizeof path, "%.*s", TORTURE_PATH_BYTES - 1, map->modules[i].path);
        reading->paths[i] = keep_text(plan, path);
        if (!reading->paths[i]) return no_memory(reading->error);
    }
    plan->lost = map->head.lost;
    if (!ask_for_all(reading) || !look_up(reading, options)) return false;
    for (size_t i = 0; i < TORTURE_STACKS; i++)
        if (frames_of(map, &map->stacks[i], &frames) &&
            !add_target(reading, &map->stacks[i], frames))
            return false;
    for (size_t i = 0; i < plan->targets.count; i++)
        plan->targets.items[i].is_wanted = is_wanted(&plan->targets.items[i], wanted);
    order_targets(plan);
    return make_steps(plan, seed) || no_memory(reading->error);
}

bool torture_plan_read(const char *path, const struct symbol_options *options,
                       const struct pattern *wanted, uint64_t seed, struct torture_plan *plan,
                       struct error *error) {
    *plan = (struct torture_plan){0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0) return error_set(error, "%s: %s", path, strerror(errno));
    void *map = MAP_FAILED;
    if (!fstat(file, &status) && status.st_size == (off_t)sizeof(struct torture_map))
        map = mmap(NULL, sizeof(struct torture_map), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    struct reading *reading = calloc(1, sizeof *reading);
    bool is_ok = map != MAP_FAILED && reading;
    if (!is_ok) no_memory(error);
    if (is_ok) {
        *reading = (struct reading){.plan = plan, .map = map, .error = error};
        is_ok = read_map(reading, options, wanted, seed);
        for (unsigned i = 0; i < TORTURE_MODULES; i++) free(reading->jobs[i].queries);
    }
    free(reading);
    if (map != MAP_FAILED) munmap(map, sizeof(struct torture_map));
    return is_ok;
}

void torture_plan_free(struct torture_plan *plan) {
    for (size_t i = 0; i < plan->targets.count; i++) free(plan->targets.items[i].frames);
    for (size_t i = 0; i < plan->texts.count; i++) free(plan->texts.items[i]);
    array_free(&plan->targets);
    array_free(&plan->steps);
    array_free(&plan->texts);
    if (plan->symbols) symbol_table_close(plan->symbols);
}
