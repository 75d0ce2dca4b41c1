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
    CLAIM_GROWTH,     // a call site that rises steadily
    CLAIM_REALLOC,    // buffers that are grown many times
    CLAIM_TEMPORARY,  // blocks that are freed before the thread allocates again
    CLAIM_SHORT,      // short-lived blocks, by a sample
    CLAIM_AGES,       // blocks that lived some milliseconds at most (--ages)
    CLAIM_FREED_BY,   // one thread frees what another allocates
    CLAIM_FREE,       // memory that is free in the allocator, but resident
    CLAIM_REUSE,      // blocks that the function frees that allocated them (--free-stacks)
    CLAIM_ALIKE,      // many small blocks of one size by one stack, that live together
    CLAIM_UNTOUCHED,  // parts of large blocks that were never touched
    CLAIM_ARENAS,     // arenas of threads that hold free memory
    CLAIM_STRINGS,    // equal strings: in the view waste, and of a file of core save
    CLAIM_WASTE,      // blocks of zeros, equal ones, ends that are not used (of such a file)
    CLAIM_HUGE,       // a large heap on small pages
    CLAIM_GROWTH_STOPPED,
    CLAIM_GROWTH_NONE,
    CLAIM_GROWTH_UNKNOWN,
    CLAIM_PEAK,
    CLAIM_LEFT,
    CLAIM_WAY,   // of functions, that most of the peak came by
    CLAIM_WAYS,  // where it parts at once
    CLAIM_EXACT,
    CLAIM_EXACT_CALLS,  // of samples
    CLAIM_NOT_EXACT,
    CLAIM_RECORDING_COST,  // recording took more memory than the program
    CLAIM_RESIDENT,
    CLAIM_NOT_HEAP,  // most of resident memory is no live heap
    CLAIM_HEAP,      // what of the resident heap is live
    CLAIM_ACCOUNTS,  // threads that share an account
    CLAIM_DIFF_NEW,  // of diff, in the order of enum change_kind
    CLAIM_DIFF_GONE,
    CLAIM_DIFF_GROWN,
    CLAIM_DIFF_SHRUNK,
    CLAIM_DIFF_NOT_AT_PEAK,
    CLAIM_DIFF_ONLY_AT_PEAK,
    CLAIM_TYPES,  // of a running process or a core
    CLAIM_CONTAINERS,
    CLAIM_OWNERS,
    CLAIM_OF_NO_USE,
    CLAIM_DUPLICATES,
    CLAIM_KEPT_PAGES,
    CLAIM_REMEDY,  // what would make a process smaller
    CLAIM_REMEDY_NONE,
    CLAIM_REMEDY_UNKNOWN,
    CLAIM_NOW_FREE,   // of a process that is not recorded, why it is so big: free in malloc
    CLAIM_NOW_OTHER,  // neither that nor in use there
    CLAIM_NOW_WASTE,  // in use there, and of no use
    CLAIM_NOW_BLOCK,  // one block alone
    CLAIM_NOW_USED,
    CLAIM_NOW_LARGEST,     // none of these
    CLAIM_MOVED,           // of a history: a commit moved a figure
    CLAIM_MAY_HAVE_MOVED,  // there are too few runs to know
    CLAIM_NOT_MOVED,       // the newest commit moved nothing
    CLAIM_KEYS,
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
