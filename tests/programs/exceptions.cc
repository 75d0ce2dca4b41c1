// SPDX-License-Identifier: Apache-2.0
// Exceptions thrown through frames that own memory, and every form of operator new and delete.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static void *volatile sink;

struct alignas(64) Wide {
    char bytes[128];
};

__attribute__((noinline)) static int thrower(int depth, int seed) {
    std::vector<std::string> owned(3, std::string(static_cast<size_t>(40 + seed % 7), 'x'));
    std::unique_ptr<int[]> numbers(new int[static_cast<size_t>(depth + 1)]);
    if (depth == 0) {
        if (seed % 3 == 0) throw std::runtime_error("third " + std::to_string(seed));
        return static_cast<int>(owned.size());
    }
    return thrower(depth - 1, seed) + 1;
}

__attribute__((noinline)) static int catcher(int seed) {
    try {
        return thrower(12, seed);
    } catch (const std::exception &problem) {
        return -static_cast<int>(std::string(problem.what()).size());
    }
}

// 11 allocations that are all freed again: each form must be counted once.
__attribute__((noinline)) static void all_forms() {
    std::align_val_t align{64};
    ::operator delete(::operator new(10));
    ::operator delete[](::operator new[](11));
    ::operator delete(::operator new(12, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](13, std::nothrow), std::nothrow);
    ::operator delete(::operator new(14), static_cast<size_t>(14));
    ::operator delete[](::operator new[](15), static_cast<size_t>(15));
    ::operator delete(::operator new(192, align), align);
    ::operator delete[](::operator new[](256, align), align);
    ::operator delete(::operator new(320, align, std::nothrow), align, std::nothrow);
    delete new Wide;
    delete[] new Wide[2];
}

// Requests that operator new refuses: nullptr once, bad_alloc once.
static int refusals() {
    const size_t too_much = static_cast<size_t>(-1) / 2 - 4096;
    int count = ::operator new(too_much, std::nothrow) == nullptr;
    try {
        sink = ::operator new(too_much);
    } catch (const std::bad_alloc &) {
        count++;
    }
    return count;
}

// With an argument also what valgrind ends the program for: requests that are refused.
int main(int argc, char **) {
    long sum = 0;
    for (int seed = 0; seed < 300; seed++) sum += catcher(seed);
    all_forms();
    std::map<std::string, std::vector<int>> tree;
    for (int i = 0; i < 500; i++) tree[std::to_string(i * 7919 % 1000)].push_back(i);
    std::printf("sum %ld, tree %zu, refused %d\n", sum, tree.size(), argc > 1 ? refusals() : 0);
    sink = new char[777];
    return 0;
}
