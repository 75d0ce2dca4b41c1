// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/claims.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/render/terminal.h"

#define FINDINGS "docs/howto/findings.md#"
#define SUMMARY "docs/reference/summary.md#"

// clang-format off
#define WHERE {"where", CLAIM_UNIT_NAME}
#define AT {"at_ns", CLAIM_UNIT_NS}
#define COUNT(name) {name, CLAIM_UNIT_COUNT}
#define BYTES(name) {name, CLAIM_UNIT_BYTES}
#define NS(name) {name, CLAIM_UNIT_NS}
#define FLAG(name) {name, CLAIM_UNIT_FLAG}
#define NAME(name) {name, CLAIM_UNIT_NAME}
#define WORDS(name) {name, CLAIM_UNIT_WORDS}

static const char every_call[] =
    "[is_exact?every call was counted][!is_exact?not every call was counted]";
#define EXACT FLAG("is_exact")
#define HOW_SURE FLAG("is_sampled"), EXACT, FLAG("is_partial")
static const char how_sure[] =
    "[is_sampled?estimate from samples][is_exact?every call was counted][is_partial?not every call was counted]";
static const char seen_once[] = "as the process' pages were at {at_ns}";
#define COMPARE "docs/howto/compare.md"
#define DIFF_FIELDS COUNT("rows"), WHERE, COUNT("before"), COUNT("after"), COUNT("calls_before"), COUNT("calls_after")
static const char of_largest[] = "of the largest: {calls_before:call|calls} before, {calls_after} after";
static const char contents[] = "what blocks held as they were looked into";

static const char mappings_and_heap[] = "the mappings of a process, and glibc's heap in them";
static const char as_read[] = "as the process was when it was read";
#define RSS "docs/howto/heap.md"
#define REMEDIES_PAGE "docs/howto/heap.md#what-would-give-memory-back"
#define HISTORY "docs/howto/history.md"
#define MOVED_FIELDS WHERE, NAME("what"), COUNT("before"), COUNT("after"), NAME("to"), WORDS("levels")
#define NOW_FIELDS BYTES("bytes"), BYTES("rss_bytes")

