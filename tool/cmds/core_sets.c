// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_sets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_typed.h"
#include "tool/heap/other_heaps.h"
#include "tool/heap/references.h"
#include "tool/query/name_options.h"
#include "tool/query/progress.h"

static bool open_recording(struct core_subject *subject, const char *beside, struct error *error) {
    subject->header = subject->look.header;
    if (!beside) return heap_look_recording(&subject->look, &subject->opened, error);
    if (!opened_open(beside, &subject->opened, error)) return false;
    if (!subject->look.is_recorded) subject->header = subject->opened.recording.header;
    return true;
}

static void say_pause(const struct heap_look *look) {
    const struct stopped_image *live = &look->live;
    fprintf(stderr, "cairn: process %s was paused for %s (%s, %s copied)\n", look->name,
            units_duration(live->pause_ns).text,
            units_counted((int64_t)live->thread_count, "thread", "threads").text,
            units_size((int64_t)live->copied_bytes).text);
}

static bool open_inside(struct core_subject *subject, const char *beside, struct error *error) {
    if (!subject->look.is_recorded && !beside) return true;
    if (!open_recording(subject, beside, error)) return false;
    subject->is_recorded =
        core_read_blocks(subject->core, &subject->header, subject->opened.profile.cell_count,
                         heap_look_begins(&subject->look), &subject->blocks, error);
    if (!subject->is_recorded) opened_close(&subject->opened);
    return subject->is_recorded;
}

bool core_subject_open(const char *word, const struct heap_wish *wish, const char *beside,
                       struct core_subject *subject, struct error *error) {
    *subject = (struct core_subject){0};
    if (!heap_look_take(word, wish, &subject->look, error)) return false;
    subject->core = subject->look.core;
    if (!subject->look.is_core) {
        say_pause(&subject->look);
        name_options_symbols()->process = (uint32_t)subject->look.pid;
    }
    if (!subject->look.is_core && beside)
        error_set(error, "--recording is for core dumps: of a process it is found");
    else if (open_inside(subject, beside, error))
        return true;
    heap_look_blame(&subject->look, error);
    heap_look_close(&subject->look);
    return false;
}

bool core_subject_take(pid_t pid, const struct cairn_header *header, uint64_t bytes_max,
                       struct core_subject *subject, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = bytes_max,
                                   .way_around = "cairn core PID --no-copy-limit, while it runs,"};
    *subject = (struct core_subject){0};
    if (!heap_look_take_recorded(pid, header, &wish, &subject->look, error)) return false;
    subject->core = subject->look.core;
    return true;
}

bool core_subject_enter(struct core_subject *subject, const char *recording, struct error *error) {
    if (open_inside(subject, recording, error)) return true;
    heap_look_close(&subject->look);
    return false;
}

void core_subject_close(struct core_subject *subject) {
    typed_close(subject->typed);
    core_types_close(subject->types);
    if (subject->has_reach) core_reach_close(&subject->reach);
    glibc_heap_free(&subject->heap);
    free(subject->first_alike);
    free(subject->alike_counts);
    if (subject->is_recorded) {
        core_free_blocks(&subject->blocks);
        opened_close(&subject->opened);
    }
    heap_look_close(&subject->look);
}

// What the blocks of another allocator are, only a complete recording knows.
static bool refuse_sample(const struct core_subject *subject, struct error *error) {
    const char *other = core_other_allocator(subject);
    return error_set(error,
                     "its blocks are %s's, and a sample was recorded of them: record all of them "
                     "(cairn attach --exact, cairn run without --sample)",
                     other ? other : "another allocator than glibc");
}

// Says whether the blocks of another allocator than glibc's matter: of a recorded process, whose
// slots tell that it has one, for their sizes, and for its own lists, which refer to blocks.
static bool may_have_other(const struct core_subject *subject) {
    return !subject->is_recorded || core_is_sampled(subject) ||
           subject->header.slot_bytes == sizeof(uint64_t);
}

