// SPDX-License-Identifier: Apache-2.0
// Code instrumented with the names of MallocProfiler: what filling a hash map allocates, without
// reserve() and, built with -DRESERVE, with it.
//
//     c++ -std=c++17 -g -Iinclude examples/instrumented.cc -o instrumented && cairn run
//     ./instrumented
#include <cairn/mallocProfiler.h>
#include <iostream>
#include <unordered_map>

namespace {

struct Entry {
    double value;
    int number;
};

constexpr int entries = 20000;

std::size_t fill() {
    using namespace mallocProfiler;
    setThreshold(0);
    enable();
    activate(currentThread);
    clear(currentThread);
    std::unordered_map<int, Entry> map;
#ifdef RESERVE
    map.reserve(entries);
#endif
    for (int i = 0; i < entries; i++) map[7 * i] = {i / 7.0, i};
    const Stat taken = summary(currentThread);
    if (loaded())
        std::cout << taken.ntot << " calls, " << static_cast<uint64_t>(taken.mtot) << " bytes, "
                  << taken.mlive << " live, " << taken.mmax << " at most\n";
    dump(std::cout, '$', SortBy::max, currentThread);
    dumpDetails(std::cout, "", currentThread);
    deactivate(currentThread);
    disable();
    return map.size();
}

}  // namespace

int main() {
    const std::size_t filled = fill();
    std::cout << "filled " << filled << std::endl;
    return 0;
}
