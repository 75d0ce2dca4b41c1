// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/unwind_index.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

// The version, and how the table says addresses: distances of 32 bits, from the section's field, as
// a plain number, from the table's own beginning.
static const uint8_t head[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                               DW_EH_PE_datarel | DW_EH_PE_sdata4};

struct table_row {
    int32_t start, entry;
};

// Bytes of the section from `at` on.
struct reader {
    const uint8_t *bytes;
    uint64_t address;  // of the first one
    size_t at, end;
    bool is_broken;
};

static uint64_t take(struct reader *reader, size_t count) {
    uint64_t value = 0;
    if (count > reader->end - reader->at) {
        reader->is_broken = true;
        reader->at = reader->end;
        return 0;
    }
    memcpy(&value, reader->bytes + reader->at, count);
    reader->at += count;
    return value;
}

// Skips a number of any length.
static void skip_leb(struct reader *reader) {
    const uint8_t goes_on = 0x80;
    while (!reader->is_broken && take(reader, 1) & goes_on) {
    }
}

static size_t bytes_of(uint8_t encoding) {
    const uint8_t format = 0x07;
    switch (encoding & format) {
    case DW_EH_PE_udata2:
        return 2;
    case DW_EH_PE_udata4:
        return 4;
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
        return 8;
    }
    return 0;
}

// Returns how the common entry at `at` says where functions begin; DW_EH_PE_omit: it is malformed.
static uint8_t encoding_of(const struct reader *section, size_t at) {
    const uint8_t oldest = 1;
    struct reader reader = *section;
    char letters[8] = "";
    reader.at = at;
    uint64_t length = take(&reader, sizeof(uint32_t));
    if (length > reader.end - reader.at || take(&reader, sizeof(uint32_t)) != 0)
        return DW_EH_PE_omit;
    uint64_t version = take(&reader, 1);
    for (size_t i = 0; i < sizeof letters; i++)
        if (!(letters[i] = (char)take(&reader, 1))) break;
    if (letters[sizeof letters - 1]) return DW_EH_PE_omit;
    skip_leb(&reader);
    skip_leb(&reader);
    if (version == oldest)
        take(&reader, 1);
    else
        skip_leb(&reader);
    if (letters[0] != 'z') return letters[0] || reader.is_broken ? DW_EH_PE_omit : DW_EH_PE_absptr;
    skip_leb(&reader);
    for (const char *letter = letters + 1; *letter; letter++) {
        uint8_t encoding = *letter == 'S' || *letter == 'B' ? 0 : (uint8_t)take(&reader, 1);
        if (*letter == 'R') return reader.is_broken ? DW_EH_PE_omit : encoding;
        if (*letter == 'P') take(&reader, bytes_of(encoding));
    }
    return reader.is_broken ? DW_EH_PE_omit : DW_EH_PE_absptr;
}