bool core_need_heap(struct core_subject *subject, struct error *error) {
    if (subject->has_heap || subject->has_reach) return true;
    const struct memory_view view = core_view(subject->core);
    progress_wait("finding its blocks", subject->look.live.copied_bytes);
    subject->has_heap = glibc_heap_read(&view, &subject->heap, error);
    bool is_ok = !may_have_other(subject) || core_add_other_heaps(subject->core, &subject->heap);
    progress_wait_end();
    if (!is_ok) return error_set(error, "out of memory");
    subject->has_heap |= subject->heap.other.name != NULL;
    if (core_is_sampled(subject) && subject->header.slot_bytes == sizeof(uint64_t) &&
        !subject->heap.other.name)
        return refuse_sample(subject, error);
    if (subject->has_heap) return true;
    if (subject->core->missing_bytes)
        error_set(error,
                  "its malloc heap could not be found: the file is cut off, %s of it are missing",
                  units_size((int64_t)subject->core->missing_bytes).text);
    return core_refuse_heap(subject->core, error);
}

// What belongs to the recording refers to no block.
static bool own_memory(const struct core_subject *subject, struct spans *own) {
    bool is_ok = true;
    if (!subject->is_recorded) return true;
    const struct spans *map = &subject->blocks.map;
    for (size_t i = 0; i < map->items.count && is_ok; i++)
        is_ok = spans_add(own, map->items.items[i].start, map->items.items[i].end);
    uint64_t start = subject->header.self_address;
    is_ok = is_ok && spans_add(own, start, start + subject->header.mapped_bytes);
    spans_settle(own);
    return is_ok;
}

bool core_need_map(struct core_subject *subject, struct error *error) {
    struct spans own = {0};
    if (subject->has_reach) return true;
    bool has_all = subject->is_recorded && !core_is_sampled(subject);
    if (!core_need_heap(subject, error) && !has_all) return false;
    bool are_all_glibc = !subject->heap.other.name;
    bool is_ok = own_memory(subject, &own);
    if (is_ok && subject->is_recorded)
        is_ok = core_add_blocks(subject->core, &subject->blocks, &subject->heap, &are_all_glibc);
    if (!is_ok) error_set(error, "out of memory");
    subject->has_foreign = !are_all_glibc && !subject->heap.other.name;
    subject->has_reach = is_ok && core_reach_open(subject->core, &subject->heap, are_all_glibc,
                                                  &own, &subject->reach, error);
    spans_free(&own);
    return subject->has_reach;
}

bool core_need_reach(struct core_subject *subject, struct error *error) {
    return core_need_map(subject, error) &&
           (subject->reach.is_marked || core_reach_mark(&subject->reach, error));
}

bool core_need_types(struct core_subject *subject, struct error *error) {
    if (!subject->types) subject->types = core_types_open(subject->core, name_options_symbols());
    return subject->types || error_set(error, "out of memory");
}

bool core_need_typed(struct core_subject *subject, struct error *error) {
    if (!core_need_map(subject, error) || !core_need_types(subject, error)) return false;
    const struct profile *profile = subject->is_recorded ? &subject->opened.profile : NULL;
    if (!subject->typed)
        subject->typed =
            core_typed_open(&subject->reach, subject->types, profile, &subject->blocks, error);
    return subject->typed;
}

void core_forget_map(struct core_subject *subject) {
    typed_close(subject->typed);
    if (subject->has_reach) core_reach_close(&subject->reach);
    glibc_heap_free(&subject->heap);
    subject->typed = NULL;
    subject->heap = (struct glibc_heap){0};
    subject->has_reach = subject->has_heap = false;
}

const char *core_type_name(struct core_subject *subject, uint64_t address, uint64_t size) {
    const char *name = subject->typed ? typed_name(subject->typed, address, size) : NULL;
    if (name) return name;
    const struct core_type *type = core_type_of_block(subject->types, address, size);
    return type ? type->name : NULL;
}

const struct glibc_heap *core_heap_of(const struct core_subject *subject) {
    return subject->has_reach ? &subject->reach.heap : &subject->heap;
}

enum { HEADER = 16 };  // of a chunk, in front of its block

// One pass over a set.
struct pass {
    struct core_subject *subject;
    const struct core_question *question;
    bool (*see)(void *context, const struct core_member *member);
    void *context;
};

