// SPDX-License-Identifier: Apache-2.0
// Allocators that report to heaptrack_api.h and to Perfetto's heap_profile.h, as programs have
// them: weak names, so that it runs without either. Prints what is live in each of its two heaps,
// at most and at the end, and the interval that its second one was enabled with (0: it was not).
// `drop_in fork`: a child goes on with what it holds.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct info;
struct enabling;
#define WEAK __attribute__((weak))
WEAK void heaptrack_malloc(void *block, size_t bytes);
WEAK void heaptrack_realloc(void *old, size_t bytes, void *block);
WEAK void heaptrack_free(void *block);
WEAK struct info *AHeapInfo_create(const char *name);
WEAK struct info *AHeapInfo_setEnabledCallback(struct info *info,
                                               void (*callback)(void *, const struct enabling *),
                                               void *data);
WEAK uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(const struct enabling *enabling);
WEAK uint32_t AHeapProfile_registerHeap(struct info *info);
WEAK bool AHeapProfile_reportAllocation(uint32_t heap, uint64_t block, uint64_t bytes);
WEAK bool AHeapProfile_reportSample(uint32_t heap, uint64_t block, uint64_t bytes);
WEAK void AHeapProfile_reportFree(uint32_t heap, uint64_t block);

enum { BLOCKS = 100, BYTES = 48, CALLS = 20000 };
static char memory[2 * BLOCKS][BYTES];
static uint64_t interval;

static void enable(void *data, const struct enabling *enabling) {
    *(uint64_t *)data = AHeapProfileEnableCallbackInfo_getSamplingInterval(enabling);
}

// 100 blocks of 48 bytes, 10 of which become 96; 60 of the rest are given back.
static void use_heaptrack(void) {
    if (!heaptrack_malloc) return;
    for (int i = 0; i < BLOCKS; i++) heaptrack_malloc(memory[i], BYTES);
    for (int i = 0; i < 10; i++)
        heaptrack_realloc(memory[i], 2 * (size_t)BYTES, memory[BLOCKS + i]);
    heaptrack_realloc(memory[10], 0, NULL);
    for (int i = 10; i < 70; i++) heaptrack_free(memory[i]);
    heaptrack_free(&interval);
    heaptrack_malloc(NULL, BYTES);
}

// 50 blocks of 1,000 by number; 20 are given back.
static void use_perfetto(void) {
    if (!AHeapInfo_create) return;
    struct info *info =
        AHeapInfo_setEnabledCallback(AHeapInfo_create("textures"), enable, &interval);
    uint32_t heap = AHeapProfile_registerHeap(info);
    if (!heap) return;
    for (uint64_t i = 1; i <= 49; i++) AHeapProfile_reportAllocation(heap, i, 1000);
    AHeapProfile_reportSample(heap, 50, 1000);
    for (uint64_t i = 1; i <= 20; i++) AHeapProfile_reportFree(heap, i);
    AHeapProfile_reportAllocation(0, 7, 7);
    AHeapProfile_reportFree(heap + 1, 7);
    AHeapProfile_registerHeap(NULL);
}

int main(int count, char **words) {
    use_heaptrack();
    use_perfetto();
    printf("%llu\n", (unsigned long long)interval);
    fflush(stdout);
    if (count < 2 || strcmp(words[1], "fork") != 0) return 0;
    pid_t child = fork();
    if (!child) {
        for (int i = 70; heaptrack_free && i < BLOCKS; i++) heaptrack_free(memory[i]);
        if (heaptrack_malloc) heaptrack_malloc(memory[0], 7);
        for (int i = 0; i < CALLS; i++) free(malloc(BYTES));  // a process of few calls is not kept
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
