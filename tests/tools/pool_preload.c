// SPDX-License-Identifier: Apache-2.0
// Rewrites a program without its source: blocks of chosen call stacks come out of pools as
// tool/model/pool_candidates.h describes them, all others from malloc. It shares no code with the
// finder. Whoever is preloaded behind it (count_preload.so) sees what is left of the calls.
//
// POOL_PRELOAD names a file with a line a stack: number of its pool, kind (first letter of buffer,
// arena, lifo, slab), size of its blocks (slab) or of its largest one (buffer), and its calls from
// the innermost on as OFFSET@MODULE: the byte before the return address, the module's name without
// its directories. For programs with one thread.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define HOOK __attribute__((visibility("default")))
enum { STACKS = 8192, POOLS = 4096, CHUNKS = 4096, MODULES = 256, NAME = 128, EARLY = 65536 };
enum { UNIT = 16, CHUNK_BYTES = 32768, BLOCK_MOST = 4096 };
static const uint64_t hash_factor = 0x9e3779b97f4a7c15u;

struct chunk {
    struct chunk *next;
    uint32_t used, pool;
};

struct pool {
    char kind;
    size_t block_bytes, live;
    struct chunk *first, *present;
    void *free;  // slab: linked by the blocks' first words
};

struct stack {
    uint64_t hash;
    struct pool *pool;
    char *buffer;
    bool is_used;
};

static struct pool pools[POOLS];
static struct stack stacks[STACKS];
static struct chunk *chunks[CHUNKS];
static size_t stack_count, chunk_count;
static bool is_ready;
static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static char early[EARLY] __attribute__((aligned(UNIT)));  // before the real functions are known
static size_t early_used;

static size_t in_units(size_t bytes) {
    return bytes ? (bytes + UNIT - 1) / UNIT * UNIT : UNIT;
}

static void *early_malloc(size_t bytes) {
    void *block = early + early_used;
    early_used += in_units(bytes);
    if (early_used > sizeof early) abort();
    return block;
}

static bool is_within(const void *block, const void *start, size_t bytes) {
    return (uintptr_t)block - (uintptr_t)start < bytes;
}

// --- which stack

struct module {
    uintptr_t start, end, base;
    char name[NAME];
};
static struct module modules[MODULES];
static size_t module_count;
static char program[NAME];

static uint64_t hash_frame(uint64_t hash, uint64_t offset, const char *module) {
    hash = (hash ^ offset) * hash_factor;
    for (; *module; module++) hash = (hash ^ (unsigned char)*module) * hash_factor;
    return hash;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    (void)context;
    if (module_count == MODULES) abort();
    struct module *module = &modules[module_count++];
    *module = (struct module){.start = UINTPTR_MAX, .base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        if (start < module->start) module->start = start;
        if (end > module->end) module->end = end;
    }
    snprintf(module->name, NAME, "%s", *info->dlpi_name ? base_name(info->dlpi_name) : program);
    return 0;
}

static const struct module *module_of(uintptr_t address) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < module_count; i++)
            if (address >= modules[i].start && address < modules[i].end) return &modules[i];
        module_count = 0;
        dl_iterate_phdr(add_module, NULL);
    }
    return NULL;
}

static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *hash) {
    uintptr_t address = _Unwind_GetIP(context);
    const struct module *module = address ? module_of(address - 1) : NULL;
    if (!module) return _URC_END_OF_STACK;
    if (strcmp(module->name, "pool_preload.so") != 0)
        *(uint64_t *)hash = hash_frame(*(uint64_t *)hash, address - 1 - module->base, module->name);
    return _URC_NO_REASON;
}

static struct stack *this_stack(void) {
    uint64_t hash = 1;
    _Unwind_Backtrace(see_frame, &hash);
    for (size_t i = 0; i < stack_count; i++)
        if (stacks[i].hash == hash) return &stacks[i];
    return NULL;
}

// --- the pools

static bool next_chunk(struct pool *pool) {
    struct chunk *next = pool->present ? pool->present->next : pool->first;
    if (!next) {
        next = real_malloc(CHUNK_BYTES);
        if (!next || chunk_count == CHUNKS) abort();
        *next = (struct chunk){.pool = (uint32_t)(pool - pools)};
        chunks[chunk_count++] = next;
        if (pool->present)
            pool->present->next = next;
        else
            pool->first = next;
    }
    next->used = UNIT;
    pool->present = next;
    return true;
}