// --- which blocks

static bool is_of_type(struct core_subject *subject, const char *wanted,
                       const struct core_member *member) {
    char hex[24];
    const struct core_type *type =
        core_type_of_block(subject->types, member->address, member->size);
    if (!strcmp(wanted, "-")) return !type;
    if (!type) return false;
    snprintf(hex, sizeof hex, "%" PRIx64, type->signature);
    return !strcmp(type->name, wanted) || !strcmp(hex, wanted);
}

static bool is_reached_as(const struct pass *pass, uint64_t address) {
    enum core_set set = pass->question->set;
    if (set < SET_ANCHORED || set > SET_UNREFERENCED) return true;
    enum core_reached reached = core_reach_of(&pass->subject->reach, address);
    if (set == SET_ANCHORED) return reached == CORE_REACHABLE;
    return reached == CORE_UNREFERENCED || (set == SET_LEAKED && reached == CORE_LEAKED);
}

static bool show(const struct pass *pass, const struct core_member *member) {
    const char *type = pass->question->type;
    if (!is_reached_as(pass, member->address)) return true;
    if (type && !is_of_type(pass->subject, type, member)) return true;
    return pass->see(pass->context, member);
}

static struct core_member member_of_chunk(const struct glibc_chunk *chunk) {
    bool is_free = chunk_is_free(chunk), is_moving = !is_free && !chunk_is_used(chunk);
    return (struct core_member){chunk->address, chunk->size, is_free, is_moving, 0};
}

static struct core_member member_of_block(const struct core_block *block) {
    return (struct core_member){block->address, block->size, .cell = block->cell};
}

// The end of an arena is one free block more.
static bool show_tops(const struct pass *pass, size_t *next, uint64_t before) {
    const struct glibc_heap *heap = core_heap_of(pass->subject);
    for (; *next < heap->ranges.count && heap->ranges.items[*next].top < before; (*next)++) {
        const struct glibc_range *range = &heap->ranges.items[*next];
        uint64_t size = range->end - range->top;
        const struct core_member top = {range->top + HEADER, size - HEADER, .is_free = true};
        if (size > HEADER && !show(pass, &top)) return false;
    }
    return true;
}

static void each_chunk(const struct pass *pass) {
    const struct glibc_heap *heap = core_heap_of(pass->subject);
    enum core_set set = pass->question->set;
    bool are_free = set == SET_FREE || set == SET_ALLOCATIONS, are_used = set != SET_FREE;
    size_t next = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_member member = member_of_chunk(&heap->chunks.items[i]);
        if (are_free && !show_tops(pass, &next, member.address)) return;
        if (member.is_moving ? set != SET_ALLOCATIONS : !(member.is_free ? are_free : are_used))
            continue;
        if (!show(pass, &member)) return;
    }
    if (are_free) show_tops(pass, &next, UINT64_MAX);
}

static void each_recorded(const struct pass *pass) {
    struct core_block_cursor cursor = {.blocks = &pass->subject->blocks};
    struct core_block block;
    while (core_blocks_next(&cursor, &block)) {
        const struct core_member member = member_of_block(&block);
        if (!show(pass, &member)) return;
    }
}

// --- the block at an address

bool core_find_member(struct core_subject *subject, uint64_t address, struct core_member *member,
                      struct error *error) {
    struct core_block block;
    bool is_recorded = subject->is_recorded && core_block_of(&subject->blocks, address, &block);
    *member = is_recorded ? member_of_block(&block) : (struct core_member){0};
    if (is_recorded) return true;
    bool has_heap = core_need_heap(subject, error);
    if (!has_heap && !subject->is_recorded) return false;
    const struct glibc_chunk *chunk = glibc_chunk_of(core_heap_of(subject), address);
    if (!chunk) return error_set(error, "address %" PRIx64 " is in no block of the heap", address);
    *member = member_of_chunk(chunk);
    return true;
}

// --- references

