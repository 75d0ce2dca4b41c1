// SPDX-License-Identifier: Apache-2.0
// resizes SEED STEPS [parts]: allocates, resizes and frees at random, the same in every run, and
// prints what it did. A step calls one of the functions below from one of many stacks, mostly the
// stack of the step before or one of few in turn. Sizes lie on both sides of what is in place, of a
// mapping of its own and of a stack's usual ones; a new size may be 0, or too much. `parts`: there
// are regions, marks, and threads after one another that go on with the blocks of others; then a
// child, which goes on too and prints nothing.
// Prints allocations, frees, bytes of both, failed calls, temporary blocks, the most bytes at a
// time; calls that resized a block, that grew it, and left it in place, and bytes copied; and
// allocations of threads in their region, and calls that resized a block to less than SMALL bytes.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/cairn.h>

enum { SMALL = 40, SLOTS = 400, DEPTH = 6, PARTS = 6, LARGE_BYTES = 300000 };

static struct {
    void *block;
    size_t size;
} slots[SLOTS];

static struct {
    uint64_t allocations, frees, allocated, freed, failed, temporary, live, most;
    uint64_t resized, grown, in_place, copied, in_region, to_small;
} done;

static const void *last;  // the block allocated last, until it is freed
static uint64_t state;

static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static void note_alloc(unsigned slot, void *block, size_t size) {
    slots[slot].block = block;
    slots[slot].size = size;
    last = block;
    done.allocations++;
    done.allocated += size;
    done.live += size;
    if (done.live > done.most) done.most = done.live;
}

static void note_freed(unsigned slot) {
    if (slots[slot].block == last) {
        done.temporary++;
        last = NULL;
    }
}

static void note_gone(unsigned slot) {
    done.frees++;
    done.freed += slots[slot].size;
    done.live -= slots[slot].size;
    slots[slot].block = NULL;
}

__attribute__((noinline)) static void drop(unsigned slot) {
    if (!slots[slot].block) return;
    note_freed(slot);
    free(slots[slot].block);
    note_gone(slot);
}

__attribute__((noinline)) static void make(unsigned slot, size_t size, unsigned kind) {
    void *block = NULL;
    drop(slot);
    if (kind == 0) block = malloc(size);
    if (kind == 1) block = calloc(1, size);
    if (kind == 2) block = realloc(NULL, size);
    if (kind == 3) block = reallocarray(NULL, 1, size);
    if (kind == 4) block = aligned_alloc(16, size);
    if (!block) abort();
    note_alloc(slot, block, size);
}

static void note_resized(unsigned slot, uintptr_t before, void *block, size_t size) {
    size_t old_size = slots[slot].size;
    done.resized++;
    done.grown += size > old_size;
    done.to_small += size < SMALL;
    if ((uintptr_t)block == before)
        done.in_place++;
    else
        done.copied += size < old_size ? size : old_size;
    note_gone(slot);
    note_alloc(slot, block, size);
}

__attribute__((noinline)) static void resize(unsigned slot, size_t size, unsigned kind) {
    uintptr_t before = (uintptr_t)slots[slot].block;
    volatile size_t too_much = SIZE_MAX / 2;
    if (!before) return make(slot, size, 2);
    if (kind == 5) {
        if (realloc(slots[slot].block, too_much)) abort();
        done.failed++;
        return;
    }
    if (kind == 6) {
        if (realloc(slots[slot].block, 0)) abort();
        note_freed(slot);
        return note_gone(slot);
    }
    void *block =
        kind == 7 ? reallocarray(slots[slot].block, 1, size) : realloc(slots[slot].block, size);
    if (!block) abort();
    note_resized(slot, before, block, size);
}

struct step {
    unsigned slot, kind;
    size_t size;
    uint32_t path;  // a bit a level
};

__attribute__((noinline)) static void descend(const struct step *step, unsigned depth) {
    if (depth == 0) {
        if (step->kind < 5)
            make(step->slot, step->size, step->kind);
        else if (step->kind < 12)
            resize(step->slot, step->size, step->kind < 8 ? step->kind : 8);
        else
            drop(step->slot);
    } else if (step->path >> depth & 1) {
        descend(step, depth - 1);
        __asm__ volatile("");
    } else {
        descend(step, depth - 1);
        __asm__ volatile("nop");
    }
}

static size_t next_size(void) {
    static const uint16_t usual[] = {24, 40, 64, 200};
    uint32_t random = next_random();
    if (random % 64 == 0) return random / 64 % LARGE_BYTES + 1;
    return random % 4 ? usual[random / 4 % 4] : random / 4 % 2000 + 1;
}

// Failures and frees by realloc are rarer than the rest.
static unsigned next_kind(void) {
    unsigned kind = next_random() % 16;
    return (kind == 5 || kind == 6) && next_random() % 8 ? 9 : kind;
}

__attribute__((noinline)) static void go(int steps) {
    uint32_t path = 0, depth = 2;
    unsigned slot = 0;
    for (int i = 0; i < steps; i++) {
        uint32_t random = next_random();
        if (i / 256 % 4 == 0)
            path = 5, depth = 3;  // one stack
        else if (i / 256 % 4 == 1)
            path = (uint32_t)i % 3, depth = 2;  // few in turn
        else
            path = random >> 8, depth = random % DEPTH;
        if (random % 8) slot = random / 8 % SLOTS;
        struct step step = {slot, next_kind(), next_size(), path};
        descend(&step, depth);
    }
}

// Ends in a region, in which the thread that gets its place is not.
static void *go_on(void *steps) {
    last = NULL;
    go(*(int *)steps);
    uint64_t before = done.allocations;
    cairn_region_begin("thread");
    go(*(int *)steps);
    done.in_region += done.allocations - before;
    return NULL;
}

static void drop_all(void) {
    for (unsigned i = 0; i < SLOTS; i += 2) drop(i);
}

static void go_in_parts(int steps) {
    int part_steps = steps / PARTS;
    for (int part = 0; part < PARTS; part++) {
        pthread_t thread;
        char label[16];
        snprintf(label, sizeof label, "part %d", part);
        cairn_region_begin(label);
        last = NULL;
        go(part_steps);
        cairn_region_end(NULL);
        cairn_mark(label);
        go(part_steps);
        for (int i = 0; i < 2; i++) {
            if (pthread_create(&thread, NULL, go_on, &part_steps)) abort();
            pthread_join(thread, NULL);
        }
    }
}

int main(int argc, char **argv) {
    char text[400];
    int steps = argc > 2 ? atoi(argv[2]) : 10000;
    state = 88172645463325252ull + (argc > 1 ? strtoull(argv[1], NULL, 10) : 0);
    if (argc > 3)
        go_in_parts(steps);
    else
        go(steps);
    pid_t child = argc > 3 ? fork() : 0;
    if (child < 0) abort();
    if (argc > 3 && child == 0) {
        last = NULL;
        go(steps);
        drop_all();
        _exit(0);
    }
    if (argc > 3) waitpid(child, NULL, 0);
    drop_all();
    int length =
        snprintf(text, sizeof text, "%lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu\n",
                 done.allocations, done.frees, done.allocated, done.freed, done.failed,
                 done.temporary, done.most, done.resized, done.grown, done.in_place, done.copied,
                 done.in_region, done.to_small);
    return write(1, text, (size_t)length) != length;
}
