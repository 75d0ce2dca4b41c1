// SPDX-License-Identifier: Apache-2.0
#include "runtime/go/table.h"

#include <string.h>

enum { WORD = sizeof(uint64_t) };

// ---- finding it ---------------------------------------------------------------------------------

// The first eight bytes of a table: its form, two zeros, bytes of the least instruction and of a
// pointer. And those of what the linker says of a build ("\xff Go buildinf:"), with its version.
static const uint64_t form_18 = 0x08010000fffffff0u, form_20 = 0x08010000fffffff1u,
                      form_16 = 0x08010000fffffffau, form_12 = 0x08010000fffffffbu;
static const uint64_t build_info = 0x697562206f4720ffu;
enum { BUILD_FLAGS = 15, BUILD_HAS_TEXT = 2, BUILD_TEXT = 32 };

// Words of the table's head, and of the module's record (runtime.moduledata): slices have three.
enum { HEAD_COUNT = 1, HEAD_NAMES = 4, HEAD_VALUES = 7, HEAD_FUNCTIONS = 8, HEAD_WORDS = 9 };
enum {
    MODULE_TABLE = 0,
    MODULE_NAMES = 1,
    MODULE_VALUES = 10,
    MODULE_FUNCTIONS = 16,
    MODULE_FIRST_CODE = 20,
    MODULE_LAST_CODE = 21,
    MODULE_TEXT = 22,
    MODULE_TEXT_END = 23,
    MODULE_WORDS = 24,
};

struct search {
    struct memory_reader *memory;
    struct go_table *table;
    uint64_t at;  // of the table found; 0: none
    uint32_t minor;
    bool is_other, is_done;
};

// "go1.19.8" behind the head of what is said of the build: 19.
static void read_version(struct search *search, uint64_t address) {
    uint64_t words[6];
    uint8_t *bytes = (uint8_t *)words, *text = bytes + BUILD_TEXT + 1;
    const size_t least = sizeof "go1.1" - 1;
    if (search->minor || !memory_read(search->memory, address, words, sizeof words)) return;
    bool is_text = bytes[BUILD_FLAGS] & BUILD_HAS_TEXT && bytes[BUILD_TEXT] > least;
    if (!is_text || memcmp(text, "go1.", least - 1) != 0) return;
    for (text += least - 1; *text >= '0' && *text <= '9' && search->minor < UINT8_MAX; text++)
        search->minor = search->minor * 10 + (uint32_t)(*text - '0');
}

static void look_at_head(struct search *search, uint64_t address, uint64_t word) {
    uint64_t head[HEAD_WORDS];
    const uint64_t count_most = 1u << 26;
    if (word == form_16 || word == form_12) search->is_other = true;
    if (word != form_18 && word != form_20) return;
    if (search->at || !memory_read(search->memory, address, head, sizeof head)) return;
    bool is_table = head[HEAD_COUNT] && head[HEAD_COUNT] < count_most &&
                    head[HEAD_NAMES] % 4 == 0 && head[HEAD_NAMES] < head[HEAD_VALUES] &&
                    head[HEAD_VALUES] < head[HEAD_FUNCTIONS];
    if (is_table) search->at = address;
}

static void look_at_module(struct search *search, uint64_t address) {
    uint64_t module[MODULE_WORDS], head[HEAD_WORDS];
    if (!memory_read(search->memory, address, module, sizeof module) ||
        !memory_read(search->memory, search->at, head, sizeof head))
        return;
    bool is_its = module[MODULE_NAMES] == search->at + head[HEAD_NAMES] &&
                  module[MODULE_VALUES] == search->at + head[HEAD_VALUES] &&
                  module[MODULE_FUNCTIONS] == search->at + head[HEAD_FUNCTIONS] &&
                  module[MODULE_TEXT] <= module[MODULE_FIRST_CODE] &&
                  module[MODULE_FIRST_CODE] < module[MODULE_LAST_CODE] &&
                  module[MODULE_LAST_CODE] <= module[MODULE_TEXT_END];
    if (!is_its) return;
    *search->table = (struct go_table){.text = module[MODULE_TEXT],
                                       .text_end = module[MODULE_TEXT_END],
                                       .names = module[MODULE_NAMES],
                                       .values = module[MODULE_VALUES],
                                       .functions = module[MODULE_FUNCTIONS],
                                       .function_count = head[HEAD_COUNT]};
    search->is_done = true;
}

static bool is_found(const struct search *search) {
    return search->is_done && search->minor;
}

static void look_at_words(struct search *search, uint64_t start, uint64_t end) {
    enum { PIECE_WORDS = 512 };
    uint64_t words[PIECE_WORDS];
    for (; start < end && !is_found(search); start += sizeof words) {
        uint64_t left = (end - start) / WORD;
        size_t count = left < PIECE_WORDS ? (size_t)left : PIECE_WORDS;
        if (!memory_read_carefully(start, words, count * WORD)) return;
        for (size_t i = 0; i < count && !is_found(search); i++) {
            uint64_t address = start + i * WORD;
            if (search->at && words[i] == search->at) look_at_module(search, address);
            look_at_head(search, address, words[i]);
            if (words[i] == build_info) read_version(search, address);
        }
    }
}

