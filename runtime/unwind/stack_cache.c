// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/stack_cache.h"

#include <string.h>

#include "runtime/unwind/unwind_cache.h"

enum { TABLE_SLOTS = 4096, TABLE_PROBES = 8 };

// Words of one thread's stacks: at most 512 KiB, not less than 16 KiB, and otherwise a share of the
// 1 MiB that a process may spend. A thousand stacks of ordinary depth take 430 KiB.
enum { CHECKS_ALL = 65536, CHECKS_MAX = 32768, CHECKS_MIN = 1024 };

// Captures before the first trial, and at most between two.
enum { FIRST_PAUSE = 4096, LONGEST_PAUSE = 1 << 22, FILL = 2 * RECALL_NODES };

// It must be cheaper by a tenth to be used.
enum { CHEAPER_OF = 10, CHEAPER_BY = 1 };

// A capture that took longer was interrupted by something else.
enum { TICKS_MAX = 20000 };

// What a few stacks touch lies on few pages: all guesses and the first nodes on one, the table,
// whose places are spread, on whole ones.
enum {
    GUESS_BYTES = RECALL_GUESSES * sizeof(uint16_t),
    SEEN_BYTES = (RECALL_NODES + 1) * sizeof(struct walk_seen),
    NODES_BYTES = GUESS_BYTES + SEEN_BYTES + (RECALL_NODES + 1) * sizeof(struct stack_cache_place),
    BEFORE_BYTES = (NODES_BYTES + SYS_PAGE_LEAST - 1) / SYS_PAGE_LEAST * SYS_PAGE_LEAST,
    TABLE_BYTES = TABLE_SLOTS * sizeof(uint16_t),
    MEMORY_BYTES = BEFORE_BYTES + TABLE_BYTES + RECALL_DIGESTS * sizeof(uint16_t),
};

static bool stack_cache_make(struct stack_cache *recall) {
    if (recall->seen) return true;
    if (sys_is_over_budget()) return false;
    uint8_t *memory = sys_map(MEMORY_BYTES);
    recall->checks = sys_reserve(CHECKS_MAX * sizeof *recall->checks);
    if (!memory || !recall->checks) return false;
    recall->guesses = (uint16_t *)memory;
    recall->seen = (struct walk_seen *)(memory + GUESS_BYTES);
    recall->places = (struct stack_cache_place *)(memory + GUESS_BYTES + SEEN_BYTES);
    recall->table = (uint16_t *)(memory + BEFORE_BYTES);
    recall->digests = (uint16_t *)(memory + BEFORE_BYTES + TABLE_BYTES);
    return true;
}

void stack_cache_limit(struct stack_cache *recall, uint32_t thread_count) {
    uint32_t share = CHECKS_ALL / thread_count;
    if (share > CHECKS_MAX) share = CHECKS_MAX;
    recall->check_limit = share < CHECKS_MIN ? CHECKS_MIN : share;
}

void stack_cache_release(struct stack_cache *recall) {
    if (!recall->seen) return;
    sys_unmap(recall->guesses, MEMORY_BYTES);
    sys_release(recall->checks, CHECKS_MAX * sizeof *recall->checks);
}

void stack_cache_reset(struct stack_cache *recall) {
    recall->last = recall->place = recall->root = 0;
    recall->node_count = recall->check_count = 0;
    recall->generation = rule_generation();
    recall->digest_trust = DIGEST_TRUST_MOST;
    if (!recall->seen) return;
    memset(recall->table, 0, TABLE_SLOTS * sizeof *recall->table);
    memset(recall->guesses, 0, RECALL_GUESSES * sizeof *recall->guesses);
    if (recall->has_digests) memset(recall->digests, 0, RECALL_DIGESTS * sizeof *recall->digests);
    recall->has_digests = false;
}

// The key of a place: a root's is its frame and return address, a child's its parent, the number
// of equal words and the value of the next.
static uint32_t place_hash(uint64_t a, uint64_t b) {
    const uint64_t factor_a = 0x9E3779B97F4A7C15u, factor_b = 0xD1B54A32D192ED03u;
    const unsigned upper_shift = 40;
    return (uint32_t)(((a * factor_a) ^ b) * factor_b >> upper_shift);
}

static uint32_t child_hash(uint32_t parent, uint32_t shared, uintptr_t value) {
    const unsigned parent_shift = 16;
    return place_hash((uint64_t)shared << parent_shift | parent, value);
}

// The word after the `shared` inner ones.
static const struct walk_check *check_after(const struct walk_seen *seen, uint32_t shared) {
    return &seen->end[-1 - (int32_t)shared];
}

static uint32_t root_find(const struct stack_cache *recall, const uintptr_t *frame) {
    uint32_t hash = place_hash((uintptr_t)frame, frame[1]);
    for (uint32_t i = 0; i < TABLE_PROBES; i++) {
        uint32_t number = recall->table[(hash + i) % TABLE_SLOTS];
        const struct walk_seen *seen = &recall->seen[number];
        if (!number) return 0;
        if (seen->frame == frame && seen->pc == frame[1] && !recall->places[number].parent)
            return number;
    }
    return 0;
}

