// SPDX-License-Identifier: Apache-2.0
// bytehound's data files (common/src/event.rs of its version 0.11 and before): events one after the
// other, each a number that says which and its members, little-endian. Events have no length: one
// of a kind that is not known ends the reading. Stacks come as addresses, innermost first, whole or
// as a difference to the last one of the thread; the map of the process as the file
// /proc/self/maps, or region by region. What was squeezed out of a file is in sums.
#include "tool/import/bytehound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

enum { DEPTH_MAX = 1 << 16, TEXT_MAX = 1 << 20, EXECUTABLE = 4 };
static const uint64_t ns_per_us = 1000;

enum event {
    HEADER,
    ALLOC,
    REALLOC,
    FREE,
    MAPPED_FILE,
    BACKTRACE,
    MEMORY_DUMP,
    MARKER,
    MEMORY_MAP,
    MEMORY_UNMAP,
    MALLOPT,
    ENVIRON,
    WALL_CLOCK,
    PARTIAL,
    STRING,
    DECODED_FRAME,
    DECODED_BACKTRACE,
    GROUP_STATISTICS,
    PARTIAL_32,
    BACKTRACE_32,
    ALLOC_EX,
    REALLOC_EX,
    FREE_EX,
    FILE_64,
    ADD_REGION,
    REMOVE_REGION,
    UPDATE_REGION,
    MEMORY_MAP_EX
};

struct thread {
    uint32_t number;
    ARRAY(uint64_t) stack;  // its last one, innermost first
};

struct backtrace {
    uint64_t id;
    uint32_t node;
};

struct group {  // what was squeezed out
    uint32_t node;
    uint64_t blocks, bytes;
};

struct reader {
    struct bytehound_input input;
    struct imported *imported;
    struct error *error;
    struct replay replay;
    ARRAY(struct thread) threads;
    ARRAY(struct backtrace) backtraces;
    struct index_table backtrace_table;
    ARRAY(struct group) groups;
    ARRAY(uint64_t) addresses;
    uint64_t start_us, event_count;
    char *text;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "bytehound: event %" PRIu64 ": %s", reader->event_count, what);
}

static bool no_memory(struct reader *reader) {
    return import_no_memory(reader->error);
}

#define TAKE(reader, value) bytehound_take(&(reader)->input, &(value), sizeof(value))

static bool skip(struct reader *reader, uint64_t size) {
    return bytehound_take(&reader->input, NULL, size);
}

static bool skip_varints(struct reader *reader, unsigned count) {
    uint64_t ignored;
    while (count--)
        if (!bytehound_take_varint(&reader->input, &ignored)) return false;
    return true;
}

// A text of that length, cut to what a text may have.
static bool take_text(struct reader *reader, uint64_t length) {
    uint64_t kept = length < TEXT_MAX ? length : TEXT_MAX - 1;
    if (!bytehound_take(&reader->input, reader->text, kept)) return false;
    reader->text[kept] = 0;
    return skip(reader, length - kept);
}

static bool take_short_text(struct reader *reader) {
    uint32_t length;
    return TAKE(reader, length) && take_text(reader, length);
}

static bool read_header(struct reader *reader) {
    uint32_t kind, size;
    uint64_t ids[2], times[4], flags;
    uint8_t pointer_bytes;
    if (!TAKE(reader, kind) || kind != HEADER || !TAKE(reader, ids) || !TAKE(reader, times) ||
        !TAKE(reader, reader->imported->pid) || !TAKE(reader, size) || !take_text(reader, size))
        return false;
    for (uint32_t i = 0; i + 1 < size && i + 1 < TEXT_MAX; i++)  // arguments end in zeros
        if (!reader->text[i]) reader->text[i] = ' ';
    snprintf(reader->imported->command, sizeof reader->imported->command, "%s", reader->text);
    for (int i = 0; i < 2; i++)  // the executable, the architecture
        if (!take_short_text(reader)) return false;
    if (!TAKE(reader, flags) || !TAKE(reader, pointer_bytes)) return false;
    reader->start_us = times[0];
    const uint64_t second = 1000000000;
    reader->imported->start_unix_ns = times[2] < UINT64_MAX / second ? times[2] * second : 0;
    return pointer_bytes == sizeof(uint64_t) || pointer_bytes == sizeof(uint32_t) ||
           bad(reader, "pointers of a size that is none");
}

// ---- the map and the stacks ---------------------------------------------------------------------

static bool read_maps(struct reader *reader, uint64_t size) {
    if (!take_text(reader, size)) return false;
    for (char *line = reader->text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        if (!import_map_line(reader->imported, line)) return no_memory(reader);
    }
    return true;
}

