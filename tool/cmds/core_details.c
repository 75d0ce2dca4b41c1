// SPDX-License-Identifier: Apache-2.0
// describe and explain: what a block is, who asked for it, what lies in it, and how it is reached.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "tool/base/units.h"
#include "tool/cmds/core_screens.h"
#include "tool/cmds/core_standing.h"

enum { DUMP_LINES = 16, DUMP_WORDS = 2, PLACE_BYTES = 1024 };

// --- contents

// What a word of a block points to: another block, or code and data of a module.
static void print_target(struct core_subject *subject, uint64_t word) {
    struct core_member member;
    char place[PLACE_BYTES];
    if (!word) return;
    if (core_find_member(subject, word, &member, NULL))
        printf("  %s allocation %" PRIx64 "+%" PRIx64, member.is_free ? "free" : "used",
               member.address, word - member.address);
    else if (core_types_place(subject->types, word, place, sizeof place))
        printf("  %s", place);
}

static void print_dump(struct core_subject *subject, const struct core_member *member) {
    uint64_t size = member->size;
    for (uint64_t at = 0, line = 0; at < size && line < DUMP_LINES; line++) {
        uint64_t words[DUMP_WORDS] = {0};
        size_t bytes = size - at < sizeof words ? (size_t)(size - at) : sizeof words;
        if (!core_read(subject->core, member->address + at, words, bytes)) return;
        printf("  %" PRIx64 ":", member->address + at);
        for (size_t i = 0; i < DUMP_WORDS; i++) printf(" %016" PRIx64, words[i]);
        printf("  ");
        for (size_t i = 0; i < bytes; i++) {
            int letter = ((unsigned char *)words)[i];
            putchar(isascii(letter) && isprint(letter) ? letter : '.');
        }
        for (size_t i = 0; i < DUMP_WORDS; i++) print_target(subject, words[i]);
        putchar('\n');
        at += bytes;
    }
    uint64_t shown = (uint64_t)DUMP_LINES * DUMP_WORDS * sizeof(uint64_t);
    if (size > shown)
        printf("  ... %s more\n", units_counted((int64_t)(size - shown), "byte", "bytes").text);
}

// --- how it is reached

static void print_root(struct core_subject *subject, const struct core_reference *reference,
                       const char *what) {
    const struct core_image *core = subject->core;
    char place[PLACE_BYTES] = "";
    if (reference->thread) {
        printf("Register %s for thread %zu references %s",
               core_register_name(core->machine, reference->register_number),
               (size_t)(reference->thread - core->threads.items) + 1, what);
        return;
    }
    const struct core_root root = core_root_of(core, reference->at);
    if (root.thread)
        printf("Thread %zu is currently using this stack.\n",
               (size_t)(root.thread - core->threads.items) + 1);
    bool is_named =
        !root.thread && core_types_place(subject->types, reference->at, place, sizeof place);
    printf("%s address 0x%" PRIx64 "%s%s%s references %s", root.thread ? "Stack" : "Static",
           reference->at, is_named ? " (" : "", place, is_named ? ")" : "", what);
}

static void print_path(struct core_subject *subject, const struct core_member *member,
                       const struct core_references *path) {
    for (size_t i = 0; i < path->items.count; i++) {
        const struct core_reference *reference = &path->items.items[i];
        bool is_direct = path->items.count == 1, is_last = i + 1 == path->items.count;
        uint64_t to = is_last ? member->address : path->items.items[i + 1].block;
        if (!i) print_root(subject, reference, is_direct ? "" : "anchor point ");
        printf(i ? "which references 0x%" PRIx64 "\n" : "0x%" PRIx64 "%s\n", to,
               is_direct ? "." : "");
    }
}

// Who refers to a leaked block: others that are leaked.
static void print_referring(const struct core_member *member,
                            const struct core_standing *standing) {
    for (size_t i = 0; i < standing->references.items.count && i < STANDING_REFERENCES; i++) {
        const struct core_reference *reference = &standing->references.items.items[i];
        printf("The leaked allocation at 0x%" PRIx64 " references 0x%" PRIx64
               " at offset 0x%" PRIx64 ".\n",
               reference->block, member->address, reference->at - reference->block);
    }
    if (standing->count > STANDING_REFERENCES)
        printf("... and %zu more references\n", standing->count - STANDING_REFERENCES);
}

// --- one block