static uint32_t child_find(const struct stack_cache *recall, uint32_t parent, uint32_t shared,
                           uintptr_t value) {
    uint32_t hash = child_hash(parent, shared, value);
    for (uint32_t i = 0; i < TABLE_PROBES; i++) {
        uint32_t number = recall->table[(hash + i) % TABLE_SLOTS];
        const struct stack_cache_place *place = &recall->places[number];
        if (!number) return 0;
        if (place->parent == parent && place->shared == shared &&
            check_after(&recall->seen[number], shared)->value == value)
            return number;
    }
    return 0;
}

// False: no place near the hash.
static bool table_enter(struct stack_cache *recall, uint32_t hash, uint32_t number) {
    for (uint32_t i = 0; i < TABLE_PROBES; i++) {
        uint16_t *slot = &recall->table[(hash + i) % TABLE_SLOTS];
        if (*slot) continue;
        *slot = (uint16_t)number;
        return true;
    }
    return false;
}

// How many words of a root make a digest.
static uint16_t digest_count_of(const struct walk_seen *seen) {
    uint32_t count = 0;
    while (count < RECALL_DIGEST_MOST && count < seen->check_count &&
           ((uintptr_t)check_after(seen, count)->slot ^ (uintptr_t)seen->frame) < SYS_PAGE_LEAST)
        count++;
    return (uint16_t)(count - count % RECALL_DIGEST_STEP);
}

static void digest_note(struct stack_cache *recall, uint16_t *place, uint32_t number) {
    *place = (uint16_t)number;
    recall->has_digests = true;
}

// Whether that node is the present stack's, which says how far digests are to be trusted; not so
// where nothing was noted.
static bool digest_is_right(struct stack_cache *recall, const uintptr_t *frame, uint32_t number) {
    const struct walk_check *near;
    if (!number) return false;
    if (!walk_is_same(&recall->seen[number], frame, &near)) {
        recall->digest_trust -= DIGEST_WRONG;
        return false;
    }
    if (recall->digest_trust < DIGEST_TRUST_MOST) recall->digest_trust++;
    return true;
}

// Goes down from the root by the words that differ. Sets the place where an unknown stack belongs.
static uint32_t node_find(struct stack_cache *recall, uint32_t root) {
    uint32_t number = root, shared = 0;
    recall->place = 0;
    while (number) {
        const struct walk_seen *seen = &recall->seen[number];
        const struct walk_check *checks = walk_seen_checks(seen);
        uint32_t differs = checks_verify(checks, seen->check_count - shared);
        if (differs == 0) return number;
        shared = seen->check_count - differs;
        recall->place = (uint16_t)number;
        recall->place_shared = shared;
        number = child_find(recall, number, shared, *checks[differs - 1].slot);
    }
    return 0;
}

// A guess proved wrong, or would have, or right while it was not tried.
static void guess_note(struct stack_cache *recall, bool is_right) {
    bool is_close = recall->wrong_left - recall->left <= 2;
    recall->run = is_right == recall->is_doubtful && (is_right || is_close) ? recall->run + 1 : 0;
    if (!is_right) recall->wrong_left = recall->left;
    if (recall->run < (is_right ? RECALL_RIGHT : RECALL_WRONG)) return;
    recall->is_doubtful = !is_right;
    recall->run = 0;
}

// The node of the stack; 0: it is not known.
static uint32_t node_of_stack(struct stack_cache *recall, const uintptr_t *frame) {
    uint32_t root = root_find(recall, frame);
    recall->root = (uint16_t)root;
    bool is_tried = stack_cache_digests(recall) && recall->places[root].digest_count;
    uint16_t *place = is_tried ? stack_cache_digest(recall, root) : NULL;
    if (is_tried && digest_is_right(recall, frame, *place)) return *place;
    uint32_t number = node_find(recall, root);
    if (is_tried && number) digest_note(recall, place, number);
    return number;
}

static const struct walk_seen *stack_cache_use(struct stack_cache *recall, const uintptr_t *frame,
                                               bool is_guessed) {
    if (unlikely(recall->generation != rule_generation())) stack_cache_reset(recall);
    uint16_t *guess = stack_cache_guess(recall, frame, frame[1]);
    const struct walk_check *near;
    uint32_t number = *guess;
    bool is_tried = is_guessed || recall->is_doubtful;
    if (is_tried || !walk_is_same(&recall->seen[number], frame, &near)) {
        number = node_of_stack(recall, frame);
        guess_note(recall, number && number == *guess);
        if (number) *guess = (uint16_t)number;
    }
    if (!number) return NULL;
    recall->last = (uint16_t)number;
    return &recall->seen[number];
}

static bool is_in_use(const struct stack_cache *recall) {
    return recall->phase != RECALL_WAITS && recall->phase != RECALL_TIMED_OFF;
}

