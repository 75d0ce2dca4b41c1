// SPDX-License-Identifier: Apache-2.0
// Heap profiles as text: jemalloc's dumps, and what gperftools, tcmalloc and Go's runtime
// (debug=1) write. All have blocks and bytes in use, in brackets those of all time, and a stack of
// return addresses; at the end the lines of /proc/PID/maps.
//
//     heap_v2/524288                         jemalloc: mean distance of samples in bytes
//       t*: 5: 1000 [9: 2000]                all, then each thread
//     @ 0x55d0c1234 0x7f0012345
//       t*: 5: 1000 [9: 2000]
//
//     heap profile: 5: 1000 [9: 2000] @ heapprofile
//      5: 1000 [9: 2000] @ 0x55d0c1234 0x7f0012345
//     #	0x55d0c1233	main.fill+0x93	/home/me/heap.go:13      Go's names
//
//     --- symbol                             jeprof --raw, pprof --raw: names in front, of each
//     binary=/usr/bin/prog                   return address or of the byte before it; outermost
//     0x55d0c1234 main--fill                 function first where some are inlined
//     ---
//     --- heap
//     heap profile: ...
//
// What is sampled is scaled up as jeprof and pprof do: a block of mean size s was seen with
// probability 1 - exp(-s / rate). jemalloc writes values for which this is right.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/import.h"

enum { DEPTH_MAX = 4096 };
static const char raw_start[] = "--- symbol";

struct counts {
    int64_t blocks, bytes, all_blocks, all_bytes;
};

struct named_address {
    uint64_t address;
    uint32_t names;  // text
    bool is_done;    // its place has its frames
};

struct reader {
    FILE *in;
    struct imported *imported;
    struct error *error;
    const char *format;
    char *line;
    size_t line_room, line_number;
    uint64_t rate;  // <= 1: every block is there
    struct counts head, sum;
    uint32_t stack[DEPTH_MAX];
    size_t depth;
    bool has_stack, has_maps, has_names, has_all;
    bool is_ended;                      // the line at hand has its end
    ARRAY(struct named_address) named;  // of a file that begins with names, by address
    uint64_t named_address;             // of the last line of names
    uint32_t named_place;               // + 1
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "%s: line %zu: %s", reader->format, reader->line_number, what);
}

// "5: 1000 [9: 2000]", and what follows.
static bool read_counts(struct reader *reader, const char *text, struct counts *counts,
                        const char **rest) {
    int used = 0;
    if (sscanf(text, " %" SCNd64 ": %" SCNd64 " [ %" SCNd64 ": %" SCNd64 "]%n", &counts->blocks,
               &counts->bytes, &counts->all_blocks, &counts->all_bytes, &used) < 4 ||
        !used)
        return bad(reader, "\"blocks: bytes [blocks: bytes]\" is missing");
    const int64_t most = (int64_t)1 << 60;
    if (counts->blocks < 0 || counts->bytes < 0 || counts->all_blocks < 0 ||
        counts->all_bytes < 0 || counts->blocks > most || counts->bytes > most ||
        counts->all_blocks > most || counts->all_bytes > most)
        return bad(reader, "a number that no heap has");
    *rest = text + used;
    return true;
}

static int compare_named(const void *a, const void *b) {
    const struct named_address *first = a, *second = b;
    return (first->address > second->address) - (first->address < second->address);
}

static char *last_separator(char *names) {
    char *last = NULL;
    for (char *at = names; (at = strstr(at, "--")); at += 2) last = at;
    return last;
}

// Adds the functions of "outer--inner" to a place, the innermost first.
static bool add_names(struct reader *reader, uint32_t place, const char *names) {
    char *copy = strdup(names), *cut = copy;
    bool is_ok = copy != NULL;
    while (is_ok && cut) {
        cut = last_separator(copy);
        const char *name = cut ? cut + 2 : copy;
        is_ok = import_frame_of(reader->imported, place, *name ? name : "?", NULL, 0);
        if (cut) *cut = 0;
    }
    free(copy);
    return is_ok || import_no_memory(reader->error);
}

