// SPDX-License-Identifier: Apache-2.0
#include "tool/go/heap.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/go/search.h"
#include "tool/proc/examine.h"
#include "tool/proc/remote.h"
#include "tool/proc/threads.h"

static bool is_whole(const struct go_program *program) {
    const struct go_profile_place *profile = &program->profile;
    return profile->buckets && profile->cycle && profile->rate && program->heap;
}

static bool tell_unfound(const struct go_program *program, const char *what, struct error *error) {
    char name[PATH_MAX];
    text_escape(name, sizeof name, text_base_name(program->path));
    return error_set(error, "%s (%s) has no table of symbols, and without it its %s was not found",
                     name, program->version, what);
}

static void read_memory(struct go_heap *heap, const struct memory_reader *memory) {
    const struct go_program *program = &heap->program;
    const struct go_profile_place *profile = &program->profile;
    const bool has_spans = program->heap || !go_spans_list_place(program->minor)
                               ? go_spans_read(memory, program->heap, program->minor, &heap->spans,
                                               &heap->why_no_spans)
                               : tell_unfound(program, "heap", &heap->why_no_spans);
    if (has_spans) heap->why_no_spans.text[0] = 0;
    const bool has_profile =
        profile->rate && profile->cycle
            ? go_profile_read(memory, profile, &heap->profile, &heap->why_no_profile)
            : tell_unfound(program, "profile", &heap->why_no_profile);
    if (has_profile) heap->why_no_profile.text[0] = 0;
}

enum go_finding go_heap_of_process(pid_t pid, struct go_heap *heap, struct error *error) {
    struct threads threads = {0};
    memset(heap, 0, sizeof *heap);
    enum go_finding finding = go_program_of_process(pid, &heap->program, error);
    if (finding != GO_FOUND) return finding;
    heap->pid = pid;
    const struct remote remote = remote_of(pid);
    const struct memory_reader memory = remote_reader(&remote);
    bool is_readable = examine_to_read(pid, error);
    // variables stay where they are: they are searched while the program goes on
    if (is_readable && !is_whole(&heap->program)) go_search(&memory, &heap->program);
    if (!is_readable || !threads_stop(&threads, pid, error)) {
        go_program_close(&heap->program);
        return GO_FAILED;
    }
    read_memory(heap, &memory);
    threads_go(&threads, 0);
    heap->pause_ns = threads.pause_ns;
    return GO_FOUND;
}

enum go_finding go_heap_of_core(const struct core_image *core, const char *sysroot,
                                struct go_heap *heap, struct error *error) {
    memset(heap, 0, sizeof *heap);
    enum go_finding finding = go_program_of_core(core, sysroot, &heap->program, error);
    if (finding != GO_FOUND) return finding;
    heap->pid = (pid_t)core->pid;
    heap->is_of_core = true;
    const struct memory_view view = core_view(core);
    if (!is_whole(&heap->program)) go_search(&view.reader, &heap->program);
    read_memory(heap, &view.reader);
    return GO_FOUND;
}

void go_heap_close(struct go_heap *heap) {
    go_program_close(&heap->program);
    go_spans_free(&heap->spans);
    go_profile_free(&heap->profile);
}

bool go_heap_has_profile(const struct go_heap *heap, struct error *why) {
    char name[PATH_MAX];
    if (heap->why_no_profile.text[0]) return error_set(why, "%s", heap->why_no_profile.text);
    if (heap->profile.buckets.count) return true;
    text_escape(name, sizeof name, text_base_name(heap->program.path));
    if (heap->profile.rate)
        return error_set(why, "%s has no samples of its heap yet (one is taken in %llu bytes)",
                         name, (unsigned long long)heap->profile.rate);
    return error_set(why,
                     "%s keeps no profile of its heap (MemProfileRate 0): a program does that "
                     "imports runtime/pprof or net/http/pprof",
                     name);
}
