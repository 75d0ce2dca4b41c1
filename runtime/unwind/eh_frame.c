// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/eh_frame.h"

#include "runtime/sys/sys.h"
#include "runtime/unwind/read.h"

// Pointer encodings of .eh_frame (LSB core, 10.5.1).
enum {
    ENCODING_ABSOLUTE = 0x00,
    ENCODING_ULEB = 0x01,
    ENCODING_U2 = 0x02,
    ENCODING_U4 = 0x03,
    ENCODING_U8 = 0x04,
    ENCODING_SLEB = 0x09,
    ENCODING_S2 = 0x0a,
    ENCODING_S4 = 0x0b,
    ENCODING_S8 = 0x0c,
    ENCODING_RELATIVE_PC = 0x10,
    ENCODING_RELATIVE_DATA = 0x30,
    ENCODING_OMITTED = 0xff,
};

static uint64_t read_encoded_value(struct cursor *cursor, uint8_t encoding) {
    switch (encoding & 0x0f) {
    case ENCODING_ULEB:
        return read_uleb(cursor);
    case ENCODING_U2:
        return read_bytes(cursor, 2);
    case ENCODING_U4:
        return read_bytes(cursor, 4);
    case ENCODING_ABSOLUTE:
    case ENCODING_U8:
    case ENCODING_S8:
        return read_bytes(cursor, 8);
    case ENCODING_SLEB:
        return (uint64_t)read_sleb(cursor);
    case ENCODING_S2:
        return (uint64_t)(int64_t)(int16_t)read_bytes(cursor, 2);
    case ENCODING_S4:
        return (uint64_t)(int64_t)(int32_t)read_bytes(cursor, 4);
    }
    cursor->is_broken = true;
    return 0;
}

static uint64_t read_encoded(struct cursor *cursor, uint8_t encoding, const uint8_t *data_base) {
    uint64_t here = (uintptr_t)cursor->at;
    uint64_t value = read_encoded_value(cursor, encoding);
    switch (encoding & 0x70) {
    case ENCODING_ABSOLUTE:
        return value;
    case ENCODING_RELATIVE_PC:
        return value + here;
    case ENCODING_RELATIVE_DATA:
        return value + (uintptr_t)data_base;
    }
    cursor->is_broken = true;
    return 0;
}

// A frame description entry with its common part (CIE) decoded.
struct entry {
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_register;
    uint8_t pointer_encoding;
    bool has_augmentation_size;
    bool is_signal_frame;
    uintptr_t start, length;
    struct cursor initial;       // instructions of the common part
    struct cursor instructions;  // of this entry
};

static struct cursor cursor_over(const struct row_source *source, uintptr_t at) {
    struct cursor cursor = {source->start, source->end, false};
    if (at < (uintptr_t)source->start || at > (uintptr_t)source->end) {
        cursor.is_broken = true;
        cursor.at = cursor.end;
    } else {
        cursor.at = (const uint8_t *)at;
    }
    return cursor;
}

// Cuts the cursor to the length field it stands on. Lengths of 64 bits do not occur in .eh_frame.
static void cursor_enter(struct cursor *cursor) {
    const uint32_t length_of_64_bits = 0xffffffff;
    uint64_t length = read_bytes(cursor, 4);
    if (length == 0 || length == length_of_64_bits || length > (uint64_t)(cursor->end - cursor->at))
        cursor->is_broken = true;
    else
        cursor->end = cursor->at + length;
}

static void common_parse_augmentation(struct cursor *cursor, const char *text,
                                      struct entry *entry) {
    uint64_t size = read_uleb(cursor);
    if (size > (uint64_t)(cursor->end - cursor->at)) {
        cursor->is_broken = true;
        return;
    }
    const uint8_t *after = cursor->at + size;
    for (text++; *text; text++) {
        if (*text == 'R') entry->pointer_encoding = (uint8_t)read_bytes(cursor, 1);
        if (*text == 'L') read_bytes(cursor, 1);
        if (*text == 'P') {
            uint8_t encoding = (uint8_t)read_bytes(cursor, 1);
            read_encoded_value(cursor, encoding);
        }
        if (*text == 'S') entry->is_signal_frame = true;
    }
    cursor->at = after;
}

