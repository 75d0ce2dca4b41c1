// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/php_heap.h"

#include <string.h>

#if defined(__x86_64__)

enum { HEAP_WORDS = 128 };  // more than Zend's struct has in any version

// The code of `heap = AG(mm_heap); return heap`, perhaps behind an endbr64.
struct load {
    uint8_t code[3];
    int32_t distance;
    uint8_t ret;
} __attribute__((packed));

static uint64_t read_word(const struct remote *remote, uint64_t at) {
    uint64_t word = 0;
    return at && at % sizeof word == 0 && remote_read(remote, at, &word, sizeof word) ? word : 0;
}

// Returns what zend_mm_get_heap would, without calling it; 0: its code is not as expected.
static uint64_t heap_of(struct loaded_module *module, const struct remote *remote) {
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}, code[] = {0x48, 0x8b, 0x05};
    const uint8_t ret = 0xc3;
    uint64_t at = module_symbol(module, remote, "zend_mm_get_heap");
    uint8_t bytes[sizeof landing + sizeof(struct load)];
    struct load load;
    if (!at || !remote_read(remote, at, bytes, sizeof bytes)) return 0;
    size_t skipped = memcmp(bytes, landing, sizeof landing) == 0 ? sizeof landing : 0;
    memcpy(&load, bytes + skipped, sizeof load);
    if (memcmp(load.code, code, sizeof code) != 0 || load.ret != ret) return 0;
    uint64_t behind = at + skipped + offsetof(struct load, ret);
    return read_word(remote, behind + (uint64_t)(int64_t)load.distance);
}

uint64_t php_heap_find(struct loaded_module *module, const struct remote *remote,
                       bool (*is_real)(const void *context, unsigned which, uint64_t word),
                       const void *context, uint64_t words[PHP_HEAP_FUNCTIONS]) {
    uint64_t heap = heap_of(module, remote);
    if (!(uint32_t)read_word(remote, heap)) return 0;  // use_custom_heap
    for (uint64_t at = heap; at < heap + HEAP_WORDS * sizeof *words; at += sizeof *words) {
        unsigned real = 0, own = 0;
        if (!remote_read(remote, at, words, PHP_HEAP_FUNCTIONS * sizeof *words)) return 0;
        for (unsigned i = 0; i < PHP_HEAP_FUNCTIONS; i++) {
            bool is_own = words[i] >= module->start && words[i] < module->end;
            own += is_own;
            real += !is_own && is_real(context, i, words[i]);
        }
        if (real && real + own == PHP_HEAP_FUNCTIONS) return at;
    }
    return 0;
}

#else

uint64_t php_heap_find(struct loaded_module *module, const struct remote *remote,
                       bool (*is_real)(const void *context, unsigned which, uint64_t word),
                       const void *context, uint64_t words[PHP_HEAP_FUNCTIONS]) {
    (void)module, (void)remote, (void)is_real, (void)context, (void)words;
    return 0;
}

#endif
