// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/existing_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/heap_copy.h"
#include "tool/attach/load.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"
#include "tool/heap/other_heaps.h"
#include "tool/heap/types.h"
#include "tool/model/index_table.h"
#include "tool/proc/maps.h"

#define GROUP_NAME "allocated before attach"
enum { KIND_UNKNOWN = 0, PLACES_MAX = CAIRN_CENSUS_KINDS_MAX / 2 };
static const char unknown_name[] = "unknown type";
// Bounds of 15 to 25 ms, with other work on the machine.
#define BYTES_MAX (16u << 20)
#define BLOCKS_MAX (64u << 10)

struct existing_blocks {
    const struct remote *remote;
    struct heap_copy copy;
    struct core_image files;  // what is mapped of files, not copied: it is read where it lies
    struct core_types *types;
    ARRAY(struct cairn_census_block) items;
    uint64_t room_bytes;            // of all of them
    uint64_t broken_count;          // places where the allocator's data made no sense
    ARRAY(const char *) kinds;      // names
    struct index_table kind_table;  // by the address of the name
    bool is_wanted;                 // they can be counted, and are not yet
    bool is_another;                // its allocator is another than glibc's
    const struct threads *threads;  // that are stopped, if any
    unsigned tries;                 // of finding them at a stop
    uint64_t least_broken;          // the least broken_count of all looks
    unsigned least_times;           // stops that had just that
};

// An image of the process' files whose offsets are addresses: its source is the process.
static bool open_files(struct existing_blocks *blocks, struct error *error) {
    struct core_image *files = &blocks->files;
    struct extents extents = {0};
    bool is_ok = extents_of_process(blocks->remote->pid, &extents, error) &&
                 core_read_process_files(files, blocks->remote->pid, error);
    for (size_t i = 0; is_ok && i < extents.items.count; i++) {
        const struct extent *extent = &extents.items.items[i];
        if (extent->kind != EXTENT_CONSTANT && extent->kind != EXTENT_DATA) continue;
        struct memory_segment *segment = array_push(&files->segments);
        if (segment)
            *segment = (struct memory_segment){.start = extent->start,
                                               .end = extent->end,
                                               .offset = extent->start,
                                               .bytes = extent->end - extent->start,
                                               .is_writable = extent->kind == EXTENT_DATA};
        is_ok = segment || error_set(error, "out of memory");
    }
    array_free(&extents.items);
    files->source = (struct source){.descriptor = blocks->remote->memory, .size = INT64_MAX};
    return is_ok;
}

// `libc_start`, `libc_end`: the module that the process' malloc is in. What is mapped of files is
// noted as it is now.
static bool open_blocks(struct existing_blocks *blocks, const struct remote *remote,
                        uint64_t libc_start, uint64_t libc_end,
                        const struct symbol_options *symbols, struct error *error) {
    blocks->remote = remote;
    blocks->copy.libc_start = libc_start;
    blocks->copy.libc_end = libc_end;
    if (!open_files(blocks, error)) return false;
    blocks->types = core_types_open(&blocks->files, symbols);
    const char **unknown = array_push(&blocks->kinds);
    if (unknown) *unknown = unknown_name;
    return (blocks->types && unknown) || error_set(error, "out of memory");
}

void existing_blocks_free(struct attach *attach) {
    struct existing_blocks *blocks = attach->existing;
    if (!blocks) return;
    core_types_close(blocks->types);
    array_free(&blocks->copy.image.threads);
    memset(&blocks->copy.image.files, 0, sizeof blocks->copy.image.files);  // those of `files`
    blocks->files.source.descriptor = -1;                                   // the remote's
    core_close(&blocks->files);
    array_free(&blocks->kinds);
    array_free(&blocks->items);
    index_table_free(&blocks->kind_table);
    heap_copy_free(&blocks->copy);
    free(blocks);
    attach->existing = NULL;
}

// Before blocks are found again.
static void forget_blocks(struct existing_blocks *blocks) {
    heap_copy_clear(&blocks->copy);
    blocks->items.count = 0;
    blocks->room_bytes = 0;
}

