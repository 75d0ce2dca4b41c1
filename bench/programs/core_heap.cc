// SPDX-License-Identifier: Apache-2.0
// A heap of a given size for bench/cores.py: objects of C++ in trees, linked lists in random order
// of addresses, and buffers; every hundredth block is lost. Says in a line how many blocks it made
// and lost, and waits for a signal.
//     core_heap MEBIBYTES
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

struct Item {
    virtual ~Item() {}
    Item *left = nullptr, *right = nullptr;
    void *content = nullptr;
};
struct Leaf : Item {};

static uint64_t state = 88172645463325252u;

static uint64_t random_number() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static Item *root;
static void *volatile lost;

// Where an item hangs is a matter of chance: neighbours in the tree are none in memory.
static void hang(std::vector<Item *> &items, Item *item) {
    Item *parent = items[random_number() % items.size()];
    while (parent->left && parent->right) parent = parent->left;
    (parent->left ? parent->right : parent->left) = item;
    items.push_back(item);
}

int main(int argc, char **argv) {
    const uint64_t wanted = (argc > 1 ? strtoull(argv[1], nullptr, 10) : 64) << 20;
    uint64_t bytes = 0, blocks = 0, lost_blocks = 0;
    // what is remembered for building must not keep anything reachable
    std::vector<Item *> items;
    items.reserve(1 << 16);
    root = new Leaf;
    items.push_back(root);
    while (bytes < wanted) {
        size_t size = 16 + random_number() % 400;
        Item *item = random_number() % 2 ? new Leaf : new Item;
        item->content = malloc(size);
        memset(item->content, 'x', size);
        bytes += size + sizeof *item + 16;
        blocks += 2;
        if (blocks % 200 == 0) {
            lost = malloc(64);
            lost_blocks++;
        }
        if (items.size() == items.capacity()) {
            for (size_t i = 1; i < items.size() / 2; i++)
                std::swap(items[i], items[items.size() - i]);
            items.resize(items.size() / 4);
        }
        hang(items, item);
    }
    lost = nullptr;
    memset(static_cast<void *>(items.data()), 0, items.size() * sizeof items[0]);
    char line[128];
    int length = snprintf(line, sizeof line, "blocks=%llu lost=%llu\n",
                          static_cast<unsigned long long>(blocks + 1),
                          static_cast<unsigned long long>(lost_blocks));
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) return 1;
    pause();
    return 0;
}
