// SPDX-License-Identifier: Apache-2.0
// Fills containers with sizes that are known, in functions whose names say so, half of it in a
// second thread; `containers N` makes N times the nodes, and N > 1 one leak more.
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

struct Item {
    char bytes[100];
};

static std::vector<Item> items;
static std::map<int, Item> by_number;
static std::vector<std::unique_ptr<Item>> owned;
static void *volatile leaked;

__attribute__((noinline)) static void fill_items(int count) {
    items.reserve(static_cast<size_t>(count));
}

__attribute__((noinline)) static void fill_map(int count) {
    for (int i = 0; i < count; i++) by_number[i] = Item();
}

__attribute__((noinline)) static void fill_owned(int count) {
    owned.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; i++) owned.push_back(std::make_unique<Item>());
}

__attribute__((noinline)) static void churn(int count) {
    for (int i = 0; i < count; i++) free(malloc(64));
}

__attribute__((noinline)) static void leak_one() {
    leaked = malloc(5000);
}

static void *work(void *count) {
    pthread_setname_np(pthread_self(), "owner");
    fill_owned(*static_cast<int *>(count));
    return nullptr;
}

int main(int argc, char **argv) {
    int factor = argc > 1 ? atoi(argv[1]) : 1, count = 1000 * factor;
    pthread_t thread;
    fill_items(1000);
    fill_map(count);
    churn(10000);
    pthread_create(&thread, nullptr, work, &count);
    pthread_join(thread, nullptr);
    if (factor > 1) leak_one();
    return 0;
}