// Number of the type's kind; KIND_UNKNOWN if there are too many. Equal names are at one address.
static uint32_t kind_of_type(struct existing_blocks *blocks, const struct core_type *type) {
    uint64_t hash = hash_mix((uintptr_t)type->name, index_table_seed());
    struct index_probe probe = index_probe_start(&blocks->kind_table, hash);
    for (uint32_t kind; index_probe_next(&blocks->kind_table, &probe, &kind);)
        if (blocks->kinds.items[kind] == type->name) return kind;
    size_t most = type->kind == CORE_TYPE_CLASS ? CAIRN_CENSUS_KINDS_MAX : PLACES_MAX;
    const char **slot = blocks->kinds.count < most ? array_push(&blocks->kinds) : NULL;
    if (!slot) return KIND_UNKNOWN;
    *slot = type->name;
    uint32_t kind = (uint32_t)blocks->kinds.count - 1;
    if (index_table_insert(&blocks->kind_table, hash, kind)) return kind;
    blocks->kinds.count--;
    return KIND_UNKNOWN;
}

static bool add_block(struct existing_blocks *blocks, const struct glibc_chunk *chunk) {
    uint64_t word = 0;
    core_read(&blocks->copy.image, chunk->address, &word, sizeof word);
    struct cairn_census_block *slot = array_push(&blocks->items);
    if (!slot) return false;
    const struct core_type *type = core_type_of_word(blocks->types, word);
    uint64_t kind = type ? kind_of_type(blocks, type) : KIND_UNKNOWN;
    *slot = (struct cairn_census_block){chunk->address,
                                        (uint64_t)chunk->size << CAIRN_CENSUS_KIND_BITS | kind};
    blocks->room_bytes += chunk->size;
    return true;
}

// Says which modules there are, and where the caches of stopped threads are.
static bool tell_places(struct existing_blocks *blocks) {
    struct core_image *image = &blocks->copy.image;
    memcpy(&image->files, &blocks->files.files, sizeof image->files);
    image->threads.count = 0;
    for (size_t i = 0; i < blocks->threads->stopped.count; i++) {
        struct core_thread *thread = array_push(&image->threads);
        if (!thread) return false;
        const struct stopped_thread *stopped = &blocks->threads->stopped.items[i];
        *thread = (struct core_thread){.pointer = registers_thread_pointer(&stopped->registers)};
    }
    return true;
}

// Reads whatever heap there is: of another allocator than glibc's beside that, too. A cache that is
// not found holds blocks that would count as the program's.
static bool read_heap(struct existing_blocks *blocks, struct glibc_heap *heap,
                      struct error *error) {
    const struct memory_view view = core_view(&blocks->copy.image);
    bool is_glibc = glibc_heap_read(&view, heap, error);
    if (!blocks->is_another) return is_glibc;
    if (!tell_places(blocks) || !core_add_other_heaps(&blocks->copy.image, heap))
        error_set(error, "out of memory");
    else if (!heap->other.name)
        error_set(error, "its allocator is not glibc's, nor " OTHER_HEAPS_READ);
    else if (heap->other.unknown_caches && blocks->threads->stopped.count)
        error_set(error, "the caches of its threads were not found");
    else
        return true;
    glibc_heap_free(heap);
    return false;
}

// The first time may be while the process runs, to have everything at hand that the second one,
// while it is stopped, needs.
static bool find_blocks(struct existing_blocks *blocks, struct error *error) {
    struct glibc_heap heap;
    if (!heap_copy_take(&blocks->copy, blocks->remote, error) || !read_heap(blocks, &heap, error))
        return false;
    bool is_ok = true;
    blocks->broken_count = heap.broken_count;
    for (size_t i = 0; i < heap.chunks.count && is_ok; i++)
        if (!chunk_is_free(&heap.chunks.items[i])) is_ok = add_block(blocks, &heap.chunks.items[i]);
    glibc_heap_free(&heap);
    return is_ok || error_set(error, "out of memory");
}

// The names of the group and of all kinds, as `count` wants them (format/attachment.h); for free().
// NULL without memory.
static char *texts_of(const struct existing_blocks *blocks, size_t *bytes) {
    *bytes = sizeof GROUP_NAME;
    for (size_t i = 0; i < blocks->kinds.count; i++) *bytes += strlen(blocks->kinds.items[i]) + 1;
    char *texts = malloc(*bytes), *at = texts;
    if (!texts) return NULL;
    at = mempcpy(at, GROUP_NAME, sizeof GROUP_NAME);
    for (size_t i = 0; i < blocks->kinds.count; i++)
        at = mempcpy(at, blocks->kinds.items[i], strlen(blocks->kinds.items[i]) + 1);
    return texts;
}

