// SPDX-License-Identifier: Apache-2.0
// Vectors with far more room than they use; those of the twin are full. Their array lies in two
// mappings: the end of the program's file, and zeroed memory behind it.
//
// claim: containers
// both: unused_bytes
// flags: -O1
// file: view
#include <vector>

#include "ledger.h"

enum { BOOKS = 200, ROOM = 500, USED = 20 };

static std::vector<long> books[BOOKS];

int main() {
    for (auto &book : books) {
        book.reserve(ROOM);
        book.resize(HOLDS ? USED : ROOM, 1);
    }
    ledger("containers", BOOKS, BOOKS);
    ledger("capacity_bytes", BOOKS * ROOM * sizeof(long), BOOKS * ROOM * sizeof(long));
    const double unused = HOLDS ? BOOKS * (ROOM - USED) * sizeof(long) : 0;
    ledger("unused_bytes", unused, unused);
    ledger("left_out", 0, 0);
    wait_for_input();
    return 0;
}