// Returns where the function begins that the entry describes; 0: it cannot be read.
static uint64_t start_of(struct reader *entry, uint8_t encoding) {
    const uint8_t relation = 0x70, bits_of_byte = 8, word_bytes = 8;
    size_t count = encoding == DW_EH_PE_omit ? 0 : bytes_of(encoding);
    uint64_t here = entry->address + entry->at, value = count ? take(entry, count) : 0;
    bool is_relative = (encoding & relation) == DW_EH_PE_pcrel;
    if (!count || (encoding & relation && !is_relative) || encoding & DW_EH_PE_indirect) return 0;
    if (encoding & DW_EH_PE_signed) {
        unsigned unused = (unsigned)(word_bytes - count) * bits_of_byte;
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    return is_relative ? value + here : value;
}

static bool read_section(struct unwind_index *index, struct reader section) {
    const uint32_t is_longer = UINT32_MAX;
    while (section.at < section.end) {
        size_t at = section.at;
        uint64_t length = take(&section, sizeof(uint32_t));
        if (!length || length == is_longer || length > section.end - section.at) break;
        struct reader entry = section;
        section.at += length;
        entry.end = section.at;
        size_t back_from = entry.at;
        uint64_t back = take(&entry, sizeof(uint32_t));
        if (!back || back > back_from) continue;
        uint8_t encoding = encoding_of(&section, back_from - (size_t)back);
        uint64_t start = start_of(&entry, encoding);
        uint64_t bytes = encoding == DW_EH_PE_omit ? 0 : take(&entry, bytes_of(encoding));
        if (!start || entry.is_broken) continue;
        struct unwind_row *row = array_push(&index->rows);
        if (!row) return false;
        *row = (struct unwind_row){start, start + bytes, section.address + at, false};
    }
    return true;
}

static int compare_rows(const void *one, const void *other) {
    const struct unwind_row *a = one, *b = other;
    return a->start < b->start ? -1 : a->start > b->start;
}

void unwind_index_sort(struct unwind_index *index) {
    if (index->rows.count)
        qsort(index->rows.items, index->rows.count, sizeof *index->rows.items, compare_rows);
}

bool unwind_index_read(struct unwind_index *index, Elf *elf) {
    size_t names = 0;
    bool is_ok = true;
    *index = (struct unwind_index){.frames = 0};
    if (elf_getshdrstrndx(elf, &names) != 0) return true;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section && is_ok;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        const char *name =
            gelf_getshdr(section, &about) ? elf_strptr(elf, names, about.sh_name) : NULL;
        bool is_it = name && !strcmp(name, ".eh_frame") && about.sh_flags & SHF_ALLOC;
        Elf_Data *data = is_it ? elf_rawdata(section, NULL) : NULL;
        if (!data || !data->d_buf) continue;
        index->frames = about.sh_addr;
        is_ok = read_section(
            index,
            (struct reader){.bytes = data->d_buf, .address = about.sh_addr, .end = data->d_size});
    }
    unwind_index_sort(index);
    return is_ok;
}

void unwind_index_free(struct unwind_index *index) {
    array_free(&index->rows);
    array_free(&index->made);
}

enum { HEAD_BYTES = sizeof head + 2 * sizeof(uint32_t) };

static uint64_t made_at(const struct unwind_index *index) {
    return HEAD_BYTES + index->rows.count * sizeof(struct table_row);
}

uint64_t unwind_index_bytes(const struct unwind_index *index) {
    return index->rows.count ? made_at(index) + index->made.count : 0;
}

static bool distance(uint64_t from, uint64_t to, int32_t *word) {
    int64_t far = (int64_t)(to - from);
    *word = (int32_t)far;
    return *word == far;
}

// An entry that was made says where its function begins by the distance from its own field.
static void write_start(uint8_t *entry, uint64_t at, uint64_t start) {
    int32_t word = 0;
    distance(at + UNWIND_MADE_START_AT, start, &word);
    memcpy(entry + UNWIND_MADE_START_AT, &word, sizeof word);
}

// Rows that are too far away are left out: none are, where the mapping is near the executable.
void unwind_index_write(const struct unwind_index *index, uint64_t at, uint8_t *bytes) {
    struct table_row row;
    int32_t frames = 0;
    uint32_t count = 0;
    memcpy(bytes, head, sizeof head);
    distance(at + sizeof head, index->frames, &frames);
    memcpy(bytes + sizeof head, &frames, sizeof frames);
    if (index->made.count) memcpy(bytes + made_at(index), index->made.items, index->made.count);
    for (size_t i = 0; i < index->rows.count; i++) {
        const struct unwind_row *from = &index->rows.items[i];
        uint64_t made = made_at(index) + from->entry;
        uint64_t entry = from->is_made ? at + made : from->entry;
        if (!distance(at, from->start, &row.start) || !distance(at, entry, &row.entry)) continue;
        if (from->is_made) write_start(bytes + made, entry, from->start);
        memcpy(bytes + HEAD_BYTES + count++ * sizeof row, &row, sizeof row);
    }
    memcpy(bytes + sizeof head + sizeof frames, &count, sizeof count);
}
