// SPDX-License-Identifier: Apache-2.0
// Sentences that say more than a count, as data: one table for the terminal, JSON, the page of
// `cairn open` and agents (docs/reference/json.md#claims).
//
// A row has a key, the values that a claim stands on, the sentence that is made of nothing else,
// and how sure it is. A claim is a row with its values. If they are not
// known there is no claim: the answer leaves it out, or has the claim that says that it is not
// known. Every key has a program in tests/truth for which it holds and one for which it does not.
#ifndef TOOL_ANSWER_CLAIMS_H
#define TOOL_ANSWER_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/json.h"

enum claim_key {
#define CLAIM(name, ...) CLAIM_##name,
#include "tool/answer/claims.def"
    CLAIM_KEYS
};

enum claim_unit {
    CLAIM_UNIT_NONE,  // ends the list of a row
    CLAIM_UNIT_BYTES,
    CLAIM_UNIT_COUNT,
    CLAIM_UNIT_NS,
    CLAIM_UNIT_RATE,   // bytes in a second
    CLAIM_UNIT_RATIO,  // 0 to 1
    CLAIM_UNIT_FLAG,
    CLAIM_UNIT_NAME,   // of a function, a thread, a file
    CLAIM_UNIT_WORDS,  // a part of the sentence that other values say as numbers; not in JSON
};

enum { CLAIM_VALUES_MAX = 16, CLAIM_NAMES_BYTES = 1536, CLAIM_SENTENCE_BYTES = 1024 };

struct claim_field {
    const char *name;  // as in JSON and in the sentence
    enum claim_unit unit;
};

struct claim_row {
    const char *key;       // in JSON
    const char *needs;     // without which there is no claim
    const char *sentence;  // claims_sentence says how it is written
    const char *sure;      // how sure it is, written in the same way
    const char *page;      // what to do about it, or what it means
    struct claim_field fields[CLAIM_VALUES_MAX + 1];
};

const struct claim_row *claim_row(enum claim_key key);

// Stays where it is: texts lie in it.
struct claim {
    enum claim_key key;
    struct {
        bool is_set;
        int64_t number;
        double real;       // of rates and ratios
        const char *text;  // in `names`, or a constant
    } values[CLAIM_VALUES_MAX];
    char names[CLAIM_NAMES_BYTES];
    size_t names_used;
};

// A value by the name that the row has for it; names are escaped already. Those that are never set
// are unknown: null in JSON, and left out of the sentence.
void claim_set(struct claim *claim, const char *name, int64_t value);
bool claim_has(const struct claim *claim, const char *name);
bool claim_is_set(const struct claim *claim, const char *name);
void claim_set_real(struct claim *claim, const char *name, double value);
void claim_set_text(struct claim *claim, const char *name, const char *text);

const char *claim_text(const struct claim *claim, const char *name);

// The sentence, or how sure it is, by the row's text: {bytes} is the value in its unit,
// {blocks:block|blocks} a count with its noun, {blocks%of_blocks} a share, [name? text] is there
// if the value is neither 0 nor unknown, [!name? text] if it is. `is_plain`: sizes as plain
// numbers.
void claim_sentence(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]);
void claim_sure(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]);

// Members of an open object: key, evidence, sentence, sure and page.
void claim_put_json(struct json *json, const struct claim *claim);

// Member "claims" with the only one.
void claim_put_json_alone(struct json *json, const struct claim *claim);

#endif
