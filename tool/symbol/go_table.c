// SPDX-License-Identifier: Apache-2.0
// The table begins with its form and the places of its parts; the record of the module
// (runtime.moduledata) is the words that begin with the table's address. Of each function the table
// has lists of steps: which value holds up to which instruction. They give the line, the file's
// number, and which entry of the function's tree of inlined calls an instruction belongs to.
#include "tool/symbol/go_table.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { WORD = sizeof(uint64_t), HALF = sizeof(uint32_t) };

struct go_file {
    const struct image *image;
    const uint8_t *bytes;
    size_t size, segment_count;
    uint64_t table, names, units, files, values, functions, count;  // addresses
    uint64_t text, text_end, inlined;
    uint64_t inlined_word;  // of the module's record
    uint64_t steps_left;    // through lists, so that a hostile file ends
    bool is_later;          // 1.20 and later
};

// ---- the file as memory -------------------------------------------------------------------------

// What the file has at an address, up to the segment's end.
static struct bytes bytes_at(const struct go_file *file, uint64_t address) {
    for (size_t i = 0; i < file->segment_count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file->image->elf, (int)i, &segment) || segment.p_type != PT_LOAD)
            continue;
        uint64_t inside = address - segment.p_vaddr;
        if (address < segment.p_vaddr || inside >= segment.p_filesz) continue;
        if (segment.p_offset > file->size || segment.p_filesz > file->size - segment.p_offset)
            continue;
        const uint8_t *start = file->bytes + segment.p_offset;
        return (struct bytes){.at = start + inside, .end = start + segment.p_filesz};
    }
    return (struct bytes){.is_bad = true};
}

static bool read_number(const struct go_file *file, uint64_t address, size_t size,
                        uint64_t *value) {
    struct bytes bytes = bytes_at(file, address);
    *value = bytes_number(&bytes, size);
    return !bytes.is_bad;
}

static bool read_half(const struct go_file *file, uint64_t address, uint64_t *value) {
    return read_number(file, address, HALF, value);
}

// NULL: none, or none that ends; a name or path of a hostile file may be all of its megabytes.
static const char *read_text(const struct go_file *file, uint64_t address, size_t *length) {
    enum { TEXT_MOST = 1 << 16 };
    struct bytes bytes = bytes_at(file, address);
    size_t most = bytes_left(&bytes) < TEXT_MOST ? bytes_left(&bytes) : TEXT_MOST;
    const uint8_t *end = most ? memchr(bytes.at, 0, most) : NULL;
    *length = end ? (size_t)(end - bytes.at) : 0;
    return *length ? (const char *)bytes.at : NULL;
}

// ---- finding the table --------------------------------------------------------------------------

// Words of the table's head and of the module's record, where slices have three.
enum {
    HEAD_COUNT = 1,
    HEAD_TEXT = 3,
    HEAD_NAMES,
    HEAD_UNITS,
    HEAD_FILES,
    HEAD_VALUES,
    HEAD_FUNCTIONS
};
enum { MODULE_NAMES = 1, MODULE_FUNCTIONS = 16, MODULE_TEXT = 22, MODULE_TEXT_END = 23 };
// Behind the text come pairs of places, from 1.20 on one pair more, then types, of which later ones
// (1.27) say more, and what inlined calls are counted from. From 1.26 on the head does not say
// where the text begins.
enum { MODULE_INLINED = 38, MODULE_INLINED_20 = 40, MODULE_INLINED_27 = 43 };
enum { FIRST_TEXTLESS = 26 };

// The minor version that the section .go.buildinfo says at its byte 32, behind a length; 0: none.
static unsigned minor_version(const struct image *image) {
    enum { TEXT_AT = 32, TEXT_MOST = 32 };
    struct bytes bytes = image_bytes(image, ".go.buildinfo", ".zgo.buildinfo");
    char text[TEXT_MOST + 1] = "";
    unsigned minor = 0;
    bytes_skip(&bytes, TEXT_AT);
    uint64_t length = bytes_uleb(&bytes);
    if (length > bytes_left(&bytes) || length > TEXT_MOST) return 0;
    if (length) memcpy(text, bytes.at, length);
    return sscanf(text, "go1.%u", &minor) == 1 ? minor : 0;
}

