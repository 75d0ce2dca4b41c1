// SPDX-License-Identifier: Apache-2.0
// Expressions are searched in each distinct place once, then every node of the tree of stacks
// inherits what its callers have: the cost does not grow with stacks times frames.
#include "tool/render/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/contexts.h"

enum part { PART_FOCUS, PART_IGNORE, PART_HIDE, PART_MODULE, PART_THREAD, PART_REGION, PART_COUNT };
enum { LISTED_MAX = 6, LIST_BYTES = 320, LABEL_COLUMNS = 40 };

static const char *const option_names[PART_COUNT] = {"focus",  "ignore", "hide",
                                                     "module", "thread", "region"};

struct kept_frames {
    struct frame *frames;  // NULL: not looked at yet
    size_t count;
};

struct filter {
    const char *texts[PART_COUNT];
    struct pattern *patterns[PART_COUNT];
    enum lifespan lifespan;
    uint64_t short_ns;
    bool may_be_empty;
    const char *context;
    size_t threads_found, regions_found, contexts_found;
    size_t sharers;            // other threads, which share an account with one that was found
    char regions[LIST_BYTES];  // those there are
    size_t regions_listed;
    char contexts[LIST_BYTES];
    size_t contexts_listed;
    struct frame_names hiding;  // names without hidden frames
    const struct frame_names *original;
    struct kept_frames *places;  // by place
    size_t place_count;
};

bool filter_open(struct filter **filter, const struct filter_request *request,
                 struct error *error) {
    const char *const texts[PART_COUNT] = {request->focus,  request->ignore, request->hide,
                                           request->module, request->thread, request->region};
    struct filter *made = calloc(1, sizeof *made);
    *filter = made;
    if (!made) return error_set(error, "no memory for a filter");
    made->context = request->context;
    made->lifespan = request->lifespan;
    made->short_ns = request->short_ns;
    made->may_be_empty = request->may_be_empty;
    for (int part = 0; part < PART_COUNT; part++) {
        made->texts[part] = texts[part];
        if (!texts[part] || pattern_compile(texts[part], &made->patterns[part], error)) continue;
        error_wrap(error, "--%s", option_names[part]);
        filter_close(made);
        *filter = NULL;
        return false;
    }
    return true;
}

void filter_close(struct filter *filter) {
    if (!filter) return;
    for (int part = 0; part < PART_COUNT; part++) pattern_free(filter->patterns[part]);
    for (size_t i = 0; i < filter->place_count; i++) free(filter->places[i].frames);
    free(filter->places);
    free(filter);
}

bool filter_needs_names(const struct filter *filter) {
    return filter->texts[PART_FOCUS] || filter->texts[PART_IGNORE] || filter->texts[PART_MODULE];
}

bool filter_is_any(const struct filter *filter) {
    for (int part = 0; part < PART_COUNT; part++)
        if (filter->texts[part]) return true;
    return filter->context || filter->lifespan != LIFESPAN_ANY;
}

// Threads that are shown too, since they cannot be told apart from one that is wanted.
static size_t count_sharers(const struct profile *profile, const bool *are_kept) {
    const uint32_t limit = CAIRN_SLOT_SHARED + 1;
    size_t count = 0;
    bool *is_wanted = calloc(limit, sizeof *is_wanted);
    for (size_t i = 0; is_wanted && i < profile->thread_count; i++)
        is_wanted[profile->threads[i].slot % limit] |= are_kept[i];
    for (size_t i = 0; is_wanted && i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        if (is_wanted[thread->slot % limit] && !are_kept[i] && thread->allocations)
            count += thread->folded_count + 1;
    }
    free(is_wanted);
    return count;
}

static void append(char *out, size_t size, const char *separator, const char *text) {
    size_t used = strlen(out);
    if (used + 1 < size) snprintf(out + used, size - used, "%s%s", used ? separator : "", text);
}

void filter_text(const struct filter *filter, char *out, size_t size) {
    static const char *const lifespans[] = {[LIFESPAN_LIVING] = "--lifespan living",
                                            [LIFESPAN_GONE] = "--lifespan gone",
                                            [LIFESPAN_SHORT] = "--lifespan short"};
    *out = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        char safe[LIST_BYTES], text[LIST_BYTES + 32];
        if (!filter->texts[part]) continue;
        text_escape(safe, sizeof safe, filter->texts[part]);
        snprintf(text, sizeof text, "--%s '%s'", option_names[part], safe);
        append(out, size, " ", text);
        if (part != PART_THREAD || !filter->sharers) continue;
        snprintf(text, sizeof text, "(with %s that shared its account)",
                 units_counted((int64_t)filter->sharers, "thread", "threads").text);
        append(out, size, " ", text);
    }
    if (filter->context) {
        char safe[LIST_BYTES], text[LIST_BYTES + 32];
        text_escape(safe, sizeof safe, filter->context);
        snprintf(text, sizeof text, "--context '%s'", safe);
        append(out, size, " ", text);
    }
    if (filter->lifespan != LIFESPAN_ANY) append(out, size, " ", lifespans[filter->lifespan]);
}

