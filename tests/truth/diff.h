// SPDX-License-Identifier: Apache-2.0
// Two builds of a program that differ in what part() does, before and after; those of the twin
// differ in another way: the part holds the same, or it goes on where it seemed gone.
#include "ledger.h"

enum { DIFF_NEW, DIFF_GONE, DIFF_GROWN, DIFF_SHRUNK, DIFF_NOT_AT_PEAK, DIFF_ONLY_AT_PEAK };
enum { BASE = 200, MANY = 100, FEW = 40, BYTES = 1000, LARGE_BYTES = 3000 };

static char *blocks[MANY];

APART static void base(void) {
    for (int i = 0; i < BASE; i++) seen = malloc(BYTES);
}

APART static void part(int count) {
    for (int i = 0; i < count; i++) seen = blocks[i] = malloc(BYTES);
}

static void drop(int count) {
    for (int i = 0; i < count; i++) free(blocks[i]);
}

// The peak comes after the part has gone.
APART static void later(void) {
    for (int i = 0; i < BASE; i++) seen = malloc(LARGE_BYTES);
}

// Returns how many blocks the part has, and if they are gone before the peak.
static int count_of(int is_after, int *is_early) {
    const int is_second = HOLDS ? is_after : !is_after;  // of the twin the other way round
    *is_early =
        (KIND == DIFF_NOT_AT_PEAK && is_second) || (KIND == DIFF_ONLY_AT_PEAK && !is_second);
    if (KIND == DIFF_NEW) return is_second ? MANY : 0;
    if (KIND == DIFF_GONE) return is_second ? 0 : MANY;
    if (KIND == DIFF_GROWN) return is_second ? MANY : FEW;
    if (KIND == DIFF_SHRUNK) return is_second ? FEW : MANY;
    return MANY;
}

int main(int argc, char **argv) {
    int is_early, is_after = argc == 2 && !strcmp(argv[1], "after");
    int other, count = count_of(is_after, &is_early);
    base();
    part(count);
    if (is_early) drop(count);
    if (is_early) later();
    const int before = count_of(0, &other), was_early = other, after = count_of(1, &other);
    ledger("before", was_early ? 0 : before * BYTES, was_early ? 0 : before * BYTES);
    ledger("after", other ? 0 : after * BYTES, other ? 0 : after * BYTES);
    ledger("calls_before", before, before);
    ledger("calls_after", after, after);
    ledger("rows", 1, 1);
    ledger_name("where", "part");
    return 0;
}