static bool take_head(struct go_file *file, uint64_t address) {
    static const uint8_t rest[] = {0xff, 0xff, 0xff, 0, 0, 1, WORD};
    uint64_t words[HEAD_FUNCTIONS + 1];
    struct bytes bytes = bytes_at(file, address);
    if (bytes_left(&bytes) < sizeof words || memcmp(bytes.at + 1, rest, sizeof rest) != 0 ||
        (bytes.at[0] != 0xf0 && bytes.at[0] != 0xf1))
        return false;
    file->is_later = bytes.at[0] == 0xf1;
    for (size_t i = 0; i <= HEAD_FUNCTIONS; i++) words[i] = bytes_number(&bytes, WORD);
    bool is_earlier = words[HEAD_TEXT] || minor_version(file->image) == FIRST_TEXTLESS;
    file->inlined_word = !file->is_later ? MODULE_INLINED
                         : is_earlier    ? MODULE_INLINED_20
                                         : MODULE_INLINED_27;
    file->table = address;
    file->count = words[HEAD_COUNT];
    file->names = address + words[HEAD_NAMES];
    file->units = address + words[HEAD_UNITS];
    file->files = address + words[HEAD_FILES];
    file->values = address + words[HEAD_VALUES];
    file->functions = address + words[HEAD_FUNCTIONS];
    return file->count > 0 && file->count < UINT32_MAX;
}

static bool take_module(struct go_file *file, uint64_t address) {
    uint64_t names, functions;
    return read_number(file, address + MODULE_NAMES * WORD, WORD, &names) &&
           read_number(file, address + MODULE_FUNCTIONS * WORD, WORD, &functions) &&
           names == file->names && functions == file->functions &&
           read_number(file, address + MODULE_TEXT * WORD, WORD, &file->text) &&
           read_number(file, address + MODULE_TEXT_END * WORD, WORD, &file->text_end) &&
           read_number(file, address + file->inlined_word * WORD, WORD, &file->inlined);
}

// Tries every word of the file's memory.
static bool find(struct go_file *file, bool (*take)(struct go_file *file, uint64_t address),
                 uint64_t first_word, uint64_t mask) {
    for (size_t i = 0; i < file->segment_count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file->image->elf, (int)i, &segment) || segment.p_type != PT_LOAD)
            continue;
        uint64_t skipped = (WORD - segment.p_vaddr % WORD) % WORD,
                 start = segment.p_vaddr + skipped;
        struct bytes bytes = bytes_at(file, start);
        for (uint64_t address = start; bytes_left(&bytes) >= WORD; address += WORD)
            if ((bytes_number(&bytes, WORD) & mask) == first_word && take(file, address))
                return true;
    }
    return false;
}

static bool go_file_open(struct go_file *file, const struct image *image) {
    GElf_Shdr header;
    const uint64_t head = 0x08010000fffffff0u, either_form = ~1ull;
    const uint64_t steps_most = 1u << 30;
    *file = (struct go_file){.image = image, .steps_left = steps_most};
    if (!image->elf || !image_section(image, ".go.buildinfo", &header)) return false;
    file->bytes = (const uint8_t *)elf_rawfile(image->elf, &file->size);
    if (!file->bytes || elf_getphdrnum(image->elf, &file->segment_count)) return false;
    return find(file, take_head, head, either_form) &&
           find(file, take_module, file->table, UINT64_MAX);
}

// ---- functions ----------------------------------------------------------------------------------