// A text that is there several times is listed once.
static void list_add(char *list, size_t *listed, const char *text) {
    char separated[LIST_BYTES];
    snprintf(separated, sizeof separated, "%s, ", text);
    if (!*text || *listed >= LISTED_MAX || strstr(list, separated)) return;
    size_t used = strlen(list);
    if (used + strlen(separated) + 1 > LIST_BYTES) return;
    snprintf(list + used, LIST_BYTES - used, "%s", separated);
    ++*listed;
}

static void list_end(char *list) {
    size_t used = strlen(list);
    if (used >= 2) list[used - 2] = 0;
}

static bool is_thread(const struct filter *filter, const struct profile_thread *thread) {
    char name[sizeof thread->name + 1] = {0}, *end;
    memcpy(name, thread->name, sizeof thread->name);
    unsigned long number = strtoul(filter->texts[PART_THREAD], &end, 10);
    bool is_number = isdigit((unsigned char)*filter->texts[PART_THREAD]) && !*end;
    if (is_number && number == thread->tid) return true;
    return !is_number && pattern_matches(filter->patterns[PART_THREAD], name);
}

static bool refuse_thread(const struct filter *filter, const struct profile *profile,
                          struct error *error) {
    char list[LIST_BYTES] = "";
    size_t listed = 0;
    for (size_t i = 0; i < profile->thread_count; i++) {
        char name[sizeof profile->threads[i].name + 1] = {0}, text[64];
        memcpy(name, profile->threads[i].name, sizeof profile->threads[i].name);
        snprintf(text, sizeof text, "%s (%" PRIu32 ")", name, profile->threads[i].tid);
        list_add(list, &listed, text);
    }
    list_end(list);
    return error_set(error, "--thread '%s': no such thread; of %zu there are: %s",
                     filter->texts[PART_THREAD], profile->thread_count, list);
}

static bool refuse_region(struct filter *filter, struct error *error) {
    list_end(filter->regions);
    if (!filter->regions_listed)
        return error_set(error,
                         "--region '%s': the program named no regions (docs/reference/api.md)",
                         filter->texts[PART_REGION]);
    return error_set(error, "--region '%s': no such region; there are: %s",
                     filter->texts[PART_REGION], filter->regions);
}

static void find_regions(struct filter *filter, const struct scopes *scopes, bool *are_kept) {
    char text[LIST_BYTES];
    for (size_t id = 1; id < scopes->count; id++) {
        if (scopes->list[id].kind != CAIRN_SCOPE_REGION) continue;
        are_kept[id] = pattern_matches(filter->patterns[PART_REGION], scopes->list[id].path);
        if (are_kept[id]) filter->regions_found++;
        text_escape(text, sizeof text, scopes->list[id].path);
        list_add(filter->regions, &filter->regions_listed, text);
    }
}

static bool filter_regions(struct filter *filter, struct profile *profile) {
    struct scopes scopes;
    if (!filter->texts[PART_REGION]) return true;
    if (!scopes_read(&scopes, profile->recording)) return false;
    bool *are_kept = calloc(scopes.count + 1, sizeof *are_kept);
    if (are_kept) {
        find_regions(filter, &scopes, are_kept);
        profile_keep_regions(profile, are_kept, scopes.count);
    }
    bool is_ok = are_kept != NULL;
    free(are_kept);
    scopes_free(&scopes);
    return is_ok;
}

static bool refuse_context(struct filter *filter, struct error *error) {
    list_end(filter->contexts);
    if (!filter->contexts_listed)
        return error_set(error,
                         "--context %s: the program entered no context (docs/reference/api.md)",
                         filter->context);
    return error_set(error, "--context %s: no such label; there are: %s", filter->context,
                     filter->contexts);
}

static bool has_label(struct filter *filter, const struct context *context) {
    bool is_wanted = false;
    for (size_t i = 0; i < context->label_count; i++) {
        char text[LIST_BYTES];
        is_wanted |= !strcmp(context->labels[i], filter->context);
        text_escape(text, sizeof text, context->labels[i]);
        list_add(filter->contexts, &filter->contexts_listed, text);
    }
    filter->contexts_found += is_wanted;
    return is_wanted;
}

