// SPDX-License-Identifier: Apache-2.0
// The peak is found as in a recording of cairn: the free that leaves a new highest total moves an
// epoch, and a stack that changes for the first time afterwards saves what it held.
#include "tool/import/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 1 << 27 };
static const int64_t bytes_max = (int64_t)1 << 46;

struct holder {  // what a node holds
    struct import_values values;
    uint32_t epoch;
};

struct block {
    uint64_t address, bytes;
    uint32_t node;
    bool is_live;
};

struct walk {
    struct replay *replay;
    struct error *error;
    struct holder *holders;  // by node
    ARRAY(struct block) blocks;
    struct index_table table;
    int64_t live_bytes, peak_bytes;
    uint32_t epoch, peak_epoch;
    uint64_t start_ns, noted_ns, unknown_count, missed_count;
};

void replay_free(struct replay *replay) {
    array_free(&replay->events);
    array_free(&replay->places);
}

static void cut_offset(char *name) {
    char *plus = strrchr(name, '+');
    if (plus && plus > name && plus[1] && strspn(plus + 1, "0123456789abcdefx") == strlen(plus + 1))
        *plus = 0;
}

bool replay_frame(struct replay *replay, char *line) {
    char *end, *open = strrchr(line, '('), *text = NULL;
    uint64_t address = strtoull(line, &end, 16);
    size_t length = strlen(line);
    if (end == line || *end != ' ' || !open || open <= end || line[length - 1] != ')') return false;
    line[length - 1] = 0;
    char *name = end + 1;
    name[open > name ? open - name - 1 : 0] = 0;
    if (strstr(open, "libcairn")) return true;
    cut_offset(name);
    bool is_named = *name && strcmp(name, "[unknown]") != 0 && strncmp(name, "0x", 2) != 0;
    bool has_module = open[1] == '/' || (open[1] == '[' && strcmp(open + 1, "[unknown]") != 0);
    if (asprintf(&text, "0x%" PRIx64 ": %s%s%s%s", address, is_named ? name : "???",
                 has_module ? " (in " : "", has_module ? open + 1 : "", has_module ? ")" : "") < 0)
        return false;
    uint32_t place = import_place_of_text(replay->imported, text);
    uint32_t *slot = place == IMPORT_NONE ? NULL : array_push(&replay->places);
    free(text);
    if (slot) *slot = place;
    return slot != NULL;
}

bool replay_add(struct replay *replay, const struct replay_event *event) {
    uint32_t node = TREE_ROOT;
    for (size_t i = replay->places.count; i-- > 0;)
        if (!tree_child(&replay->imported->tree, node, replay->places.items[i], &node))
            return false;
    replay->places.count = 0;
    return replay_add_at(replay, event, node);
}

bool replay_add_at(struct replay *replay, const struct replay_event *event, uint32_t node) {
    struct replay_event *slot =
        replay->events.count < EVENTS_MAX ? array_push(&replay->events) : NULL;
    if (!slot) return false;
    *slot = *event;
    slot->node = node;
    slot->order = (uint32_t)replay->events.count;
    return true;
}

static struct block *block_find(struct walk *walk, uint64_t address, bool is_wanted) {
    uint64_t hash = hash_mix(index_table_seed(), address);
    struct index_probe probe = index_probe_start(&walk->table, hash);
    for (uint32_t index; index_probe_next(&walk->table, &probe, &index);) {
        struct block *known = walk->blocks.items ? &walk->blocks.items[index] : NULL;
        if (known && known->address == address) return known;
    }
    struct block *block = is_wanted ? array_push(&walk->blocks) : NULL;
    if (!block || !index_table_insert(&walk->table, hash, (uint32_t)walk->blocks.count - 1))
        return NULL;
    *block = (struct block){.address = address};
    return block;
}

static struct import_values *holder_turn(struct walk *walk, uint32_t node) {
    struct holder *holder = &walk->holders[node];
    if (holder->epoch < walk->epoch) {
        holder->values.peak_blocks = holder->values.exit_blocks;
        holder->values.peak_bytes = holder->values.exit_bytes;
        holder->epoch = walk->epoch;
    }
    return &holder->values;
}

static void forget(struct walk *walk, struct block *block) {
    struct import_values *values = holder_turn(walk, block->node);
    values->exit_blocks--;
    values->exit_bytes -= (int64_t)block->bytes;
    walk->live_bytes -= (int64_t)block->bytes;
    block->is_live = false;
}

// A block that grows does not leave a peak behind: the higher total comes right after.
static void release(struct walk *walk, const struct replay_event *event) {
    struct block *block = block_find(walk, event->old_block, false);
    if (!block || !block->is_live) {
        walk->unknown_count++;
        return;
    }
    bool is_leaving = !event->block || event->bytes < block->bytes;
    if (is_leaving && walk->live_bytes > walk->peak_bytes) {
        walk->peak_bytes = walk->live_bytes;
        walk->replay->imported->peak_ns = event->at_ns - walk->start_ns;
        walk->peak_epoch = ++walk->epoch;
    }
    forget(walk, block);
}