static const char *state_of(const struct core_member *member, const struct core_standing *standing,
                            bool is_sentence) {
    if (member->is_free) return is_sentence ? "a free" : "Free";
    switch (standing->reached) {
    case CORE_REACHABLE:
        return is_sentence ? "an anchored" : "Anchored";
    case CORE_LEAKED:
        return is_sentence ? "a leaked" : "Leaked";
    case CORE_UNREFERENCED:
        return is_sentence ? "an unreferenced" : "Unreferenced";
    case CORE_NO_BLOCK:
        break;
    }
    return is_sentence ? "a used" : "Used";
}

static bool print_rest(struct core_subject *subject, const struct core_question *question,
                       const struct core_member *member, const struct core_standing *standing,
                       struct error *error) {
    core_print_signature(subject, member);
    if (member->cell && !core_print_origin(subject, member->cell, error)) return false;
    if (question->verb != VERB_EXPLAIN || member->is_free) return true;
    if (standing->reached == CORE_REACHABLE)
        print_path(subject, member, &standing->references);
    else
        print_referring(member, standing);
    return true;
}

// An address outside of the heap may be a module's or a stack's.
static bool print_place(struct core_subject *subject, uint64_t address) {
    char place[PLACE_BYTES];
    const struct core_root root = core_root_of(subject->core, address);
    if (root.thread)
        printf("Address %" PRIx64 " is in the stack of thread %zu.\n", address,
               (size_t)(root.thread - subject->core->threads.items) + 1);
    else if (core_types_place(subject->types, address, place, sizeof place))
        printf("Address %" PRIx64 " is %s.\n", address, place);
    else
        return false;
    return true;
}

static bool print_block(struct core_standings *standings, const struct core_question *question,
                        const struct core_member *member, struct error *error) {
    struct core_subject *subject = standings->subject;
    struct core_standing standing;
    if (!core_standing_of(standings, member, &standing, error)) return false;
    printf("Address %" PRIx64 " is at offset %" PRIx64 " of\n%s allocation at %" PRIx64
           " of size %" PRIx64 "\n",
           question->address, question->address - member->address,
           state_of(member, &standing, true), member->address, member->size);
    bool is_ok = print_rest(subject, question, member, &standing, error);
    core_references_free(&standing.references);
    if (!is_ok) return false;
    putchar('\n');
    if (question->verb == VERB_DESCRIBE) print_dump(subject, member);
    return true;
}

static bool answer_address(struct core_standings *standings, const struct core_question *question,
                           struct error *error) {
    struct core_subject *subject = standings->subject;
    struct core_member member;
    if (!core_find_member(subject, question->address, &member, error))
        return print_place(subject, question->address);
    if (member.cell) {
        core_want_origin(subject, member.cell);
        if (!names_resolve(subject->opened.names, error)) return false;
    }
    return print_block(standings, question, &member, error);
}

// --- sets

struct details {
    struct core_subject *subject;
    struct core_standings *standings;
    const struct core_question *question;
    struct core_sum sum;
    struct error *error;
    bool is_failed;
};

static bool want_member(void *context, const struct core_member *member) {
    const struct details *details = context;
    if (member->cell) core_want_origin(details->subject, member->cell);
    return true;
}

static bool print_member(void *context, const struct core_member *member) {
    struct details *details = context;
    struct core_standing standing;
    details->sum.count++;
    details->sum.bytes += member->size;
    details->is_failed = !core_standing_of(details->standings, member, &standing, details->error);
    if (details->is_failed) return false;
    printf("%s allocation at %" PRIx64 " of size %" PRIx64 "\n", state_of(member, &standing, false),
           member->address, member->size);
    details->is_failed =
        !print_rest(details->subject, details->question, member, &standing, details->error);
    core_references_free(&standing.references);
    putchar('\n');
    return !details->is_failed;
}

static bool answer_set(struct core_standings *standings, const struct core_question *question,
                       struct error *error) {
    struct core_subject *subject = standings->subject;
    struct details details = {
        .subject = subject, .standings = standings, .question = question, .error = error};
    if (subject->is_recorded &&
        (!core_each_member(subject, question, want_member, &details, error) ||
         !names_resolve(subject->opened.names, error)))
        return false;
    if (!core_each_member(subject, question, print_member, &details, error) || details.is_failed)
        return false;
    core_print_sum(&details.sum);
    return true;
}

bool core_answer_details(struct core_subject *subject, const struct core_question *question,
                         struct error *error) {
    struct core_standings standings;
    if (!core_need_types(subject, error)) return false;
    bool is_ok = core_standings_open(subject, question, &standings, error);
    if (is_ok && question->set) is_ok = answer_set(&standings, question, error);
    if (is_ok && !question->set) is_ok = answer_address(&standings, question, error);
    core_standings_close(&standings);
    return is_ok;
}