static bool filter_contexts(struct filter *filter, struct profile *profile) {
    struct contexts contexts;
    if (!filter->context) return true;
    if (!contexts_read(&contexts, profile->recording, NULL)) return false;
    bool *are_wanted = calloc(contexts.count + 1, sizeof *are_wanted);
    bool *are_kept = calloc(contexts.scopes.count + 1, sizeof *are_kept);
    bool is_ok = are_wanted && are_kept;
    for (size_t i = 0; is_ok && i < contexts.count; i++)
        are_wanted[i] = has_label(filter, &contexts.list[i]);
    for (size_t id = 1; is_ok && id < contexts.scopes.count; id++)
        are_kept[id] = are_wanted[contexts.of_scope[id]];
    if (is_ok) profile_keep_regions(profile, are_kept, contexts.scopes.count);
    free(are_wanted);
    free(are_kept);
    contexts_free(&contexts);
    return is_ok;
}

bool filter_threads(struct filter *filter, struct profile *profile, struct error *error) {
    bool is_estimate, is_ok = true;
    if (filter->texts[PART_THREAD]) {
        bool *are_kept = calloc(profile->thread_count + 1, sizeof *are_kept);
        for (size_t i = 0; are_kept && i < profile->thread_count; i++)
            filter->threads_found += are_kept[i] = is_thread(filter, &profile->threads[i]);
        if (are_kept) filter->sharers += count_sharers(profile, are_kept);
        is_ok = are_kept && profile_keep_threads(profile, are_kept, &is_estimate);
        free(are_kept);
    }
    if (!is_ok || !filter_regions(filter, profile) || !filter_contexts(filter, profile))
        return error_set(error, "no memory for a filter");
    if (filter->lifespan == LIFESPAN_SHORT)
        return profile_keep_short(profile, filter->short_ns, error);
    profile_keep_lifespan(profile, filter->lifespan);
    return true;
}

bool filter_found_threads(struct filter *filter, const struct profile *profile,
                          struct error *error) {
    const char *const *texts = filter->texts;
    if (filter->may_be_empty) return true;
    if (texts[PART_THREAD] && !filter->threads_found) return refuse_thread(filter, profile, error);
    if (filter->context && !filter->contexts_found) return refuse_context(filter, error);
    return !texts[PART_REGION] || filter->regions_found || refuse_region(filter, error);
}

// The text of a frame that expressions are searched in besides its file.
static void name_of(const struct frame *frame, char *out, size_t size) {
    if (frame->function)
        snprintf(out, size, "%s", frame->function);
    else
        frame_label(frame, out, size, FRAME_TEXT_BYTES);
}

static bool is_code(const struct filter *filter, enum part part, const struct frame *frame) {
    char name[FRAME_TEXT_BYTES];
    const struct pattern *pattern = filter->patterns[part];
    if (!pattern) return false;
    name_of(frame, name, sizeof name);
    return pattern_matches(pattern, name) || (frame->file && pattern_matches(pattern, frame->file));
}

// Bits by part for one place.
static uint8_t bits_of_place(const struct filter *filter, const struct frame_names *names,
                             uint32_t place) {
    size_t count;
    unsigned bits = 0;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_code(filter, PART_FOCUS, &frames[i])) bits |= 1u << PART_FOCUS;
        if (is_code(filter, PART_IGNORE, &frames[i])) bits |= 1u << PART_IGNORE;
        const struct pattern *module = filter->patterns[PART_MODULE];
        if (module && frames[i].module && pattern_matches(module, frames[i].module))
            bits |= 1u << PART_MODULE;
    }
    return (uint8_t)bits;
}

// Bits by part for each node of the tree, its callers included; for free().
static uint8_t *bits_of_nodes(const struct filter *filter, const struct profile *profile,
                              const struct frame_names *names) {
    enum { SEEN = 1u << PART_COUNT };
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t count = profile->tree.nodes.count;
    uint8_t *bits = calloc(count + 1, 1);
    uint8_t *places = calloc(profile->places.list.count + 1, 1);
    for (size_t i = 1; bits && places && i < count; i++) {
        uint32_t place = nodes[i].place;
        bool is_mark = profile->places.list.items[place].cut != 0;
        if (!places[place] && !is_mark) places[place] = bits_of_place(filter, names, place) | SEEN;
        bits[i] = bits[nodes[i].parent] | (places[place] & (uint8_t)~SEEN);
    }
    if (!places) {
        free(bits);
        bits = NULL;
    }
    free(places);
    return bits;
}

