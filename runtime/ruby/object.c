// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby/object.h"

#include <string.h>

#include "runtime/ruby/engine.h"

static uint64_t word_at(struct ruby_object_reader *reader, uint64_t address) {
    uint64_t word = 0;
    return memory_read_word(&reader->memory, address, &word) ? word : 0;
}

uint64_t ruby_object_flags(struct ruby_object_reader *reader, uint64_t object) {
    return word_at(reader, object);
}

// ---- texts and symbols --------------------------------------------------------------------------

// Bytes at any address: words are read.
static bool read_bytes(struct ruby_object_reader *reader, uint64_t address, size_t size,
                       uint8_t *out) {
    size_t aside = address % sizeof *reader->words;
    size_t words = (aside + size + sizeof *reader->words - 1) / sizeof *reader->words;
    if (!memory_read(&reader->memory, address - aside, reader->words,
                     words * sizeof *reader->words))
        return false;
    memcpy(out, (const uint8_t *)reader->words + aside, size);
    return true;
}

size_t ruby_object_text(struct ruby_object_reader *reader, uint64_t object, size_t most,
                        uint8_t *out) {
    const unsigned length_shift = 14, length_mask = 0x1f;
    const size_t length_place = 16, address_place = 24;
    uint64_t flags = ruby_object_flags(reader, object), length, address = object;
    if (!ruby_object_is(flags, RUBY_TYPE_STRING)) return 0;
    bool is_counted = engine_ruby.layout.text > length_place || flags & RUBY_IS_APART;
    length =
        is_counted ? word_at(reader, object + length_place) : flags >> length_shift & length_mask;
    address = flags & RUBY_IS_APART ? word_at(reader, object + address_place)
                                    : object + engine_ruby.layout.text;
    if (most > RUBY_TEXT_BYTES) most = RUBY_TEXT_BYTES;
    if (length < most) most = length;
    if (!read_bytes(reader, address, most, out)) return 0;
    return strnlen((const char *)out, most);
}

uint64_t ruby_object_element(struct ruby_object_reader *reader, uint64_t array, uint64_t index) {
    const uint64_t embedded_most = 3;
    uint64_t flags = ruby_object_flags(reader, array), elements = array + RUBY_ARRAY;
    if (!ruby_object_is(flags, RUBY_TYPE_ARRAY)) return 0;
    if (!(flags & RUBY_IS_EMBEDDED)) {
        if (index >= word_at(reader, array + RUBY_ARRAY_LENGTH)) return 0;
        elements = word_at(reader, array + RUBY_ARRAY_ELEMENTS);
    } else if (index >= embedded_most) {
        return 0;
    }
    return word_at(reader, elements + index * sizeof elements);
}

// Symbols are numbered; a list has lists of the texts and symbols of so many at a time.
size_t ruby_object_symbol(struct ruby_object_reader *reader, uint64_t name, size_t most,
                          uint8_t *out) {
    if (!engine_ruby.symbols) return 0;
    uint64_t number = name > engine_ruby.layout.operators ? name >> RUBY_NAME_SHIFT : name;
    uint64_t list = word_at(reader, engine_ruby.symbols + RUBY_NAMES_LIST);
    uint64_t part = ruby_object_element(reader, list, number / RUBY_NAMES_UNIT);
    uint64_t text = part ? ruby_object_element(reader, part, number % RUBY_NAMES_UNIT * 2) : 0;
    return text ? ruby_object_text(reader, text, most, out) : 0;
}

// ---- classes ------------------------------------------------------------------------------------

// A table of Ruby (st_table): where the words are that say how far its entries go, and an entry.
enum { TABLE_FIRST = 32, TABLE_WORDS = 3, ENTRY_WORDS = 3, ENTRIES_MOST = 512 };

static bool is_symbol(struct ruby_object_reader *reader, uint64_t name, const char *text) {
    uint8_t found[32];
    size_t length = ruby_object_symbol(reader, name, sizeof found, found);
    return length == strlen(text) && memcmp(found, text, length) == 0;
}

// Reads what a class keeps by a symbol, whose ID is looked for until it was met once. 0: nothing.
static uint64_t find_kept(struct ruby_object_reader *reader, uint64_t class, uint64_t *known,
                          const char *text) {
    uint64_t extra = word_at(reader, class + engine_ruby.layout.class_extra);
    uint64_t table = extra ? word_at(reader, extra + engine_ruby.layout.extra_variables) : 0;
    uint64_t bounds[TABLE_WORDS], entry[ENTRY_WORDS];  // first, end, entries; hash, key, value
    if (!table || !memory_read(&reader->memory, table + TABLE_FIRST, bounds, sizeof bounds))
        return 0;
    for (uint64_t i = bounds[0]; i < bounds[1] && i - bounds[0] < ENTRIES_MOST; i++) {
        if (!memory_read(&reader->memory, bounds[2] + i * sizeof entry, entry, sizeof entry))
            return 0;
        if (!*known && is_symbol(reader, entry[1], text)) *known = entry[1];
        if (*known && entry[1] == *known) return entry[2];
    }
    return 0;
}

static bool is_class(uint64_t flags) {
    return ruby_object_is(flags, RUBY_TYPE_CLASS) || ruby_object_is(flags, RUBY_TYPE_MODULE);
}

static size_t path_of(struct ruby_object_reader *reader, uint64_t class, size_t most,
                      uint8_t *out) {
    uint64_t path = find_kept(reader, class, &reader->path_name, "__classpath__");
    return path ? ruby_object_text(reader, path, most, out) : 0;
}

// The class of which an object is that has one of its own.
static uint64_t plain_class(struct ruby_object_reader *reader, uint64_t class) {
    const int steps_most = 64;
    for (int i = 0; class && i < steps_most; i++) {
        uint64_t flags = ruby_object_flags(reader, class);
        if (ruby_object_is(flags, RUBY_TYPE_CLASS) && !(flags & RUBY_IS_SINGLETON)) return class;
        class = word_at(reader, class + RUBY_CLASS_ABOVE);
    }
    return 0;
}

static size_t put_literal(const char *text, uint8_t *out) {
    size_t length = strlen(text);
    memcpy(out, text, length);
    return length;
}

static size_t put_object(struct ruby_object_reader *reader, uint64_t class, size_t most,
                         uint8_t *out) {
    const size_t marks = 4;
    size_t used = put_literal("#<", out);
    size_t path = path_of(reader, plain_class(reader, class), most - marks, out + used);
    return path ? used + path + put_literal(">.", out + used + path) : 0;
}

size_t ruby_object_class(struct ruby_object_reader *reader, uint64_t class, size_t most,
                         uint8_t *out) {
    uint64_t flags = ruby_object_flags(reader, class);
    bool is_singleton = false;
    if (ruby_object_is(flags, RUBY_TYPE_INCLUDED)) {
        class = word_at(reader, class + RUBY_OBJECT_CLASS);
    } else if (ruby_object_is(flags, RUBY_TYPE_CLASS) && flags & RUBY_IS_SINGLETON) {
        uint64_t attached = find_kept(reader, class, &reader->attached_name, "__attached__");
        if (!attached) return 0;
        if (!is_class(ruby_object_flags(reader, attached)))
            return put_object(reader, class, most, out);
        is_singleton = true;
        class = attached;
    }
    if (!is_class(ruby_object_flags(reader, class))) return 0;
    size_t used = path_of(reader, class, most - 1, out);
    return used ? used + put_literal(is_singleton ? "." : "#", out + used) : 0;
}
