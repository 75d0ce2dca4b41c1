// SPDX-License-Identifier: Apache-2.0
// Takes 5,000 blocks of 100 bytes and stops there for a debugger, by abort().
#include <stdlib.h>

static void *volatile last_block;
void *first_block;

__attribute__((noinline)) static void take(void) {
    last_block = malloc(100);
}

__attribute__((noinline)) static void take_many(int count) {
    for (int i = 0; i < count; i++) {
        take();
        if (!first_block) first_block = last_block;
    }
}

int main(void) {
    take_many(5000);
    abort();
}