// --- counting them

// Stops until the allocator's data is taken as it is, and those that agree on how much of it makes
// no sense: that is so for good then. Less often it is a change that a stopped thread is in the
// midst of.
enum { TRIES = 30, AGREEING = 20 };

// How long the process would be stopped, as docs/howto/attach.md has it: a millisecond for each
// MiB, and for each few thousand blocks.
static bool tell_duration(uint64_t bytes, uint64_t blocks, struct error *error) {
    const uint64_t blocks_a_ms = 5000;
    return error_set(
        error, "it would be paused for some %" PRIu64 " ms to read %" PRIu64 " MiB (--scan-heap)",
        (bytes >> 20) + blocks / blocks_a_ms, bytes >> 20);
}

// Everything that can be done while the process runs.
static bool prepare(struct attach *attach, const struct attach_request *request,
                    struct error *error) {
    struct existing_blocks *existing = attach->existing;
    bool is_bounded = request->existing != EXISTING_ALWAYS;
    uint64_t bytes, start, end;
    if (!session_libc_range(attach, &start, &end))
        return error_set(error, "its allocator is not glibc's");
    // where the executable has an allocator, what libc's holds beside it would be a part only
    existing->is_another = existing->copy.is_all =
        !attach->program &&
        (attach->entries.allocator || attach->allocator < start || attach->allocator >= end);
    attach->existing->threads = &attach->threads;
    if (!open_blocks(attach->existing, &attach->remote, start, end, request->symbols, error) ||
        !heap_copy_measure(&attach->existing->copy, &attach->remote, &bytes, error))
        return false;
    if (is_bounded && bytes > BYTES_MAX) return tell_duration(bytes, 0, error);
    // while the process runs its data may make no sense
    attach->existing->least_broken = UINT64_MAX;
    if (find_blocks(attach->existing, error))
        attach->existing->least_broken = attach->existing->broken_count;
    else if (attach->existing->is_another && !process_has_other_heap(attach->pid))
        return false;
    size_t blocks = attach->existing->items.count;
    forget_blocks(attach->existing);
    return !is_bounded || blocks <= BLOCKS_MAX || tell_duration(bytes, blocks, error);
}

static void leave_out(struct attach *attach, const struct error *error) {
    if (attach->existing) attach->existing->is_wanted = false;
    snprintf(attach->uncounted_why, sizeof attach->uncounted_why, "%s", error->text);
}

void existing_blocks_prepare(struct attach *attach, const struct attach_request *request) {
    struct error error;
    attach->uncounted_why[0] = 0;
    attach->counted_blocks = 0;
    existing_blocks_free(attach);
    if (request->existing == EXISTING_NEVER) return;
    attach->existing = calloc(1, sizeof *attach->existing);
    if (attach->existing) attach->existing->is_wanted = true;
    bool is_ok =
        attach->existing ? prepare(attach, request, &error) : error_set(&error, "out of memory");
    if (!is_ok) leave_out(attach, &error);
}

// A struct link_map of glibc's and the blocks that hang on it, of a module that the dynamic linker
// has loaded: its name, its directory, its versions, its list of modules.
struct linker_blocks {
    uint64_t link_map, words[512];
    size_t count;
};

static bool is_link_map(const struct attach *attach, uint64_t address) {
    for (size_t i = 0; i < attach->modules.items.count; i++)
        if (attach->modules.items.items[i].link_map == address) return true;
    return false;
}

static bool is_of_library(const struct attach *attach, const struct linker_blocks *own,
                          uint64_t address) {
    if (address == own->link_map) return true;
    for (size_t i = 0; i < own->count; i++)
        if (own->words[i] == address) return !is_link_map(attach, address);
    return false;
}

static void read_link_map(const struct attach *attach, const struct cairn_census_block *block,
                          struct linker_blocks *own) {
    size_t bytes = (size_t)(block->room_and_kind >> CAIRN_CENSUS_KIND_BITS);
    if (bytes > sizeof own->words) bytes = sizeof own->words;
    if (remote_read(&attach->remote, block->address, own->words, bytes))
        own->count = bytes / sizeof *own->words;
}