// Half words of a function's record; then, from 1.20 on, the first line, then bytes: an identity, a
// flag, none, how many parts follow; then places of lists of steps, then of other parts.
enum { RECORD_START, RECORD_NAME, RECORD_FILE = 5, RECORD_LINE, RECORD_LISTS, RECORD_UNIT };
enum { RECORD_HALVES = 10, LIST_INLINED = 2, PART_INLINED = 3, NO_PART = UINT32_MAX };

struct function {
    uint64_t record, start, unit, inlined;  // 0: nothing is inlined
    uint64_t name, file_list, line_list, inlined_list;
};

static bool find_record(const struct go_file *file, uint64_t offset, uint64_t *record) {
    uint64_t low = 0, high = file->count, start, place;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (!read_half(file, file->functions + middle * 2 * HALF, &start)) return false;
        if (start <= offset)
            low = middle;
        else
            high = middle;
    }
    if (!read_half(file, file->functions + (2 * low + 1) * HALF, &place)) return false;
    *record = file->functions + place;
    return true;
}

static void read_inlined(const struct go_file *file, struct function *function) {
    const uint64_t parts_byte = 3;
    uint64_t lists, parts, part, list;
    uint64_t end = function->record + (RECORD_HALVES + (file->is_later ? 1 : 0)) * HALF;
    if (!read_half(file, function->record + RECORD_LISTS * HALF, &lists) ||
        !read_number(file, end - HALF + parts_byte, 1, &parts) || lists <= LIST_INLINED ||
        parts <= PART_INLINED || lists > UINT16_MAX)
        return;
    if (!read_half(file, end + LIST_INLINED * HALF, &list) ||
        !read_half(file, end + (lists + PART_INLINED) * HALF, &part) || part == NO_PART)
        return;
    function->inlined_list = list;
    function->inlined = file->inlined + part;
}

static bool read_function(const struct go_file *file, uint64_t address, struct function *function) {
    *function = (struct function){0};
    if (!find_record(file, address - file->text, &function->record)) return false;
    uint64_t record = function->record, start;
    if (!read_half(file, record + RECORD_START * HALF, &start) ||
        !read_half(file, record + RECORD_NAME * HALF, &function->name) ||
        !read_half(file, record + RECORD_FILE * HALF, &function->file_list) ||
        !read_half(file, record + RECORD_LINE * HALF, &function->line_list) ||
        !read_half(file, record + RECORD_UNIT * HALF, &function->unit))
        return false;
    function->start = file->text + start;
    read_inlined(file, function);
    return address >= function->start;
}

// The value that a list of steps has at an address; -1: none.
static int64_t value_at(struct go_file *file, uint64_t list, uint64_t offset) {
    struct bytes bytes = bytes_at(file, file->values + list);
    int64_t value = -1;
    uint64_t end = 0;
    for (bool is_first = true; list && !bytes.is_bad && file->steps_left; is_first = false) {
        file->steps_left--;
        uint64_t step = bytes_uleb(&bytes), length = bytes_uleb(&bytes);
        if (bytes.is_bad || (!step && !is_first) || step > UINT32_MAX) break;
        value += (int64_t)(step >> 1) ^ -(int64_t)(step & 1);
        end += length;
        if (offset < end) return value;
    }
    return -1;
}

// Sets file and line of an instruction.
static bool place(struct go_file *file, struct string_pool *names, const struct function *function,
                  uint64_t offset, struct symbol_frame *frame) {
    uint64_t text;
    size_t length;
    int64_t number = value_at(file, function->file_list, offset);
    int64_t line = value_at(file, function->line_list, offset);
    if (number < 0 ||
        !read_half(file, file->units + (function->unit + (uint64_t)number) * HALF, &text))
        return true;
    const char *path = read_text(file, file->files + text, &length);
    frame->line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
    if (path) frame->file = string_pool_intern(names, path, length);
    return !path || frame->file;
}

