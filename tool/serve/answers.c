// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/query/exported.h"
#include "tool/query/merged.h"
#include "tool/query/name_options.h"
#include "tool/serve/page.h"
#include "tool/serve/requests.h"
#include "tool/watch/memory.h"

// The recording has the pid that the process has in its own container.
static bool open_recording(const char *path, const struct answer_request *request,
                           struct opened *opened, struct error *error) {
    name_options_symbols()->process = request->pid;
    return opened_open(path, opened, error);
}

// --- profiles

// What a stack had come to when a span began.
struct earlier {
    uint64_t id, allocations, allocated_bytes;
    int64_t exit_blocks, exit_bytes;
    struct estimate allocated, held;  // how sure these were, of samples
};

struct interval {
    struct earlier *stacks;  // by id
    size_t count;
    uint64_t start_ns;
};

static int compare_ids(const void *a, const void *b) {
    const struct earlier *first = a, *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

static bool note_stacks(const struct profile *profile, struct interval *span, struct error *error) {
    span->stacks = calloc(profile->stack_count + 1, sizeof *span->stacks);
    if (!span->stacks) return error_set(error, "no memory for a profile");
    span->start_ns = clock_now_ns();
    span->count = profile->stack_count;
    for (size_t i = 0; i < span->count; i++) {
        const struct stack *stack = &profile->stacks[i];
        span->stacks[i] =
            (struct earlier){.id = stack->id,
                             .allocations = stack->allocations,
                             .allocated_bytes = stack->allocated_bytes,
                             .exit_blocks = stack->exit_blocks,
                             .exit_bytes = stack->exit_bytes,
                             .allocated = stack_more(stack)->estimates[ESTIMATED_ALLOCATED],
                             .held = stack_more(stack)->estimates[ESTIMATED_EXIT]};
    }
    qsort(span->stacks, span->count, sizeof *span->stacks, compare_ids);
    return true;
}

static bool begin_span(const char *path, struct interval *span, struct error *error) {
    struct recording recording;
    struct profile profile;
    if (!recording_open(path, &recording, error)) return false;
    bool is_built = profile_build(&recording, &profile, error);
    bool is_ok = is_built && note_stacks(&profile, span, error);
    if (is_built) profile_free(&profile);
    recording_close(&recording);
    return is_ok;
}

// A difference is as sure as what came and went, as samples that lived at both ends cancel out; and
// no less sure than if the values at its ends had nothing to do with each other.
static double changed_variance(double came, double held_then, double held_now) {
    double churn = fabs(came) + fabs(came - (held_now - held_then)), both = held_then + held_now;
    return churn < both ? churn : both;
}

// Samples of what was allocated in the span are the later ones alone.
static void subtract_estimates(struct stack *stack, const struct earlier *before) {
    struct estimate *allocated = &stack->more->estimates[ESTIMATED_ALLOCATED];
    struct estimate *held = &stack->more->estimates[ESTIMATED_EXIT];
    allocated->samples -= before->allocated.samples;
    allocated->uncertain -= before->allocated.uncertain;
    allocated->extra_blocks -= before->allocated.extra_blocks;
    allocated->bytes_variance -= before->allocated.bytes_variance;
    allocated->blocks_variance -= before->allocated.blocks_variance;
    held->bytes_variance = changed_variance(allocated->bytes_variance, before->held.bytes_variance,
                                            held->bytes_variance);
    held->blocks_variance = changed_variance(allocated->blocks_variance,
                                             before->held.blocks_variance, held->blocks_variance);
}

static void subtract(struct stack *stack, const struct earlier *before) {
    if (stack->more) subtract_estimates(stack, before);
    stack->allocations -= before->allocations;
    stack->allocated_bytes -= before->allocated_bytes;
    stack->exit_blocks -= before->exit_blocks;
    stack->exit_bytes -= before->exit_bytes;
}

static void end_span(const struct interval *span, struct profile *profile) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct earlier key = {.id = profile->stacks[i].id};
        const struct earlier *before =
            span->count ? bsearch(&key, span->stacks, span->count, sizeof key, compare_ids) : NULL;
        if (before) subtract(&profile->stacks[i], before);
    }
}

static void wait_for(unsigned seconds) {
    const uint64_t end_ns = clock_now_ns() + seconds * CLOCK_SECOND_NS, ns_per_ms = 1000000;
    for (uint64_t now_ns; (now_ns = clock_now_ns()) < end_ns;)
        poll(NULL, 0, (int)((end_ns - now_ns) / ns_per_ms) + 1);
}

static bool put_profile(struct opened *opened, const struct answer_request *request,
                        const struct interval *span, FILE *out, struct error *error) {
    struct exported exported = {0};
    if (!exported_prepare(opened, &exported, error)) return false;
    exported.export.by = request->is_allocated ? MEASURE_ALLOCATED : MEASURE_EXIT;
    exported.export.is_by_chosen = true;
    // what was taken of a process again and again is told apart by when it was
    const struct export_interval interval = {
        .end_unix_ns = clock_ns(CLOCK_REALTIME),
        .duration_ns = request->seconds ? clock_now_ns() - span->start_ns : 0};
    exported.export.interval = &interval;
    bool is_ok =
        exported_say_estimates(&exported, error) && export_pprof(out, &exported.export, error);
    exported_free(&exported);
    return is_ok;
}