static bool is_timed(const struct stack_cache *recall) {
    return recall->phase == RECALL_TIMED_ON || recall->phase == RECALL_TIMED_OFF;
}

static void phase_begin(struct stack_cache *recall, enum stack_cache_phase phase,
                        uint32_t captures) {
    recall->phase = phase;
    recall->left = captures;
}

static void trial_begin(struct stack_cache *recall) {
    recall->ticks[0] = recall->ticks[1] = 0;
    if (stack_cache_make(recall)) {
        stack_cache_reset(recall);
        phase_begin(recall, RECALL_FILLS, FILL);
    } else {
        phase_begin(recall, RECALL_WAITS, LONGEST_PAUSE);
    }
}

static void trial_end(struct stack_cache *recall) {
    bool is_cheaper = recall->ticks[1] * CHEAPER_OF < recall->ticks[0] * (CHEAPER_OF - CHEAPER_BY);
    phase_begin(recall, is_cheaper ? RECALL_WORKS : RECALL_WAITS, recall->pause);
    recall->digest_trust = DIGEST_TRUST_MOST;
    if (recall->pause < LONGEST_PAUSE) recall->pause *= 2;
}

// A phase is over: the next one begins.
static COLD void phase_turn(struct stack_cache *recall) {
    switch (recall->phase) {
    case RECALL_WAITS:
        if (recall->pause)
            trial_begin(recall);
        else
            phase_begin(recall, RECALL_WAITS, recall->pause = FIRST_PAUSE);
        break;
    case RECALL_WORKS:
    case RECALL_FILLS:
        recall->ticks[0] = recall->ticks[1] = 0;
        phase_begin(recall, RECALL_TIMED_ON, RECALL_TRIAL);
        break;
    case RECALL_TIMED_ON:
        phase_begin(recall, RECALL_TIMED_OFF, RECALL_TRIAL);
        break;
    case RECALL_TIMED_OFF:
        trial_end(recall);
    }
}

const struct walk_seen *stack_cache_find(struct stack_cache *recall, const uintptr_t *frame,
                                         bool is_guessed) {
    if (unlikely(recall->left == 0)) phase_turn(recall);
    recall->left--;
    if (recall->phase == RECALL_WAITS) return NULL;
    if (unlikely(is_timed(recall))) recall->began = sys_ticks();
    return is_in_use(recall) ? stack_cache_use(recall, frame, is_guessed) : NULL;
}

// The words were only reserved: they count once they are used.
static void stack_cache_count_own(struct stack_cache *recall) {
    if (recall->check_count <= recall->touched_count) return;
    uint32_t more = recall->check_count - recall->touched_count;
    sys_count_own((int64_t)(more * sizeof *recall->checks));
    recall->touched_count = recall->check_count;
}

static void node_add(struct stack_cache *recall, const struct walk_seen *seen) {
    uint32_t number = recall->node_count + 1;
    struct walk_check *checks = &recall->checks[recall->check_count] + 1;
    bool is_root = !recall->place;
    uint32_t hash = is_root ? place_hash((uintptr_t)seen->frame, seen->pc)
                            : child_hash(recall->place, recall->place_shared,
                                         check_after(seen, recall->place_shared)->value);
    checks[-1] = walk_check_end();
    memcpy(checks, walk_seen_checks(seen), seen->check_count * sizeof *checks);
    recall->seen[number] = *seen;
    recall->seen[number].end = checks + seen->check_count;
    recall->places[number] = (struct stack_cache_place){recall->place_shared, recall->place,
                                                        is_root ? digest_count_of(seen) : 0};
    if (!table_enter(recall, hash, number)) return;
    recall->node_count = number;
    recall->check_count += 1 + seen->check_count;
    stack_cache_count_own(recall);
    *stack_cache_guess(recall, seen->frame, seen->pc) = (uint16_t)number;
    if (is_root) recall->root = (uint16_t)number;
    if (recall->is_doubtful && recall->places[recall->root].digest_count)
        digest_note(recall, stack_cache_digest(recall, recall->root), number);
    recall->last = (uint16_t)number;
}

static void stack_cache_add(struct stack_cache *recall, const struct walk_seen *seen) {
    bool is_full = recall->node_count == RECALL_NODES ||
                   recall->check_count + seen->check_count >= recall->check_limit;
    if (is_full) stack_cache_reset(recall);
    if (recall->generation != rule_generation() || seen->check_count >= recall->check_limit) return;
    if (recall->place && recall->place_shared >= seen->check_count) return;
    node_add(recall, seen);
}

void stack_cache_keep(struct stack_cache *recall, const struct walk_seen *seen) {
    if (likely(recall->phase == RECALL_WAITS)) return;
    if (is_in_use(recall) && seen) {
        if (seen->frame)
            stack_cache_add(recall, seen);
        else
            recall->last = 0;
    }
    if (unlikely(is_timed(recall))) {
        uint64_t ticks = sys_ticks() - recall->began;
        recall->ticks[recall->phase == RECALL_TIMED_ON] += ticks < TICKS_MAX ? ticks : TICKS_MAX;
    }
}