static const struct claim_row rows[CLAIM_KEYS] = {
    [CLAIM_GROWTH] = {"growth", "what stacks held at five snapshots, over two seconds and half of the time",
        "{where} grows by {bytes_per_s}, steadily (fit {fit})[is_freed?, freed at shutdown]",
        "{snapshots:snapshot|snapshots}, {stacks:stack|stacks}; it rose in the last third of the time too",
        FINDINGS "steady-growth",
        {WHERE, {"bytes_per_s", CLAIM_UNIT_RATE}, {"fit", CLAIM_UNIT_RATIO}, FLAG("is_freed"),
         BYTES("first_bytes"), BYTES("last_bytes"), BYTES("interval_bytes"), COUNT("snapshots"), COUNT("stacks")}},
    [CLAIM_REALLOC] = {"realloc", "reallocations by stack",
        "{where} grows [is_one?its buffer {times:time|times}][is_many?each of its buffers {times:time|times}][!buffers?buffers {times:time|times} in all]: reserve ({copied_bytes} copied)",
        every_call, FINDINGS "a-buffer-that-is-grown",
        {WHERE, COUNT("times"), COUNT("buffers"), BYTES("copied_bytes"), FLAG("is_one"), FLAG("is_many"), EXACT}},
    [CLAIM_TEMPORARY] = {"temporary", "every call",
        "{blocks%of_blocks} of all blocks are freed at once, [is_most?most of {where}][!is_most?{where_blocks%blocks} of them of {where}]",
        every_call, FINDINGS "short-lived-blocks",
        {WHERE, COUNT("blocks"), COUNT("of_blocks"), COUNT("where_blocks"), FLAG("is_most"), EXACT}},
    [CLAIM_SHORT] = {"short_lived", "the life of blocks drawn at random",
        "about {blocks%of_blocks} of all blocks are short-lived, [is_most?most of {where}][!is_most?{where_blocks%blocks} of them of {where}]",
        "estimate: the life of {watched:block|blocks} was watched", FINDINGS "short-lived-blocks",
        {WHERE, COUNT("blocks"), COUNT("of_blocks"), COUNT("where_blocks"), COUNT("watched"), FLAG("is_most")}},
    [CLAIM_AGES] = {"ages", "the age of every freed block (--ages)",
        "at least {blocks%of_blocks} of all blocks live under {bound_ns}, [is_most?most of {where}][!is_most?{where_blocks%blocks} of them of {where}]",
        "[is_exact?every call was counted][!is_exact?not every call was counted], by a clock that was late by less",
        FINDINGS "short-lived-blocks",
        {WHERE, COUNT("blocks"), COUNT("of_blocks"), COUNT("where_blocks"), NS("bound_ns"), FLAG("is_most"), EXACT}},
    [CLAIM_FREED_BY] = {"freed_by", "which thread freed whose blocks, and when threads ended",
        "[late_bytes?at least ]{bytes%of_bytes}{interval} of what {from} allocates is freed by {to}",
        "[is_sampled?estimate from samples][is_exact?every free was counted][is_partial?not every free was counted][late_bytes?; without {late_bytes} that may have been freed at the end]",
        FINDINGS "hand-over-between-threads",
        {NAME("from"), NAME("to"), BYTES("bytes"), BYTES("of_bytes"), COUNT("blocks"), BYTES("interval_bytes"),
         BYTES("late_bytes"), WORDS("interval"), HOW_SURE}},
    [CLAIM_FREE] = {"free", "resident and live memory over time, and what else is resident",
        "{free_bytes} of {rss_bytes} resident are free in the heap, {live_bytes} live, at {at_ns}",
        "seen from outside: a quarter of what is live is taken for its room", FINDINGS "fragmentation",
        {BYTES("free_bytes"), BYTES("rss_bytes"), BYTES("live_bytes"), AT}},
    [CLAIM_REUSE] = {"reuse", "which code frees which blocks (--free-stacks)",
        "{where} frees what it allocates, {blocks:block|blocks}[block_bytes? of {block_bytes}]: [is_small?a buffer on the stack will do][!is_small?one buffer can be reused]",
        every_call, FINDINGS "freed-where-it-was-allocated",
        {WHERE, COUNT("blocks"), BYTES("block_bytes"), FLAG("is_small"), EXACT}},
    [CLAIM_ALIKE] = {"alike", "the size of every block",
        "{where} allocates {blocks:block|blocks} of {block_bytes} one by one: an array or a pool",
        every_call, FINDINGS "one-by-one-in-a-loop",
        {WHERE, COUNT("blocks"), BYTES("block_bytes"), EXACT}},
    [CLAIM_UNTOUCHED] = {"untouched", "which pages are resident, and the highest that resident memory was",
        "[is_least?at least ]{bytes} of {of_bytes} live were never touched at {at_ns}[where?, most of {where}]: reserve less",
        seen_once, FINDINGS "reserved-and-not-used",
        {WHERE, BYTES("bytes"), BYTES("of_bytes"), AT, FLAG("is_least")}},
    [CLAIM_ARENAS] = {"arenas", "the free chunks of glibc's arenas",
        "{arenas:arena|arenas} hold {free_bytes} free at {at_ns}, {beyond_bytes} beyond the heap's peak: MALLOC_ARENA_MAX=1",
        seen_once, FINDINGS "arenas",
        {COUNT("arenas"), BYTES("free_bytes"), BYTES("beyond_bytes"), BYTES("rss_bytes"), AT}},
    [CLAIM_STRINGS] = {"strings", "what is in the blocks of a process, a core or its file",
        "[is_estimate?about {bytes} of equal strings][!is_estimate?{bytes} of equal strings, {copies:copy|copies} of {strings:string|strings}][where?, most of {where}]: keep each once",
        "[is_estimate?estimate from a part of the heap][!is_estimate?what blocks held as they were looked into]",
        FINDINGS "equal-strings",
        {WHERE, BYTES("bytes"), COUNT("copies"), COUNT("strings"), FLAG("is_estimate")}},
    [CLAIM_WASTE] = {"waste", "what is in the blocks of a file of core save",
        "{bytes} of {of_bytes} in blocks are of no use: {zero_bytes} zero, {equal_bytes} equal to others, {tail_bytes} unused at ends, {slack_bytes} slack[where?, most of it of {where}]",
        contents, FINDINGS "zeros-and-unused-ends",
        {WHERE, BYTES("bytes"), BYTES("of_bytes"), BYTES("zero_bytes"), BYTES("equal_bytes"), BYTES("tail_bytes"),
         BYTES("slack_bytes")}},
    [CLAIM_HUGE] = {"huge", "huge pages of the heap, of glibc's malloc",
        "{bytes} of {rss_bytes} resident are heap on small pages at {at_ns}: GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        seen_once, FINDINGS "small-pages",
        {BYTES("bytes"), BYTES("rss_bytes"), AT}},
    [CLAIM_GROWTH_STOPPED] = {"growth_stopped", "what stacks held at five snapshots, over two seconds and half of the time",
        "{where} grew from {first_bytes} to {last_bytes}, {from_ns} to {until_ns}, and is flat since",
        "{snapshots:snapshot|snapshots}", "docs/howto/growth.md",
        {WHERE, BYTES("first_bytes"), BYTES("last_bytes"), NS("from_ns"), NS("until_ns"), COUNT("snapshots")}},
    [CLAIM_GROWTH_NONE] = {"growth_none", "what stacks held at five snapshots, over two seconds and half of the time",
        "no stack grows[stopped?, {stopped} grew before] over {snapshots:snapshot|snapshots} from {start_ns}[label? ({label})] to {end_ns}",
        "{snapshots:snapshot|snapshots}", "docs/howto/growth.md",
        {COUNT("snapshots"), COUNT("stopped"), NS("start_ns"), NS("end_ns"), NAME("label")}},
    [CLAIM_GROWTH_UNKNOWN] = {"growth_unknown", "",
        "growth is not known: it takes {least_snapshots} snapshots, over 2 s and half of the recording; there [is_one?is][!is_one?are] {snapshots}, over {span_ns}",
        "nothing is claimed", "docs/howto/growth.md",
        {COUNT("snapshots"), COUNT("least_snapshots"), NS("span_ns"), FLAG("is_one")}},
    [CLAIM_PEAK] = {"peak", "frees",
        "peak heap {bytes}{interval} in {blocks}{blocks_interval} [is_one?block][!is_one?blocks][at_ns? at {at_ns}][from_ns?, perhaps from {from_ns}][is_since_attach?, since attach]{samples_text}",
        how_sure, SUMMARY "peak-heap",
        {BYTES("bytes"), COUNT("blocks"), AT, NS("from_ns"), BYTES("interval_bytes"), COUNT("samples"), BYTES("error_bytes"),
         WORDS("interval"), WORDS("blocks_interval"), WORDS("samples_text"), FLAG("is_one"), FLAG("is_since_attach"), HOW_SURE}},
    [CLAIM_LEFT] = {"left", "frees",
        "{when} {bytes}{interval} in {blocks}{blocks_interval} [is_one?block][!is_one?blocks][is_since_attach?, since attach]{samples_text}",
        how_sure, SUMMARY "at-exit",
        {BYTES("bytes"), COUNT("blocks"), BYTES("interval_bytes"), COUNT("samples"), NAME("when"),
         WORDS("interval"), WORDS("blocks_interval"), WORDS("samples_text"), FLAG("is_one"), FLAG("is_since_attach"), HOW_SURE}},
    [CLAIM_WAY] = {"way", "stacks with names of functions",
        "[is_least?at least ][is_sampled?about ]{bytes%of_bytes} of {what} ({bytes}) came through [has_caller?{caller} \u2192 ]{where}[does_part?: {parts}]",
        how_sure, SUMMARY "the-first-sentence",
        {WHERE, NAME("caller"), BYTES("bytes"), BYTES("of_bytes"), NAME("parts"), WORDS("what"), FLAG("has_caller"),
         FLAG("does_part"), FLAG("is_least"), HOW_SURE}},
    [CLAIM_WAYS] = {"ways", "stacks with names of functions",
        "{what} came through several functions: [is_sampled?about ]{parts}", how_sure, SUMMARY "the-first-sentence",
        {NAME("parts"), BYTES("of_bytes"), WORDS("what"), HOW_SURE}},
    [CLAIM_EXACT] = {"exact", "that nothing was lost, left out or drawn by chance",
        "exact[is_since_attach? since attach][error_bytes?, peak within {error_bytes}]",
        "every call was counted[was_off?, but while recording was switched off]", SUMMARY "the-trust-line",
        {COUNT("calls"), BYTES("error_bytes"), FLAG("is_since_attach"), FLAG("was_off")}},
    [CLAIM_EXACT_CALLS] = {"exact_calls", "that nothing was lost or left out",
        "calls and bytes allocated exact[is_since_attach? since attach]",
        "every call was counted[was_off?, but while recording was switched off]; what was live is an estimate from samples",
        SUMMARY "the-trust-line",
        {COUNT("calls"), BYTES("allocated_bytes"), FLAG("is_since_attach"), FLAG("was_off")}},
    [CLAIM_NOT_EXACT] = {"not_exact", "",
        "not exact", "nothing is claimed", SUMMARY "the-trust-line",
        {COUNT("lost"), FLAG("is_damaged"), FLAG("is_import")}},
    [CLAIM_RECORDING_COST] = {"recording_cost", "that each allocation was recorded",
        "cairn took {own_bytes} beside {program_bytes} of the program, for {stacks} different stacks: [is_attached?without --exact][!is_attached?with --sample] --rate {rate} it takes less, and less time",
        "its memory as it was at the end; time was not measured", SUMMARY "the-trust-line",
        {BYTES("own_bytes"), BYTES("program_bytes"), COUNT("stacks"), BYTES("rate_bytes"), WORDS("rate"), FLAG("is_attached")}},
    [CLAIM_RESIDENT] = {"resident", "a reading of the process' mappings near the peak of resident memory",
        "resident {rss_bytes} = {parts} [is_of_peak?at {at_ns}][!is_of_peak?read at {at_ns}, when RSS was {rss_bytes} of {peak_bytes}]",
        seen_once, SUMMARY "resident",
        {BYTES("rss_bytes"), BYTES("live_bytes"), BYTES("free_bytes"), BYTES("slack_bytes"), BYTES("mapped_bytes"), AT,
         BYTES("peak_bytes"), FLAG("is_of_peak"), WORDS("parts")}},
    [CLAIM_NOT_HEAP] = {"not_heap", "resident memory near its peak, and what of it was live",
        "most of its resident memory is no live heap: {bytes} of {rss_bytes} ({bytes%rss_bytes}) are {what}",
        "read at {at_ns}", SUMMARY "the-first-sentence",
        {BYTES("bytes"), BYTES("rss_bytes"), BYTES("live_bytes"), NAME("what"), AT}},
    [CLAIM_HEAP] = {"heap", "a reading of the process' mappings",
        "the heap at {at_ns}: {heap_bytes} resident, [is_live_known?{live_bytes} live on it ({live_bytes%heap_bytes})][!is_live_known?how much of it is free is not known][is_doubtful? if all of it was touched]",
        "[is_doubtful?not all that is free was counted][!is_doubtful?as the process' pages were at {at_ns}]",
        "docs/reference/metrics.md#resident-memory",
        {AT, BYTES("heap_bytes"), BYTES("live_bytes"), FLAG("is_live_known"), FLAG("is_doubtful")}},
    [CLAIM_ACCOUNTS] = {"thread_accounts", "when threads began and ended",
        "{threads:thread|threads} in turn share {accounts:account|accounts}: of what they held only the sum is known",
        "threads that lived at the same time never share one", "docs/reference/json.md#threads",
        {COUNT("threads"), COUNT("accounts")}},
    [CLAIM_DIFF_NEW] = {"diff_new", "stacks of both sides by name", "{rows} new", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_DIFF_GONE] = {"diff_gone", "stacks of both sides by name", "{rows} gone", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_DIFF_GROWN] = {"diff_grown", "stacks of both sides by name", "{rows} grown", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_DIFF_SHRUNK] = {"diff_shrunk", "stacks of both sides by name", "{rows} shrunk", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_DIFF_NOT_AT_PEAK] = {"diff_not_at_peak", "the calls of stacks that hold nothing at a peak", "{rows} not at this peak", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_DIFF_ONLY_AT_PEAK] = {"diff_only_at_peak", "the calls of stacks that hold nothing at a peak", "{rows} only at this peak", of_largest, COMPARE, {DIFF_FIELDS}},
    [CLAIM_TYPES] = {"types", "debug information, and what is in the blocks of a process or a core",
        "{bytes} in {blocks:block|blocks} by type", "{unknown_bytes} of no known type", "docs/howto/types.md",
        {BYTES("bytes"), COUNT("blocks"), BYTES("unknown_bytes"), NAME("largest"), BYTES("largest_bytes"), COUNT("largest_blocks")}},
    [CLAIM_CONTAINERS] = {"containers", "debug information, and what is in the blocks of a process or a core",
        "{containers:container|containers} with room for {capacity_bytes}, {unused_bytes} of it unused",
        "what containers said of themselves as they were looked into[left_out?; without {left_out} that contradict themselves]",
        "docs/howto/types.md",
        {COUNT("containers"), BYTES("capacity_bytes"), BYTES("unused_bytes"), COUNT("left_out")}},
    [CLAIM_OWNERS] = {"owners", "what is in the blocks of a process or a core",
        "{bytes} in {blocks:block|blocks} by who keeps them; {shared_bytes} have several owners",
        "by the words that lead to blocks[inner_blocks?; {inner_blocks} are reached by such alone that point inside]",
        "docs/howto/owners.md",
        {BYTES("bytes"), COUNT("blocks"), BYTES("shared_bytes"), BYTES("leaked_bytes"), COUNT("leaked_blocks"),
         COUNT("inner_blocks"), NAME("largest"), BYTES("largest_bytes"), COUNT("shared_blocks"), BYTES("inner_bytes")}},
    [CLAIM_OF_NO_USE] = {"of_no_use", "what is in the blocks of a process or a core",
        "[is_estimate?about ]{bytes} of {of_bytes} in {blocks:block|blocks} are of no use ({share_text})",
        "[is_estimate?estimate from a part of the heap, {share_text}][!is_estimate?what blocks held as they were looked into]",
        "docs/howto/waste.md",
        {BYTES("bytes"), BYTES("of_bytes"), COUNT("blocks"), BYTES("untouched_bytes"), BYTES("zero_bytes"), BYTES("equal_bytes"),
         BYTES("tail_bytes"), BYTES("slack_bytes"), FLAG("is_estimate"), WORDS("share_text")}},
    [CLAIM_DUPLICATES] = {"duplicates", "what is in the blocks of a process or a core",
        "[are_strings?string ]duplicates: [is_estimate?about ]{bytes} in {copies:copy|copies} of [are_strings?{contents:string|strings}][!are_strings?{contents:content|contents}][is_estimate? (those that were read)], [!is_all?most of them ]from {where}",
        "[is_estimate?estimate from a part of the heap][!is_estimate?what blocks held as they were looked into]",
        "docs/howto/waste.md",
        {WHERE, BYTES("bytes"), COUNT("copies"), COUNT("contents"), FLAG("are_strings"), FLAG("is_all"), FLAG("is_estimate")}},
    [CLAIM_KEPT_PAGES] = {"kept_pages", "the pages and the blocks of a heap, of a process",
        "{kept_bytes} of {resident_bytes} resident are on pages with live blocks, for {live_bytes} live; {empty_bytes} are free memory of the allocator",
        "[is_sampled?estimate from samples][!is_sampled?as the process' pages were when it was read]", "docs/howto/heap.md",
        {BYTES("resident_bytes"), BYTES("kept_bytes"), BYTES("live_bytes"), BYTES("empty_bytes"), FLAG("is_sampled")}},
    [CLAIM_REMEDY] = {"remedy", "the free memory of its allocator, and which of its pages are resident",
        "{what} would give back [is_most?at most ][is_least?at least ]{bytes}",
        "[is_most?it cannot be more than this, and may be nothing][is_least?some of the heap changed while it was read][is_whole?as the heap was when it was read]",
        REMEDIES_PAGE, {NAME("what"), BYTES("bytes"), BYTES("rss_bytes"), FLAG("is_most"), FLAG("is_least"), FLAG("is_whole")}},
    [CLAIM_REMEDY_NONE] = {"remedy_none", "all free memory of its allocator",
        "[is_locked?its memory is locked (mlock): the kernel takes nothing back][free_bytes?{free_bytes} are free, but between blocks in use: no page of it can go back][!is_stuck?nothing would help: ][is_core?malloc keeps little that is free][is_live?the memory is live and touched][is_elsewhere?most of it is not {allocator}'s]",
        as_read, REMEDIES_PAGE,
        {BYTES("free_bytes"), BYTES("rss_bytes"), FLAG("is_stuck"), FLAG("is_locked"), FLAG("is_core"), FLAG("is_live"), FLAG("is_elsewhere"), NAME("allocator")}},
    [CLAIM_REMEDY_UNKNOWN] = {"remedy_unknown", "", "not known: {why}", "nothing is claimed", REMEDIES_PAGE, {NAME("why")}},
    [CLAIM_NOW_FREE] = {"now_free", mappings_and_heap,
        "{bytes} of it ({bytes%rss_bytes}) are free in {allocator}", as_read, RSS,
        {NOW_FIELDS, NAME("allocator")}},
    [CLAIM_NOW_OTHER] = {"now_other", mappings_and_heap,
        "most of it, {bytes} ({bytes%rss_bytes}), is {what}", as_read, RSS, {NOW_FIELDS, NAME("what")}},
    [CLAIM_NOW_WASTE] = {"now_waste", "what is in the blocks of a process",
        "{bytes} ({bytes%rss_bytes}) are in use in {allocator}, and {wasted_bytes} there are redundant",
        as_read, "docs/howto/waste.md", {NOW_FIELDS, BYTES("wasted_bytes"), NAME("allocator")}},
    [CLAIM_NOW_BLOCK] = {"now_block", "what is in the blocks of a process",
        "one block of {bytes} ({bytes%rss_bytes}) in {allocator} is most of it[is_recordable?: cairn run would know its stack]",
        as_read, RSS, {NOW_FIELDS, NAME("allocator"), FLAG("is_recordable")}},
    [CLAIM_NOW_USED] = {"now_used", "what is in the blocks of a process",
        "nothing stands out: {bytes} ({bytes%rss_bytes}) are in use in {allocator}, and touched",
        as_read, RSS, {NOW_FIELDS, BYTES("wasted_bytes"), NAME("allocator")}},
    [CLAIM_NOW_LARGEST] = {"now_largest", mappings_and_heap,
        "the largest part is {bytes} ({bytes%rss_bytes}) {what}", as_read, RSS, {NOW_FIELDS, NAME("what")}},
    [CLAIM_MOVED] = {"moved", "runs of two commits, and by how much runs of one vary",
        "{where} {what}: {levels}",
        "[is_noisy?by more than runs of one commit vary][!is_noisy?counted, or the same in all runs of a commit]", HISTORY,
        {MOVED_FIELDS, NAME("from"), COUNT("commits"), FLAG("is_noisy")}},
    [CLAIM_MAY_HAVE_MOVED] = {"may_have_moved", "", "{where} {what}: {levels}", "nothing is claimed", HISTORY,
        {MOVED_FIELDS, COUNT("runs_before"), COUNT("runs_missing")}},
    [CLAIM_NOT_MOVED] = {"not_moved", "runs of two commits, and by how much runs of one vary",
        "nothing moved since {since}", "{tests:test|tests} compared[new_tests?, {new_tests} without an earlier run]", HISTORY,
        {COUNT("tests"), COUNT("new_tests"), NAME("to"), WORDS("since")}},
};
// clang-format on

