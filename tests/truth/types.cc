// SPDX-License-Identifier: Apache-2.0
// Most of the heap is of one type; of the twin, of another.
//
// claim: types
// both: largest
// flags: -O1
// file: view
#include "ledger.h"

struct order {
    struct order *next;
    long number, items[6];
};
struct customer {
    struct customer *next;
    char name[88];
};
enum { MANY = 3000, FEW = 100 };

order *orders;
customer *customers;

template <typename entry> APART static void fill(entry *&list, int count) {
    for (int i = 0; i < count; i++) {
        entry *one = new entry();
        one->next = list;
        list = one;
    }
}

int main() {
    fill(orders, HOLDS ? MANY : FEW);
    fill(customers, HOLDS ? FEW : MANY);
    ledger_name("largest", HOLDS ? "order" : "customer");
    ledger("largest_bytes", MANY * (HOLDS ? sizeof(order) : sizeof(customer)), MANY * 112);
    ledger("largest_blocks", MANY, MANY);
    wait_for_input();
    return 0;
}