static bool common_parse(const struct row_source *source, uintptr_t at, struct entry *entry) {
    struct cursor cursor = cursor_over(source, at);
    cursor_enter(&cursor);
    if (cursor.is_broken || read_bytes(&cursor, 4) != 0) return false;
    uint64_t version = read_bytes(&cursor, 1);
    if (version != 1 && version != 3) return false;
    const char *augmentation = (const char *)cursor.at;
    const uint8_t *terminator = memchr(cursor.at, 0, (size_t)(cursor.end - cursor.at));
    if (!terminator) return false;
    cursor.at = terminator + 1;
    entry->code_factor = read_uleb(&cursor);
    entry->data_factor = read_sleb(&cursor);
    entry->return_register = version == 1 ? read_bytes(&cursor, 1) : read_uleb(&cursor);
    entry->has_augmentation_size = augmentation[0] == 'z';
    if (entry->has_augmentation_size) common_parse_augmentation(&cursor, augmentation, entry);
    entry->initial = cursor;
    return !cursor.is_broken && (augmentation[0] == 0 || augmentation[0] == 'z');
}

static bool entry_parse(const struct row_source *source, uintptr_t at, struct entry *entry) {
    struct cursor cursor = cursor_over(source, at);
    cursor_enter(&cursor);
    uintptr_t back_from = (uintptr_t)cursor.at;
    uint64_t back = read_bytes(&cursor, 4);
    if (cursor.is_broken || back == 0) return false;
    if (!common_parse(source, back_from - back, entry)) return false;
    entry->start = read_encoded(&cursor, entry->pointer_encoding, NULL);
    entry->length = read_encoded_value(&cursor, entry->pointer_encoding & 0x0f);
    if (entry->has_augmentation_size) read_skip(&cursor, read_uleb(&cursor));
    entry->instructions = cursor;
    return !cursor.is_broken;
}

// The sorted table of .eh_frame_hdr: pairs (start of code, entry), both relative to the header.
struct table_row {
    int32_t start;
    int32_t entry;
};

static bool table_search(const struct row_source *source, uintptr_t pc, uintptr_t *entry_at) {
    const uint8_t *header = source->eh_frame_hdr;
    const uint8_t table_encoding = ENCODING_RELATIVE_DATA | ENCODING_S4;
    struct cursor cursor = cursor_over(source, (uintptr_t)header);
    uint64_t version = read_bytes(&cursor, 1);
    uint8_t frame_encoding = (uint8_t)read_bytes(&cursor, 1);
    uint8_t count_encoding = (uint8_t)read_bytes(&cursor, 1);
    uint8_t encoding = (uint8_t)read_bytes(&cursor, 1);
    if (version != 1 || encoding != table_encoding || count_encoding == ENCODING_OMITTED)
        return false;
    read_encoded(&cursor, frame_encoding, header);
    uint64_t count = read_encoded(&cursor, count_encoding, header);
    if (cursor.is_broken || count == 0) return false;
    if (count > (uint64_t)(cursor.end - cursor.at) / sizeof(struct table_row)) return false;
    const uint8_t *rows = cursor.at;
    int64_t target = (int64_t)(pc - (uintptr_t)header);
    uint64_t low = 0, high = count;  // the last row that starts at or before the target
    struct table_row row;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        memcpy(&row, rows + middle * sizeof row, sizeof row);
        if (row.start <= target)
            low = middle;
        else
            high = middle;
    }
    memcpy(&row, rows + low * sizeof row, sizeof row);
    *entry_at = (uintptr_t)header + (uintptr_t)(intptr_t)row.entry;
    return row.start <= target;
}

enum { SAVED_ROWS = 8 };

// State of the instructions' execution.
struct machine {
    const struct entry *entry;
    struct row row, initial;
    struct row saved[SAVED_ROWS];
    unsigned saved_count;
    uintptr_t location;
};

static struct row_register *machine_register(struct machine *machine, uint64_t number) {
    if (number == REGISTER_FRAME) return &machine->row.frame;
    if (number == machine->entry->return_register) return &machine->row.ret;
    return NULL;
}

static void machine_set(struct machine *machine, uint64_t number, struct row_register rule) {
    struct row_register *target = machine_register(machine, number);
    if (target) *target = rule;
}

static void machine_set_offset(struct machine *machine, uint64_t number, int64_t factored) {
    int64_t offset = (int64_t)((uint64_t)factored * (uint64_t)machine->entry->data_factor);
    machine_set(machine, number, (struct row_register){.how = ROW_AT_CFA, .offset = offset});
}