// The place of a return address: with the names that the file has of it, or of the byte before it.
static uint32_t place_of(struct reader *reader, uint64_t address) {
    const uint64_t wanted[] = {address - 1, address};
    for (size_t i = 0; reader->named.count && i < sizeof wanted / sizeof *wanted; i++) {
        const struct named_address key = {.address = wanted[i]};
        struct named_address *named =
            bsearch(&key, reader->named.items, reader->named.count, sizeof key, compare_named);
        if (!named) continue;
        uint32_t place = import_address(reader->imported, named->address);
        if (place == IMPORT_NONE || named->is_done) return place;
        named->is_done = true;
        const char *names = reader->imported->strings.list.items[named->names];
        return add_names(reader, place, names) ? place : IMPORT_NONE;
    }
    return import_address(reader->imported, address - 1);
}

static bool read_addresses(struct reader *reader, const char *text) {
    reader->depth = 0;
    for (char *end;; text = end) {
        text += strspn(text, " ");
        if (!*text) break;
        uint64_t address = strtoull(text, &end, 16);
        if (end == text || (*end && *end != ' ')) return bad(reader, "an address that is none");
        if (!address) continue;  // what gperftools could not unwind
        if (reader->depth == DEPTH_MAX) return bad(reader, "a stack is too deep");
        uint32_t place = place_of(reader, address);
        if (place == IMPORT_NONE) return import_no_memory(reader->error);
        reader->stack[reader->depth++] = place;
    }
    reader->has_stack = true;
    return true;
}

static void scale(uint64_t rate, int64_t *blocks, int64_t *bytes) {
    if (rate <= 1 || !*blocks || !*bytes) return;
    double mean = (double)*bytes / (double)*blocks;
    double factor = 1 / (1 - exp(-mean / (double)rate));
    const double most = 1e18;
    *blocks = (int64_t)fmin((double)*blocks * factor + 0.5, most);
    *bytes = (int64_t)fmin((double)*bytes * factor + 0.5, most);
}

static bool add_counts(struct reader *reader, struct counts counts) {
    if (!reader->has_stack) return bad(reader, "numbers without a stack");
    reader->has_stack = false;
    reader->sum.bytes += counts.bytes < INT64_MAX - reader->sum.bytes ? counts.bytes : 0;
    reader->has_all |= counts.all_blocks != 0;
    scale(reader->rate, &counts.blocks, &counts.bytes);
    scale(reader->rate, &counts.all_blocks, &counts.all_bytes);
    if (counts.all_blocks < counts.blocks) counts.all_blocks = counts.blocks;
    if (counts.all_bytes < counts.bytes) counts.all_bytes = counts.bytes;
    const struct import_values values = {.calls = counts.all_blocks,
                                         .allocated_bytes = counts.all_bytes,
                                         .exit_blocks = counts.blocks,
                                         .exit_bytes = counts.bytes,
                                         .peak_blocks = counts.blocks,
                                         .peak_bytes = counts.bytes};
    if (!counts.all_blocks) return true;
    return import_stack(reader->imported, reader->stack, reader->depth, &values) ||
           import_no_memory(reader->error);
}

// Go: "#\t0x46d2d3\tmain.fill+0x93\t/home/me/heap.go:13", several of one address if inlined.
static bool read_name(struct reader *reader, char *line) {
    char *end;
    uint64_t address = strtoull(line + 2, &end, 16);
    if (end == line + 2 || *end != '\t') return true;
    char *name = end + 1 + strspn(end + 1, "\t "), *tab = strchr(name, '\t');
    if (!tab) return true;
    char *file = tab + strspn(tab, "\t ");
    *tab = 0;
    char *plus = strrchr(name, '+'), *colon = strrchr(file, ':');
    if (plus) *plus = 0;
    if (colon) *colon = 0;
    bool is_next = reader->named_place && address == reader->named_address;
    if (!is_next) {
        uint32_t place = import_address(reader->imported, address);
        if (place == IMPORT_NONE) return import_no_memory(reader->error);
        reader->named_place = reader->imported->places.items[place].frame_count ? 0 : place + 1;
        reader->named_address = address;
    }
    reader->has_names = true;
    if (!reader->named_place) return true;
    return import_frame_of(reader->imported, reader->named_place - 1, name, file,
                           colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0) ||
           import_no_memory(reader->error);
}

