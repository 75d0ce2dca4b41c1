// SPDX-License-Identifier: Apache-2.0
#include "tool/render/stack_answers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/model/mapped.h"
#include "tool/model/stack_fields.h"
#include "tool/render/alike.h"
#include "tool/render/freed_by.h"
#include "tool/render/mappings.h"

enum { VALUE_COLUMNS = 11, BLOCKS_COLUMNS = 10, EXTRA_MAX = 8, KINDS_BYTES = 64, ID_BYTES = 17 };

// Columns of every list, then its own.
enum stack_column {
    STACK_SHARE,
    STACK_VALUE,
    STACK_BLOCKS,
    STACK_ID,
    STACK_OTHER_IDS,
    STACK_ALLOCATED,  // these are phrases of the screen
    STACK_CALLS,
    STACK_PEAK,
    STACK_EXIT,
    STACK_FIELD,
    STACK_EXTRA = STACK_FIELD + STACK_FIELD_COUNT,
    STACK_COLUMNS = STACK_EXTRA + EXTRA_MAX
};

struct stack_list {
    const struct profile *profile;
    const struct frame_names *names;
    struct view_options view;
    uint32_t *ranking;
    size_t at;    // stacks that were told
    size_t part;  // of the last one, those of its parts
    struct frame_list frames, freed_by;
    struct shapes shapes;
    struct free_stacks freers;
    char id[ID_BYTES], kinds[KINDS_BYTES];
    char *other_ids;
    // What else a list has of a stack; NULL: nothing.
    void (*tell)(struct stack_list *list, const struct stack *stack, struct answer_row *row);
    // Its parts, a row each. False: that were all.
    bool (*tell_part)(struct stack_list *list, const struct stack *stack, size_t part,
                      struct answer_row *row);
    stacks_note_fn *note_above, *note_below;  // of the screen; NULL: nothing
    void *note_context;
    bool is_failed;
    struct answer_column columns[STACK_COLUMNS];
};

// The measure that a field is of, and how sure its estimate is; MEASURE_COUNT: none.
static enum measure measure_of_field(const struct stack_field *field) {
    static const struct {
        size_t offset;
        enum measure measure;
    } measures[] = {{offsetof(struct stack, peak_bytes), MEASURE_PEAK},
                    {offsetof(struct stack, peak_blocks), MEASURE_PEAK_BLOCKS},
                    {offsetof(struct stack, exit_bytes), MEASURE_EXIT},
                    {offsetof(struct stack, exit_blocks), MEASURE_EXIT_BLOCKS},
                    {offsetof(struct stack, allocated_bytes), MEASURE_ALLOCATED},
                    {offsetof(struct stack, allocations), MEASURE_CALLS}};
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        if (measures[i].offset == field->offset) return measures[i].measure;
    return MEASURE_COUNT;
}

static void set_fields(const struct stack_list *list, const struct stack *stack,
                       struct answer_row *row) {
    for (size_t i = 0; stack_fields[i].key; i++) {
        enum measure measure = measure_of_field(&stack_fields[i]);
        if (!stack_field_is_known(&stack_fields[i], list->profile))
            answer_set_unknown(row, STACK_FIELD + i);
        else if (measure != MEASURE_COUNT)
            answer_set_measured(row, STACK_FIELD + i, measure_stack(measure, stack));
        else
            answer_set(row, STACK_FIELD + i, stack_field_value(&stack_fields[i], stack));
    }
}

static void set_phrases(const struct stack *stack, struct answer_row *row) {
    answer_set_measured(row, STACK_ALLOCATED, measure_stack(MEASURE_ALLOCATED, stack));
    answer_set_measured(row, STACK_CALLS, measure_stack(MEASURE_CALLS, stack));
    answer_set_measured(row, STACK_PEAK, measure_stack(MEASURE_PEAK, stack));
    answer_set_measured(row, STACK_EXIT, measure_stack(MEASURE_EXIT, stack));
}