static bool read_file(struct reader *reader, bool is_long) {
    uint64_t at_us, size = 0;
    uint32_t short_size;
    if (!TAKE(reader, at_us) || !take_short_text(reader)) return false;
    bool is_maps = !strcmp(reader->text, "/proc/self/maps");
    if (is_long ? !TAKE(reader, size) : !TAKE(reader, short_size)) return false;
    if (!is_long) size = short_size;
    return is_maps ? read_maps(reader, size) : skip(reader, size);
}

static bool read_region(struct reader *reader) {
    struct import_mapping mapping = {0};
    uint64_t at_us, map, length, inode, name_bytes;
    uint32_t device[2], flags;
    struct bytehound_input *input = &reader->input;
    if (!TAKE(reader, at_us) || !bytehound_take_varint(input, &map) ||
        !TAKE(reader, mapping.start) || !bytehound_take_varint(input, &length) ||
        !bytehound_take_varint(input, &mapping.offset) || !bytehound_take_varint(input, &inode) ||
        !TAKE(reader, device) || !TAKE(reader, flags) ||
        !bytehound_take_varint(input, &name_bytes) || !take_text(reader, name_bytes))
        return false;
    if (!(flags & EXECUTABLE) || !*reader->text) return true;
    mapping.end = mapping.start + length;
    mapping.is_segment = true;
    mapping.module = import_module(reader->imported, reader->text);
    return (mapping.module != IMPORT_NONE && import_mapping(reader->imported, &mapping)) ||
           no_memory(reader);
}

static bool is_own(const struct imported *imported, uint64_t address) {
    for (size_t i = imported->mappings.count; i-- > 0;) {
        const struct import_mapping *mapping = &imported->mappings.items[i];
        if (address < mapping->start || address >= mapping->end) continue;
        const char *path = imported->strings.list.items[imported->modules.items[mapping->module]];
        const char *name = text_base_name(path);
        return !strncmp(name, "libbytehound", 12) || !strncmp(name, "libmemory_profiler", 18);
    }
    return false;
}

static bool add_backtrace(struct reader *reader, uint64_t id, const uint64_t *addresses,
                          size_t count) {
    size_t first = 0;
    uint32_t node = TREE_ROOT;
    while (first < count && is_own(reader->imported, addresses[first] - 1)) first++;
    for (size_t i = count; i-- > first;) {
        if (!addresses[i]) continue;
        uint32_t place = import_address(reader->imported, addresses[i] - 1);
        if (place == IMPORT_NONE || !tree_child(&reader->imported->tree, node, place, &node))
            return no_memory(reader);
    }
    struct backtrace *slot = array_push(&reader->backtraces);
    if (!slot || !index_table_insert(&reader->backtrace_table, hash_mix(index_table_seed(), id),
                                     (uint32_t)reader->backtraces.count - 1))
        return no_memory(reader);
    *slot = (struct backtrace){id, node};
    return true;
}

static bool find_backtrace(struct reader *reader, uint64_t id, uint32_t *node) {
    struct index_probe probe =
        index_probe_start(&reader->backtrace_table, hash_mix(index_table_seed(), id));
    for (uint32_t index; index_probe_next(&reader->backtrace_table, &probe, &index);)
        if (reader->backtraces.items && reader->backtraces.items[index].id == id) {
            *node = reader->backtraces.items[index].node;
            return true;
        }
    return bad(reader, "a stack that is not there");
}

static bool take_addresses(struct reader *reader, bool is_short) {
    uint32_t count, narrow;
    reader->addresses.count = 0;
    if (!TAKE(reader, count)) return false;
    if (count > DEPTH_MAX) return bad(reader, "a stack is too deep");
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *slot = array_push(&reader->addresses);
        if (!slot) return no_memory(reader);
        if (is_short ? !TAKE(reader, narrow) : !TAKE(reader, *slot)) return false;
        if (is_short) *slot = narrow;
    }
    return true;
}

static struct thread *thread_of(struct reader *reader, uint32_t number) {
    for (size_t i = 0; i < reader->threads.count; i++)
        if (reader->threads.items[i].number == number) return &reader->threads.items[i];
    struct thread *thread = array_push(&reader->threads);
    if (thread) *thread = (struct thread){.number = number};
    return thread;
}

// New frames, and behind them those of the thread's last stack without so many of its innermost.
static bool read_partial(struct reader *reader, bool is_short) {
    uint64_t id;
    uint32_t number, invalid;
    if (!TAKE(reader, id) || !TAKE(reader, number) || !TAKE(reader, invalid) ||
        !take_addresses(reader, is_short))
        return false;
    struct thread *thread = thread_of(reader, number);
    if (!thread) return no_memory(reader);
    for (size_t i = invalid; i < thread->stack.count; i++) {
        uint64_t *slot =
            reader->addresses.count < DEPTH_MAX ? array_push(&reader->addresses) : NULL;
        if (!slot) return no_memory(reader);
        *slot = thread->stack.items[i];
    }
    thread->stack.count = 0;
    for (size_t i = 0; i < reader->addresses.count; i++) {
        uint64_t *slot = array_push(&thread->stack);
        if (!slot) return no_memory(reader);
        *slot = reader->addresses.items[i];
    }
    return add_backtrace(reader, id, reader->addresses.items, reader->addresses.count);
}