bool answer_profile(const char *path, const void *request, FILE *out, struct error *error) {
    const struct answer_request *wanted = request;
    struct interval span = {0};
    struct opened opened;
    if (wanted->seconds) {
        if (!begin_span(path, &span, error)) return false;
        wait_for(wanted->seconds);
    }
    bool is_ok = open_recording(path, wanted, &opened, error);
    if (is_ok) {
        end_span(&span, &opened.profile);
        is_ok = put_profile(&opened, wanted, &span, out, error);
        opened_close(&opened);
    }
    free(span.stacks);
    return is_ok;
}

// --- names of addresses

static bool put_symbol(FILE *out, struct opened *opened, uint64_t address, struct error *error) {
    struct profile *profile = &opened->profile;
    uint32_t place, node;
    size_t count;
    // pprof asks for the address inside of the call; places are named by what follows it
    if (!places_of_address(&profile->places, address + 1, &place) ||
        !tree_child(&profile->tree, TREE_ROOT, place, &node))
        return error_set(error, "no memory for names");
    if (!names_extend(opened->names, error)) return false;
    names_want_stack(opened->names, node, 0);
    if (!names_resolve(opened->names, error)) return false;
    const struct frame_names names = names_frames(opened->names);
    const struct frame *frames = names.of_place(names.context, place, &count);
    fprintf(out, "0x%" PRIx64 "\t", address);
    for (size_t i = count; i-- > 0;)
        if (frames[i].function) fprintf(out, "%s%s", frames[i].function, i ? "--" : "");
    fputc('\n', out);
    return true;
}

bool answer_symbols(const char *path, const void *request, FILE *out, struct error *error) {
    const struct answer_request *wanted = request;
    const char *text = wanted->text, *end = text + wanted->text_size;
    struct opened opened;
    uint64_t address;
    fputs("num_symbols: 1\n", out);
    if (!open_recording(path, wanted, &opened, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < ANSWER_ADDRESSES_MAX; i++) {
        if (!request_next_address(&text, end, &address)) break;
        is_ok = put_symbol(out, &opened, address, error);
    }
    opened_close(&opened);
    return is_ok;
}

// --- the recording itself

static bool copy_file(int from, FILE *out, struct error *error) {
    char bytes[1 << 16];
    ssize_t got;
    for (off_t at = 0; (got = pread(from, bytes, sizeof bytes, at)) > 0; at += got)
        if (fwrite(bytes, 1, (size_t)got, out) < (size_t)got)
            return error_set(error, "no memory for the recording");
    return got == 0 || error_set(error, "%s", strerror(errno));
}

// The used parts of the sections, as `cairn run` saves them again and again.
static bool copy_memory(int file, uint64_t size, FILE *out, struct error *error) {
    const struct memory_end end = {.is_over = false};
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) return error_set(error, "%s", strerror(errno));
    const struct memory memory = {.file = file, .bytes = size, .header = bytes};
    bool is_ok = memory_write(&memory, &end, fileno(out), error);
    munmap(bytes, size);
    return is_ok;
}

bool answer_recording(const char *path, const void *request, FILE *out, struct error *error) {
    (void)request;
    struct recording recording;
    struct stat status;
    // what is no recording is refused before its memory is mapped
    if (!recording_open(path, &recording, error)) return false;
    bool is_raw = !recording.header.is_compact && recording.header.version == CAIRN_VERSION;
    recording_close(&recording);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_ok = is_raw ? copy_memory(file, (uint64_t)status.st_size, out, error)
                        : copy_file(file, out, error);
    close(file);
    return is_ok;
}

// --- the page

static bool put_page(struct web *web, const char *path, const struct answer_request *request,
                     const char *title, struct error *error) {
    name_options_symbols()->process = request->pid;
    const struct page_part part = {
        .path = path, .shown_path = title, .role = WEB_ONE, .is_silent = true};
    return page_put_recording(web, &part, error);
}

bool answer_page(const char *path, const void *request, FILE *out, struct error *error) {
    const struct answer_request *wanted = request;
    char title[NAME_MAX];
    struct web web;
    text_escape(title, sizeof title, wanted->title);
    bool is_ok =
        web_open(&web, out, title, true, error) && put_page(&web, path, wanted, title, error);
    return web_close(&web, is_ok ? error : NULL) && is_ok;
}

bool answer_page_data(const char *path, const void *request, FILE *out, struct error *error) {
    const struct answer_request *wanted = request;
    char title[NAME_MAX];
    struct web web;
    text_escape(title, sizeof title, wanted->title);
    bool is_ok = web_open_data(&web, out, error) && put_page(&web, path, wanted, title, error);
    return web_close(&web, is_ok ? error : NULL) && is_ok;
}