static void machine_restore(struct machine *machine, uint64_t number) {
    if (number == REGISTER_FRAME) machine->row.frame = machine->initial.frame;
    if (number == machine->entry->return_register) machine->row.ret = machine->initial.ret;
}

static struct row_expression read_block(struct cursor *cursor) {
    struct row_expression block = {0};
    uint64_t length = read_uleb(cursor);
    block.bytes = cursor->at;
    block.length = (uint32_t)length;
    read_skip(cursor, length);
    return block;
}

static void machine_define_cfa(struct machine *machine, uint64_t number, int64_t offset) {
    machine->row.is_cfa_expression = false;
    machine->row.cfa_register = (uint32_t)number;
    machine->row.cfa_offset = offset;
}

static bool machine_remember(struct machine *machine) {
    if (machine->saved_count == SAVED_ROWS) return false;
    machine->saved[machine->saved_count++] = machine->row;
    return true;
}

static bool machine_recall(struct machine *machine) {
    if (machine->saved_count == 0) return false;
    bool is_signal_frame = machine->row.is_signal_frame;
    machine->row = machine->saved[--machine->saved_count];
    machine->row.is_signal_frame = is_signal_frame;
    return true;
}

enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RECALL = 0x0b,
    CFA_DEFINE = 0x0c,
    CFA_DEFINE_REGISTER = 0x0d,
    CFA_DEFINE_OFFSET = 0x0e,
    CFA_DEFINE_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_SIGNED = 0x11,
    CFA_DEFINE_SIGNED = 0x12,
    CFA_DEFINE_OFFSET_SIGNED = 0x13,
    CFA_VALUE_OFFSET = 0x14,
    CFA_VALUE_OFFSET_SIGNED = 0x15,
    CFA_VALUE_EXPRESSION = 0x16,
    CFA_GNU_WINDOW_SAVE = 0x2d,  // aarch64: toggles return address signing; see processor.h
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_OFFSET_NEGATIVE = 0x2f,
};

// Instructions that set how a register is found. False: not one of these.
static bool machine_step_register(struct machine *machine, struct cursor *cursor, uint8_t op) {
    uint64_t number = 0;
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        number = read_uleb(cursor);
        machine_set_offset(machine, number, (int64_t)read_uleb(cursor));
        return true;
    case CFA_OFFSET_SIGNED:
        number = read_uleb(cursor);
        machine_set_offset(machine, number, read_sleb(cursor));
        return true;
    case CFA_GNU_OFFSET_NEGATIVE:
        number = read_uleb(cursor);
        machine_set_offset(machine, number, (int64_t)(0 - read_uleb(cursor)));
        return true;
    case CFA_RESTORE_EXTENDED:
        machine_restore(machine, read_uleb(cursor));
        return true;
    case CFA_UNDEFINED:
        machine_set(machine, read_uleb(cursor), (struct row_register){.how = ROW_UNDEFINED});
        return true;
    case CFA_SAME_VALUE:
        machine_set(machine, read_uleb(cursor), (struct row_register){.how = ROW_SAME});
        return true;
    case CFA_EXPRESSION:
        number = read_uleb(cursor);
        machine_set(
            machine, number,
            (struct row_register){.how = ROW_AT_EXPRESSION, .expression = read_block(cursor)});
        return true;
    case CFA_REGISTER:
    case CFA_VALUE_OFFSET:
        number = read_uleb(cursor);
        read_uleb(cursor);
        machine_set(machine, number, (struct row_register){.how = ROW_UNSUPPORTED});
        return true;
    case CFA_VALUE_OFFSET_SIGNED:
        number = read_uleb(cursor);
        read_sleb(cursor);
        machine_set(machine, number, (struct row_register){.how = ROW_UNSUPPORTED});
        return true;
    case CFA_VALUE_EXPRESSION:
        number = read_uleb(cursor);
        read_block(cursor);
        machine_set(machine, number, (struct row_register){.how = ROW_UNSUPPORTED});
        return true;
    }
    return false;
}

