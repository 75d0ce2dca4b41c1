// SPDX-License-Identifier: Apache-2.0
// lists THREADS NODES: each thread builds a std::list of so many nodes and destroys it.
#include <cstdio>
#include <cstdlib>
#include <list>
#include <thread>
#include <vector>

static void build_and_destroy(long nodes) {
    std::list<long> list;
    for (long i = 0; i < nodes; i++) list.push_back(i);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: lists THREADS NODES\n");
        return 2;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < atoi(argv[1]); i++) threads.emplace_back(build_and_destroy, atol(argv[2]));
    for (std::thread &thread : threads) thread.join();
}