const struct claim_row *claim_row(enum claim_key key) {
    return &rows[key];
}

// Returns the index of the field with that name; CLAIM_VALUES_MAX: the row has none.
static size_t find_field(enum claim_key key, const char *name, size_t length) {
    const struct claim_field *fields = rows[key].fields;
    for (size_t i = 0; fields[i].unit != CLAIM_UNIT_NONE; i++)
        if (strlen(fields[i].name) == length && !strncmp(fields[i].name, name, length)) return i;
    return CLAIM_VALUES_MAX;
}

static size_t field_of(const struct claim *claim, const char *name) {
    size_t index = find_field(claim->key, name, strlen(name));
    assert(index < CLAIM_VALUES_MAX);
    return index;
}

bool claim_has(const struct claim *claim, const char *name) {
    return find_field(claim->key, name, strlen(name)) < CLAIM_VALUES_MAX;
}

bool claim_is_set(const struct claim *claim, const char *name) {
    return claim->values[field_of(claim, name)].is_set;
}

void claim_set(struct claim *claim, const char *name, int64_t value) {
    size_t index = field_of(claim, name);
    claim->values[index].is_set = true;
    claim->values[index].number = value;
}

void claim_set_real(struct claim *claim, const char *name, double value) {
    size_t index = field_of(claim, name);
    claim->values[index].is_set = true;
    claim->values[index].real = value;
    claim->values[index].number = value != 0;
}

