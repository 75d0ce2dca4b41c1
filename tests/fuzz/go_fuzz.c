// SPDX-License-Identifier: Apache-2.0
// Any bytes as the memory of a program of Go: its profile and its spans end in figures that agree,
// or in an error. Sums over stacks are made right where a bucket could be, since no search meets
// them.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/go/buckets.h"
#include "tool/go/spans.h"

enum { MEMORY_BYTES = 1 << 17, WORD = sizeof(uint64_t), STEP = 512, DEPTH_MOST = 8 };
enum { KIND = 2, SUM, SIZE, DEPTH, STACK };  // words of a bucket
#define BASE UINT64_C(0xc000000000)

static uint64_t memory[MEMORY_BYTES / WORD];

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool is_true) {
    if (!is_true) abort();
}

static bool read_memory(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    const uint64_t inside = address - BASE;
    if (address < BASE || inside > MEMORY_BYTES || size > MEMORY_BYTES - inside) return false;
    memcpy(bytes, (const uint8_t *)memory + inside, size);
    return true;
}

static void settle_sums(void) {
    for (size_t word = 0; word + STEP / WORD <= MEMORY_BYTES / WORD; word += STEP / WORD) {
        uint64_t *bucket = &memory[word], sum = 0;
        if (bucket[KIND] != 1 || bucket[DEPTH] > DEPTH_MOST) continue;
        for (uint64_t i = 0; i <= bucket[DEPTH]; i++) {
            sum += i < bucket[DEPTH] ? bucket[STACK + i] : bucket[SIZE];
            sum += sum << 10;
            sum ^= sum >> 6;
        }
        sum += sum << 3;
        bucket[SUM] = sum ^ sum >> 11;
    }
}

static void check_profile(const struct memory_reader *reader, bool has_bytes) {
    const struct go_profile_place place = {.buckets = BASE + STEP,
                                           .cycle = BASE,
                                           .is_shifted = has_bytes,
                                           .rate = BASE + WORD,
                                           .has_bytes = has_bytes};
    struct go_profile profile;
    if (!go_profile_read(reader, &place, &profile, NULL)) return;
    for (size_t i = 0; i < profile.buckets.count; i++) {
        const struct go_bucket *bucket = &profile.buckets.items[i];
        uint64_t count = bucket->allocs, sum = bucket->allocated_bytes;
        require(bucket->first + bucket->depth <= profile.addresses.count);
        go_profile_scale(profile.rate, &count, &sum);
        require(!bucket->allocs || !bucket->allocated_bytes || sum >= bucket->allocated_bytes);
    }
    go_profile_free(&profile);
}

static void check_spans(const struct memory_reader *reader, unsigned minor) {
    struct go_spans spans;
    uint64_t bytes = 0;
    if (!go_spans_read(reader, BASE, minor, &spans, NULL)) return;
    for (size_t i = 0; i < spans.classes.count; i++) {
        require(spans.classes.items[i].object_sum <= spans.classes.items[i].bytes);
        bytes += spans.classes.items[i].bytes;
    }
    require(bytes == spans.bytes);
    go_spans_free(&spans);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const struct memory_reader reader = {.read = read_memory};
    enum { SPANS_AT = 65536 };  // in front of the list, whose place is fixed
    memset(memory, 0, sizeof memory);
    const size_t half = size / 2;
    if (size > SPANS_AT) return 0;
    memcpy(memory, bytes, half);
    memcpy((uint8_t *)memory + SPANS_AT, bytes + half, size - half);
    settle_sums();
    check_profile(&reader, size % 2);
    for (unsigned minor = 19; minor <= 22; minor++) check_spans(&reader, minor);
    return 0;
}