static const struct stack *last_told(const struct stack_list *list) {
    return &list->profile->stacks[list->ranking[list->at - 1]];
}

static bool next_stack(struct answer *answer, struct answer_row *row) {
    struct stack_list *list = answer->state;
    if (list->at && list->tell_part) {
        row->level = 1;
        row->use = ANSWER_FOR_PROGRAMS;
        if (list->tell_part(list, last_told(list), list->part++, row)) return true;
        memset(row, 0, sizeof *row);
        list->part = SIZE_MAX;
    }
    answer->is_failed |= list->is_failed || list->freers.has_trouble;
    if (list->at == answer->shown || answer->is_failed) return false;
    const struct stack *stack = &list->profile->stacks[list->ranking[list->at++]];
    struct measured measured = measure_stack(list->view.by, stack);
    list->part = 0;
    list->frames.are_all_shown = !answer->is_screen || list->view.has_all_frames;
    if (!frame_list_fill(&list->frames, list->profile, list->names, stack->node, 0)) {
        answer->is_failed = true;
        return false;
    }
    snprintf(list->id, sizeof list->id, "%016" PRIx64, stack->id);
    answer_set_measured(row, STACK_SHARE, measured);
    answer_set_measured(row, STACK_VALUE, measured);
    answer_set_measured(row, STACK_BLOCKS,
                        measure_stack(measure_about(list->view.by)->in_blocks, stack));
    answer_set_text(row, STACK_ID, list->id);
    free(list->other_ids);
    list->other_ids = alike_other_ids(list->profile, stack);
    if (list->other_ids) answer_set_text(row, STACK_OTHER_IDS, list->other_ids);
    set_phrases(stack, row);
    set_fields(list, stack, row);
    row->frames = &list->frames;
    row->cut = stack->cut;
    row->incomplete = stack->cut ? cut_key(stack->cut) : NULL;
    if (list->tell) list->tell(list, stack, row);
    return true;
}

static void close_list(void *state) {
    struct stack_list *list = state;
    shape_free(&list->shapes.shape);
    frame_list_free(&list->frames);
    frame_list_free(&list->freed_by);
    free(list->freers.list);
    free(list->ranking);
    free(list->other_ids);
    free(list);
}

// What else there is to know about a stack than what it is ranked by.
static void set_phrase_columns(struct stack_list *list) {
    static const char *const calls[] = {"call", "calls"};
    const struct profile *profile = list->profile;
    const bool has_frees = profile_has_frees(profile), has_calls = profile_has_calls(profile),
               is_of_owners = recording_is_of_owners(profile->recording);
    const struct answer_column phrases[] = {
        ANSWER_DATA(NULL, ANSWER_BYTES, .place = ANSWER_PHRASE,
                    .is_left_out = is_of_owners || !has_calls,
                    .before = profile->is_of_mappings ? "mapped "
                              : profile->is_of_lost   ? "lost with its own blocks: it allocated "
                                                      : "allocated "),
        ANSWER_DATA(NULL, ANSWER_COUNT, .place = ANSWER_PHRASE_ON, .is_left_out = !has_calls,
                    .before = " in ", .noun = calls),
        ANSWER_DATA(NULL, ANSWER_BYTES, .place = ANSWER_PHRASE, .behind = " at the peak",
                    .is_left_out = is_of_owners || !has_frees || list->view.by == MEASURE_PEAK),
        ANSWER_DATA(NULL, ANSWER_BYTES, .place = ANSWER_PHRASE,
                    .behind = profile_has_ended(profile) ? " at the end" : " now",
                    .is_left_out = is_of_owners || !has_frees || list->view.by == MEASURE_EXIT)};
    memcpy(list->columns + STACK_ALLOCATED, phrases, sizeof phrases);
}