static bool set_name(const struct go_file *file, struct string_pool *names, uint64_t name,
                     struct symbol_frame *frame) {
    size_t length;
    const char *text = read_text(file, file->names + name, &length);
    if (text) frame->linkage = string_pool_intern(names, text, length);
    return !text || frame->linkage;
}

// Of an inlined call: the function's name and the instruction whose line is that of the call.
struct inlined {
    uint64_t name, caller;
};

static bool read_call(const struct go_file *file, const struct function *function, int64_t index,
                      struct inlined *call) {
    const uint64_t bytes_earlier = 20, bytes_later = 16, name_earlier = 12, name_later = 4;
    const uint64_t caller_earlier = 16, caller_later = 8;
    bool is_later = file->is_later;
    uint64_t at = function->inlined + (uint64_t)index * (is_later ? bytes_later : bytes_earlier);
    size_t length;
    return function->inlined &&
           read_half(file, at + (is_later ? name_later : name_earlier), &call->name) &&
           read_half(file, at + (is_later ? caller_later : caller_earlier), &call->caller) &&
           read_text(file, file->names + call->name, &length);
}

enum { DEEPEST = 64 };

// The frames at an address, innermost first; false only without memory.
static bool make_frames(struct go_file *file, struct string_pool *names, uint64_t address,
                        struct symbol_query *query) {
    struct symbol_frame frames[DEEPEST] = {{0}};
    struct function function;
    size_t count = 0;
    if (!read_function(file, address, &function)) return true;
    uint64_t offset = address - function.start;
    for (; count < DEEPEST; count++) {
        struct inlined call;
        int64_t index = value_at(file, function.inlined_list, offset);
        if (!place(file, names, &function, offset, &frames[count])) return false;
        bool is_inlined = index >= 0 && index < UINT16_MAX && count < DEEPEST - 1 &&
                          read_call(file, &function, index, &call);
        frames[count].is_inlined = is_inlined;
        if (!set_name(file, names, is_inlined ? call.name : function.name, &frames[count]))
            return false;
        if (!is_inlined) break;
        offset = call.caller;
    }
    if (!frames[count++].linkage) return true;
    query->frames = string_pool_alloc(names, count * sizeof *frames);
    if (!query->frames) return false;
    memcpy(query->frames, frames, count * sizeof *frames);
    query->frame_count = count;
    query->is_known = true;
    return true;
}

bool go_table_answer(const struct image *image, struct string_pool *names,
                     struct symbol_query *queries, size_t count, size_t *answered) {
    struct go_file file;
    *answered = 0;
    if (!go_file_open(&file, image)) return true;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = queries[i].address;
        if (queries[i].is_known || address < file.text || address >= file.text_end) continue;
        if (!make_frames(&file, names, address, &queries[i])) return false;
        *answered += queries[i].is_known;
    }
    return true;
}

// ---- a function by its name ---------------------------------------------------------------------

static bool is_called(const struct go_file *file, uint64_t record, const char *name) {
    uint64_t text;
    size_t length;
    if (!read_half(file, record + RECORD_NAME * HALF, &text)) return false;
    const char *found = read_text(file, file->names + text, &length);
    return found && length == strlen(name) && !memcmp(found, name, length);
}

bool go_table_find_code(const struct image *image, const char *name, struct bytes *code,
                        uint64_t *address) {
    struct go_file file;
    uint64_t start, next, record;
    if (!go_file_open(&file, image)) return false;
    for (uint64_t i = 0; i + 1 < file.count; i++) {
        const uint64_t entry = file.functions + i * 2 * HALF;
        if (!read_half(&file, entry, &start) || !read_half(&file, entry + HALF, &record) ||
            !read_half(&file, entry + 2 * HALF, &next))
            return false;
        if (!is_called(&file, file.functions + record, name)) continue;
        *address = file.text + start;
        *code = bytes_at(&file, *address);
        if (next > start && next - start < bytes_left(code)) code->end = code->at + (next - start);
        return !code->is_bad;
    }
    return false;
}