// The functions that hold the most, or the modules of all stacks.
static void list_what_is_there(enum part part, const struct profile *profile,
                               const struct frame_names *names, enum measure measure, char *list) {
    struct frame_list frames = {0};
    size_t count, listed = 0;
    uint32_t *ranking = measure_rank(measure, profile, &count);
    for (size_t i = 0; ranking && i < count && listed < LISTED_MAX; i++) {
        char text[FRAME_TEXT_BYTES];
        size_t index = 0;
        const struct frame *frame;
        if (!frame_list_fill(&frames, profile, names, profile->stacks[ranking[i]].node, 0)) break;
        while ((frame = frame_list_next(&frames, &index))) {
            if (part == PART_MODULE)
                text_escape(text, sizeof text, frame->module ? text_base_name(frame->module) : "");
            else
                frame_label(frame, text, sizeof text, LABEL_COLUMNS);
            list_add(list, &listed, text);
        }
    }
    list_end(list);
    frame_list_free(&frames);
    free(ranking);
}

static bool refuse_stacks(const struct filter *filter, enum part part,
                          const struct profile *profile, const struct frame_names *names,
                          const bool *are_kept, enum measure measure, struct error *error) {
    char list[LIST_BYTES] = "";
    size_t matching = 0;
    for (size_t i = 0; i < profile->stack_count; i++) matching += are_kept[i];
    if (part != PART_IGNORE && matching)
        return error_set(error, "--%s '%s' matches %s, but %s nothing by this measure (%s)%s",
                         option_names[part], filter->texts[part],
                         units_counted((int64_t)matching, "stack", "stacks").text,
                         matching == 1 ? "it has" : "they have", measure_about(measure)->order,
                         measure == MEASURE_ALLOCATED ? "" : ": try --by allocated");
    if (part == PART_IGNORE)
        return error_set(error, "--ignore '%s' leaves nothing: every stack goes through it",
                         filter->texts[part]);
    list_what_is_there(part, profile, names, measure, list);
    if (!*list)
        return error_set(error, "--%s '%s' matches nothing: there is no stack of this measure",
                         option_names[part], filter->texts[part]);
    return error_set(error, "--%s '%s' matches nothing; the stacks go through: %s",
                     option_names[part], filter->texts[part], list);
}

// Of short-lived blocks a sample may have met none.
static bool has_value(enum measure measure, const struct stack *stack) {
    return measure_stack(measure == MEASURE_SHORT ? MEASURE_CALLS : measure, stack).value > 0;
}

// Drops the stacks that `part` does not want. False if none with a value is left.
static bool narrow(const struct filter *filter, enum part part, const struct profile *profile,
                   const uint8_t *bits, enum measure measure, bool *are_kept) {
    bool wants = part != PART_IGNORE, is_any = false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool has = bits[stack->node] & 1u << part;
        are_kept[i] = are_kept[i] && has == wants;
        is_any = is_any || (are_kept[i] && has_value(measure, stack));
    }
    return is_any || filter->may_be_empty;
}

bool filter_stacks(const struct filter *filter, struct profile *profile,
                   const struct frame_names *names, enum measure measure, struct error *error) {
    static const enum part order[] = {PART_MODULE, PART_FOCUS, PART_IGNORE};
    if (!filter_needs_names(filter)) return true;
    uint8_t *bits = bits_of_nodes(filter, profile, names);
    bool *are_kept = calloc(profile->stack_count + 1, sizeof *are_kept);
    bool is_ok = bits && are_kept;
    if (!is_ok) error_set(error, "no memory for a filter");
    if (is_ok) memset(are_kept, true, profile->stack_count);
    for (size_t i = 0; i < sizeof order / sizeof *order && is_ok; i++) {
        if (!filter->patterns[order[i]]) continue;
        is_ok = narrow(filter, order[i], profile, bits, measure, are_kept) ||
                refuse_stacks(filter, order[i], profile, names, are_kept, measure, error);
    }
    if (is_ok) profile_keep_stacks(profile, are_kept);
    free(bits);
    free(are_kept);
    return is_ok;
}

static const struct frame *frames_without_hidden(void *context, uint32_t place, size_t *count) {
    struct filter *filter = context;
    struct kept_frames *kept = &filter->places[place];
    const struct frame_names *names = filter->original;
    const struct frame *frames = names->of_place(names->context, place, count);
    if (!kept->frames) {
        kept->frames = calloc(*count + 1, sizeof *kept->frames);
        if (!kept->frames) return frames;
        for (size_t i = 0; i < *count; i++)
            if (!is_code(filter, PART_HIDE, &frames[i])) kept->frames[kept->count++] = frames[i];
    }
    *count = kept->count;
    return kept->frames;
}

const struct frame_names *filter_names(struct filter *filter, const struct profile *profile,
                                       const struct frame_names *names) {
    if (!filter->patterns[PART_HIDE]) return names;
    filter->place_count = profile->places.list.count;
    filter->places = calloc(filter->place_count + 1, sizeof *filter->places);
    if (!filter->places) return NULL;
    filter->original = names;
    filter->hiding = *names;
    filter->hiding.of_place = frames_without_hidden;
    filter->hiding.context = filter;
    return &filter->hiding;
}
