// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/claims.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/render/terminal.h"

#define FINDINGS "docs/howto/findings.md#"
#define SUMMARY "docs/reference/summary.md#"

// clang-format off
#define WHERE {"where", CLAIM_UNIT_NAME}
#define AT {"at_ns", CLAIM_UNIT_NS}
#define COUNT(name) {name, CLAIM_UNIT_COUNT}
#define BYTES(name) {name, CLAIM_UNIT_BYTES}
#define NS(name) {name, CLAIM_UNIT_NS}
#define FLAG(name) {name, CLAIM_UNIT_FLAG}
#define NAME(name) {name, CLAIM_UNIT_NAME}
#define WORDS(name) {name, CLAIM_UNIT_WORDS}

static const char every_call[] =
    "[is_exact?every call was counted][!is_exact?not every call was counted]";
#define EXACT FLAG("is_exact")
#define HOW_SURE FLAG("is_sampled"), EXACT, FLAG("is_partial")
static const char how_sure[] =
    "[is_sampled?estimate from samples][is_exact?every call was counted][is_partial?not every call was counted]";
static const char seen_once[] = "as the process' pages were at {at_ns}";
#define COMPARE "docs/howto/compare.md"
#define DIFF_FIELDS COUNT("rows"), WHERE, COUNT("before"), COUNT("after"), COUNT("calls_before"), COUNT("calls_after")
static const char of_largest[] = "of the largest: {calls_before:call|calls} before, {calls_after} after";
static const char contents[] = "what blocks held as they were looked into";

static const char mappings_and_heap[] = "the mappings of a process, and glibc's heap in them";
static const char as_read[] = "as the process was when it was read";
#define RSS "docs/howto/heap.md"
#define REMEDIES_PAGE "docs/howto/heap.md#what-would-give-memory-back"
#define HISTORY "docs/howto/history.md"
#define MOVED_FIELDS WHERE, NAME("what"), COUNT("before"), COUNT("after"), NAME("to"), WORDS("levels")
#define NOW_FIELDS BYTES("bytes"), BYTES("rss_bytes")

// clang-format on

static const struct claim_row rows[CLAIM_KEYS] = {
#define CLAIM(name, ...) [CLAIM_##name] = {__VA_ARGS__},
#include "tool/answer/claims.def"
};

const struct claim_row *claim_row(enum claim_key key) {
    return &rows[key];
}

// Returns the index of the field with that name; CLAIM_VALUES_MAX: the row has none.
static size_t find_field(enum claim_key key, const char *name, size_t length) {
    const struct claim_field *fields = rows[key].fields;
    for (size_t i = 0; fields[i].unit != CLAIM_UNIT_NONE; i++)
        if (strlen(fields[i].name) == length && !strncmp(fields[i].name, name, length)) return i;
    return CLAIM_VALUES_MAX;
}

static size_t field_of(const struct claim *claim, const char *name) {
    size_t index = find_field(claim->key, name, strlen(name));
    assert(index < CLAIM_VALUES_MAX);
    return index;
}

bool claim_has(const struct claim *claim, const char *name) {
    return find_field(claim->key, name, strlen(name)) < CLAIM_VALUES_MAX;
}

bool claim_is_set(const struct claim *claim, const char *name) {
    return claim->values[field_of(claim, name)].is_set;
}

void claim_set(struct claim *claim, const char *name, int64_t value) {
    size_t index = field_of(claim, name);
    claim->values[index].is_set = true;
    claim->values[index].number = value;
}

void claim_set_real(struct claim *claim, const char *name, double value) {
    size_t index = field_of(claim, name);
    claim->values[index].is_set = true;
    claim->values[index].real = value;
    claim->values[index].number = value != 0;
}

void claim_set_text(struct claim *claim, const char *name, const char *text) {
    size_t index = field_of(claim, name), room = sizeof claim->names - claim->names_used;
    char *copy = claim->names + claim->names_used;
    size_t length = strlen(text);
    if (length >= room) length = room - 1;
    memcpy(copy, text, length);
    copy[length] = 0;
    claim->names_used += length + (length + 1 < room);
    claim->values[index].is_set = true;
    claim->values[index].number = length > 0;
    claim->values[index].text = copy;
}

const char *claim_text(const struct claim *claim, const char *name) {
    return claim->values[field_of(claim, name)].text;
}

// A sentence in the making.
struct writing {
    const struct claim *claim;
    bool is_plain;
    char *out;  // CLAIM_SENTENCE_BYTES
    size_t used;
};

static void put_text(struct writing *writing, const char *text, size_t length) {
    size_t room = CLAIM_SENTENCE_BYTES - 1 - writing->used;
    if (length > room) length = room;
    memcpy(writing->out + writing->used, text, length);
    writing->used += length;
}

