// SPDX-License-Identifier: Apache-2.0
// The average of samples that are read in. Planted: those that found no room leave nothing to
// divide by.
#include <stdio.h>
#include <stdlib.h>

struct samples {
    int *values;
    int count;
};

static struct samples read_samples(int wanted) {
    struct samples samples = {malloc((size_t)wanted * sizeof(int)), 0};
    for (int i = 0; samples.values && i < wanted; i++) samples.values[samples.count++] = i * i;
    return samples;
}

static int average(const struct samples *samples) {
    long sum = 0;
#ifdef RIGHT
    if (!samples->count) return -1;
#endif
    for (int i = 0; i < samples->count; i++) sum += samples->values[i];
    volatile int count = samples->count;
    return (int)(sum / count);
}

int main(void) {
    struct samples samples = read_samples(50);
    int found = average(&samples);
    free(samples.values);
    if (found < 0) return 1;
    printf("average %d\n", found);
    return 0;
}
