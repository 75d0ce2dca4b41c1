// SPDX-License-Identifier: Apache-2.0
// A translation is a list of operations: one that begins it, one for each frame, from the outermost
// inwards, with the values of that frame behind it. From V8 11 on it may say that so many
// operations are those of an earlier one. Numbers are 7 bits a byte.
#include "runtime/js/translation.h"

#include "runtime/js/positions.h"

// What operations are, for us.
enum kind {
    KIND_VALUE,
    KIND_LITERAL,  // a value that is a literal
    KIND_BEGIN,
    KIND_FRAME,
    KIND_BUILTIN,  // a frame of V8's own that goes on with a function
    KIND_OTHER,    // a frame of no function
    KIND_SAME,     // the operations of an earlier translation
};

enum { OPERATIONS_MOST = 64 };

// Numbers that follow an operation, and its kind, in the order of the version.
struct operation {
    uint8_t operands, kind;
};

struct version {
    uint16_t version;
    uint8_t count;
    bool is_signed;  // every number has a sign, operations too
    struct operation operations[OPERATIONS_MOST];
};

#define VALUES_1                                                                                   \
    { 1, KIND_VALUE }
#define VALUES_2 VALUES_1, VALUES_1
#define VALUES_4 VALUES_2, VALUES_2
#define VALUES_16 VALUES_4, VALUES_4, VALUES_4, VALUES_4

static const struct version versions[] = {
    {10 << 8 | 2,
     28,
     true,
     {{2, KIND_OTHER},
      VALUES_1,
      {0, KIND_VALUE},
      {3, KIND_BEGIN},
      VALUES_2,
      {3, KIND_OTHER},
      VALUES_1,
      {3, KIND_OTHER},
      VALUES_4,
      VALUES_4,
      VALUES_1,
      {5, KIND_FRAME},
      {3, KIND_BUILTIN},
      {3, KIND_BUILTIN},
      {4, KIND_OTHER},
      VALUES_4,
      VALUES_1,
      {2, KIND_VALUE}}},
    {11 << 8 | 3,
     36,
     false,
     {VALUES_1,          {0, KIND_VALUE},   {3, KIND_BEGIN}, {3, KIND_BEGIN}, VALUES_2,
      {3, KIND_OTHER},   VALUES_1,          {3, KIND_OTHER}, VALUES_4,        VALUES_1,
      {2, KIND_OTHER},   VALUES_4,          VALUES_4,        {5, KIND_FRAME}, {3, KIND_FRAME},
      {3, KIND_BUILTIN}, {3, KIND_BUILTIN}, {4, KIND_OTHER}, {0, KIND_VALUE}, VALUES_4,
      VALUES_1,          {2, KIND_VALUE},   {1, KIND_SAME}}},
    {13 << 8 | 6,
     45,
     false,
     {{6, KIND_FRAME}, {4, KIND_FRAME}, {3, KIND_BUILTIN}, {3, KIND_BUILTIN}, {2, KIND_OTHER},
      {1, KIND_OTHER}, {3, KIND_OTHER}, {4, KIND_OTHER},   {3, KIND_OTHER},   {3, KIND_OTHER},
      {3, KIND_OTHER}, VALUES_1,        {0, KIND_VALUE},   {0, KIND_VALUE},   {3, KIND_BEGIN},
      {3, KIND_BEGIN}, VALUES_2,        VALUES_1,          {0, KIND_VALUE},   VALUES_16,
      VALUES_1,        {0, KIND_VALUE}, {1, KIND_LITERAL}, VALUES_2,          VALUES_1,
      VALUES_1,        {2, KIND_VALUE}, {1, KIND_SAME}}},
};

static const struct version *version_find(uint16_t version) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i].version == version) return &versions[i];
    return NULL;
}

bool translation_is_known(uint16_t version) {
    return version_find(version) != NULL;
}

// A translation in reading.
struct reader {
    const struct version *version;
    const uint8_t *table;
    struct positions_numbers here, earlier;
    uint32_t same_count;     // operations yet to be read from the earlier one
    uint32_t skipped_count;  // operations read here since that one was read
    bool is_bad;
};

enum { OPERANDS_MOST = 6 };

// Those that an operation does not have are 0.
static void read_operands(struct positions_numbers *numbers, unsigned count,
                          uint32_t operands[OPERANDS_MOST]) {
    for (unsigned i = 0; i < OPERANDS_MOST; i++)
        operands[i] = i < count ? (uint32_t)positions_read(numbers) : 0;
}