static void set_columns(struct stack_list *list, const struct answer_column *extra, size_t count) {
    const struct measure_row *about = measure_about(list->view.by);
    list->columns[STACK_SHARE] = answer_share_column;
    list->columns[STACK_VALUE] = answer_value_column(list->view.by, VALUE_COLUMNS);
    list->columns[STACK_VALUE].is_estimate = true;
    if (list->profile->sampling.is_on || list->view.by == MEASURE_SHORT)
        list->columns[STACK_VALUE].note = ANSWER_WIDE_NOTE;
    list->columns[STACK_BLOCKS] = (struct answer_column)ANSWER_FIGURES(
        NULL, about->noun[1], ANSWER_COUNT, BLOCKS_COLUMNS,
        .is_left_out = !about->is_bytes || !measure_is_known(about->in_blocks, list->profile));
    list->columns[STACK_ID] = (struct answer_column)ANSWER_DATA("id", ANSWER_TEXT);
    list->columns[STACK_OTHER_IDS] = answer_other_ids_column(list->profile);
    set_phrase_columns(list);
    for (size_t i = 0; stack_fields[i].key; i++) {
        bool is_bytes = strstr(stack_fields[i].key, "bytes") != NULL;
        list->columns[STACK_FIELD + i] = (struct answer_column)ANSWER_DATA(
            stack_fields[i].key, is_bytes ? ANSWER_BYTES : ANSWER_COUNT,
            .is_estimate = measure_of_field(&stack_fields[i]) != MEASURE_COUNT);
    }
    if (count) memcpy(list->columns + STACK_EXTRA, extra, count * sizeof *extra);
}

static void say_title(struct answer *answer, enum measure by, bool is_now) {
    const struct measure_row *about = measure_about(by);
    const bool is_one = answer->count == 1;
    snprintf(answer->title, sizeof answer->title, "%s%s%s",
             units_counted((int64_t)answer->count, "stack", "stacks").text, is_one ? ", " : " by ",
             is_one   ? is_now ? "now" : about->snapshot
             : is_now ? "what they hold now"
                      : about->order);
}

// The screen says why; other forms fail by it.
static void say_unknown(struct answer *answer, const struct profile *profile, enum measure by) {
    answer->is_unknown = true;
    snprintf(answer->title, sizeof answer->title, "%s are not known", measure_about(by)->snapshot);
    snprintf(answer->title_rest, sizeof answer->title_rest, ": %s",
             profile->recording->header.imported
                 ? "the imported file does not say when blocks were freed"
                 : "too few blocks were allocated, or they were sampled");
}

static void say_notes(const struct terminal *terminal, struct answer *answer,
                      enum answer_say where) {
    struct stack_list *list = answer->state;
    stacks_note_fn *note = where == ANSWER_SAY_ABOVE ? list->note_above : list->note_below;
    if (note) note(terminal, list->profile, last_told(list), &list->view, list->note_context);
}

static size_t count_with_value(const struct profile *profile, enum measure measure) {
    size_t count = 0;
    for (size_t i = 0; i < profile->stack_count; i++)
        count += measure_stack(measure, &profile->stacks[i]).value > 0;
    return count;
}

static const char *const *noun_of(const struct profile *profile, enum measure by) {
    static const char *const mappings[] = {"mapping", "mappings"}, *const none[] = {"", ""};
    const struct measure_row *about = measure_about(by);
    bool are_blocks = !strncmp(about->noun[1], "block", strlen("block"));
    if (about->is_bytes && !measure_is_known(about->in_blocks, profile)) return none;
    return profile->is_of_mappings && are_blocks ? mappings : about->noun;
}

// Stacks that are worth a line, of those that have a value.
static size_t count_shown(const struct stack_list *list, size_t count) {
    const struct view_options *view = &list->view;
    int64_t least = view_threshold(view, measure_total(view->by, list->profile).value);
    size_t shown = answer_cut(view->top, count);
    if (view->threshold <= 0 && view->min_bytes <= 0) return shown;
    while (shown &&
           measure_value(view->by, &list->profile->stacks[list->ranking[shown - 1]]) < least)
        shown--;
    return shown;
}

