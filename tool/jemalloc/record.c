// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/record.h"

enum { CLASS_SHIFT = 48, TINY = 8, GROUP_SHIFT = 2 };

// Fields of a record's bits: the first bit, and how many there are.
struct field {
    unsigned shift, width;
};
// `unused`: of the bits, what is always 0. `word_unused`: likewise, of the low bits of a leaf's
// word.
static const struct form {
    struct field slab, state, size_class, free, unused;
    uint64_t align, word_unused;  // `align`: of records
} forms[] = {
    [JEMALLOC_5_3] = {{12, 1}, {17, 3}, {20, 8}, {28, 10}, {45, 19}, JEMALLOC_RECORD_BYTES, 0x60},
    [JEMALLOC_5_2] = {{12, 1}, {16, 2}, {18, 8}, {26, 10}, {0, 0}, JEMALLOC_RECORD_BYTES / 2, 0x3e},
};

static uint64_t get(const struct jemalloc_record *record, struct field field) {
    return record->bits >> field.shift & ((UINT64_C(1) << field.width) - 1);
}

uint64_t jemalloc_class_bytes(enum jemalloc_quantum quantum, unsigned size_class) {
    const bool has_tiny = quantum == JEMALLOC_QUANTUM_16;
    if (has_tiny && !size_class) return TINY;
    const unsigned number = size_class - has_tiny, group = number >> GROUP_SHIFT;
    const uint64_t step = (number & ((1u << GROUP_SHIFT) - 1)) + 1;
    const uint64_t base = group ? UINT64_C(1) << (quantum + GROUP_SHIFT - 1) << group : 0;
    return base + (step << ((group ? group : 1) + quantum - 1));
}

unsigned jemalloc_small_classes(enum jemalloc_quantum quantum) {
    enum { OF_QUANTUM_16 = 36, OF_QUANTUM_8 = 39 };
    return quantum == JEMALLOC_QUANTUM_16 ? OF_QUANTUM_16 : OF_QUANTUM_8;
}

uint64_t jemalloc_word_of(enum jemalloc_version version, uint64_t record, uint64_t metadata) {
    enum { LOW_BITS = 0x1f, SIZE_SHIFT = 5, CLASS_BITS = 0xff, SLAB_SHIFT = 32 };
    if (version == JEMALLOC_5_2)
        return record | (metadata >> SLAB_SHIFT & 1) | (metadata & CLASS_BITS) << CLASS_SHIFT;
    return record | (metadata & LOW_BITS) | (metadata >> SIZE_SHIFT & CLASS_BITS) << CLASS_SHIFT;
}

uint64_t jemalloc_word_record(enum jemalloc_version version, uint64_t word) {
    return word & ((UINT64_C(1) << CLASS_SHIFT) - forms[version].align);
}

struct jemalloc_facts jemalloc_record_facts(enum jemalloc_version version,
                                            const struct jemalloc_record *record) {
    const struct form *form = &forms[version];
    return (struct jemalloc_facts){.is_slab = get(record, form->slab),
                                   .state = (unsigned)get(record, form->state),
                                   .size_class = (unsigned)get(record, form->size_class),
                                   .free_count = (unsigned)get(record, form->free)};
}

uint64_t jemalloc_record_start(const struct jemalloc_record *record) {
    return record->address & ~(JEMALLOC_PAGE_BYTES - 1);
}

uint64_t jemalloc_record_bytes(const struct jemalloc_record *record) {
    return record->bytes_and_number & ~(JEMALLOC_PAGE_BYTES - 1);
}

bool jemalloc_record_may_be(enum jemalloc_version version, const struct jemalloc_record *record,
                            uint64_t word) {
    const struct form *form = &forms[version];
    const uint64_t bytes = jemalloc_record_bytes(record), start = jemalloc_record_start(record);
    return !(word & form->word_unused) && !get(record, form->unused) &&
           get(record, form->state) <= JEMALLOC_MOVING && bytes && bytes <= JEMALLOC_EXTENT_MOST &&
           start && start <= JEMALLOC_ADDRESS_MOST;
}

static bool is_slab_plausible(enum jemalloc_quantum quantum, unsigned size_class, uint64_t bytes) {
    if (size_class >= jemalloc_small_classes(quantum)) return false;
    const uint64_t regions = bytes / jemalloc_class_bytes(quantum, size_class);
    return regions && regions <= JEMALLOC_REGIONS_MAX;
}

bool jemalloc_extent_fits(enum jemalloc_quantum quantum, const struct jemalloc_extent *extent) {
    if (extent->is_slab) return is_slab_plausible(quantum, extent->size_class, extent->bytes);
    // one that a profiler took out of its slab is as large as the least large one
    const unsigned smaller = extent->size_class ? extent->size_class - 1u : 0;
    return extent->size_class < JEMALLOC_CLASSES &&
           jemalloc_class_bytes(quantum, smaller) < extent->bytes;
}

bool jemalloc_slab_is_exact(enum jemalloc_quantum quantum, const struct jemalloc_extent *extent) {
    uint64_t pages = JEMALLOC_PAGE_BYTES;
    if (extent->size_class >= jemalloc_small_classes(quantum)) return false;
    const uint64_t bytes = jemalloc_class_bytes(quantum, extent->size_class);
    while (pages % bytes) pages += JEMALLOC_PAGE_BYTES;
    return extent->is_slab && extent->bytes == pages;
}

bool jemalloc_record_is_plausible(enum jemalloc_version version,
                                  const struct jemalloc_record *record, uint64_t word,
                                  uint64_t page) {
    const uint64_t bytes = jemalloc_record_bytes(record), start = jemalloc_record_start(record);
    const struct jemalloc_facts facts = jemalloc_record_facts(version, record);
    if (!jemalloc_record_may_be(version, record, word) || page < start || page - start >= bytes)
        return false;
    // of what is no slab the last page's word keeps what was there before
    if (facts.state != JEMALLOC_ACTIVE || page != start) return true;
    if (facts.size_class != word >> CLASS_SHIFT || facts.is_slab != (word & 1) ||
        facts.free_count > JEMALLOC_REGIONS_MAX || (facts.is_slab && record->address != start))
        return false;
    const struct jemalloc_extent extent = {
        .bytes = bytes, .is_slab = facts.is_slab, .size_class = (uint8_t)facts.size_class};
    return jemalloc_extent_fits(JEMALLOC_QUANTUM_16, &extent) ||
           jemalloc_extent_fits(JEMALLOC_QUANTUM_8, &extent);
}