static const struct operation *read_earlier(struct reader *reader,
                                            uint32_t operands[OPERANDS_MOST]) {
    struct positions_numbers *earlier = &reader->earlier;
    uint32_t index = earlier->at < earlier->end ? *earlier->at++ : OPERATIONS_MOST;
    if (index >= reader->version->count) return NULL;
    const struct operation *operation = &reader->version->operations[index];
    if (operation->kind == KIND_SAME) return NULL;
    read_operands(earlier, operation->operands, operands);
    return operation;
}

// The first of so many operations of the earlier translation, behind those that were read here in
// the place of its own.
static const struct operation *begin_same(struct reader *reader, uint32_t count,
                                          uint32_t operands[OPERANDS_MOST]) {
    if (!count || !reader->earlier.at) return NULL;
    for (; reader->skipped_count; reader->skipped_count--)
        if (!read_earlier(reader, operands)) return NULL;
    reader->same_count = count - 1;
    return read_earlier(reader, operands);
}

// The first operand of a beginning says how far back the earlier translation begins; 0: there is
// none.
static bool begin(struct reader *reader, const uint8_t *start, uint32_t back) {
    if (back > (size_t)(start - reader->table)) return false;
    if (back) reader->earlier = (struct positions_numbers){start - back, reader->here.end};
    reader->skipped_count = 1;
    return true;
}

// The next operation with its operands; NULL: the end, or it is not understood.
static const struct operation *read_next(struct reader *reader, uint32_t operands[OPERANDS_MOST]) {
    const struct version *version = reader->version;
    if (reader->same_count) {
        reader->same_count--;
        return read_earlier(reader, operands);
    }
    if (reader->here.at >= reader->here.end) return NULL;
    const uint8_t *start = reader->here.at;
    uint32_t index = *reader->here.at++;
    if (version->is_signed) index >>= 1;
    // Values above all operations are short for that many of the earlier one.
    if (index >= version->count)
        return version->is_signed ? NULL : begin_same(reader, index - version->count, operands);
    const struct operation *operation = &version->operations[index];
    read_operands(&reader->here, operation->operands, operands);
    if (operation->kind == KIND_SAME) return begin_same(reader, operands[0], operands);
    reader->skipped_count++;
    if (operation->kind == KIND_BEGIN && !version->is_signed && !begin(reader, start, operands[0]))
        return NULL;
    return operation;
}

// The sign is in the lowest bit.
static int32_t with_sign(uint32_t number) {
    int32_t value = (int32_t)(number >> 1);
    return number & 1 ? -value : value;
}

// The first value of a frame is its function. Of V8's own frames Maglev has the function that they
// return to elsewhere. The reader is a copy: the value is read again.
static void read_closure(struct reader reader, struct translation_frame *frame) {
    uint32_t operands[OPERANDS_MOST] = {0};
    const struct operation *operation = read_next(&reader, operands);
    if (operation && operation->kind == KIND_LITERAL)
        frame->literal = (uint32_t)with_sign(operands[0]);
}

uint32_t translation_read(uint16_t version_number, const uint8_t *table, size_t size,
                          uint32_t index, struct translation_frame frames[TRANSLATION_FRAMES]) {
    uint32_t operands[OPERANDS_MOST] = {0}, count = 0;
    struct reader reader = {.version = version_find(version_number), .table = table};
    if (!reader.version || index >= size) return 0;
    reader.here = (struct positions_numbers){table + index, table + size};
    const struct operation *operation = read_next(&reader, operands);
    if (!operation || operation->kind != KIND_BEGIN) return 0;
    int32_t wanted = with_sign(operands[reader.version->is_signed ? 0 : 1]);
    while (wanted > 0) {
        operation = read_next(&reader, operands);
        if (!operation || operation->kind == KIND_BEGIN) return 0;
        if (operation->kind == KIND_VALUE || operation->kind == KIND_LITERAL) continue;
        wanted--;
        if (operation->kind == KIND_OTHER) continue;
        if (count == TRANSLATION_FRAMES) return 0;
        bool is_builtin = operation->kind == KIND_BUILTIN;
        frames[count].offset = is_builtin ? TRANSLATION_BUILTIN : with_sign(operands[0]);
        frames[count].literal = (uint32_t)with_sign(operands[1]);
        if (is_builtin) read_closure(reader, &frames[count]);
        count++;
    }
    return count;
}
