// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/generated.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/symbol/bytes.h"
#include "tool/symbol/dotnet_name.h"

#define NAME_LENGTH_MAX 4096
#define FILE_BYTES_MAX ((off_t)1 << 30)
#define LOOK_BACK_MAX 64  // entries that begin before an address and may reach over it

// jitdump, as the kernel's tools/perf/Documentation/jitdump-specification.txt has it
#define DUMP_MAGIC 0x4A695444u
#define DUMP_LOAD 0
#define DUMP_FIXED_BYTES 40  // of a LOAD record behind its head, before the name

static const char *keep(struct string_pool *store, const char *text, size_t length) {
    return string_pool_intern(store, text, length);
}

// A number behind the last colon is cut off; 0: there is none.
static uint32_t cut_number(const char *text, size_t *length) {
    size_t at = *length, digits = 0;
    while (at && text[at - 1] >= '0' && text[at - 1] <= '9' && digits < 9) at--, digits++;
    if (!digits || !at || text[at - 1] != ':') return 0;
    *length = at - 1;
    return (uint32_t)strtoul(text + at, NULL, 10);
}

// "FILE:LINE:COLUMN" or "FILE:LINE".
static bool read_place(struct generated_code *code, const char *place, struct string_pool *store) {
    size_t length = strlen(place);
    uint32_t last = cut_number(place, &length), before = cut_number(place, &length);
    code->line = before ? before : last;
    if (!code->line) return true;
    static const char scheme[] = "file://";
    if (!strncmp(place, scheme, strlen(scheme))) {
        place += strlen(scheme);
        length -= length < strlen(scheme) ? length : strlen(scheme);
    }
    return (code->file = keep(store, place, length));
}

// Python's "py::FUNCTION:FILE".
static bool read_python(struct generated_code *code, const char *name, struct string_pool *store) {
    const char *colon = strchr(name, ':');
    if (colon && !(code->file = keep(store, colon + 1, strlen(colon + 1)))) return false;
    return (code->function = keep(store, name, colon ? (size_t)(colon - name) : strlen(name)));
}

static bool read_dotnet(struct generated_code *code, const struct dotnet_name *name,
                        struct string_pool *store) {
    code->file = keep(store, name->assembly, strlen(name->assembly));
    code->function = keep(store, name->method, strlen(name->method));
    return code->file && code->function;
}

bool generated_read_name(struct generated_code *code, const char *name, struct string_pool *store) {
    static const char *const kinds[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};
    static const char nameless[] = "(anonymous)";
    if (!strncmp(name, "py::", 4)) return read_python(code, name + 4, store);
    const char *start = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !start; i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i]))) start = name + strlen(kinds[i]);
    struct dotnet_name dotnet;
    if (!start && dotnet_name_read(&dotnet, name)) return read_dotnet(code, &dotnet, store);
    if (!start) return (code->function = keep(store, name, strlen(name)));
    start += strspn(start, "*~^+");  // how far it was optimized
    const char *blank = strchr(start, ' ');
    size_t length = blank ? (size_t)(blank - start) : strlen(start);
    if (blank && !read_place(code, blank + 1, store)) return false;
    code->function = length ? keep(store, start, length) : keep(store, nameless, strlen(nameless));
    return code->function;
}

static bool add(struct generated *generated, uint64_t start, uint64_t size, const char *name,
                struct string_pool *store) {
    if (!size || size > UINT64_MAX - start || generated->count == UINT32_MAX) return true;
    if (generated->count == generated->capacity) {
        size_t capacity = generated->capacity ? generated->capacity * 2 : 1024;
        struct generated_code *grown = reallocarray(generated->codes, capacity, sizeof *grown);
        if (!grown) return false;
        generated->codes = grown;
        generated->capacity = capacity;
    }
    struct generated_code *code = &generated->codes[generated->count];
    *code = (struct generated_code){
        .start = start, .end = start + size, .order = (uint32_t)generated->count++};
    return generated_read_name(code, name, store);
}

// "START SIZE NAME", hexadecimal.
static bool read_map_line(struct generated *generated, const char *line,
                          struct string_pool *store) {
    char *end;
    uint64_t start = strtoull(line, &end, 16);
    if (end == line || *end != ' ') return true;
    uint64_t size = strtoull(end + 1, &end, 16);
    return *end != ' ' || add(generated, start, size, end + 1, store);
}

