// SPDX-License-Identifier: Apache-2.0
#include "tool/model/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/packed.h"
#include "tool/model/cells_older.h"

// The runtime's table of strings is smaller (runtime/sink/layout.c).
static const size_t strings_most_bytes = 64u << 20;
// What is used has pages; a header that claims more than that is damaged.
static const uint64_t pages_spare_bytes = 1u << 20;
enum { BLOCK_BYTES = 512 };

#define BIT(kind) (UINT64_C(1) << (kind))
static const uint64_t hot = BIT(CAIRN_SECTION_CELLS) | BIT(OLDER_SECTION_CELLS_USE) |
                            BIT(CAIRN_SECTION_SAMPLE_CELLS) | BIT(CAIRN_SECTION_HEAP_STACKS);
static const uint64_t cold = BIT(CAIRN_SECTION_CELLS_RARE) | BIT(CAIRN_SECTION_THREADS) |
                             BIT(CAIRN_SECTION_POINTS) | BIT(CAIRN_SECTION_SNAPSHOTS) |
                             BIT(CAIRN_SECTION_SAMPLING);
static const uint64_t stacks =
    BIT(CAIRN_SECTION_RECORDS) | BIT(CAIRN_SECTION_CODES) | BIT(CAIRN_SECTION_SCOPES);
static const uint64_t names = BIT(CAIRN_SECTION_MODULES) | BIT(CAIRN_SECTION_STRINGS);

bool follow_open(const char *path, struct follow *follow, struct error *error) {
    memset(follow, 0, sizeof *follow);
    follow->source.descriptor = -1;
    bool is_ok = source_open(path, &follow->source, error) &&
                 recording_load_header(&follow->recording, &follow->source, error);
    const struct cairn_header *header = &follow->recording.header;
    bool is_raw = !header->is_compact && !cairn_is_packed(header->version);
    if (is_ok && !is_raw) is_ok = error_set(error, "has ended");
    if (!is_ok) follow_close(follow);
    return is_ok;
}

void follow_close(struct follow *follow) {
    for (int kind = 0; kind < RECORDING_SECTION_KINDS; kind++) {
        void *bytes = (void *)(uintptr_t)follow->recording.sections[kind].bytes;
        if (kind == CAIRN_SECTION_STRINGS) {
            if (bytes) munmap(bytes, follow->room[kind]);
        } else {
            free(bytes);
        }
        follow->recording.sections[kind] = (struct recording_section){0};
    }
    source_close(&follow->source);
}

// Memory for the strings at a place that stays, as large as they may become.
static uint8_t *strings_room(struct follow *follow, uint64_t capacity) {
    size_t size = capacity < strings_most_bytes ? (size_t)capacity : strings_most_bytes;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    follow->room[CAIRN_SECTION_STRINGS] = size;
    return memory;
}

static uint8_t *room_for(struct follow *follow, const struct cairn_section *claim, size_t size) {
    uint8_t *bytes = (uint8_t *)(uintptr_t)follow->recording.sections[claim->kind].bytes;
    size_t room = follow->room[claim->kind];
    if (claim->kind == CAIRN_SECTION_STRINGS)
        return bytes ? bytes : strings_room(follow, claim->capacity_bytes);
    if (bytes && size <= room) return bytes;
    size_t wanted = size > 2 * room ? size : 2 * room;
    uint8_t *grown = realloc(bytes, wanted ? wanted : 1);
    if (!grown) return NULL;
    follow->recording.sections[claim->kind].bytes = grown;
    follow->room[claim->kind] = wanted;
    return grown;
}

static bool read_section(struct follow *follow, const struct cairn_section *claim,
                         struct error *error) {
    struct recording *recording = &follow->recording;
    struct recording_section claimed;
    if (!recording_claim(recording, claim, follow->source.size, &claimed)) return true;
    if (claimed.size > follow->source.disk_bytes + pages_spare_bytes)
        return error_set(error, "has a damaged recording");
    uint8_t *bytes = room_for(follow, claim, claimed.size);
    if (!bytes) return error_set(error, "no memory for %zu bytes", claimed.size);
    if (claimed.size > follow->room[claim->kind]) {
        claimed.size = follow->room[claim->kind];
        claimed.count = claimed.size / claimed.entry_bytes;
    }
    if (source_read(&follow->source, claim->offset, bytes, claimed.size) < claimed.size)
        return error_set(error, "has a recording that was cut off");
    claimed.bytes = bytes;
    recording->sections[claim->kind] = claimed;
    return true;
}

// The sections of a set, as long as the header says now.
static bool read_set(struct follow *follow, uint64_t kinds, struct error *error) {
    struct stat status;
    if (fstat(follow->source.descriptor, &status))
        return error_set(error, "cannot be read: %s", strerror(errno));
    follow->source.size = (uint64_t)status.st_size;
    follow->source.disk_bytes = (uint64_t)status.st_blocks * BLOCK_BYTES;
    if (!recording_load_header(&follow->recording, &follow->source, error)) return false;
    const struct cairn_header *header = &follow->recording.header;
    uint64_t left = kinds;
    for (uint32_t i = 0; i < header->section_count; i++) {
        const struct cairn_section *claim = &header->sections[i];
        if (claim->kind >= RECORDING_SECTION_KINDS || !(left & BIT(claim->kind))) continue;
        left &= ~BIT(claim->kind);
        if (!read_section(follow, claim, error)) return false;
    }
    return true;
}

bool follow_counters(struct follow *follow, struct error *error) {
    follow->recording.damage = (struct damage){.bad_stacks = follow->recording.damage.bad_stacks};
    return read_set(follow, hot, error) && read_set(follow, cold, error);
}

void follow_release(struct follow *follow) {
    for (int kind = 0; kind < RECORDING_SECTION_KINDS; kind++) {
        struct recording_section *section = &follow->recording.sections[kind];
        if (!((hot | cold) & BIT(kind))) continue;
        free((void *)(uintptr_t)section->bytes);
        *section = (struct recording_section){0};
        follow->room[kind] = 0;
    }
}

bool follow_figures(struct follow *follow, struct error *error) {
    const uint64_t few =
        BIT(CAIRN_SECTION_THREADS) | BIT(CAIRN_SECTION_SAMPLING) | BIT(CAIRN_SECTION_PICTURES);
    if (!read_set(follow, few, error)) return false;
    return !recording_is_sampled(&follow->recording) || follow_counters(follow, error);
}

bool follow_scopes(struct follow *follow, struct error *error) {
    return read_set(follow, BIT(CAIRN_SECTION_SCOPES), error) &&
           read_set(follow, BIT(CAIRN_SECTION_STRINGS), error);
}

bool follow_stacks(struct follow *follow, struct error *error) {
    return read_set(follow, stacks, error) && read_set(follow, names, error);
}
