// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/containers.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/index_table.h"

static const uint64_t plausible_bytes_max = UINT64_C(1) << 46;

// What one container says of itself.
struct fill {
    uint64_t elements, capacity_bytes, used_bytes;
    uint64_t at;           // where its elements or buckets are
    uint64_t piece_bytes;  // of the block that this is in; 0: it has all of them
    bool is_behind;        // the block begins before
};

// Where a member lies in a type: what was asked for last, by type and name.
struct known_member {
    const struct type *type;
    const char *name;
    uint64_t offset;
    bool is_there;
};
enum { MEMBERS_KNOWN = 1 << 12 };

struct object {
    const struct type *type;
    const uint8_t *bytes;
    uint64_t size, address;
    struct known_member *known;  // MEMBERS_KNOWN of them
};

static bool find_member(const struct object *object, const char *name, uint64_t *offset) {
    uint64_t hash = hash_mix((uintptr_t)object->type, (uintptr_t)name);
    struct known_member *known = &object->known[hash % MEMBERS_KNOWN];
    if (known->type != object->type || known->name != name) {
        const struct type *found;
        *known = (struct known_member){.type = object->type, .name = name};
        known->is_there = layout_member(object->type, name, &known->offset, &found);
    }
    *offset = known->offset;
    return known->is_there;
}

static bool read_at(const struct object *object, uint64_t offset, uint64_t *word) {
    if (offset > object->size || sizeof *word > object->size - offset) return false;
    memcpy(word, object->bytes + offset, sizeof *word);
    return true;
}

static bool read(const struct object *object, const char *name, uint64_t *word) {
    uint64_t offset;
    return find_member(object, name, &offset) && read_at(object, offset, word);
}

static uint64_t element_bytes(const struct object *object) {
    const struct type *element = type_parameter(object->type, 0);
    return element ? element->bytes : 0;
}

// --- libstdc++

static bool fill_of_vector(const struct object *object, struct fill *fill) {
    uint64_t end, room, bytes = element_bytes(object);
    if (!bytes || !read(object, "_M_start", &fill->at) || !read(object, "_M_finish", &end) ||
        !read(object, "_M_end_of_storage", &room))
        return false;
    *fill = (struct fill){.elements = (end - fill->at) / bytes,
                          .capacity_bytes = room - fill->at,
                          .used_bytes = end - fill->at,
                          .at = fill->at};
    return end >= fill->at && room >= end;
}

// A short string lies in the object itself.
static bool fill_of_string(const struct object *object, struct fill *fill) {
    uint64_t length, capacity, bytes = element_bytes(object);
    if (!bytes || !read(object, "_M_p", &fill->at) || !read(object, "_M_string_length", &length) ||
        !read(object, "_M_allocated_capacity", &capacity))
        return false;
    bool is_own = fill->at - object->address < object->size;
    fill->elements = length;
    fill->capacity_bytes = is_own ? 0 : (capacity + 1) * bytes;
    fill->used_bytes = is_own ? 0 : (length + 1) * bytes;
    return is_own || length <= capacity;
}

// Iterators have four words: the element, the ends of its piece, and the piece in the map.
static bool fill_of_deque(const struct object *object, struct fill *fill) {
    enum { CURRENT, FIRST, LAST, NODE, WORDS };
    uint64_t start[WORDS], finish[WORDS], at, bytes = element_bytes(object);
    static const char *const names[] = {"_M_start", "_M_finish"};
    uint64_t *const words[] = {start, finish};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < WORDS; k++)
            if (!find_member(object, names[i], &at) ||
                !read_at(object, at + sizeof at * (unsigned)k, &words[i][k]))
                return false;
    uint64_t piece = start[LAST] - start[FIRST];
    uint64_t pieces = (finish[NODE] - start[NODE]) / sizeof at + 1;
    if (!bytes || finish[NODE] < start[NODE] || pieces > plausible_bytes_max / (piece + 1))
        return false;
    uint64_t before = start[CURRENT] - start[FIRST], behind = finish[LAST] - finish[CURRENT];
    fill->at = start[FIRST];
    fill->piece_bytes = piece;
    fill->capacity_bytes = pieces * piece;
    fill->used_bytes = fill->capacity_bytes - before - behind;
    fill->elements = fill->used_bytes / bytes;
    return before <= piece && behind <= piece && before + behind <= fill->capacity_bytes;
}

static bool fill_of_buckets(const struct object *object, struct fill *fill) {
    uint64_t count;
    if (!read(object, "_M_buckets", &fill->at) || !read(object, "_M_bucket_count", &count) ||
        !read(object, "_M_element_count", &fill->elements) || count > plausible_bytes_max)
        return false;
    bool is_own = fill->at - object->address < object->size;  // one bucket, before there are more
    uint64_t used = fill->elements < count ? fill->elements : count;
    fill->capacity_bytes = is_own ? 0 : count * sizeof count;
    fill->used_bytes = is_own ? 0 : used * sizeof count;
    return count;
}

// --- Rust

static bool fill_of_vec(const struct object *object, struct fill *fill) {
    uint64_t capacity, bytes = element_bytes(object);
    if (!bytes || !read(object, "len", &fill->elements) || !read(object, "cap", &capacity) ||
        !read(object, "ptr", &fill->at) || capacity > plausible_bytes_max / bytes)
        return false;
    fill->capacity_bytes = capacity * bytes;
    fill->used_bytes = fill->elements * bytes;
    return fill->elements <= capacity;
}