static int compare_members(const void *a, const void *b) {
    const struct core_member *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static bool find_references(struct core_subject *subject, const struct core_question *question,
                            const struct core_member *member, struct core_references *found,
                            struct error *error) {
    bool is_ok = question->set == SET_INCOMING
                     ? core_find_incoming(&subject->reach, member->address, found)
                     : core_find_outgoing(&subject->reach, member->address, member->size, found);
    return is_ok || error_set(error, "out of memory");
}

// Each block at the other end of a reference once.
static bool each_referring(const struct pass *pass, struct error *error) {
    struct core_member member;
    struct core_references found;
    ARRAY(struct core_member) members = {0};
    if (!core_find_member(pass->subject, pass->question->address, &member, error) ||
        !find_references(pass->subject, pass->question, &member, &found, error))
        return false;
    for (size_t i = 0; i < found.items.count; i++) {
        const struct core_reference *reference = &found.items.items[i];
        bool is_incoming = pass->question->set == SET_INCOMING;
        uint64_t other = is_incoming ? reference->block : reference->to;
        struct core_member *slot = other ? array_push(&members) : NULL;
        if (slot && !core_find_member(pass->subject, other, slot, error)) members.count--;
    }
    core_references_free(&found);
    if (members.count) qsort(members.items, members.count, sizeof *members.items, compare_members);
    for (size_t i = 0; i < members.count; i++)
        if ((!i || members.items[i].address != members.items[i - 1].address) &&
            !show(pass, &members.items[i]))
            break;
    array_free(&members);
    return true;
}

// --- the pass

static bool prepare(struct core_subject *subject, const struct core_question *question,
                    struct error *error) {
    bool needs_reach = question->set >= SET_ANCHORED && question->set <= SET_UNREFERENCED;
    bool needs_map = question->set == SET_INCOMING || question->set == SET_OUTGOING;
    bool needs_heap =
        question->set == SET_FREE || question->set == SET_ALLOCATIONS ||
        (question->set == SET_USED && (!subject->is_recorded || core_is_sampled(subject)));
    if (question->type && !core_need_types(subject, error)) return false;
    if (needs_heap && !core_need_heap(subject, error)) return false;
    if (needs_map && !core_need_map(subject, error)) return false;
    return !needs_reach || core_need_reach(subject, error);
}

bool core_each_member(struct core_subject *subject, const struct core_question *question,
                      bool (*see)(void *context, const struct core_member *member), void *context,
                      struct error *error) {
    const struct pass pass = {subject, question, see, context};
    struct core_member member;
    if (!prepare(subject, question, error)) return false;
    switch (question->set) {
    case SET_INCOMING:
    case SET_OUTGOING:
        return each_referring(&pass, error);
    case SET_ALLOCATION:
        if (!core_find_member(subject, question->address, &member, error)) return false;
        show(&pass, &member);
        return true;
    case SET_FREE:
    case SET_ALLOCATIONS:
        each_chunk(&pass);
        return true;
    default:
        break;
    }
    if (subject->is_recorded && !core_is_sampled(subject))
        each_recorded(&pass);
    else
        each_chunk(&pass);
    return true;
}

// --- count, list, enumerate

void core_print_sum(const struct core_sum *sum) {
    printf("%" PRIu64 " allocations use 0x%" PRIx64 " (%s) bytes.\n", sum->count, sum->bytes,
           units_count((int64_t)sum->bytes).text);
}

void core_print_signature(struct core_subject *subject, const struct core_member *member) {
    const struct core_type *type =
        member->is_free ? NULL : core_type_of_block(subject->types, member->address, member->size);
    if (type) printf("... with signature %" PRIx64 "(%s)\n", type->signature, type->name);
}

struct listing {
    struct core_subject *subject;
    enum core_verb verb;
    struct core_sum sum;
};

static bool list_member(void *context, const struct core_member *member) {
    struct listing *listing = context;
    listing->sum.count++;
    listing->sum.bytes += member->size;
    if (listing->verb == VERB_ENUMERATE) printf("%" PRIx64 "\n", member->address);
    if (listing->verb != VERB_LIST) return true;
    printf("%s allocation at %" PRIx64 " of size %" PRIx64 "\n", core_member_state(member),
           member->address, member->size);
    core_print_signature(listing->subject, member);
    putchar('\n');
    return true;
}

bool core_answer_set(struct core_subject *subject, const struct core_question *question,
                     struct error *error) {
    struct listing listing = {subject, question->verb, {0, 0}};
    if (question->verb == VERB_LIST && !core_need_types(subject, error)) return false;
    if (!core_each_member(subject, question, list_member, &listing, error)) return false;
    if (question->verb != VERB_ENUMERATE) core_print_sum(&listing.sum);
    return true;
}

struct word {
    const char *text;
    int value;
};

static const struct word verbs[] = {
    {"count", VERB_COUNT},         {"list", VERB_LIST},         {"enumerate", VERB_ENUMERATE},
    {"summarize", VERB_SUMMARIZE}, {"describe", VERB_DESCRIBE}, {"explain", VERB_EXPLAIN},
};
static const struct word sets[] = {
    {"used", SET_USED},         {"free", SET_FREE},         {"allocations", SET_ALLOCATIONS},
    {"anchored", SET_ANCHORED}, {"leaked", SET_LEAKED},     {"unreferenced", SET_UNREFERENCED},
    {"incoming", SET_INCOMING}, {"outgoing", SET_OUTGOING}, {"allocation", SET_ALLOCATION},
};

// 0: none of them.
static int find_word(const struct word *words, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i].text, text)) return words[i].value;
    return 0;
}

