// SPDX-License-Identifier: Apache-2.0
// Has containers in memory that others had before: what lies behind a vector's end and beside the
// pieces of a deque are left-overs. Some are variables of main, which has called what waits for the
// end of the input.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Point {
    double x, y;
    int id;
};

struct Rooms {
    std::vector<int> numbers;
    std::string text;
    std::unordered_map<int, int> table;
};

static std::vector<Point *> few;  // where words of strings lie
static std::vector<std::string> texts;
static std::deque<long> line;
static std::shared_ptr<std::vector<float>> shared;

__attribute__((noinline)) static void soil() {
    enum { SIZES = 200, EACH = 40 };
    for (size_t i = 0; i < SIZES; i++) {
        void *blocks[EACH];
        for (auto &block : blocks) {
            block = malloc(8 * i + 8);
            memset(block, 0x5a, 8 * i + 8);
        }
        for (auto *block : blocks) free(block);
    }
}

__attribute__((noinline)) static int wait(Rooms &rooms, std::vector<double> &local) {
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    rooms.text += "x";
    local.push_back(1);
    return static_cast<int>(rooms.text.size());
}

int main() {
    soil();
    for (long i = 0; i < 64 * 100; i++) line.push_back(i);
    texts.reserve(1000);
    for (int i = 0; i < 1000; i++) texts.emplace_back(20, 'a');
    texts.reserve(1001);
    few.reserve(4000);
    for (int i = 0; i < 10; i++) few.push_back(new Point{1, 2, i});
    shared = std::make_shared<std::vector<float>>();
    shared->reserve(3000);
    std::vector<double> local;
    local.reserve(10000);
    local.push_back(1);
    Rooms rooms;
    rooms.numbers.reserve(5000);
    rooms.text.reserve(7000);
    rooms.text = "short";
    rooms.table.reserve(1000);
    return wait(rooms, local) == 6 ? 0 : 1;
}