static bool read_backtrace(struct reader *reader, bool is_short) {
    uint64_t id;
    return TAKE(reader, id) && take_addresses(reader, is_short) &&
           add_backtrace(reader, id, reader->addresses.items, reader->addresses.count);
}

// ---- allocations --------------------------------------------------------------------------------

static uint64_t ns_of(const struct reader *reader, uint64_t at_us) {
    uint64_t us = at_us > reader->start_us ? at_us - reader->start_us : 0;
    return us < UINT64_MAX / ns_per_us ? us * ns_per_us : 0;
}

static bool read_allocation(struct reader *reader, bool is_realloc, bool has_id) {
    enum { REST_BYTES = 4 + 4 + 4 + 8 };  // thread, flags, room beyond and before
    uint64_t ids[2], at_us, old = 0, body[3] = {0};
    uint32_t node = TREE_ROOT;
    if ((has_id && !TAKE(reader, ids)) || !TAKE(reader, at_us) ||
        (is_realloc && !TAKE(reader, old)) || !TAKE(reader, body) || !skip(reader, REST_BYTES) ||
        !find_backtrace(reader, body[2], &node))
        return false;
    const struct replay_event event = {
        .at_ns = ns_of(reader, at_us), .block = body[0], .bytes = body[1], .old_block = old};
    if (!event.block && !old) return true;
    return replay_add_at(&reader->replay, &event, node) || no_memory(reader);
}

static bool read_free(struct reader *reader, bool has_id) {
    uint64_t ids[2], at_us, block, backtrace;
    uint32_t thread;
    if ((has_id && !TAKE(reader, ids)) || !TAKE(reader, at_us) || !TAKE(reader, block) ||
        !TAKE(reader, backtrace) || !TAKE(reader, thread))
        return false;
    const struct replay_event event = {.at_ns = ns_of(reader, at_us), .old_block = block};
    return !block || replay_add_at(&reader->replay, &event, TREE_ROOT) || no_memory(reader);
}

static bool read_group(struct reader *reader) {
    uint64_t members[7] = {
        0};  // stack, first and last time, blocks and bytes, smallest and largest
    struct group group = {0};
    if (!TAKE(reader, members) || !find_backtrace(reader, members[0], &group.node)) return false;
    group.blocks = members[3];
    group.bytes = members[4];
    struct group *slot = array_push(&reader->groups);
    if (slot) *slot = group;
    return slot || no_memory(reader);
}

static bool skip_remove_region(struct reader *reader) {
    uint64_t at_us, address, count;
    struct bytehound_input *input = &reader->input;
    if (!TAKE(reader, at_us) || !skip_varints(reader, 1) || !TAKE(reader, address) ||
        !skip_varints(reader, 1) || !bytehound_take_varint(input, &count))
        return false;
    for (uint64_t i = 0; i < count; i++)  // address, length; time, stack, thread
        if (!skip(reader, 8) || !skip_varints(reader, 1) || !skip(reader, 8) ||
            !skip_varints(reader, 1) || !skip(reader, 4))
            return false;
    return true;
}

static bool skip_text(struct reader *reader) {
    uint32_t length;
    return TAKE(reader, length) && skip(reader, length);
}

// Events that say nothing of the heap.
static bool skip_event(struct reader *reader, uint32_t kind) {
    switch (kind) {
    case MEMORY_DUMP:
        return skip(reader, 16) && skip_text(reader);
    case MARKER:
        return skip(reader, 4);
    case MEMORY_MAP:
        return skip(reader, 5 * 8 + 4 * 4 + 8);
    case MEMORY_UNMAP:
        return skip(reader, 4 * 8 + 4);
    case MALLOPT:
        return skip(reader, 2 * 8 + 4 * 4);
    case ENVIRON:
        return skip_text(reader);
    case WALL_CLOCK:
        return skip(reader, 3 * 8);
    case STRING:
        return skip(reader, 4) && skip_text(reader);
    case REMOVE_REGION:
        return skip_remove_region(reader);
    case UPDATE_REGION:
        return skip(reader, 8) && skip_varints(reader, 1) && skip(reader, 8) &&
               skip_varints(reader, 7);
    case MEMORY_MAP_EX:
        return skip_varints(reader, 1) && skip(reader, 8) && skip_varints(reader, 2) &&
               skip(reader, 12) && skip_varints(reader, 1) && skip(reader, 8) &&
               skip_varints(reader, 1) && skip(reader, 4);
    case DECODED_FRAME:
    case DECODED_BACKTRACE:
        return bad(reader, "this file was postprocessed; the one before that can be read");
    default:
        return error_set(reader->error,
                         "bytehound: event %" PRIu64 " is of the kind %" PRIu32
                         ", which no version up to 0.11 has",
                         reader->event_count, kind);
    }
}

