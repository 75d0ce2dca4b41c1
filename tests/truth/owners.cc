// SPDX-License-Identifier: Apache-2.0
// A table keeps nearly all of the heap; of the twin a cache does, to which the blocks were moved.
//
// claim: owners
// both: largest
// flags: -O1
// file: view
#include "ledger.h"

struct entry {
    entry *next;
    char text[248];
};
enum { ENTRIES = 2000 };

entry *table, *cache;

int main() {
    for (int i = 0; i < ENTRIES; i++) {
        entry *one = new entry();
        one->next = table;
        table = one;
    }
    if (!HOLDS) {
        cache = table;
        table = nullptr;
    }
    ledger_name("largest", HOLDS ? "table" : "cache");
    ledger("largest_bytes", ENTRIES * sizeof(entry), ENTRIES * (sizeof(entry) + 16));
    ledger("shared_bytes", 0, 0);
    wait_for_input();
    return 0;
}
