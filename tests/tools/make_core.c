// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/make_core.h"

#include <elf.h>
#include <string.h>

#include "format/format.h"
#include "format/live_map.h"

// Where things lie in the file ...
enum {
    PROGRAMS_AT = sizeof(Elf64_Ehdr),
    NOTE_AT = 0x300,
    RECORDING_AT = 0x400,
    TOPS_AT = 0xa00,
    MID_AT = 0xb00,
    SLOTS_AT = 0xc00,
    HEAP_AT = 0xe00,
    ZEROS_AT = MAKE_CORE_BYTES,
    SEGMENTS = 11,
};
// ... and in the process.
static const uint64_t recording_address = 0x7000000000, tops_address = 0x7100000000,
                      mid_address = 0x7200000000, slots_address = 0x7300000000;

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size) {
    memcpy(bytes + at, &value, size);
}

static void put_note(uint8_t *bytes) {
    const uint32_t pid_offset = 24, note_bytes = 136;
    const Elf64_Nhdr note = {5, note_bytes, NT_PRPSINFO};
    memcpy(bytes + NOTE_AT, &note, sizeof note);
    memcpy(bytes + NOTE_AT + sizeof note, "CORE", 5);
    put(bytes, NOTE_AT + sizeof note + 8 + pid_offset, MAKE_CORE_PID, sizeof(uint32_t));
}

static void put_recording(uint8_t *bytes, bool is_wide) {
    static struct cairn_header header;
    header = (struct cairn_header){.version = CAIRN_VERSION,
                                   .header_bytes = CAIRN_HEADER_BYTES,
                                   .self_address = recording_address,
                                   .mapped_bytes = CAIRN_HEADER_BYTES,
                                   .pid = MAKE_CORE_PID,
                                   .slot_bytes = is_wide ? 8 : 4,
                                   .slot_granule = is_wide ? 16 : 32,
                                   .live_map = tops_address};
    memcpy(header.magic, CAIRN_MAGIC, sizeof header.magic);
    memcpy(bytes + RECORDING_AT, &header, TOPS_AT - RECORDING_AT);
}

static void put_narrow(uint8_t *bytes) {
    const uint32_t second = 8, slack_of_second = 190, first_slack = 4, half = 1u << LIVE_HALF_SHIFT;
    put(bytes, SLOTS_AT, MAKE_CORE_FIRST_CELL << LIVE_ID_SHIFT | half | first_slack, 4);
    put(bytes, SLOTS_AT + second * 4, MAKE_CORE_SECOND_CELL << LIVE_ID_SHIFT | LIVE_SLACK_ESCAPE,
        4);
    put(bytes, SLOTS_AT + (second + 1) * 4, slack_of_second - LIVE_SLACK_BASE, 4);
    // sizes of the chunks, in use
    put(bytes, HEAP_AT + 8, (MAKE_CORE_FIRST_SIZE + first_slack + 8) | 1, 8);
    put(bytes, HEAP_AT + 0xf8, (MAKE_CORE_SECOND_SIZE + slack_of_second + 8) | 1, 8);
}

static void put_wide(uint8_t *bytes) {
    const uint32_t first = 1, second = 16;
    put(bytes, SLOTS_AT + first * 8, (uint64_t)MAKE_CORE_FIRST_SIZE << 32 | MAKE_CORE_FIRST_CELL,
        8);
    put(bytes, SLOTS_AT + second * 8, (uint64_t)LIVE_SIZE_ESCAPE << 32 | MAKE_CORE_SECOND_CELL, 8);
    put(bytes, SLOTS_AT + (second + 1) * 8, MAKE_CORE_SECOND_SIZE, 8);
}

// A stretch of memory whose first bytes have something in them: that, and zeros behind.
static void put_memory(uint8_t *bytes, size_t number, uint64_t address, uint64_t size,
                       uint64_t content_at, uint64_t content_bytes) {
    const uint64_t rest = size - content_bytes;
    const Elf64_Phdr both[] = {
        {PT_LOAD, PF_R, content_at, address, 0, content_bytes, content_bytes, 1},
        {PT_LOAD, PF_R, ZEROS_AT, address + content_bytes, 0, rest, rest, 1},
    };
    memcpy(bytes + PROGRAMS_AT + (1 + 2 * number) * sizeof *both, both, sizeof both);
}

static void put_header(uint8_t *bytes) {
    const Elf64_Phdr note = {PT_NOTE, 0, NOTE_AT, 0, 0, 12 + 8 + 136, 0, 4};
    Elf64_Ehdr header = {.e_type = ET_CORE,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_phoff = PROGRAMS_AT,
                         .e_phentsize = sizeof note,
                         .e_phnum = SEGMENTS};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + PROGRAMS_AT, &note, sizeof note);
}

void make_core(uint8_t bytes[MAKE_CORE_BYTES], bool is_wide) {
    const uint64_t top = MAKE_CORE_FIRST >> LIVE_MID_SHIFT;
    const uint32_t shift = is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT, slot = is_wide ? 8 : 4;
    const uint64_t granules = MAKE_CORE_FIRST >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT >> shift;
    const uint64_t slots_bytes = (uint64_t)slot << (LIVE_LEAF_SHIFT - shift), before = 8;
    memset(bytes, 0, MAKE_CORE_BYTES);
    put_header(bytes);
    put_note(bytes);
    put_memory(bytes, 0, recording_address, CAIRN_HEADER_BYTES, RECORDING_AT,
               TOPS_AT - RECORDING_AT);
    put_memory(bytes, 1, tops_address, 2 * sizeof(uint64_t) * LIVE_TOP_COUNT, TOPS_AT,
               MID_AT - TOPS_AT);
    put_memory(bytes, 2, mid_address, sizeof(uint64_t) * LIVE_MID_COUNT, MID_AT, SLOTS_AT - MID_AT);
    // The word before the first slot is looked at too.
    put_memory(bytes, 3, slots_address - before, slots_bytes + before, SLOTS_AT - before,
               HEAP_AT - SLOTS_AT + before);
    put_memory(bytes, 4, MAKE_CORE_FIRST - 16, 0x200, HEAP_AT, MAKE_CORE_BYTES - HEAP_AT - 1);
    put_recording(bytes, is_wide);
    if (is_wide)
        put_wide(bytes);
    else
        put_narrow(bytes);
    put(bytes, TOPS_AT + top * 8, mid_address, 8);
    put(bytes, MID_AT, slots_address - granules * slot, 8);
}

void make_core_set_file_bytes(uint8_t bytes[MAKE_CORE_BYTES], size_t index, uint64_t size) {
    size_t at = PROGRAMS_AT + (1 + 2 * index) * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, p_filesz);
    put(bytes, at, size, sizeof size);
}

void make_core_set_chunk(uint8_t bytes[MAKE_CORE_BYTES], uint64_t word) {
    put(bytes, HEAP_AT + 8, word, sizeof word);
}
