// SPDX-License-Identifier: Apache-2.0
#include "tool/go/search.h"

#include <stdlib.h>
#include <string.h>

#include "tool/go/spans.h"
#include "tool/symbol/go_table.h"

enum { WORD = sizeof(uint64_t), PIECE_WORDS = 512 };
enum { SEARCHED_MOST = 1 << 28 };  // of a section, whatever the file says

// ---- by instructions (x86-64) -------------------------------------------------------------------

enum {
    LOAD = 0x8b,
    REX_LOW = 0x40,
    REX_HIGH = 0x4f,
    REX_WIDE = 8,
    MODE_MASK = 0xc7,
    MODE_HERE = 5
};

// Finds the last load of a variable, by its distance from the code, in a function: of 8 bytes or
// of 4. Returns its virtual address in the file; 0: there is none.
static uint64_t last_load(const struct image *image, const char *function, bool is_wide) {
    struct bytes code;
    uint64_t address, found = 0;
    if (!go_table_find_code(image, function, &code, &address)) return 0;
    const uint8_t *bytes = code.at;
    const size_t size = bytes_left(&code), after = 2 + sizeof(int32_t);
    for (size_t i = 1; i + after <= size; i++) {
        int32_t distance;
        if (bytes[i] != LOAD || (bytes[i + 1] & MODE_MASK) != MODE_HERE) continue;
        const bool has_prefix = bytes[i - 1] >= REX_LOW && bytes[i - 1] <= REX_HIGH;
        if ((has_prefix && (bytes[i - 1] & REX_WIDE)) != is_wide) continue;
        memcpy(&distance, bytes + i + 2, sizeof distance);
        found = address + i + after + (uint64_t)(int64_t)distance;
    }
    return found;
}

// ---- by what they lead to -----------------------------------------------------------------------

typedef bool word_visit(void *context, uint64_t address, const uint64_t words[3]);

// Shows every word of the writable data with the two behind it, until a visit returns true.
static void visit_words(const struct memory_reader *memory, const struct go_program *program,
                        word_visit *visit, void *context) {
    static const char *const names[] = {".noptrbss", ".bss", ".noptrdata", ".data"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t start, size;
        if (!go_program_section(program, names[i], &start, &size)) continue;
        if (size > SEARCHED_MOST) size = SEARCHED_MOST;
        for (uint64_t at = start; at + 3 * WORD <= start + size; at += PIECE_WORDS * WORD) {
            uint64_t words[PIECE_WORDS + 2];
            uint64_t bytes = start + size - at;
            if (bytes > sizeof words) bytes = sizeof words;
            if (!memory_read(memory, at, words, bytes)) continue;
            for (uint64_t word = 0; word + 3 <= bytes / WORD && word < PIECE_WORDS; word++)
                if (visit(context, at + word * WORD, words + word)) return;
        }
    }
}

struct finding {
    const struct memory_reader *memory;
    struct go_program *program;
    uint64_t most;  // spans of a list
};

static bool is_first_bucket(void *context, uint64_t address, const uint64_t words[3]) {
    const struct finding *finding = context;
    const uint64_t least = 1 << 12;
    if (words[0] < least || words[0] % WORD || !go_profile_is_bucket(finding->memory, words[0]))
        return false;
    finding->program->profile.buckets = address;
    return true;
}

// The longest list: others are parts of it.
static bool is_list_of_spans(void *context, uint64_t address, const uint64_t words[3]) {
    struct finding *finding = context;
    const uint64_t least = 1 << 12;
    if (words[0] < least || words[0] % WORD || words[1] <= finding->most || words[1] > words[2] ||
        words[2] > UINT32_MAX ||
        !go_spans_is_list(finding->memory, words[0], words[1], finding->program->minor))
        return false;
    finding->most = words[1];
    finding->program->heap = address - go_spans_list_place(finding->program->minor);
    return false;
}

void go_search(const struct memory_reader *memory, struct go_program *program) {
    struct finding finding = {memory, program, 0};
    struct go_profile_place *profile = &program->profile;
    const uint64_t rate = last_load(&program->image, "runtime.profilealloc", true);
    const uint64_t cycle = last_load(&program->image, "runtime.mProf_Malloc", false);
    if (!profile->rate && rate) profile->rate = program->bias + rate;
    if (!profile->cycle && cycle) profile->cycle = program->bias + cycle;
    if (!profile->buckets) visit_words(memory, program, is_first_bucket, &finding);
    if (!program->heap) visit_words(memory, program, is_list_of_spans, &finding);
}
