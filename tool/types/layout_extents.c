// SPDX-License-Identifier: Apache-2.0
#include "tool/types/layout_extents.h"

#include <string.h>

enum { WORD = 8, NAMES_MAX = TYPE_ROLE_MEMBERS, MEMBER_DEPTH_MAX = 12 };

// The members that say it, in the order in which they are read below.
static const struct {
    const char *begin, *members[NAMES_MAX];
} kinds[] = {
    [EXTENTS_NONE] = {"", {NULL}},
    [EXTENTS_VECTOR] = {"std::_Vector_base<", {"_M_start", "_M_finish", "_M_end_of_storage"}},
    [EXTENTS_DEQUE] = {"std::_Deque_base<", {"_M_map", "_M_map_size", "_M_start", "_M_finish"}},
    [EXTENTS_BUCKETS] = {"std::_Hashtable<", {"_M_buckets", "_M_bucket_count"}},
    [EXTENTS_VEC] = {"alloc::vec::Vec<", {"ptr", "len", "cap"}},
    [EXTENTS_TABLE] = {"hashbrown::raw::RawTable<", {"ctrl", "bucket_mask"}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool layout_is_of_template(const struct type *type, const char *begin) {
    size_t length = strlen(begin);
    int depth = 1;
    if (strncmp(type->name, begin, length) != 0) return false;
    const char *at = type->name + length;
    for (; *at && depth; at++) depth += *at == '<' ? 1 : *at == '>' ? -1 : 0;
    return !depth && !*at;
}

enum extents_of layout_extents_kind(const struct type *type) {
    for (unsigned kind = EXTENTS_NONE + 1; kind < KINDS; kind++)
        if (layout_is_of_template(type, kinds[kind].begin)) return (enum extents_of)kind;
    return EXTENTS_NONE;
}

static bool find_member(const struct type *type, const char *name, uint64_t *offset,
                        const struct type **found, int depth) {
    const struct type_fields fields = type_fields(type);
    for (size_t i = 0; i < fields.count; i++) {
        const struct type_field *field = &fields.items[i];
        uint64_t inside = 0;
        bool is_it = field->name && !strcmp(field->name, name);
        if (is_it) *found = field->type;
        if (!is_it && (depth == MEMBER_DEPTH_MAX ||
                       !find_member(field->type, name, &inside, found, depth + 1)))
            continue;
        *offset = field->offset + inside;
        return true;
    }
    return false;
}

bool layout_member(const struct type *type, const char *name, uint64_t *offset,
                   const struct type **found) {
    return find_member(type, name, offset, found, 0);
}

static bool find_members(const struct type *type) {
    struct type_role *role = type->role;
    const char *const *names = kinds[role->extents].members;
    const struct type *found;
    if (role->has_members) return true;
    for (unsigned i = 0; i < NAMES_MAX && names[i]; i++)
        if (!layout_member(type, names[i], &role->members[i], &found)) return false;
    role->has_members = true;
    return true;
}

// A container whose elements are asked for.
struct asked {
    struct layout_extents *extents;
    struct layout_bytes of;
};

static bool read_word(const struct asked *asked, uint64_t offset, uint64_t *word) {
    const struct layout_bytes of = asked->of;
    if (offset > of.size || sizeof *word > of.size - offset) return false;
    memcpy(word, of.bytes + offset, sizeof *word);
    return true;
}

static void add(struct asked *asked, const struct layout_extent *extent) {
    struct layout_extents *extents = asked->extents;
    if (extents->count < LAYOUT_EXTENTS_MAX) extents->items[extents->count++] = *extent;
}

static void add_end(struct asked *asked, uint64_t offset) {
    add(asked, &(struct layout_extent){.offset = offset, .is_end = true});
}

static bool add_vector(struct asked *asked, const uint64_t at[NAMES_MAX]) {
    enum { START, FINISH, STORAGE, WORDS };
    uint64_t words[WORDS];
    for (int i = 0; i < WORDS; i++)
        if (!read_word(asked, at[i], &words[i])) return false;
    if (words[START] > words[FINISH] || words[FINISH] > words[STORAGE]) return false;
    if (!words[START] && words[STORAGE]) return false;
    add(asked, &(struct layout_extent){.offset = at[START], .to = words[FINISH] - words[START]});
    add_end(asked, at[FINISH]);
    add_end(asked, at[STORAGE]);
    return true;
}

// An iterator of a deque.
struct place {
    uint64_t current, first, last, node;
};

static bool read_place(const struct asked *asked, uint64_t offset, struct place *place) {
    uint64_t *const words[] = {&place->current, &place->first, &place->last, &place->node};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (!read_word(asked, offset + (uint64_t)i * WORD, words[i])) return false;
    return place->first <= place->current && place->current <= place->last;
}

// The pieces from the first to the last one that it uses are in the map, which has room for more at
// both of its ends.
static bool add_deque(struct asked *asked, const uint64_t at[NAMES_MAX]) {
    enum { MAP, MAP_SIZE, START, FINISH };
    const uint64_t entries_max = UINT64_C(1) << 40;
    struct place start, finish;
    uint64_t map, entries;
    if (!read_word(asked, at[MAP], &map) || !read_word(asked, at[MAP_SIZE], &entries) ||
        !read_place(asked, at[START], &start) || !read_place(asked, at[FINISH], &finish))
        return false;
    if (!map) return !entries;
    if (entries > entries_max || start.node < map || finish.node < start.node ||
        finish.node >= map + entries * WORD || (start.node - map) % WORD)
        return false;
    uint64_t end = start.node == finish.node ? finish.current : start.last;
    uint64_t begin = start.current - start.first;
    if (end < start.current) return false;
    add(asked, &(struct layout_extent){.offset = at[MAP],
                                       .from = start.node - map,
                                       .to = finish.node + WORD - map,
                                       .inner = start.last - start.first});
    add(asked, &(struct layout_extent){
                   .offset = at[START] + WORD, .from = begin, .to = end - start.first});
    add(asked,
        &(struct layout_extent){.offset = at[FINISH] + WORD, .to = finish.current - finish.first});
    for (unsigned i = START; i <= FINISH; i++)
        for (unsigned k = 0; k < sizeof start / WORD; k++)
            if (k != 1) add_end(asked, at[i] + (uint64_t)k * WORD);
    return true;
}

static bool add_counted(struct asked *asked, uint64_t pointer, uint64_t count, uint64_t bytes) {
    uint64_t to;
    if (__builtin_mul_overflow(count, bytes, &to)) return false;
    add(asked, &(struct layout_extent){.offset = pointer, .to = to});
    return true;
}

static bool add_buckets(struct asked *asked, const uint64_t at[NAMES_MAX]) {
    uint64_t count;
    return read_word(asked, at[1], &count) && add_counted(asked, at[0], count, WORD);
}

static bool add_vec(struct asked *asked, const struct type *type, const uint64_t at[NAMES_MAX]) {
    const struct type *element = type_parameter(type, 0);
    uint64_t length, capacity;
    if (!element) return true;
    if (!read_word(asked, at[1], &length) || !read_word(asked, at[2], &capacity)) return false;
    return (length <= capacity || !element->bytes) &&
           add_counted(asked, at[0], length, element->bytes);
}

// The pointer leads behind the elements, to the bytes that say which are there.
static bool add_table(struct asked *asked, const struct type *type, const uint64_t at[NAMES_MAX]) {
    const struct type *element = type_parameter(type, 0);
    uint64_t mask, to;
    if (!element || !element->bytes || !read_word(asked, at[1], &mask) || !mask) return true;
    if (mask == UINT64_MAX || __builtin_mul_overflow(mask + 1, element->bytes, &to)) return false;
    add(asked, &(struct layout_extent){.offset = at[0], .to = to, .is_table = true});
    return true;
}

bool layout_add_extents(struct layout_extents *extents, struct layout_bytes bytes,
                        const struct type *type, uint64_t offset) {
    struct asked asked = {extents, bytes};
    uint64_t at[NAMES_MAX];
    if (!find_members(type)) return true;
    for (int i = 0; i < NAMES_MAX; i++) at[i] = offset + type->role->members[i];
    switch ((enum extents_of)type->role->extents) {
    case EXTENTS_VECTOR:
        return add_vector(&asked, at);
    case EXTENTS_DEQUE:
        return add_deque(&asked, at);
    case EXTENTS_BUCKETS:
        return add_buckets(&asked, at);
    case EXTENTS_VEC:
        return add_vec(&asked, type, at);
    case EXTENTS_TABLE:
        return add_table(&asked, type, at);
    default:
        return true;
    }
}