// Of estimates that stand on samples of their own a part may be more than the whole.
static int64_t whole_of(const struct stack_list *list, const struct profile *profile,
                        enum measure by, size_t count) {
    int64_t whole = measure_total(by, profile).value;
    int64_t largest = count ? measure_value(by, &profile->stacks[list->ranking[0]]) : 0;
    return largest > whole ? largest : whole;
}

// Opens a list of ranked stacks; its maker adds what else it has. NULL, with an error: there is
// none.
static struct stack_list *open_list(struct answer *answer, const struct profile *profile,
                                    const struct frame_names *names,
                                    const struct view_options *view,
                                    const struct answer_column *extra, size_t extra_count,
                                    struct error *error) {
    struct stack_list *list = calloc(1, sizeof *list);
    size_t count = 0;
    const bool is_known = measure_is_known(view->by, profile);
    if (list && is_known)
        list->ranking = measure_rank_most(view->by, profile, view->top, &count);
    else if (list)
        list->ranking = calloc(1, sizeof *list->ranking);
    if (!list || !list->ranking) {
        free(list);
        error_set(error, "no memory for the list of stacks");
        return NULL;
    }
    list->profile = profile;
    list->names = names;
    list->view = *view;
    list->freed_by.are_all_shown = true;
    set_columns(list, extra, extra_count);
    *answer = (struct answer){.profile = profile,
                              .options = &list->view,
                              .measure = measure_name(view->by),
                              .columns = list->columns,
                              .column_count = STACK_EXTRA + extra_count,
                              .gap = 1,
                              .has_frames = true,
                              .whole = whole_of(list, profile, view->by, count),
                              .shown = count_shown(list, count),
                              .count = is_known ? count_with_value(profile, view->by) : 0,
                              .are_blocks = true,
                              .noun = noun_of(profile, view->by),
                              .say = say_notes,
                              .next_row = next_stack,
                              .close = close_list,
                              .state = list};
    if (is_known)
        say_title(answer, view->by, view->by == MEASURE_EXIT && !profile_has_ended(profile));
    else
        say_unknown(answer, profile, view->by);
    return list;
}

bool stacks_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   struct error *error) {
    return open_list(answer, profile, names, view, NULL, 0, error) != NULL;
}

static void tell_reallocs(struct stack_list *list, const struct stack *stack,
                          struct answer_row *row) {
    struct shape_reallocs reallocs;
    shape_reallocs(&list->shapes.shape, stack->number, &reallocs);
    answer_set(row, STACK_EXTRA, (int64_t)reallocs.calls);
    answer_set(row, STACK_EXTRA + 1, (int64_t)reallocs.in_place);
    answer_set(row, STACK_EXTRA + 2, (int64_t)reallocs.grown);
    answer_set(row, STACK_EXTRA + 3, (int64_t)reallocs.copied_bytes);
}

static const struct answer_column realloc_columns[] = {
    ANSWER_DATA("reallocs", ANSWER_COUNT), ANSWER_DATA("reallocs_in_place", ANSWER_COUNT),
    ANSWER_DATA("reallocs_grown", ANSWER_COUNT),
    ANSWER_DATA("reallocs_copied_bytes", ANSWER_BYTES)};

enum { SIZE_LEAST = STACK_EXTRA, SIZE_MOST, SIZE_CALLS, SIZE_AT_LEAST, SIZE_UNKNOWN };

static const struct answer_column size_columns[] = {
    ANSWER_DATA("size_least", ANSWER_BYTES), ANSWER_DATA("size_most", ANSWER_BYTES),
    ANSWER_DATA("size_blocks", ANSWER_COUNT, .is_estimate = true),
    ANSWER_DATA("size_blocks_are_least", ANSWER_BOOL),
    ANSWER_DATA("size_unknown_blocks", ANSWER_COUNT)};

