// SPDX-License-Identifier: Apache-2.0
// The native half of a server that is shaped like one for inference: threads that take blocks of
// 1 KiB to 1 GiB, most of them small, keep some as a cache, hand some to each other, and look at
// what they wrote before they free it. Python calls it (tests/promises/serving.py).
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

enum { STAMP_STEP = 1 << 20, CACHE = 200, HANDED = 16, LEAST_SHIFT = 10 };

struct Block {
    uint64_t bytes, stamp;
    unsigned char *memory;
};

std::atomic<uint64_t> requests, errors;
std::atomic<bool> is_ending;
std::vector<std::thread> threads;
std::mutex lock;
std::vector<Block> handed;  // (lock)

// Calls `touch` for the words that are written: the first, the last, and one in each MiB.
template <typename F> void each_word(const Block &block, F touch) {
    for (uint64_t at = 0; at + sizeof(uint64_t) <= block.bytes; at += STAMP_STEP)
        touch(reinterpret_cast<uint64_t *>(block.memory + at));
    touch(reinterpret_cast<uint64_t *>(block.memory + (block.bytes - sizeof(uint64_t)) / 8 * 8));
}

Block take(uint64_t bytes, uint64_t stamp) {
    Block block = {bytes, stamp, static_cast<unsigned char *>(malloc(bytes))};
    if (!block.memory) abort();
    each_word(block, [&](uint64_t *word) { *word = stamp; });
    return block;
}

void give_back(const Block &block) {
    each_word(block, [&](uint64_t *word) { errors += *word != block.stamp; });
    free(block.memory);
}

// Most of 1 KiB, each next power of two half as often.
uint64_t size_of(std::mt19937_64 &random, int most_shift) {
    int shift = LEAST_SHIFT;
    while (shift < most_shift && random() % 2) shift++;
    return (UINT64_C(1) << shift) - random() % (UINT64_C(1) << (shift - 1));
}

void hand_over(Block block) {
    Block older = {};
    {
        std::lock_guard<std::mutex> guard(lock);
        handed.push_back(block);
        if (handed.size() > HANDED) {
            older = handed.front();
            handed.erase(handed.begin());
        }
    }
    if (older.memory) give_back(older);
}

void work(unsigned number, int most_shift) {
    std::mt19937_64 random(number);
    std::unordered_map<uint64_t, Block> cache;
    while (!is_ending) {
        const uint64_t stamp = random();
        Block block = take(size_of(random, most_shift), stamp);
        std::string text = "request " + std::to_string(stamp) + " of a length that is allocated";
        std::vector<float> logits(random() % 5000);
        auto found = cache.find(stamp % CACHE);
        if (found != cache.end()) {
            give_back(found->second);
            cache.erase(found);
        }
        if (block.bytes < STAMP_STEP)
            cache[stamp % CACHE] = block;
        else if (stamp % 4 == 0)
            hand_over(block);
        else
            give_back(block);
        errors += text.size() < sizeof "request  of a length that is allocated";
        requests++;
    }
    for (auto &entry : cache) give_back(entry.second);
}

}  // namespace

extern "C" {
void serving_start(unsigned count, int most_shift) {
    is_ending = false;
    for (unsigned i = 0; i < count; i++) threads.emplace_back(work, i + 1, most_shift);
}
uint64_t serving_requests() {
    return requests;
}
uint64_t serving_errors() {
    return errors;
}
void serving_stop() {
    is_ending = true;
    for (auto &thread : threads) thread.join();
    threads.clear();
    for (auto &block : handed) give_back(block);
    handed.clear();
}
}