// Instructions that set how the CFA is found. False: not one of these.
static bool machine_step_cfa(struct machine *machine, struct cursor *cursor, uint8_t op) {
    uint64_t number = 0;
    int64_t factor = machine->entry->data_factor;
    switch (op) {
    case CFA_DEFINE:
        number = read_uleb(cursor);
        machine_define_cfa(machine, number, (int64_t)read_uleb(cursor));
        return true;
    case CFA_DEFINE_SIGNED:
        number = read_uleb(cursor);
        machine_define_cfa(machine, number,
                           (int64_t)((uint64_t)read_sleb(cursor) * (uint64_t)factor));
        return true;
    case CFA_DEFINE_REGISTER:
        // After an expression the offset before it counts again: assembler code relies on that.
        machine_define_cfa(machine, read_uleb(cursor), machine->row.cfa_offset);
        return true;
    case CFA_DEFINE_OFFSET:
        machine->row.cfa_offset = (int64_t)read_uleb(cursor);
        return true;
    case CFA_DEFINE_OFFSET_SIGNED:
        machine->row.cfa_offset = (int64_t)((uint64_t)read_sleb(cursor) * (uint64_t)factor);
        return true;
    case CFA_DEFINE_EXPRESSION:
        machine->row.is_cfa_expression = true;
        machine->row.cfa_expression = read_block(cursor);
        return true;
    }
    return false;
}

// Instructions that advance the location. False: not one of these.
static bool machine_step_location(struct machine *machine, struct cursor *cursor, uint8_t op) {
    uint64_t factor = machine->entry->code_factor;
    switch (op) {
    case CFA_SET_LOC:
        machine->location = read_encoded(cursor, machine->entry->pointer_encoding, NULL);
        return true;
    case CFA_ADVANCE1:
        machine->location += read_bytes(cursor, 1) * factor;
        return true;
    case CFA_ADVANCE2:
        machine->location += read_bytes(cursor, 2) * factor;
        return true;
    case CFA_ADVANCE4:
        machine->location += read_bytes(cursor, 4) * factor;
        return true;
    }
    return false;
}

static bool machine_step(struct machine *machine, struct cursor *cursor) {
    uint8_t op = (uint8_t)read_bytes(cursor, 1);
    uint8_t low = op & 0x3f;
    switch (op & 0xc0) {
    case CFA_ADVANCE:
        machine->location += low * machine->entry->code_factor;
        return true;
    case CFA_OFFSET:
        machine_set_offset(machine, low, (int64_t)read_uleb(cursor));
        return true;
    case CFA_RESTORE:
        machine_restore(machine, low);
        return true;
    }
    switch (op) {
    case CFA_NOP:
    case CFA_GNU_WINDOW_SAVE:
        return true;
    case CFA_GNU_ARGS_SIZE:
        read_uleb(cursor);
        return true;
    case CFA_REMEMBER:
        return machine_remember(machine);
    case CFA_RECALL:
        return machine_recall(machine);
    }
    return machine_step_register(machine, cursor, op) || machine_step_cfa(machine, cursor, op) ||
           machine_step_location(machine, cursor, op);
}

static bool machine_run(struct machine *machine, struct cursor cursor, uintptr_t pc) {
    while (cursor.at < cursor.end && machine->location <= pc) {
        if (!machine_step(machine, &cursor) || cursor.is_broken) return false;
    }
    return true;
}

static COLD bool entry_find(const struct row_source *source, uintptr_t pc, struct entry *entry) {
    uintptr_t at = 0;
    *entry = (struct entry){.pointer_encoding = ENCODING_ABSOLUTE};
    if (!source->eh_frame_hdr || !table_search(source, pc, &at)) return false;
    return entry_parse(source, at, entry) && pc - entry->start < entry->length;
}

bool row_find_code(const struct row_source *source, uintptr_t pc, uintptr_t *start,
                   uintptr_t *end) {
    struct entry entry;
    if (!entry_find(source, pc, &entry)) return false;
    *start = entry.start;
    *end = entry.start + entry.length;
    return true;
}

bool row_find(const struct row_source *source, uintptr_t pc, struct row *row) {
    struct entry entry;
    if (!entry_find(source, pc, &entry)) return false;
    struct machine machine = {.entry = &entry, .location = 0};
    machine.row.is_signal_frame = entry.is_signal_frame;
    if (!machine_run(&machine, entry.initial, UINTPTR_MAX)) return false;
    machine.initial = machine.row;
    machine.location = entry.start;
    if (!machine_run(&machine, entry.instructions, pc)) return false;
    *row = machine.row;
    return true;
}