void claim_set_text(struct claim *claim, const char *name, const char *text) {
    size_t index = field_of(claim, name), room = sizeof claim->names - claim->names_used;
    char *copy = claim->names + claim->names_used;
    size_t length = strlen(text);
    if (length >= room) length = room - 1;
    memcpy(copy, text, length);
    copy[length] = 0;
    claim->names_used += length + (length + 1 < room);
    claim->values[index].is_set = true;
    claim->values[index].number = length > 0;
    claim->values[index].text = copy;
}

const char *claim_text(const struct claim *claim, const char *name) {
    return claim->values[field_of(claim, name)].text;
}

// A sentence in the making.
struct writing {
    const struct claim *claim;
    bool is_plain;
    char *out;  // CLAIM_SENTENCE_BYTES
    size_t used;
};

static void put_text(struct writing *writing, const char *text, size_t length) {
    size_t room = CLAIM_SENTENCE_BYTES - 1 - writing->used;
    if (length > room) length = room;
    memcpy(writing->out + writing->used, text, length);
    writing->used += length;
}

static void put_value(struct writing *writing, size_t index) {
    const struct claim *claim = writing->claim;
    const enum claim_unit unit = rows[claim->key].fields[index].unit;
    const int64_t number = claim->values[index].number;
    struct unit_text text = {""};
    if (unit == CLAIM_UNIT_BYTES) text = units_size_as(number, writing->is_plain);
    if (unit == CLAIM_UNIT_COUNT) text = units_count(number);
    if (unit == CLAIM_UNIT_NS) text = units_duration((uint64_t)number);
    if (unit == CLAIM_UNIT_RATE) rate_text(claim->values[index].real, text.text, sizeof text.text);
    if (unit == CLAIM_UNIT_RATIO)
        snprintf(text.text, sizeof text.text, "%.2f", claim->values[index].real);
    const char *said = claim->values[index].text ? claim->values[index].text : text.text;
    put_text(writing, said, strlen(said));
}