static void look_at_segments(struct search *search, const struct object *object) {
    for (uint32_t i = 0; object->segments && i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        uint64_t start = object->bias + segment->p_vaddr, mask = WORD - 1;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_R)
            look_at_words(search, (start + mask) & ~mask, start + segment->p_filesz);
    }
}

enum go_table_state go_table_find(struct memory_reader *memory, const struct object *object,
                                  struct go_table *table, uint32_t *minor) {
    struct search search = {.memory = memory, .table = table};
    // the second time from the table on to what leads to it
    for (int turn = 0; turn < 2 && !is_found(&search); turn++) look_at_segments(&search, object);
    *minor = search.minor;
    if (search.is_done) return GO_TABLE_READ;
    return search.at || search.is_other || search.minor ? GO_TABLE_UNKNOWN : GO_TABLE_ABSENT;
}

// ---- functions ----------------------------------------------------------------------------------

// Half words of a function's record.
enum { FUNCTION_START = 0, FUNCTION_NAME = 1, FUNCTION_FRAME = 4 };

static bool read_half(struct memory_reader *memory, uint64_t address, uint32_t *half) {
    return address % sizeof *half == 0 && memory_read_part(memory, address, UINT32_MAX, half);
}

static bool read_byte(struct memory_reader *memory, uint64_t address, uint32_t *byte) {
    const uint32_t mask = 0xff;
    return memory_read_part(memory, address, mask, byte);
}

// Where the record of the function is that an offset in the code lies in, by bisection of a table
// of pairs: where a function begins, where its record is.
static bool find_record(struct memory_reader *memory, const struct go_table *table, uint64_t offset,
                        uint64_t *record) {
    uint64_t low = 0, high = table->function_count;
    const uint64_t pair_bytes = 2 * sizeof(uint32_t);
    uint32_t start, place;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (!read_half(memory, table->functions + middle * pair_bytes, &start)) return false;
        if (start <= offset)
            low = middle;
        else
            high = middle;
    }
    if (!read_half(memory, table->functions + low * pair_bytes + sizeof start, &place))
        return false;
    *record = table->functions + place;
    return true;
}

// A number of seven bits a byte, the last one below 0x80.
static bool read_number(struct memory_reader *memory, uint64_t *address, uint32_t *number) {
    const uint32_t more = 0x80, mask = 0x7f;
    const unsigned bits = 7, bits_most = 28;
    *number = 0;
    for (unsigned shift = 0; shift <= bits_most; shift += bits) {
        uint32_t byte;
        if (!read_byte(memory, (*address)++, &byte)) return false;
        *number |= (byte & mask) << shift;
        if (byte < more) return true;
    }
    return false;
}

// Steps of the value and of the instruction it holds up to.
static bool find_value(struct memory_reader *memory, uint64_t at, uint64_t wanted, int32_t *value) {
    enum { STEPS_MOST = 1 << 16 };
    uint64_t offset = 0;
    *value = -1;
    for (unsigned i = 0; i < STEPS_MOST; i++) {
        uint32_t step, length;
        if (!read_number(memory, &at, &step) || (!step && i)) return false;
        if (!read_number(memory, &at, &length)) return false;
        *value = (int32_t)((uint32_t)*value + (step >> 1 ^ (0 - (step & 1))));
        offset += length;
        if (wanted < offset) return true;
    }
    return false;
}

static bool read_name(struct memory_reader *memory, uint64_t at, char name[GO_NAME_BYTES]) {
    for (size_t i = 0; i < GO_NAME_BYTES - 1; i++) {
        uint32_t byte;
        if (!read_byte(memory, at + i, &byte)) return false;
        name[i] = (char)byte;
        if (!byte) return true;
    }
    name[GO_NAME_BYTES - 1] = 0;
    return true;
}

bool go_table_look_up(struct memory_reader *memory, const struct go_table *table, uint64_t pc,
                      struct go_function *function) {
    uint64_t record;
    uint32_t start, name, frame;
    if (pc < table->text || pc >= table->text_end) return false;
    if (!find_record(memory, table, pc - table->text, &record) ||
        !read_half(memory, record + FUNCTION_START * sizeof start, &start) ||
        !read_half(memory, record + FUNCTION_NAME * sizeof name, &name) ||
        !read_half(memory, record + FUNCTION_FRAME * sizeof frame, &frame))
        return false;
    function->start = table->text + start;
    return function->start <= pc && read_name(memory, table->names + name, function->name) &&
           find_value(memory, table->values + frame, pc - function->start, &function->frame_bytes);
}
