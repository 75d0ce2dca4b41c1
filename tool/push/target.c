// SPDX-License-Identifier: Apache-2.0
#include "tool/push/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/model/all_heaps.h"

static uint64_t rest_of(uint64_t now, uint64_t then) {
    return now > then ? now - then : 0;
}

static double rest_of_variance(double now, double then) {
    return now > then ? now - then : 0;
}

bool target_look(struct target *target, uint64_t clock_ns, struct error *error) {
    if (!live_look(&target->live, clock_ns, error))
        return error_wrap(error, "process %d", target->process.pid);
    target->is_over |= !live_is_running(&target->live);
    return true;
}

bool target_is_of(const struct target *target, const struct live_process *process) {
    struct stat own, other;
    return target->process.pid == process->pid &&
           !fstat(target->live.follow.source.descriptor, &own) && !stat(process->path, &other) &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static uint64_t start_of(const struct target *target, uint64_t unix_ns) {
    uint64_t start_ns = target->live.follow.recording.header.start_unix_ns;
    return start_ns && start_ns < unix_ns ? start_ns : unix_ns;
}

bool target_open(const struct live_process *process, bool is_new, uint64_t clock_ns,
                 uint64_t unix_ns, struct target *target, struct error *error) {
    *target = (struct target){.process = *process};
    bool is_ok = live_open(process->path, &target->live, error);
    if (!is_ok) return error_wrap(error, "process %d", process->pid);
    const struct live_set all_names = {0};
    is_ok = target_look(target, clock_ns, error) &&
            live_show(&target->live, LIVE_BY_HEAPS, &all_names, error) &&
            names_open(&target->live.profile, &target->names, error);
    target->taken_unix_ns = is_new ? start_of(target, unix_ns) : unix_ns;
    if (is_ok && !is_new && !target_advance(target, unix_ns))
        is_ok = error_set(error, "process %d: no memory for its stacks", process->pid);
    if (!is_ok) target_close(target);
    return is_ok;
}

void target_close(struct target *target) {
    if (target->names) names_close(target->names);
    live_close(&target->live);
    array_free(&target->baselines);
    array_free(&target->of_heaps);
    heap_names_free(&target->heap_names);
    array_free(&target->are_named);
    target->names = NULL;
}

void target_rest(struct target *target) {
    follow_release(&target->live.follow);
}

static bool advance_heaps(struct target *target) {
    struct cairn_heap_stack entry;
    for (size_t i = 0; i < CAIRN_HEAP_STACK_LIMIT &&
                       recording_heap_stack(&target->live.follow.recording, i, &entry);
         i++) {
        struct baseline *baseline =
            i < target->of_heaps.count ? &target->of_heaps.items[i] : array_push(&target->of_heaps);
        if (!baseline) return false;
        *baseline =
            (struct baseline){.allocations = entry.calls, .allocated_bytes = entry.allocated_bytes};
    }
    return true;
}

bool target_advance(struct target *target, uint64_t unix_ns) {
    for (size_t i = 0; i < target->live.whole.stacks.count; i++) {
        const struct stack *stack = &target->live.whole.stacks.items[i];
        struct baseline *baseline = i < target->baselines.count ? &target->baselines.items[i]
                                                                : array_push(&target->baselines);
        if (!baseline) return false;
        *baseline = (struct baseline){stack->allocations, stack->allocated_bytes,
                                      stack_more(stack)->estimates[ESTIMATED_ALLOCATED]};
    }
    target->taken_unix_ns = unix_ns;
    return advance_heaps(target);
}

// How sure it is what a stack allocated in between: samples are independent. Of a stack without a
// sample in between nothing is known, and nothing is said.
static struct estimate estimate_since(const struct estimate *now, const struct estimate *then) {
    struct estimate since = *now;
    since.samples = now->samples - then->samples;
    if (since.samples <= 0) return (struct estimate){0};
    since.bytes_variance = rest_of_variance(now->bytes_variance, then->bytes_variance);
    since.blocks_variance = rest_of_variance(now->blocks_variance, then->blocks_variance);
    since.uncertain = rest_of_variance(now->uncertain, then->uncertain);
    since.extra_blocks = rest_of_variance(now->extra_blocks, then->extra_blocks);
    return since;
}

// The stack with what it allocated since then. False: nothing of it is worth sending.
static bool subtract(struct stack *stack, const struct baseline *then) {
    stack->allocations = rest_of(stack->allocations, then->allocations);
    stack->allocated_bytes = rest_of(stack->allocated_bytes, then->allocated_bytes);
    struct estimate *allocated = &stack->more->estimates[ESTIMATED_ALLOCATED];
    *allocated = estimate_since(allocated, &then->allocated);
    // in the midst of a look a stack may seem to hold less than nothing
    if (stack->exit_bytes < 0) stack->exit_bytes = 0;
    if (stack->exit_blocks < 0) stack->exit_blocks = 0;
    stack->peak_bytes = stack->peak_blocks = 0;
    return stack->allocations || stack->allocated_bytes || stack->exit_bytes || stack->exit_blocks;
}

// By the larger of two shares, of what is held and of what was allocated.
struct ranked {
    double share;
    uint32_t index;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *first = a, *second = b;
    if (first->share != second->share) return first->share < second->share ? 1 : -1;
    return (first->index > second->index) - (first->index < second->index);
}

static double share_of(int64_t part, double whole) {
    return whole > 0 ? (double)part / whole : 0;
}

// The `most` largest stay, the others are added up. False without memory.
static bool fold(struct taken *taken, size_t most) {
    struct profile *profile = &taken->profile;
    struct ranked *ranked = calloc(profile->stack_count, sizeof *ranked);
    struct stack *kept = stack_list_make(most);
    double held = 0, allocated = 0;
    bool is_ok = ranked && kept;
    for (size_t i = 0; is_ok && i < profile->stack_count; i++) {
        held += (double)profile->stacks[i].exit_bytes;
        allocated += (double)profile->stacks[i].allocated_bytes;
    }
    for (size_t i = 0; is_ok && i < profile->stack_count; i++) {
        double of_held = share_of(profile->stacks[i].exit_bytes, held);
        double of_allocated = share_of((int64_t)profile->stacks[i].allocated_bytes, allocated);
        ranked[i] = (struct ranked){of_held > of_allocated ? of_held : of_allocated, (uint32_t)i};
    }
    if (is_ok) qsort(ranked, profile->stack_count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; is_ok && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[ranked[i].index];
        const struct cell_values values = stack_values(stack);
        if (i < most)
            stack_copy(&kept[i], stack);
        else
            stack_add(&taken->folded, &values);
    }
    free(ranked);
    if (!is_ok) {
        free(kept);
        return false;
    }
    taken->folded_count = profile->stack_count - most;
    free(profile->stacks);
    profile->stacks = kept;
    profile->stack_count = most;
    return true;
}

static bool want_names(struct target *target, const struct profile *profile, struct error *error) {
    bool is_missing = false;
    while (target->are_named.count < target->live.whole.stacks.count) {
        uint8_t *slot = array_push(&target->are_named);
        if (!slot) return error_set(error, "no memory for names");
        *slot = false;
    }
    if (!names_extend(target->names, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        uint8_t *is_named = &target->are_named.items[profile->stacks[i].number];
        if (*is_named) continue;
        *is_named = is_missing = true;
        names_want_stack(target->names, profile->stacks[i].node, 0);
    }
    return !is_missing || names_resolve(target->names, error);
}

// Where there are heaps by name, malloc's stacks say that they are none of theirs.
static void mark_malloc(struct profile *profile) {
    for (size_t i = 0; i < profile->stack_count; i++)
        profile->stacks[i].heap = all_heaps_of_malloc(profile, profile->stacks[i].node);
}

// The stacks of heaps by name behind those of malloc's, for which there is room. The live model has
// found which stack each entry has.
static void take_heaps(const struct target *target, struct profile *profile) {
    const struct baseline nothing = {0};
    struct cairn_heap_stack entry;
    for (size_t i = 0;
         i < CAIRN_HEAP_STACK_LIMIT && recording_heap_stack(profile->recording, i, &entry); i++) {
        uint32_t known = entry.cell < profile->cell_count ? profile->stack_of_cell[entry.cell] : 0;
        if (!heap_stack_is_used(&entry) || !known || entry.scope >= CAIRN_SCOPE_LIMIT) continue;
        struct stack *stack = &profile->stacks[profile->stack_count];
        const struct cell_values values = heap_stack_values(&entry);
        stack_copy(stack, &target->live.whole.stacks.items[known - 1]);
        stack_clear(stack);
        stack->heap = (uint16_t)(HEAP_NAMES + entry.scope);
        stack_add(stack, &values);
        if (subtract(stack, i < target->of_heaps.count ? &target->of_heaps.items[i] : &nothing))
            profile->stack_count++;
    }
}

static bool add_heaps(struct target *target, struct profile *profile, struct error *error) {
    heap_names_free(&target->heap_names);
    if (!heap_names_read(&target->heap_names, profile->recording))
        return error_set(error, "no memory for the heaps of this recording");
    if (!target->heap_names.list.count) return true;
    profile->heap_names = &target->heap_names;
    mark_malloc(profile);
    take_heaps(target, profile);
    return true;
}

bool target_take(struct target *target, size_t stacks_most, uint64_t unix_ns, struct taken *taken,
                 struct error *error) {
    const struct baseline nothing = {0};
    const struct live *live = &target->live;
    *taken = (struct taken){
        .profile = live->profile, .start_unix_ns = target->taken_unix_ns, .end_unix_ns = unix_ns};
    if (taken->start_unix_ns > unix_ns) taken->start_unix_ns = unix_ns;  // the clock was set back
    struct profile *profile = &taken->profile;
    taken->folded.more = &taken->folded_more;
    profile->stacks =
        stack_list_make(live->whole.stacks.count +
                        recording_count(&live->follow.recording, CAIRN_SECTION_HEAP_STACKS));
    profile->stack_count = 0;
    if (!profile->stacks) return error_set(error, "no memory for a profile");
    for (size_t i = 0; i < live->whole.stacks.count; i++) {
        struct stack *stack = &profile->stacks[profile->stack_count];
        bool is_known = i < target->baselines.count;
        stack_copy(stack, &live->whole.stacks.items[i]);
        if (subtract(stack, is_known ? &target->baselines.items[i] : &nothing))
            profile->stack_count++;
    }
    bool is_ok = add_heaps(target, profile, error) &&
                 (profile->stack_count <= stacks_most || fold(taken, stacks_most) ||
                  error_set(error, "no memory for a profile"));
    is_ok = is_ok && want_names(target, profile, error);
    if (!is_ok) target_taken_free(taken);
    return is_ok;
}

bool taken_make(const struct profile *profile, size_t stacks_most, struct taken *taken,
                struct error *error) {
    *taken = (struct taken){.profile = *profile};
    taken->folded.more = &taken->folded_more;
    taken->profile.stacks = stack_list_make(profile->stack_count);
    if (!taken->profile.stacks) return error_set(error, "no memory for a profile");
    for (size_t i = 0; i < profile->stack_count; i++)
        stack_copy(&taken->profile.stacks[i], &profile->stacks[i]);
    if (profile->stack_count <= stacks_most || fold(taken, stacks_most)) return true;
    target_taken_free(taken);
    return error_set(error, "no memory for a profile");
}

void target_taken_free(struct taken *taken) {
    free(taken->profile.stacks);
    taken->profile.stacks = NULL;
}