// Blocks that there are because of cairn are not the program's.
static void leave_out_library(struct attach *attach) {
    struct existing_blocks *existing = attach->existing;
    struct linker_blocks own = {.link_map = attach->modules.items.items[attach->library].link_map};
    size_t kept = 0;
    for (size_t i = 0; i < existing->items.count; i++)
        if (existing->items.items[i].address == own.link_map)
            read_link_map(attach, &existing->items.items[i], &own);
    for (size_t i = 0; i < existing->items.count; i++) {
        const struct cairn_census_block *block = &existing->items.items[i];
        if (is_of_library(attach, &own, block->address))
            existing->room_bytes -= block->room_and_kind >> CAIRN_CENSUS_KIND_BITS;
        else
            existing->items.items[kept++] = *block;
    }
    existing->items.count = kept;
}

static bool is_sound(struct existing_blocks *existing) {
    if (existing->broken_count < existing->least_broken) existing->least_times = 0;
    if (existing->broken_count <= existing->least_broken) {
        existing->least_broken = existing->broken_count;
        existing->least_times++;
    }
    return !existing->broken_count || existing->least_times >= AGREEING;
}

bool existing_blocks_find(struct attach *attach) {
    struct existing_blocks *existing = attach->existing;
    struct error error;
    if (!existing || !existing->is_wanted) return true;
    existing->copy.own_start = attach->known.space_start;
    existing->copy.own_end = attach->known.space_end;
    bool is_taken = find_blocks(existing, &error);
    if ((is_taken && is_sound(existing)) || ++existing->tries >= TRIES) {

        if (is_taken)
            leave_out_library(attach);
        else
            leave_out(attach, &error);
        return true;
    }
    forget_blocks(existing);
    return false;
}

// What the library is given; it lies in the process for the call only.
struct handover {
    struct cairn_census head;
    char *texts;
    size_t text_bytes, block_bytes;
    uint64_t at, bytes;  // in the process
};

static bool write_blocks(struct attach *attach, struct handover *room) {
    const struct existing_blocks *existing = attach->existing;
    uint64_t blocks_at = room->at + sizeof room->head;
    room->head = (struct cairn_census){.blocks = blocks_at,
                                       .block_count = existing->items.count,
                                       .room_bytes = existing->room_bytes,
                                       .names = blocks_at + room->block_bytes,
                                       .kind_count = existing->kinds.count};
    return remote_write(&attach->remote, room->at, &room->head, sizeof room->head) &&
           remote_write(&attach->remote, blocks_at, existing->items.items, room->block_bytes) &&
           remote_write(&attach->remote, room->head.names, room->texts, room->text_bytes);
}

static bool give(struct attach *attach, struct caller *caller, struct handover *room,
                 struct error *error) {
    const struct existing_blocks *existing = attach->existing;
    room->texts = texts_of(existing, &room->text_bytes);
    room->block_bytes = existing->items.count * sizeof *existing->items.items;
    room->bytes = sizeof room->head + room->block_bytes + room->text_bytes;
    if (!room->texts) return error_set(error, "out of memory");
    if (!caller_map(caller, room->bytes, &room->at, error)) return false;
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {room->at};
    bool is_ok = write_blocks(attach, room)
                     ? load_call(caller, attach->known.count, arguments, error)
                     : error_set(error, "the list cannot be written into it");
    caller_unmap(caller, room->at, room->bytes);
    return is_ok;
}

// `caller` has no when_slow: no thread goes on before all are entered.
static bool enter(struct attach *attach, struct error *error) {
    struct caller caller = {0};
    struct handover room = {0};
    const struct stopped_thread *thread = threads_without_signal(&attach->threads);
    if (!thread) return error_set(error, "all its threads are handling signals");
    if (!caller_begin(&caller, &attach->remote, thread, &attach->site, error)) return false;
    bool is_given = give(attach, &caller, &room, error);
    free(room.texts);
    return caller_end(&caller, is_given ? error : NULL) && is_given;
}

void existing_blocks_give(struct attach *attach) {
    struct error error;
    if (!attach->existing || !attach->existing->is_wanted) return;
    if (!enter(attach, &error)) return leave_out(attach, &error);
    attach->existing->is_wanted = false;
    attach->counted_blocks = attach->existing->items.count;
}