static bool allocate(struct walk *walk, const struct replay_event *event) {
    struct block *block = block_find(walk, event->block, true);
    if (!block) return import_no_memory(walk->error);
    if (block->is_live) {
        walk->missed_count++;
        forget(walk, block);
    }
    if (event->bytes > (uint64_t)(bytes_max - walk->live_bytes))
        return error_set(walk->error, "more memory than there can be: a block of %" PRIu64 " bytes",
                         event->bytes);
    struct import_values *values = holder_turn(walk, event->node);
    if (values->allocated_bytes > INT64_MAX - bytes_max)
        return error_set(walk->error, "more memory than there can be");
    *block = (struct block){event->block, event->bytes, event->node, true};
    values->calls++;
    values->allocated_bytes += (int64_t)event->bytes;
    values->exit_blocks++;
    values->exit_bytes += (int64_t)event->bytes;
    walk->live_bytes += (int64_t)event->bytes;
    return true;
}

static bool note_point(struct walk *walk, uint64_t at_ns) {
    const uint64_t step_ns = 10 * 1000 * 1000;
    if (at_ns < walk->noted_ns) return true;
    struct import_point *point = array_push(&walk->replay->imported->points);
    if (!point) return import_no_memory(walk->error);
    *point = (struct import_point){at_ns, walk->live_bytes};
    walk->noted_ns = at_ns + step_ns;
    return true;
}

static int compare_times(const void *a, const void *b) {
    const struct replay_event *one = a, *other = b;
    if (one->at_ns != other->at_ns) return one->at_ns < other->at_ns ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

static bool walk_events(struct walk *walk) {
    struct replay *replay = walk->replay;
    struct replay_event *events = replay->events.items;
    size_t count = replay->events.count;
    bool is_sorted = true;
    for (size_t i = 1; i < count && is_sorted; i++)
        is_sorted = events[i - 1].at_ns <= events[i].at_ns;
    if (!is_sorted) qsort(events, count, sizeof *events, compare_times);
    walk->start_ns = count ? events[0].at_ns : 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].old_block) release(walk, &events[i]);
        if (events[i].block && !allocate(walk, &events[i])) return false;
        if (!note_point(walk, events[i].at_ns - walk->start_ns)) return false;
    }
    if (count) replay->imported->duration_ns = events[count - 1].at_ns - walk->start_ns + 1;
    return true;
}

static bool hand_over(struct walk *walk) {
    struct imported *imported = walk->replay->imported;
    bool is_peak_now = walk->live_bytes > walk->peak_bytes || !walk->peak_epoch;
    if (is_peak_now) imported->peak_ns = imported->duration_ns;
    for (uint32_t node = 0; node < imported->tree.nodes.count; node++) {
        struct holder *holder = &walk->holders[node];
        if (is_peak_now || holder->epoch < walk->peak_epoch) {
            holder->values.peak_blocks = holder->values.exit_blocks;
            holder->values.peak_bytes = holder->values.exit_bytes;
        }
        if (holder->values.calls && !import_node(imported, node, &holder->values))
            return import_no_memory(walk->error);
    }
    return true;
}

static void tell(const struct walk *walk) {
    struct imported *imported = walk->replay->imported;
    uint64_t lost = walk->replay->lost_count;
    const char *lacks = walk->replay->lacks ? walk->replay->lacks : "threads, lines";
    int used = snprintf(imported->lacks, sizeof imported->lacks, "%s", lacks);
    size_t at = (size_t)used;
    if (walk->unknown_count)
        at +=
            (size_t)snprintf(imported->lacks + at, sizeof imported->lacks - at,
                             ", the allocations of %" PRIu64 " freed blocks", walk->unknown_count);
    if (walk->missed_count)
        at += (size_t)snprintf(imported->lacks + at, sizeof imported->lacks - at,
                               ", the frees of %" PRIu64 " blocks", walk->missed_count);
    if (lost)
        snprintf(imported->lacks + at, sizeof imported->lacks - at, ", %" PRIu64 " event%s lost",
                 lost, lost == 1 ? " that was" : "s that were");
    imported->is_partial = lost || walk->missed_count;
}

bool replay_finish(struct replay *replay, struct error *error) {
    struct walk walk = {.replay = replay, .error = error};
    if (replay->pid) replay->imported->pid = (uint32_t)replay->pid;
    walk.holders = calloc(replay->imported->tree.nodes.count, sizeof *walk.holders);
    if (!walk.holders) return import_no_memory(error);
    bool is_ok = walk_events(&walk) && hand_over(&walk);
    tell(&walk);
    free(walk.holders);
    array_free(&walk.blocks);
    index_table_free(&walk.table);
    return is_ok;
}