bool generated_read_map(struct generated *generated, struct bytes bytes,
                        struct string_pool *store) {
    while (bytes_left(&bytes)) {
        char line[NAME_LENGTH_MAX];
        const uint8_t *end = memchr(bytes.at, '\n', bytes_left(&bytes));
        size_t length = end ? (size_t)(end - bytes.at) : bytes_left(&bytes);
        size_t kept = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, bytes.at, kept);
        line[kept] = 0;
        bytes_skip(&bytes, length + (end != NULL));
        if (!read_map_line(generated, line, store)) return false;
    }
    return true;
}

static bool read_load(struct generated *generated, struct bytes record, struct string_pool *store) {
    bytes_skip(&record, 16);  // pid, tid, virtual address: as the code's
    uint64_t start = bytes_number(&record, 8), size = bytes_number(&record, 8);
    bytes_skip(&record, 8);  // index
    const char *name = bytes_text(&record);
    return !name || add(generated, start, size, name, store);
}

bool generated_read_dump(struct generated *generated, struct bytes bytes,
                         struct string_pool *store) {
    uint64_t magic = bytes_number(&bytes, 4);
    bytes_skip(&bytes, 4);  // version
    uint64_t head = bytes_number(&bytes, 4);
    if (magic != DUMP_MAGIC || head < 12) return true;
    bytes_skip(&bytes, head - 12);
    while (bytes_left(&bytes)) {
        struct bytes record = bytes;
        uint64_t kind = bytes_number(&record, 4), size = bytes_number(&record, 4);
        bytes_skip(&record, 8);  // time
        if (record.is_bad || size < 16 || size > bytes_left(&bytes)) return true;
        record.end = bytes.at + size;
        bool has_load = kind == DUMP_LOAD && bytes_left(&record) > DUMP_FIXED_BYTES;
        if (has_load && !read_load(generated, record, store)) return false;
        bytes_skip(&bytes, size);
    }
    return true;
}

// A regular file of this user or the process', not older than the process.
static bool is_own(int file, const struct symbol_options *options, off_t *size) {
    const int64_t ns_per_s = 1000000000;
    struct stat status;
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) return false;
    if (status.st_uid != options->generator_user && status.st_uid != geteuid()) return false;
    int64_t time_ns = status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec;
    *size = status.st_size;
    return time_ns >= (int64_t)options->generator_start_ns && *size > 0 && *size <= FILE_BYTES_MAX;
}

typedef bool read_fn(struct generated *generated, struct bytes bytes, struct string_pool *store);

static bool read_file(struct generated *generated, const char *path, read_fn *read,
                      const struct symbol_options *options, struct string_pool *store) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return true;
    off_t size = 0;
    bool is_read = true;
    uint8_t *copy = is_own(file, options, &size) ? malloc((size_t)size) : NULL;
    // a copy, since the file may shrink meanwhile
    ssize_t got = copy ? pread(file, copy, (size_t)size, 0) : 0;
    if (got > 0) {
        is_read = read(generated, (struct bytes){copy, copy + got, false}, store);
        generated->path = string_pool_intern(store, path, strlen(path));
    }
    free(copy);
    close(file);
    return is_read;
}

static int by_start(const void *left, const void *right) {
    const struct generated_code *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void generated_sort(struct generated *generated) {
    if (generated->count)
        qsort(generated->codes, generated->count, sizeof *generated->codes, by_start);
}

bool generated_open(struct generated *generated, const struct symbol_options *options,
                    struct string_pool *store) {
    char path[PATH_MAX];
    *generated = (struct generated){.codes = NULL};
    if (!options->generator) return true;
    unsigned pid = (unsigned)options->generator;
    snprintf(path, sizeof path, "/tmp/perf-%u.map", pid);
    bool is_read = read_file(generated, path, generated_read_map, options, store);
    if (is_read && !generated->count && options->process) {
        snprintf(path, sizeof path, "/proc/%u/root/tmp/perf-%u.map", options->process, pid);
        is_read = read_file(generated, path, generated_read_map, options, store);
    }
    if (is_read && !generated->count && options->directory) {
        snprintf(path, sizeof path, "%s/jit-%u.dump", options->directory, pid);
        is_read = read_file(generated, path, generated_read_dump, options, store);
    }
    generated_sort(generated);
    return is_read;
}

void generated_close(struct generated *generated) {
    free(generated->codes);
    *generated = (struct generated){.codes = NULL};
}

const struct generated_code *generated_find(const struct generated *generated, uint64_t address) {
    size_t low = 0, high = generated->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (generated->codes[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct generated_code *best = NULL;
    for (size_t i = low; i > 0 && low - i < LOOK_BACK_MAX; i--) {
        const struct generated_code *code = &generated->codes[i - 1];
        if (address < code->end && (!best || code->order > best->order)) best = code;
    }
    return best;
}