static bool read_event(struct reader *reader, uint32_t kind) {
    switch (kind) {
    case ALLOC:
    case ALLOC_EX:
        return read_allocation(reader, false, kind == ALLOC_EX);
    case REALLOC:
    case REALLOC_EX:
        return read_allocation(reader, true, kind == REALLOC_EX);
    case FREE:
    case FREE_EX:
        return read_free(reader, kind == FREE_EX);
    case MAPPED_FILE:
    case FILE_64:
        return read_file(reader, kind == FILE_64);
    case BACKTRACE:
    case BACKTRACE_32:
        return read_backtrace(reader, kind == BACKTRACE_32);
    case PARTIAL:
    case PARTIAL_32:
        return read_partial(reader, kind == PARTIAL_32);
    case GROUP_STATISTICS:
        return read_group(reader);
    case ADD_REGION:
        return read_region(reader);
    default:
        return skip_event(reader, kind);
    }
}

static bool add_groups(struct reader *reader) {
    const uint64_t most = (uint64_t)1 << 46;
    for (size_t i = 0; i < reader->groups.count; i++) {
        const struct group *group = &reader->groups.items[i];
        const struct import_values values = {
            .calls = (int64_t)(group->blocks < most ? group->blocks : most),
            .allocated_bytes = (int64_t)(group->bytes < most ? group->bytes : most)};
        if (!import_node(reader->imported, group->node, &values)) return no_memory(reader);
    }
    return true;
}

static bool read_all(struct reader *reader) {
    struct bytehound_input *input = &reader->input;
    if (!read_header(reader))
        return input->is_over ? bad(reader, "its header is cut off") : bad(reader, "no header");
    uint64_t whole = input->position;  // up to which events are whole
    for (uint32_t kind; TAKE(reader, kind); whole = input->position) {
        reader->event_count++;
        if (!read_event(reader, kind)) break;
    }
    if (!input->is_over) return false;
    bool is_cut = input->position != whole || input->is_cut;
    if (!replay_finish(&reader->replay, reader->error) || !add_groups(reader)) return false;
    struct imported *imported = reader->imported;
    size_t used = strlen(imported->lacks);
    if (is_cut)
        snprintf(imported->lacks + used, sizeof imported->lacks - used,
                 ", the end (the file is cut off)");
    imported->is_partial |= is_cut;
    return true;
}

// A chunk that begins with the event 0: plain, or packed with at least its zeros as they are.
bool import_is_bytehound(const char *head, size_t size) {
    enum { HEAD_BYTES = 16, PACKED = 1, PLAIN = 2, CHUNK_BYTES = 1 << 20 };
    uint32_t length, kind;
    if (size < HEAD_BYTES || (head[0] != PACKED && head[0] != PLAIN)) return false;
    memcpy(&length, head + 1, sizeof length);
    if (length < HEAD_BYTES || length > CHUNK_BYTES) return false;
    memcpy(&kind, head + 1 + sizeof length, sizeof kind);
    if (head[0] == PLAIN) return kind == HEADER;
    const unsigned char *at = (const unsigned char *)head + 6,
                        *end = (const unsigned char *)head + size;
    unsigned literals = at[-1] >> 4;
    if (literals == 15) {  // the length goes on
        while (at < end && *at == UINT8_MAX) at++;
        at++;
    }
    return literals && at < end && !*at;
}

bool import_bytehound(FILE *in, struct imported *imported, struct error *error) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) return import_no_memory(error);
    reader->imported = imported;
    reader->error = error;
    reader->replay = (struct replay){.imported = imported, .lacks = "threads"};
    reader->text = malloc(TEXT_MAX);
    bool is_ok = bytehound_input_start(&reader->input, in, error) && reader->text;
    is_ok = is_ok ? read_all(reader) : import_no_memory(error);
    bytehound_input_free(&reader->input);
    replay_free(&reader->replay);
    for (size_t i = 0; i < reader->threads.count; i++) array_free(&reader->threads.items[i].stack);
    array_free(&reader->threads);
    array_free(&reader->backtraces);
    index_table_free(&reader->backtrace_table);
    array_free(&reader->groups);
    array_free(&reader->addresses);
    free(reader->text);
    free(reader);
    return is_ok;
}