static int64_t number_of(const struct claim *claim, size_t index) {
    return index < CLAIM_VALUES_MAX && claim->values[index].is_set ? claim->values[index].number
                                                                   : 0;
}

// {blocks:block|blocks}: [name, end) is what is between the braces.
static void put_counted(struct writing *writing, size_t index, const char *noun, const char *end) {
    const char *many = memchr(noun, '|', (size_t)(end - noun));
    put_value(writing, index);
    put_text(writing, " ", 1);
    if (number_of(writing->claim, index) == 1)
        put_text(writing, noun, (size_t)(many - noun));
    else
        put_text(writing, many + 1, (size_t)(end - many - 1));
}

static void put_placeholder(struct writing *writing, const char *name, const char *end) {
    const enum claim_key key = writing->claim->key;
    size_t length = strcspn(name, ":%}");
    const char *rest = name + length + 1;
    size_t index = find_field(key, name, length);
    assert(index < CLAIM_VALUES_MAX);
    if (name[length] == ':') put_counted(writing, index, rest, end);
    if (name[length] == '}') put_value(writing, index);
    if (name[length] != '%') return;
    size_t of = find_field(key, rest, (size_t)(end - rest));
    struct unit_text share =
        units_percent(number_of(writing->claim, index), number_of(writing->claim, of));
    put_text(writing, share.text, strlen(share.text));
}