// With a byte for each place that says what is in it; without places it has none.
static bool fill_of_raw_table(const struct object *object, struct fill *fill) {
    uint64_t mask, bytes = element_bytes(object) + 1;
    if (!read(object, "bucket_mask", &mask) || !read(object, "items", &fill->elements) ||
        !read(object, "ctrl", &fill->at) || mask > plausible_bytes_max / bytes)
        return false;
    fill->is_behind = true;
    fill->capacity_bytes = mask ? (mask + 1) * bytes : 0;
    fill->used_bytes = fill->elements * bytes;
    return fill->elements <= mask + 1;
}

static const struct {
    const char *begin;
    bool (*fill_of)(const struct object *object, struct fill *fill);
} kinds[] = {
    {"std::vector<", fill_of_vector},
    {"std::__cxx11::basic_string<", fill_of_string},
    {"std::deque<", fill_of_deque},
    {"std::unordered_map<", fill_of_buckets},
    {"std::unordered_set<", fill_of_buckets},
    {"std::unordered_multimap<", fill_of_buckets},
    {"std::unordered_multiset<", fill_of_buckets},
    {"alloc::vec::Vec<", fill_of_vec},
    {"alloc::collections::vec_deque::VecDeque<", fill_of_vec},
    {"hashbrown::raw::RawTable<", fill_of_raw_table},
};

// --- sums

struct summing {
    struct typed *typed;
    struct containers *containers;
    struct index_table index;  // of rows, by type
    struct known_member *known;
    bool is_failed;
};

static struct container_row *row_of(struct summing *summing, const struct type *type) {
    struct containers *containers = summing->containers;
    uint64_t hash = hash_mix((uintptr_t)type, index_table_seed());
    struct index_probe probe = index_probe_start(&summing->index, hash);
    for (uint32_t i; index_probe_next(&summing->index, &probe, &i);)
        if (containers->rows.items[i].type == type) return &containers->rows.items[i];
    struct container_row *row = array_push(&containers->rows);
    if (!row ||
        !index_table_insert(&summing->index, hash, (uint32_t)(containers->rows.count - 1))) {
        summing->is_failed = true;
        return NULL;
    }
    *row = (struct container_row){.type = type};
    return row;
}

static void add(struct container_row *row, const struct fill *fill) {
    uint64_t unused = fill->capacity_bytes - fill->used_bytes;
    row->count++;
    row->empty += fill->capacity_bytes && !fill->elements;
    row->elements += fill->elements;
    row->capacity_bytes += fill->capacity_bytes;
    row->used_bytes += fill->used_bytes;
    if (unused <= row->largest_unused) return;
    row->largest_unused = unused;
    row->largest_at = fill->at;
}

// Tells whether the elements were given back: the variable was destroyed, and says what it was.
static bool is_destroyed(const struct summing *summing, const struct fill *fill) {
    return fill->capacity_bytes && typed_is_given_back(summing->typed, fill->at);
}

// Tells whether a container counts. On the stack it needs a block that no other has: the variable
// may not have been constructed yet, or its place have become another's.
static bool is_held(struct summing *summing, const struct fill *fill, bool is_local) {
    bool is_first = fill->capacity_bytes &&
                    typed_take_block(summing->typed, fill->at,
                                     fill->piece_bytes ? fill->piece_bytes : fill->capacity_bytes,
                                     fill->is_behind);
    return is_first || (!is_local && !is_destroyed(summing, fill));
}

static void see(void *context, const struct typed_object *seen) {
    struct summing *summing = context;
    const struct type *type = seen->type;
    if (!layout_is_library(type)) return;
    const struct object object = {type, seen->bytes, seen->size, seen->address, summing->known};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fill fill = {0};
        if (!layout_is_of_template(type, kinds[i].begin)) continue;
        bool is_whole = kinds[i].fill_of(&object, &fill) &&
                        fill.capacity_bytes <= plausible_bytes_max &&
                        fill.used_bytes <= fill.capacity_bytes;
        bool is_one = is_whole && is_held(summing, &fill, seen->is_local);
        struct container_row *row = is_one ? row_of(summing, type) : NULL;
        if (row) add(row, &fill);
        summing->containers->broken_count += !is_whole && !seen->is_local;
        return;
    }
}

static bool is_container(const struct type *type) {
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && !layout_is_of_template(type, kinds[kind].begin))
        kind++;
    return layout_is_library(type) && kind < sizeof kinds / sizeof *kinds;
}

static uint64_t count_unplaced(const struct typed *typed) {
    size_t count;
    const struct type *const *types = typed_unplaced(typed, &count);
    uint64_t containers = 0;
    for (size_t i = 0; i < count; i++) containers += is_container(types[i]);
    return containers;
}

static int by_unused(const void *a, const void *b) {
    const struct container_row *left = a, *right = b;
    uint64_t one = left->capacity_bytes - left->used_bytes;
    uint64_t other = right->capacity_bytes - right->used_bytes;
    if (one != other) return one > other ? -1 : 1;
    return strcmp(left->type->name, right->type->name);
}

bool containers_find(struct typed *typed, struct containers *containers) {
    struct summing summing = {.typed = typed, .containers = containers};
    *containers = (struct containers){0};
    summing.known = calloc(MEMBERS_KNOWN, sizeof *summing.known);
    if (!summing.known) return false;
    typed_each_struct(typed, see, &summing);
    containers->unplaced_count = count_unplaced(typed);
    free(summing.known);
    index_table_free(&summing.index);
    if (containers->rows.count)
        qsort(containers->rows.items, containers->rows.count, sizeof *containers->rows.items,
              by_unused);
    return !summing.is_failed;
}

void containers_free(struct containers *containers) {
    array_free(&containers->rows);
}