// Sizes that were kept one by one; further blocks of one may be in the number of unknown ones.
static bool tell_size(struct stack_list *list, const struct stack *stack, size_t part,
                      struct answer_row *row) {
    struct shape_sizes sizes;
    shape_sizes(&list->shapes.shape, stack->number, &sizes);
    if (part >= sizes.count) return false;
    answer_set(row, SIZE_LEAST, (int64_t)sizes.list[part].size);
    answer_set(row, SIZE_MOST, (int64_t)sizes.list[part].size);
    answer_set(row, SIZE_CALLS, (int64_t)sizes.list[part].count);
    answer_set(row, SIZE_AT_LEAST, sizes.list[part].is_at_least);
    return true;
}

static void tell_sizes(struct stack_list *list, const struct stack *stack, struct answer_row *row) {
    struct shape_sizes sizes;
    uint64_t known = 0, listed = 0;
    shape_sizes(&list->shapes.shape, stack->number, &sizes);
    for (size_t i = 0; i < SHAPE_SIZE_BUCKETS; i++) known += sizes.buckets[i];
    for (size_t i = 0; i < sizes.count; i++) listed += sizes.list[i].count;
    answer_set(row, SIZE_UNKNOWN, (int64_t)(sizes.unknown + (known > listed ? known - listed : 0)));
}

static bool tell_sampled_size(struct stack_list *list, const struct stack *stack, size_t part,
                              struct answer_row *row) {
    struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES];
    int64_t others;
    if (part >= shape_sampled_sizes(&list->shapes.shape, stack->number, sizes, &others))
        return false;
    answer_set(row, SIZE_LEAST, sizes[part].least);
    answer_set(row, SIZE_MOST, sizes[part].most);
    answer_set_measured(row, SIZE_CALLS, sizes[part].calls);
    return true;
}

static void tell_sampled_sizes(struct stack_list *list, const struct stack *stack,
                               struct answer_row *row) {
    struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES];
    int64_t others;
    shape_sampled_sizes(&list->shapes.shape, stack->number, sizes, &others);
    answer_set(row, SIZE_UNKNOWN, others);
}

enum { AGE_KIND = STACK_EXTRA, AGE_FROM, AGE_TO, AGE_BLOCKS };

static const struct answer_column age_columns[] = {
    ANSWER_DATA("age_unit", ANSWER_TEXT), ANSWER_DATA("age_from", ANSWER_NUMBER),
    ANSWER_DATA("age_below", ANSWER_NUMBER), ANSWER_DATA("age_blocks", ANSWER_COUNT)};

// Buckets with blocks, by powers of two: those of milliseconds, then those of allocations of the
// thread in between.
static bool tell_age(struct stack_list *list, const struct stack *stack, size_t part,
                     struct answer_row *row) {
    struct shape_ages ages;
    if (!shape_ages(&list->shapes.shape, stack->number, &ages)) return false;
    for (size_t i = 0; i < 2 * CAIRN_AGE_BUCKETS; i++) {
        size_t bucket = i % CAIRN_AGE_BUCKETS;
        bool is_time = i < CAIRN_AGE_BUCKETS;
        uint64_t blocks = is_time ? ages.ms[bucket] : ages.calls[bucket];
        if (!blocks || part--) continue;
        answer_set_text(row, AGE_KIND, is_time ? "ms" : "allocations");
        answer_set(row, AGE_FROM, bucket ? INT64_C(1) << (bucket - 1) : 0);
        answer_set(row, AGE_TO, INT64_C(1) << bucket);
        answer_set(row, AGE_BLOCKS, (int64_t)blocks);
        return true;
    }
    return false;
}