static bool read_map(struct reader *reader) {
    struct imported *imported = reader->imported;
    const char *path = strchr(reader->line, '/');
    if (path && !*imported->command)  // the program's own mapping is the first
        snprintf(imported->command, sizeof imported->command, "%s", path);
    return import_map_line(imported, reader->line) || import_no_memory(reader->error);
}

static bool read_line(struct reader *reader) {
    const char *line = reader->line + strspn(reader->line, " \t"), *rest = "";
    struct counts counts;
    if (!*line) return true;
    if (reader->has_maps) return read_map(reader);
    if (!strncmp(line, "MAPPED_LIBRARIES:", 17) || !strncmp(line, "--- Memory map: ---", 19)) {
        reader->has_maps = true;
        return !reader->has_stack || bad(reader, "a stack without numbers");
    }
    if (*line == '#') return line[1] != '\t' || read_name(reader, reader->line);
    reader->named_place = 0;
    if (*line == '@') {
        if (reader->has_stack) return bad(reader, "a stack without numbers");
        return read_addresses(reader, line + 1);
    }
    if (*line == 't' && line[1] != '*') return true;  // a thread's share
    bool is_head = *line == 't' && !reader->sum.bytes && !reader->has_stack;
    if (!read_counts(reader, *line == 't' ? line + 3 : line, &counts, &rest)) return false;
    if (is_head) {
        reader->head = counts;
        return true;
    }
    rest += strspn(rest, " ");
    if (*rest == '@' && !read_addresses(reader, rest + 1)) return false;
    return add_counts(reader, counts);
}

// "heap profile: 5: 1000 [9: 2000] @ heap_v2/524288"; pprof says what each kind means.
static bool read_kind(struct reader *reader, const char *kind) {
    char name[32];
    uint64_t rate = 1;
    int parts = sscanf(kind, " @ %31[a-z0-9_]/%" SCNu64, name, &rate);
    if (parts >= 1 && !strcmp(name, "heapprofile"))
        reader->rate = 1;
    else if (parts == 2 && (!strcmp(name, "heap_v2") || !strcmp(name, "heapz_v2")))
        reader->rate = rate;
    else if (parts == 2 && !strcmp(name, "heap"))
        reader->rate = rate / 2;  // Go and early tcmalloc write twice the rate
    else
        return error_set(reader->error,
                         "%s: a profile of the kind \"%s\", not heapprofile, heap or heap_v2",
                         reader->format, parts >= 1 ? name : "");
    return true;
}

static bool read_head(struct reader *reader) {
    static const char jemalloc[] = "heap_v2/", others[] = "heap profile:";
    const char *rest = NULL, *line = reader->line;
    if (!strncmp(line, jemalloc, sizeof jemalloc - 1)) {
        reader->rate = strtoull(line + sizeof jemalloc - 1, NULL, 10);
        return reader->rate || bad(reader, "a distance of samples of 0");
    }
    if (strncmp(line, others, sizeof others - 1) != 0)
        return bad(reader, "neither \"heap_v2/\" nor \"heap profile:\"");
    return read_counts(reader, line + sizeof others - 1, &reader->head, &rest) &&
           read_kind(reader, rest);
}

static bool next_line(struct reader *reader) {
    if (getline(&reader->line, &reader->line_room, reader->in) <= 0) return false;
    reader->line_number++;
    reader->is_ended = strchr(reader->line, '\n');
    reader->line[strcspn(reader->line, "\r\n")] = 0;
    return true;
}

