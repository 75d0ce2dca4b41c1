// SPDX-License-Identifier: Apache-2.0
// Types, containers, owners and waste that are known, and the same at its end as before: nothing is
// destroyed. Without arguments it waits for its input to end; looked MILLISECONDS: keeps them for
// so long, and frees them all; looked doomed: has containers that are destroyed at its end.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

enum { ITEMS = 5000, CAPACITY = 3000, USED = 1000, ZEROED = 256 << 10, LARGE = 200000, MS = 1000 };

struct Item {
    long number;
    Item *next;
    std::string *name;
};

struct Keeper {
    Item *items;
    std::vector<int> *numbers;
    char *zeros;
};
static Keeper *keeper;

static __attribute__((noinline)) void fill() {
    keeper = new Keeper{};
    for (long i = 0; i < ITEMS; i++)
        keeper->items = new Item{i + 1, keeper->items,
                                 new std::string("a name that is too long for the object")};
    keeper->numbers = new std::vector<int>;
    keeper->numbers->reserve(CAPACITY);
    for (int i = 0; i < USED; i++) keeper->numbers->push_back(i);
    keeper->zeros = static_cast<char *>(malloc(ZEROED));
    memset(keeper->zeros, 0, ZEROED);
}

static void release() {
    for (Item *item = keeper->items, *next; item; item = next) {
        next = item->next;
        delete item->name;
        delete item;
    }
    delete keeper->numbers;
    free(keeper->zeros);
    delete keeper;
    keeper = nullptr;
    malloc_trim(0);
}

int main(int argc, char **argv) {
    fill();
    puts("ready");
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "doomed")) {
        static std::vector<double> large(LARGE);  // with a mapping of its own
        static std::vector<short> small(USED);
        return large.size() == small.size();
    }
    if (argc > 1) {
        usleep(atoi(argv[1]) * MS);
        release();
        return 0;
    }
    while (getchar() != EOF) {
    }
    return 0;
}
