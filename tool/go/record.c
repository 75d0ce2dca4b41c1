// SPDX-License-Identifier: Apache-2.0
// Rows are those of runtime/pprof: samples are scaled by its formula, and functions of the runtime
// that a stack begins with inside are left out, as is what every goroutine returns to. Names are
// those of Go's own table of functions.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/unnamed_file.h"
#include "tool/go/heap.h"
#include "tool/import/import.h"
#include "tool/symbol/go_table.h"

enum { HELPER_BYTES = 512 };  // more than the helper function for skipped frames has

// A return address that stacks have, and the place of its call.
struct call {
    uint64_t address;
    uint32_t place;
    bool is_of_runtime, is_outermost;
};

struct recorder {
    const struct go_heap *heap;
    struct imported imported;
    struct string_pool *names;
    struct symbol_query *queries;  // of the calls, then of what follows them
    struct call *calls;            // ascending
    size_t call_count;
    struct go_function *sums;  // by the number of the function's name: without it
};

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for the samples of Go's heap");
}

static int compare_calls(const void *left, const void *right) {
    const struct call *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static bool list_calls(struct recorder *recorder) {
    const struct go_profile *profile = &recorder->heap->profile;
    const size_t count = profile->addresses.count;
    recorder->calls = calloc(count + 1, sizeof *recorder->calls);
    if (!recorder->calls) return false;
    for (size_t i = 0; i < count; i++) recorder->calls[i].address = profile->addresses.items[i];
    qsort(recorder->calls, count, sizeof *recorder->calls, compare_calls);
    for (size_t i = 0; i < count; i++) {
        struct call *last =
            recorder->call_count ? &recorder->calls[recorder->call_count - 1] : NULL;
        if (last && last->address == recorder->calls[i].address) continue;
        recorder->calls[recorder->call_count++] = recorder->calls[i];
    }
    return true;
}

static const struct call *find_call(const struct recorder *recorder, uint64_t address) {
    const struct call key = {.address = address};
    return bsearch(&key, recorder->calls, recorder->call_count, sizeof key, compare_calls);
}

// A call's name is that of the code before the return address; whether it is one of the runtime is
// decided by the code at it, as runtime.FuncForPC does.
static bool ask_names(struct recorder *recorder) {
    const size_t count = recorder->call_count;
    const uint64_t bias = recorder->heap->program.bias;
    size_t answered;
    recorder->names = string_pool_open();
    recorder->queries = calloc(2 * count + 1, sizeof *recorder->queries);
    if (!recorder->names || !recorder->queries) return false;
    for (size_t i = 0; i < count; i++) {
        recorder->queries[i].address = recorder->calls[i].address - bias - 1;
        recorder->queries[count + i].address = recorder->calls[i].address - bias;
    }
    return go_table_answer(&recorder->heap->program.image, recorder->names, recorder->queries,
                           2 * count, &answered);
}

static bool is_of_runtime(const struct symbol_query *query) {
    static const char *const packages[] = {"runtime.", "internal/runtime/"};
    const char *name = query->frame_count ? query->frames[0].linkage : NULL;
    for (size_t i = 0; name && i < sizeof packages / sizeof *packages; i++)
        if (!strncmp(name, packages[i], strlen(packages[i]))) return true;
    return false;
}

static bool make_places(struct recorder *recorder) {
    struct imported *imported = &recorder->imported;
    const uint32_t module = import_module(imported, recorder->heap->program.path);
    if (module == IMPORT_NONE) return false;
    for (size_t i = 0; i < recorder->call_count; i++) {
        const struct symbol_query *query = &recorder->queries[i];
        struct call *call = &recorder->calls[i];
        call->is_of_runtime = is_of_runtime(&recorder->queries[recorder->call_count + i]);
        call->place = import_place(imported, module);
        if (call->place == IMPORT_NONE) return false;
        // each function that is inlined has an address of its own in such a stack
        const struct symbol_frame *frame = query->frame_count ? query->frames : NULL;
        call->is_outermost = frame && !strcmp(frame->linkage, "runtime.goexit");
        if (frame &&
            !import_frame_of(imported, call->place, frame->linkage, frame->file, frame->line))
            return false;
    }
    return true;
}

static struct import_values values_of(const struct go_profile *profile,
                                      const struct go_bucket *bucket) {
    uint64_t calls = bucket->allocs, allocated = bucket->allocated_bytes;
    // what a collection is freeing right now may be ahead
    uint64_t blocks = bucket->allocs > bucket->frees ? bucket->allocs - bucket->frees : 0;
    uint64_t bytes = bucket->allocated_bytes > bucket->freed_bytes
                         ? bucket->allocated_bytes - bucket->freed_bytes
                         : 0;
    go_profile_scale(profile->rate, &calls, &allocated);
    go_profile_scale(profile->rate, &blocks, &bytes);
    if (calls < blocks) calls = blocks;  // of damaged memory alone
    if (allocated < bytes) allocated = bytes;
    return (struct import_values){.calls = (int64_t)calls,
                                  .allocated_bytes = (int64_t)allocated,
                                  .exit_blocks = (int64_t)blocks,
                                  .exit_bytes = (int64_t)bytes,
                                  .peak_blocks = (int64_t)blocks,
                                  .peak_bytes = (int64_t)bytes};
}

// No call, but how many frames of an inlined one are to be skipped.
static bool is_helper(const struct recorder *recorder, uint64_t address) {
    const uint64_t start = recorder->heap->program.skipped_pcs;
    return start && address >= start && address < start + HELPER_BYTES;
}

static void add_to_function(struct recorder *recorder, uint32_t innermost,
                            const struct import_values *values) {
    const struct imported *imported = &recorder->imported;
    const struct import_place *place = &imported->places.items[innermost];
    const uint32_t name =
        place->frame_count ? imported->frames.items[place->first_frame].function : 0;
    recorder->sums[name].bytes += (uint64_t)values->exit_bytes;
    recorder->sums[name].objects += (uint64_t)values->exit_blocks;
}

static bool add_stack(struct recorder *recorder, const struct go_bucket *bucket, uint32_t *places) {
    const struct go_profile *profile = &recorder->heap->profile;
    const uint64_t *stack = &profile->addresses.items[bucket->first];
    size_t outside = 0, count = 0;
    while (outside < bucket->depth && (is_helper(recorder, stack[outside]) ||
                                       find_call(recorder, stack[outside])->is_of_runtime))
        outside++;
    if (outside == bucket->depth) outside = 0;  // all of it is the runtime's
    for (size_t i = outside; i < bucket->depth; i++) {
        const struct call *call = find_call(recorder, stack[i]);
        if (!is_helper(recorder, stack[i]) && !(call->is_outermost && i + 1 == bucket->depth))
            places[count++] = call->place;
    }
    const struct import_values values = values_of(profile, bucket);
    if (count) add_to_function(recorder, places[0], &values);
    return !count || import_stack(&recorder->imported, places, count, &values);
}

static bool add_stacks(struct recorder *recorder) {
    const struct go_profile *profile = &recorder->heap->profile;
    uint32_t deepest = 0;
    for (size_t i = 0; i < profile->buckets.count; i++)
        if (profile->buckets.items[i].depth > deepest) deepest = profile->buckets.items[i].depth;
    uint32_t *places = calloc((size_t)deepest + 1, sizeof *places);
    recorder->sums = calloc(recorder->imported.strings.list.count + 1, sizeof *recorder->sums);
    bool is_ok = places && recorder->sums;
    for (size_t i = 0; i < profile->buckets.count && is_ok; i++)
        if (profile->buckets.items[i].depth)
            is_ok = add_stack(recorder, &profile->buckets.items[i], places);
    free(places);
    return is_ok;
}

static void describe(struct recorder *recorder) {
    const struct go_heap *heap = recorder->heap;
    struct imported *imported = &recorder->imported;
    snprintf(imported->command, sizeof imported->command, "%s", heap->program.path);
    imported->is_sum = true;  // a path may have blanks
    imported->pid = (uint32_t)heap->pid;
    imported->is_partial = heap->profile.rate != 1;
    imported->start_unix_ns = heap->is_of_core ? 0 : (uint64_t)time(NULL) * UINT64_C(1000000000);
    snprintf(imported->lacks, sizeof imported->lacks,
             "what was allocated since its last collections, the peak (what is in use counts as "
             "it), threads, the heap over time%s",
             "");
    if (heap->profile.rate > 1)
        snprintf(imported->lacks + strlen(imported->lacks),
                 sizeof imported->lacks - strlen(imported->lacks),
                 " (sampled: about one block every %" PRIu64 " bytes)", heap->profile.rate);
}

// Writes it to a file in memory, whose path is valid as long as this program has it open.
static bool write_recording(const struct recorder *recorder, char path[PATH_MAX],
                            struct error *error) {
    char source[2 * GO_VERSION_BYTES];
    snprintf(source, sizeof source, "Go's own profile (%s)", recorder->heap->program.version);
    int file = unnamed_file_make("cairn go");
    int copy = file < 0 ? -1 : dup(file);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "wb");
    bool is_ok = out && import_write(out, &recorder->imported, source, error);
    if (!out) error_set(error, "no file for the samples of Go's heap: %s", strerror(errno));
    if (out && fclose(out) && is_ok) is_ok = no_memory(error);
    if (!out && copy >= 0) close(copy);
    if (is_ok)
        snprintf(path, PATH_MAX, "/proc/self/fd/%d", file);
    else if (file >= 0)
        close(file);
    return is_ok;
}