static bool is_true(const struct claim *claim, const char *name, size_t length) {
    bool is_negated = *name == '!';
    size_t index = find_field(claim->key, name + is_negated, length - is_negated);
    assert(index < CLAIM_VALUES_MAX);
    return (number_of(claim, index) != 0) != is_negated;
}

// Writes [text, end): text as it is, placeholders, and parts with a condition, which hold no
// others.
static void put_template(struct writing *writing, const char *text, const char *end) {
    while (text < end) {
        size_t plain = strcspn(text, "[{");
        if (text + plain > end) plain = (size_t)(end - text);
        put_text(writing, text, plain);
        text += plain;
        if (text >= end) return;
        const char *close = strchr(text, *text == '[' ? ']' : '}');
        if (*text == '{') {
            put_placeholder(writing, text + 1, close);
        } else {
            const char *begin = strchr(text, '?');
            if (is_true(writing->claim, text + 1, (size_t)(begin - text - 1)))
                put_template(writing, begin + 1, close);
        }
        text = close + 1;
    }
}

static void write_template(const struct claim *claim, const char *text, bool is_plain,
                           char out[CLAIM_SENTENCE_BYTES]) {
    struct writing writing = {claim, is_plain, out, 0};
    put_template(&writing, text, text + strlen(text));
    out[writing.used] = 0;
}

