// SPDX-License-Identifier: Apache-2.0
// What `cairn core` says of how a block is reached. Of one block that is looked for by itself; who
// asks of a set gets what is common to all its blocks prepared once.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_heap.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/paths.h"
#include "tool/heap/references.h"
#include "tool/heap/roots.h"

// Sets in which no block is reachable need no ways; where there are some, ways tell who is.
struct core_standings {
    struct core_subject *subject;
    bool is_of_one;            // block
    bool is_with_references;   // otherwise only what became of blocks
    bool has_ways, has_leaks;  // those below are open
    struct core_ways ways;
    struct core_leaks leaks;
};

struct core_reachability {
    enum core_reached reached;
    struct core_references references;  // reachable: the way there; leaked: some that refer to it
    size_t count;                       // of all that refer to it
};
enum { STANDING_REFERENCES = 8 };

static bool core_standings_open(struct core_subject *subject, const struct core_question *question,
                                struct core_standings *standings, struct error *error) {
    *standings = (struct core_standings){
        .subject = subject,
        .is_of_one = !question->set || question->set == SET_ALLOCATION,
        .is_with_references = question->verb == VERB_EXPLAIN,
    };
    bool are_leaked = question->set == SET_LEAKED || question->set == SET_UNREFERENCED;
    if (!standings->is_with_references || are_leaked) return core_need_reach(subject, error);
    if (!core_need_map(subject, error)) return false;
    if (standings->is_of_one) return true;
    standings->has_ways = true;
    return core_ways_open(&subject->reach, &standings->ways, error);
}

static void core_standings_close(struct core_standings *standings) {
    if (standings->has_ways) core_ways_close(&standings->ways);
    if (standings->has_leaks) core_leaks_close(&standings->leaks);
}

// A block to which no way leads is leaked, and those that refer to it are.
static bool find_one(const struct core_reach *reach, uint64_t address,
                     struct core_reachability *standing) {
    uint64_t place;
    standing->reached = CORE_NO_BLOCK;
    if (!block_map_find(&reach->map, address, &place)) return true;
    if (!core_find_path(reach, address, &standing->references)) return false;
    standing->reached = CORE_REACHABLE;
    if (standing->references.items.count) return true;
    if (!core_find_incoming(reach, address, &standing->references)) return false;
    standing->count = standing->references.items.count;
    standing->reached = standing->count ? CORE_LEAKED : CORE_UNREFERENCED;
    return true;
}

static bool find_referring(struct core_standings *standings, uint64_t address,
                           struct core_reachability *standing) {
    if (!standings->has_leaks) {
        standings->has_leaks = true;
        if (!core_leaks_open(&standings->subject->reach, &standings->leaks)) return false;
    }
    return core_leaks_to(&standings->leaks, address, STANDING_REFERENCES, &standing->references,
                         &standing->count);
}

static bool find(struct core_standings *standings, uint64_t address,
                 struct core_reachability *standing) {
    const struct core_reach *reach = &standings->subject->reach;
    if (standings->is_with_references && standings->is_of_one)
        return find_one(reach, address, standing);
    standing->reached = core_reach_of(reach, address);
    if (!standings->is_with_references || standing->reached == CORE_NO_BLOCK) return true;
    if (standing->reached == CORE_REACHABLE)
        return core_ways_to(&standings->ways, address, &standing->references);
    return find_referring(standings, address, standing);
}

// `standing` is to be released by core_references_free of its references.
static bool core_reachability_of(struct core_standings *standings, const struct core_member *member,
                                 struct core_reachability *standing, struct error *error) {
    *standing = (struct core_reachability){.reached = CORE_NO_BLOCK};
    if (member->is_free || find(standings, member->address, standing)) return true;
    core_references_free(&standing->references);
    return error_set(error, "out of memory");
}

// describe and explain: what a block is, who asked for it, what lies in it, and how it is reached.

enum { DUMP_LINES = 16, DUMP_WORDS = 2, PLACE_BYTES = 1024 };

// --- contents

// What a word of a block points to: another block, or code and data of a module.
static void print_target(struct core_subject *subject, uint64_t word) {
    struct core_member member;
    char place[PLACE_BYTES];
    if (!word) return;
    if (core_find_member(subject, word, &member, NULL))
        printf("  %s allocation %" PRIx64 "+%" PRIx64,
               member.is_moving ? "moving"
               : member.is_free ? "free"
                                : "used",
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

// The same in the program's words, and for its debugger.
static void print_typed(struct core_subject *subject, const struct core_member *member) {
    char text[LAYOUT_TEXT_BYTES];
    const char *type = typed_name(subject->typed, member->address, member->size);
    if (type) printf("type: %s\n", type);
    if (typed_path(subject->typed, member->address, LAYOUT_SHORT, text, sizeof text))
        printf("path: %s\n", text);
    if (!typed_path(subject->typed, member->address, LAYOUT_EXACT, text, sizeof text)) return;
    char safe[sizeof text];
    text_escape(safe, sizeof safe, text);
    printf("gdb: %s\n", safe);
}

// Who refers to a leaked block: others that are leaked.
static void print_referring(const struct core_member *member,
                            const struct core_reachability *standing) {
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

static const char *state_of(const struct core_member *member,
                            const struct core_reachability *standing, bool is_sentence) {
    if (member->is_free) return is_sentence ? "a free" : "Free";
    if (member->is_moving) return is_sentence ? "a moving" : "Moving";
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
                       const struct core_member *member, const struct core_reachability *standing,
                       struct error *error) {
    core_print_signature(subject, member);
    if (member->cell && !core_print_origin(subject, member->cell, error)) return false;
    if (question->verb != VERB_EXPLAIN || member->is_free || member->is_moving) return true;
    print_typed(subject, member);
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
    struct core_reachability standing;
    if (!core_reachability_of(standings, member, &standing, error)) return false;
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
    struct core_reachability standing;
    details->sum.count++;
    details->sum.bytes += member->size;
    details->is_failed =
        !core_reachability_of(details->standings, member, &standing, details->error);
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
    bool is_explained = question->verb == VERB_EXPLAIN;
    if (!core_need_types(subject, error)) return false;
    if (is_explained && !core_need_typed(subject, error)) return false;
    bool is_ok = core_standings_open(subject, question, &standings, error);
    if (is_ok && question->set) is_ok = answer_set(&standings, question, error);
    if (is_ok && !question->set) is_ok = answer_address(&standings, question, error);
    core_standings_close(&standings);
    return is_ok;
}
