// SPDX-License-Identifier: Apache-2.0
// Blocks that a function of the program allocates for the standard library, which the program
// called.
#include <cstdlib>
#include <functional>

static void *slots[100];

__attribute__((noinline)) static int fill_slot(int slot) {
    slots[slot] = malloc(1000);
    return slots[slot] != nullptr;
}

int main() {
    int filled = 0;
    std::function<void(int)> call = [&filled](int slot) { filled += fill_slot(slot); };
    for (int slot = 0; slot < 100; slot++) call(slot);
    return filled != 100;
}