void claim_sentence(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]) {
    write_template(claim, rows[claim->key].sentence, is_plain, out);
}

void claim_sure(const struct claim *claim, bool is_plain, char out[CLAIM_SENTENCE_BYTES]) {
    write_template(claim, rows[claim->key].sure, is_plain, out);
}

static void put_field(struct json *json, const struct claim *claim, size_t index) {
    const struct claim_field *field = &rows[claim->key].fields[index];
    const double real = claim->values[index].real;
    const double whole = 1000, most = 0x1p62;
    if (field->unit == CLAIM_UNIT_WORDS) return;
    if (!claim->values[index].is_set)
        json_put_null(json, field->name);
    else if (field->unit == CLAIM_UNIT_NAME)
        json_put_string(json, field->name, claim->values[index].text);
    else if (field->unit == CLAIM_UNIT_FLAG)
        json_put_bool(json, field->name, claim->values[index].number != 0);
    else if (field->unit == CLAIM_UNIT_RATE)
        json_put_int(json, field->name, real < most ? (int64_t)real : INT64_MAX);
    else if (field->unit == CLAIM_UNIT_RATIO)
        json_put_thousandths(json, field->name, (unsigned)(real * whole));
    else
        json_put_int(json, field->name, claim->values[index].number);
}

void claim_put_json(struct json *json, const struct claim *claim) {
    const struct claim_row *row = &rows[claim->key];
    char text[CLAIM_SENTENCE_BYTES];
    json_put_string(json, "key", row->key);
    json_open_object(json, "evidence");
    for (size_t i = 0; row->fields[i].unit != CLAIM_UNIT_NONE; i++) put_field(json, claim, i);
    json_close(json);
    claim_sentence(claim, false, text);
    json_put_string(json, "sentence", text);
    claim_sure(claim, false, text);
    json_put_string(json, "sure", text);
    json_put_string(json, "page", row->page);
}

void claim_put_json_alone(struct json *json, const struct claim *claim) {
    json_open_array(json, "claims");
    json_open_object(json, NULL);
    claim_put_json(json, claim);
    json_close(json);
    json_close(json);
}
