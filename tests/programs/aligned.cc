// SPDX-License-Identifier: Apache-2.0
// Aligned blocks of known sizes, each from a function of its own, for tests/e2e/aligned.py. Prints
// lines `function calls slack waste`: the room that malloc_usable_size tells beyond what was asked
// for (a block with a mapping of its own has 8 bytes more, which it may not use), and what the
// blocks take beyond the smallest chunks or mappings of glibc's for their sizes, worked out from
// that and from where the blocks lie. Blocks stay until the end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <unistd.h>

namespace {

constexpr size_t page = 4096, header = 8, two_words = 16, smallest = 32, mapped_from = 128 << 10;
static_assert(sizeof(void *) == 8, "chunks of 64-bit glibc");

size_t up(size_t size, size_t step) {
    return (size + step - 1) / step * step;
}

struct tally {
    size_t calls, slack, waste;

    void add(void *block, size_t size, size_t alignment) {
        size_t usable = malloc_usable_size(block), chunk = up(size + header, two_words);
        calls++;
        slack += usable - size;
        if (chunk < smallest) chunk = smallest;
        if (size < mapped_from) {
            waste += usable + header - chunk;
            return;
        }
        slack += header;
        // what lies before the block in its own mapping, whose first chunk begins with a page
        size_t before =
            alignment < page ? (reinterpret_cast<uintptr_t>(block) - two_words) % page : 0;
        waste += before + usable + two_words - up(chunk + header, page);
    }

    void say(const char *function) const {
        char line[100];
        int length = snprintf(line, sizeof line, "%s %zu %zu %zu\n", function, calls, slack, waste);
        if (write(STDOUT_FILENO, line, length) != length) _exit(1);
    }
};

}  // namespace

#define SITE extern "C" __attribute__((noinline)) void *

SITE by_posix(size_t alignment, size_t size) {
    void *block = nullptr;
    if (posix_memalign(&block, alignment, size)) abort();
    return block;
}

SITE by_aligned_alloc(size_t alignment, size_t size) {
    void *block = aligned_alloc(alignment, size);
    __asm__ volatile("" ::: "memory");
    return block;
}

SITE by_memalign(size_t alignment, size_t size) {
    void *block = memalign(alignment, size);
    __asm__ volatile("" ::: "memory");
    return block;
}

SITE by_valloc(size_t, size_t size) {
    void *block = valloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

// The C++ runtime asks for a multiple of the alignment.
SITE by_new(size_t alignment, size_t size) {
    void *block = operator new(size, std::align_val_t(alignment));
    __asm__ volatile("" ::: "memory");
    return block;
}

SITE by_large(size_t alignment, size_t size) {
    void *block = nullptr;
    if (posix_memalign(&block, alignment, size)) abort();
    return block;
}

// Alignments that malloc gives as well, and one that is refused: no aligned calls.
SITE by_plain(size_t alignment, size_t size) {
    void *block = nullptr;
    if (posix_memalign(&block, alignment, size)) abort();
    void *impossible = nullptr;
    if (!posix_memalign(&impossible, 64, SIZE_MAX / 2)) abort();
    return block;
}

static void repeat(const char *function, void *(*make)(size_t, size_t), size_t alignment,
                   size_t size, int calls, tally *sum) {
    for (int i = 0; i < calls; i++) {
        void *block = make(alignment, size + i % 7);
        if (!block) abort();
        size_t asked = make == by_new ? up(size + i % 7, alignment) : size + i % 7;
        sum->add(block, asked, alignment);
    }
    if (function) sum->say(function);
}

int main() {
    tally posix = {}, standard = {}, old = {}, pages = {}, by_operator = {}, large = {}, plain = {};
    repeat(nullptr, by_posix, 64, 100, 300, &posix);
    repeat("by_posix", by_posix, 256, 24, 100, &posix);
    repeat("by_aligned_alloc", by_aligned_alloc, 4096, 8192, 50, &standard);
    repeat("by_memalign", by_memalign, 128, 1, 200, &old);
    repeat("by_valloc", by_valloc, page, 1000, 30, &pages);
    repeat("by_new", by_new, 64, 640, 150, &by_operator);
    // the plain mapping is full but for a few bytes
    repeat("by_large", by_large, 64, (1 << 20) - two_words * 2, 20, &large);
    repeat("by_plain", by_plain, 16, 70, 40, &plain);
    return 0;
}