static void *pool_give(struct pool *pool, size_t bytes) {
    void *block = pool->free;
    pool->live++;
    if (block) {
        pool->free = *(void **)block;
        return block;
    }
    bytes = in_units(bytes);
    if (!pool->present || CHUNK_BYTES - pool->present->used < bytes) next_chunk(pool);
    block = (char *)pool->present + pool->present->used;
    pool->present->used += (uint32_t)bytes;
    return block;
}

// What was given last ends where the next block would begin.
static void give_back_last(struct pool *pool, char *block) {
    struct chunk *before = pool->first;
    if (!is_within(block, pool->present, CHUNK_BYTES)) abort();
    pool->present->used = (uint32_t)(block - (char *)pool->present);
    if (pool->present->used > UNIT || pool->present == pool->first) return;
    while (before->next != pool->present) before = before->next;
    pool->present = before;
}

static void pool_take(struct pool *pool, void *block) {
    pool->live--;
    if (pool->kind == 's') {
        *(void **)block = pool->free;
        pool->free = block;
    } else if (pool->kind == 'l') {
        give_back_last(pool, block);
    } else if (!pool->live) {
        pool->present = NULL;
    }
}

static struct pool *pool_of(const void *block) {
    for (size_t i = 0; i < chunk_count; i++)
        if (is_within(block, chunks[i], CHUNK_BYTES)) return &pools[chunks[i]->pool];
    return NULL;
}

static struct stack *buffer_of(const void *block) {
    for (size_t i = 0; i < stack_count; i++)
        if (stacks[i].buffer == block) return &stacks[i];
    return NULL;
}

// NULL: it is none for a pool.
static void *give(size_t bytes) {
    if (bytes > BLOCK_MOST || !stack_count) return NULL;
    struct stack *stack = this_stack();
    if (!stack || (stack->pool->kind == 's' && stack->pool->block_bytes != bytes)) return NULL;
    if (stack->pool->kind != 'b') return pool_give(stack->pool, bytes);
    if (stack->is_used || bytes > stack->pool->block_bytes) abort();
    stack->is_used = true;
    return stack->buffer;
}

// --- the plan

static void read_stack(char *line) {
    char *state, *word = strtok_r(line, " ", &state), *offset;
    if (stack_count == STACKS) abort();
    struct stack *stack = &stacks[stack_count++];
    struct pool *pool = &pools[strtoul(word, NULL, 10) % POOLS];
    pool->kind = *strtok_r(NULL, " ", &state);
    pool->block_bytes = strtoul(strtok_r(NULL, " ", &state), NULL, 10);
    *stack = (struct stack){.hash = 1, .pool = pool};
    if (pool->kind == 'b')
        stack->buffer =
            mmap(NULL, BLOCK_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while ((offset = strtok_r(NULL, "@", &state)) && (word = strtok_r(NULL, " ", &state)))
        stack->hash = hash_frame(stack->hash, strtoull(offset, NULL, 10), word);
}

static void read_plan(const char *path) {
    int file = open(path, O_RDONLY);
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (size < 0) abort();
    char *at = mmap(NULL, (size_t)size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0), *end;
    if (at == MAP_FAILED) abort();
    close(file);
    for (; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        read_stack(at);
    }
}

static void begin(void) {
    static bool is_begun;
    char path[4096] = "";
    if (is_begun) return;
    is_begun = true;
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    real_calloc = dlsym(RTLD_NEXT, "calloc");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_free = dlsym(RTLD_NEXT, "free");
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) abort();
    snprintf(program, sizeof program, "%s", base_name(path));
    if (getenv("POOL_PRELOAD")) read_plan(getenv("POOL_PRELOAD"));
    is_ready = true;
}

// --- what programs call

HOOK void *malloc(size_t bytes) {
    begin();
    if (!is_ready) return early_malloc(bytes);
    void *block = give(bytes);
    return block ? block : real_malloc(bytes);
}

HOOK void *calloc(size_t count, size_t size) {
    begin();
    if (!is_ready) return early_malloc(count * size);
    void *block = size && count <= BLOCK_MOST / size ? give(count * size) : NULL;
    return block ? memset(block, 0, count * size) : real_calloc(count, size);
}

HOOK void *realloc(void *block, size_t bytes) {
    begin();
    if (pool_of(block) || (block && buffer_of(block))) abort();  // no stack of a pool has it
    void *given = block ? NULL : give(bytes);
    return given ? given : real_realloc(block, bytes);
}

HOOK void free(void *block) {
    begin();
    struct pool *pool = pool_of(block);
    struct stack *stack = block && !pool ? buffer_of(block) : NULL;
    if (pool)
        pool_take(pool, block);
    else if (stack)
        stack->is_used = false;
    else if (!is_within(block, early, sizeof early))
        real_free(block);
}