// "0x401142 hold"
static bool add_named(struct reader *reader) {
    char *end;
    uint64_t address = strtoull(reader->line, &end, 16);
    if (end == reader->line || *end != ' ') return true;
    struct named_address *slot = array_push(&reader->named);
    if (!slot) return import_no_memory(reader->error);
    *slot = (struct named_address){
        .address = address,
        .names = strings_number(&reader->imported->strings, end + strspn(end, " "))};
    return true;
}

// Reads the names in front of a profile, and leaves the profile's first line.
static bool read_symbols(struct reader *reader) {
    static const char binary[] = "binary=";
    bool is_over = false;
    while (!is_over && next_line(reader)) {
        if (!strncmp(reader->line, binary, sizeof binary - 1))
            snprintf(reader->imported->command, sizeof reader->imported->command, "%s",
                     reader->line + sizeof binary - 1);
        is_over = !strcmp(reader->line, "---");
        if (!add_named(reader)) return false;
    }
    bool is_heap = is_over && next_line(reader) && !strncmp(reader->line, "--- heap", 8);
    if (!is_heap) return bad(reader, "behind the names there is no profile of a heap");
    if (reader->named.count)
        qsort(reader->named.items, reader->named.count, sizeof *reader->named.items, compare_named);
    reader->has_names = true;
    return next_line(reader) || bad(reader, "it is cut off behind the names");
}

static bool read_all(struct reader *reader) {
    if (!next_line(reader)) return bad(reader, "it is empty");
    if (!strncmp(reader->line, raw_start, sizeof raw_start - 1) && !read_symbols(reader))
        return false;
    if (!read_head(reader)) return false;
    while (next_line(reader))
        if (!read_line(reader)) return false;
    if (reader->has_stack) return bad(reader, "it is cut off: a stack without numbers");
    if (!reader->has_maps && !reader->has_names)
        return bad(reader, "it is cut off: the list of mapped files is missing");
    reader->imported->is_cut |= !reader->has_maps && !reader->is_ended;
    return true;
}

static void say_what_lacks(const struct reader *reader) {
    struct imported *imported = reader->imported;
    char sampled[128] = "", left_out[128] = "";
    int64_t missing = reader->head.bytes - reader->sum.bytes;
    if (reader->rate > 1)
        snprintf(sampled, sizeof sampled, " (sampled: about one block every %" PRIu64 " bytes)",
                 reader->rate);
    if (missing > 0)
        snprintf(left_out, sizeof left_out, ", the stacks of %" PRId64 " bytes in use", missing);
    imported->is_partial = reader->rate > 1 || missing > 0;
    imported->has_no_calls = !reader->has_all;
    snprintf(imported->lacks, sizeof imported->lacks,
             "the peak (what is in use counts as it), %sthreads, the heap over time%s%s",
             reader->has_all ? "" : "what was freed, ", left_out, sampled);
}

static bool read_format(FILE *in, struct imported *imported, struct error *error,
                        const char *format) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) return import_no_memory(error);
    reader->in = in;
    reader->imported = imported;
    reader->error = error;
    reader->format = format;
    bool is_ok = read_all(reader);
    say_what_lacks(reader);
    free(reader->line);
    array_free(&reader->named);
    free(reader);
    return is_ok;
}

static bool begins(const char *head, size_t size, const char *text) {
    return size >= strlen(text) && !memcmp(head, text, strlen(text));
}

bool import_is_jemalloc(const char *head, size_t size) {
    return begins(head, size, "heap_v2/");
}

bool import_jemalloc(FILE *in, struct imported *imported, struct error *error) {
    return read_format(in, imported, error, "jemalloc");
}

bool import_is_gperftools(const char *head, size_t size) {
    return begins(head, size, "heap profile:") || begins(head, size, raw_start);
}

bool import_gperftools(FILE *in, struct imported *imported, struct error *error) {
    return read_format(in, imported, error, "gperftools");
}