static bool read_address(const char *text, uint64_t *address) {
    const int base = 16;
    char *end = NULL;
    if (text) *address = strtoull(text, &end, base);
    return end && end != text && !*end;
}

static bool read_set(char *const *words, struct core_question *question, struct error *error) {
    size_t next = 2;
    if (question->set >= SET_INCOMING && !read_address(words[next++], &question->address))
        return error_set(error, "core: '%s %s' wants an address in hexadecimal", words[0],
                         words[1]);
    question->type = words[next];
    if (!question->type || !words[next + 1]) return true;
    return error_set(error, "core: '%s' is too much behind the type of '%s %s'", words[next + 1],
                     words[0], words[1]);
}

// Without a set: an address to describe or explain, modules to sum up by.
static bool read_rest(char *const *words, struct core_question *question, struct error *error) {
    bool has_address = question->verb == VERB_DESCRIBE || question->verb == VERB_EXPLAIN;
    if (has_address && words[1] && !words[2] && read_address(words[1], &question->address))
        return true;
    if (has_address)
        return error_set(error, "core: %s wants one address in hexadecimal or a set, not '%s'",
                         words[0], words[1] ? words[1] : "");
    question->module = words[1];
    question->function = words[1] ? words[2] : NULL;
    if (question->verb == VERB_SUMMARIZE) return true;
    return error_set(error,
                     "core: '%s used' is what can be asked for, and in its place: free, leaked, "
                     "unreferenced, anchored, allocations, incoming ADDRESS, outgoing ADDRESS",
                     words[0]);
}

bool core_read_question(char *const *words, struct core_question *question, struct error *error) {
    *question = (struct core_question){.verb = VERB_OVERVIEW};
    if (!words[0]) return true;
    question->verb = find_word(verbs, sizeof verbs / sizeof *verbs, words[0]);
    if (question->verb == VERB_OVERVIEW)
        return error_set(error,
                         "core: '%s' is none of: count, list, enumerate, summarize, describe, "
                         "explain",
                         words[0]);
    if (words[1]) question->set = find_word(sets, sizeof sets / sizeof *sets, words[1]);
    return question->set ? read_set(words, question, error) : read_rest(words, question, error);
}

enum heap_depth core_question_depth(const struct core_question *question) {
    bool is_by_reach = question->set >= SET_ANCHORED && question->set <= SET_OUTGOING;
    bool has_types = question->type || question->verb == VERB_LIST;
    bool is_by_words = question->verb == VERB_DESCRIBE || question->verb == VERB_EXPLAIN ||
                       (question->verb == VERB_SUMMARIZE && question->set);
    if (is_by_reach || is_by_words) return HEAP_REFERENCES;
    return question->set && has_types ? HEAP_TYPES : HEAP_BLOCKS;
}