bool shapes_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   enum shapes_kind kind, uint64_t short_ns, struct error *error) {
    static const struct {
        const struct answer_column *columns;
        size_t count;
    } extras[] = {[SHAPES_TEMPORARY] = {realloc_columns, 4},
                  [SHAPES_SIZES] = {size_columns, 5},
                  [SHAPES_AGES] = {age_columns, 4}};
    struct view_options options = *view;
    bool is_sampled = profile->sampling.is_on;
    if (!shapes_are_known(profile, kind, error)) return false;
    options.by = shapes_measure(profile, view->by);
    struct stack_list *list = open_list(answer, profile, names, &options, extras[kind].columns,
                                        extras[kind].count, error);
    if (!list) return false;
    if (!shape_build(&list->shapes.shape, profile, error)) {
        answer_close(answer);
        return false;
    }
    answer->has_levels = kind != SHAPES_TEMPORARY;
    if (kind == SHAPES_TEMPORARY) list->tell = tell_reallocs;
    if (kind == SHAPES_SIZES) list->tell = is_sampled ? tell_sampled_sizes : tell_sizes;
    if (kind == SHAPES_SIZES) list->tell_part = is_sampled ? tell_sampled_size : tell_size;
    if (kind == SHAPES_AGES) list->tell_part = tell_age;
    list->shapes.short_ns = short_ns;
    list->note_above = shapes_note(profile, kind);
    list->note_context = &list->shapes;
    shapes_explain(answer, profile, kind, options.by);
    return true;
}

static const struct answer_column free_columns[] = {ANSWER_DATA("freed_there_bytes", ANSWER_BYTES),
                                                    ANSWER_DATA("frees_there", ANSWER_COUNT)};

static bool tell_free(struct stack_list *list, const struct stack *stack, size_t part,
                      struct answer_row *row) {
    size_t count;
    const struct shape_free_stack *own =
        shape_free_stacks_of(list->freers.list, list->freers.count, stack->number, &count);
    if (part >= count) return false;
    answer_set(row, STACK_EXTRA, (int64_t)own[part].bytes);
    answer_set(row, STACK_EXTRA + 1, (int64_t)own[part].frees);
    list->is_failed |=
        !frame_list_fill(&list->freed_by, list->profile, list->names, own[part].node, 0);
    row->freed_by = &list->freed_by;
    return true;
}

bool frees_answer(struct answer *answer, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error) {
    if (!free_stacks_are_known(profile, error)) return false;
    struct stack_list *list = open_list(answer, profile, names, view, free_columns, 2, error);
    if (!list) return false;
    list->freers =
        (struct free_stacks){.names = names, .is_one = view->top == 1 || profile->stack_count == 1};
    list->freers.list = shape_free_stacks(profile, &list->freers.count);
    list->note_below = free_stacks_note;
    list->note_context = &list->freers;
    list->tell_part = tell_free;
    answer->has_levels = answer->has_freed_by = true;
    if (list->freers.list) return true;
    answer_close(answer);
    return error_set(error, "no memory for the stacks that freed");
}

static const struct answer_column mapping_columns[] = {
    ANSWER_DATA("kinds", ANSWER_TEXT), ANSWER_DATA("reserved_bytes", ANSWER_BYTES),
    ANSWER_DATA("reserved_mappings", ANSWER_COUNT)};

static void tell_mapping(struct stack_list *list, const struct stack *stack,
                         struct answer_row *row) {
    const struct stack_more *more = stack_more(stack);
    mapped_kinds_text(more->mapping_kinds, list->kinds, sizeof list->kinds);
    answer_set_text(row, STACK_EXTRA, list->kinds);
    answer_set(row, STACK_EXTRA + 1, more->reserved_bytes);
    answer_set(row, STACK_EXTRA + 2, more->reserved_ranges);
}

static void note_kinds(const struct terminal *terminal, const struct profile *profile,
                       const struct stack *stack, const struct view_options *view, void *context) {
    char kinds[KINDS_BYTES];
    (void)profile, (void)view, (void)context;
    mapped_kinds_text(stack_more(stack)->mapping_kinds, kinds, sizeof kinds);
    if (!*kinds || stack_more(stack)->mapping_kinds == 1u << CAIRN_MAPPING_ANONYMOUS) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "%s\n", kinds);
}

bool mappings_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    struct stack_list *list = open_list(answer, profile, names, view, mapping_columns, 3, error);
    if (!list) return false;
    list->tell = tell_mapping;
    list->note_above = note_kinds;
    if (mapped_add_tables(answer, names)) return true;
    answer_close(answer);
    return error_set(error, "no memory for the list of stacks");
}