static bool open_recorder(struct recorder *recorder, const struct go_heap *heap,
                          struct error *error) {
    *recorder = (struct recorder){.heap = heap};
    if (!go_heap_has_profile(heap, error) || !import_start(&recorder->imported, error))
        return false;
    describe(recorder);
    return (list_calls(recorder) && ask_names(recorder) && make_places(recorder) &&
            add_stacks(recorder)) ||
           no_memory(error);
}

static void close_recorder(struct recorder *recorder) {
    import_free(&recorder->imported);
    if (recorder->names) string_pool_close(recorder->names);
    free(recorder->queries);
    free(recorder->calls);
    free(recorder->sums);
}

bool go_heap_record(const struct go_heap *heap, char path[PATH_MAX], struct error *error) {
    struct recorder recorder;
    bool is_ok = open_recorder(&recorder, heap, error) && write_recording(&recorder, path, error);
    close_recorder(&recorder);
    return is_ok;
}

// ---- functions alone ----------------------------------------------------------------------------

static int compare_functions(const void *left, const void *right) {
    const struct go_function *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

// Keeps the largest, in order.
static void keep_function(struct go_function *functions, size_t *count, size_t most,
                          const struct go_function *function) {
    if (*count < most)
        functions[(*count)++] = *function;
    else if (most && compare_functions(function, &functions[most - 1]) < 0)
        functions[most - 1] = *function;
    qsort(functions, *count, sizeof *functions, compare_functions);
}

bool go_heap_functions(const struct go_heap *heap, struct go_function *functions, size_t *count,
                       uint64_t *all_bytes, struct error *error) {
    struct recorder recorder;
    const size_t most = *count;
    bool is_ok = open_recorder(&recorder, heap, error);
    *count = 0;
    *all_bytes = 0;
    for (size_t i = 0; is_ok && i < recorder.imported.strings.list.count; i++) {
        struct go_function function = recorder.sums[i];
        const char *name = recorder.imported.strings.list.items[i];
        *all_bytes += function.bytes;
        if (!function.bytes) continue;
        snprintf(function.name, sizeof function.name, "%s", *name ? name : "not known");
        keep_function(functions, count, most, &function);
    }
    close_recorder(&recorder);
    return is_ok;
}