static void put_value(struct writing *writing, size_t index) {
    const struct claim *claim = writing->claim;
    const enum claim_unit unit = rows[claim->key].fields[index].unit;
    const int64_t number = claim->values[index].number;
    struct unit_text text = {""};
    if (unit == CLAIM_UNIT_BYTES) text = units_size_as(number, writing->is_plain);
    if (unit == CLAIM_UNIT_COUNT) text = units_count(number);
    if (unit == CLAIM_UNIT_NS) text = units_duration((uint64_t)number);
    if (unit == CLAIM_UNIT_RATE) rate_text(claim->values[index].real, text.text, sizeof text.text);
    if (unit == CLAIM_UNIT_RATIO)
        snprintf(text.text, sizeof text.text, "%.2f", claim->values[index].real);
    const char *said = claim->values[index].text ? claim->values[index].text : text.text;
    put_text(writing, said, strlen(said));
}

static int64_t number_of(const struct claim *claim, size_t index) {
    return index < CLAIM_VALUES_MAX && claim->values[index].is_set ? claim->values[index].number
                                                                   : 0;
}

// {blocks:block|blocks}: [name, end) is what is between the braces.
static void put_counted(struct writing *writing, size_t index, const char *noun, const char *end) {
    const char *many = memchr(noun, '|', (size_t)(end - noun));
    put_value(writing, index);
    put_text(writing, " ", 1);
    if (number_of(writing->claim, index) == 1)
        put_text(writing, noun, (size_t)(many - noun));
    else
        put_text(writing, many + 1, (size_t)(end - many - 1));
}

static void put_placeholder(struct writing *writing, const char *name, const char *end) {
    const enum claim_key key = writing->claim->key;
    size_t length = strcspn(name, ":%}");
    const char *rest = name + length + 1;
    size_t index = find_field(key, name, length);
    assert(index < CLAIM_VALUES_MAX);
    if (name[length] == ':') put_counted(writing, index, rest, end);
    if (name[length] == '}') put_value(writing, index);
    if (name[length] != '%') return;
    size_t of = find_field(key, rest, (size_t)(end - rest));
    struct unit_text share =
        units_percent(number_of(writing->claim, index), number_of(writing->claim, of));
    put_text(writing, share.text, strlen(share.text));
}

static bool is_true(const struct claim *claim, const char *name, size_t length) {
    bool is_negated = *name == '!';
    size_t index = find_field(claim->key, name + is_negated, length - is_negated);
    assert(index < CLAIM_VALUES_MAX);
    return (number_of(claim, index) != 0) != is_negated;
}

// Writes [text, end): text as it is, placeholders, and parts with a condition, which hold no
// others.
static void put_template(struct writing *writing, const char *text, const char *end) {
    while (text < end) {
        size_t plain = strcspn(text, "[{");
        if (text + plain > end) plain = (size_t)(end - text);
        put_text(writing, text, plain);
        text += plain;
        if (text >= end) return;
        const char *close = strchr(text, *text == '[' ? ']' : '}');
        if (*text == '{') {
            put_placeholder(writing, text + 1, close);
        } else {
            const char *begin = strchr(text, '?');
            if (is_true(writing->claim, text + 1, (size_t)(begin - text - 1)))
                put_template(writing, begin + 1, close);
        }
        text = close + 1;
    }
}

static void write_template(const struct claim *claim, const char *text, bool is_plain,
                           char out[CLAIM_SENTENCE_BYTES]) {
    struct writing writing = {claim, is_plain, out, 0};
    put_template(&writing, text, text + strlen(text));
    out[writing.used] = 0;
}

void claim_sentence(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]) {
    write_template(claim, rows[claim->key].sentence, is_plain, out);
}

void claim_sure(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]) {
    write_template(claim, rows[claim->key].sure, is_plain, out);
}

static void put_field(struct json *json, const struct claim *claim, size_t index) {
    const struct claim_field *field = &rows[claim->key].fields[index];
    const double real = claim->values[index].real;
    const double whole = 1000, most = 0x1p62;
    if (field->unit == CLAIM_UNIT_WORDS) return;
    if (!claim->values[index].is_set)
        json_put_null(json, field->name);
    else if (field->unit == CLAIM_UNIT_NAME)
        json_put_string(json, field->name, claim->values[index].text);
    else if (field->unit == CLAIM_UNIT_FLAG)
        json_put_bool(json, field->name, claim->values[index].number != 0);
    else if (field->unit == CLAIM_UNIT_RATE)
        json_put_int(json, field->name, real < most ? (int64_t)real : INT64_MAX);
    else if (field->unit == CLAIM_UNIT_RATIO)
        json_put_thousandths(json, field->name, (unsigned)(real * whole));
    else
        json_put_int(json, field->name, claim->values[index].number);
}

void claim_put_json(struct json *json, const struct claim *claim) {
    const struct claim_row *row = &rows[claim->key];
    char text[CLAIM_SENTENCE_BYTES];
    json_put_string(json, "key", row->key);
    json_open_object(json, "evidence");
    for (size_t i = 0; row->fields[i].unit != CLAIM_UNIT_NONE; i++) put_field(json, claim, i);
    json_close(json);
    claim_sentence(claim, false, text);
    json_put_string(json, "sentence", text);
    claim_sure(claim, false, text);
    json_put_string(json, "sure", text);
    json_put_string(json, "page", row->page);
}

void claim_put_json_alone(struct json *json, const struct claim *claim) {
    json_open_array(json, "claims");
    json_open_object(json, NULL);
    claim_put_json(json, claim);
    json_close(json);
    json_close(json);
}
