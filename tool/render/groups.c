// SPDX-License-Identifier: Apache-2.0
// From the innermost frame outwards: the first class of a standard library that its users know by
// name (no underscores, no allocator) is the container. Without one, an allocator's argument is the
// element. The search ends where the library ends: what called it allocates no object of its own.
#include "tool/render/groups.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

static const char no_type[] = "[no type known]";

// Behind the last "::" of `name` that is not within template arguments; `name` if there is none.
static const char *last_part(const char *name, const char *end) {
    const char *part = name;
    int depth = 0;
    for (const char *at = name; at < end; at++) {
        if (*at == '<') depth++;
        if (*at == '>' && depth) depth--;
        if (*at == '(' && !depth) break;
        if (!depth && at[0] == ':' && at[1] == ':') part = at + 2;
    }
    return part;
}

static bool starts_with(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

// Finds the type in Rust's "<alloc::vec::Vec<u8>>::push" and "<T as Trait>::method", and its end;
// NULL: the name is another one.
static const char *self_of(const char *name, const char **end) {
    static const char impl[] = "impl ", as[] = " as ";
    int depth = 0;
    if (*name++ != '<') return NULL;
    if (starts_with(name, impl)) name += strlen(impl);
    for (*end = name; **end && depth >= 0; ++*end) {
        if (!depth && starts_with(*end, as)) return name;
        depth += (**end == '<') - (**end == '>');
    }
    return depth < 0 ? (--*end, name) : NULL;
}

// A type without a path is one that the language has itself, or an argument.
static bool is_library(const char *name) {
    static const char *const starts[] = {
        "std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::"};
    const char *end, *self = self_of(name, &end);
    if (self) name = self;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts_with(name, starts[i])) return true;
    return self && last_part(self, end) == self && *self != '<';
}

// Rust's vectors, strings, tables and trees are made of these, which their users do not name; and
// an option is no container.
static bool is_inner_part(const char *name) {
    static const char trees[] = "alloc::collections::btree::";
    if (starts_with(name, trees)) {
        name += strlen(trees);
        return !starts_with(name, "map::BTreeMap") && !starts_with(name, "set::BTreeSet");
    }
    return starts_with(name, "alloc::alloc::") || starts_with(name, "alloc::raw_vec::") ||
           starts_with(name, "hashbrown::raw::") || starts_with(name, "core::");
}

static bool is_rust(const char *type) {
    return starts_with(type, "alloc::") || starts_with(type, "hashbrown::") ||
           starts_with(type, "std::collections::");
}

// Takes the arguments that their users leave out: "Vec<T,A>" is their Vec<T>.
static void drop_defaults(char *type) {
    static const char *const defaults[] = {",A>", ",S>"};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        size_t length = strlen(type), tail = strlen(defaults[i]);
        if (length > tail && !strcmp(type + length - tail, defaults[i]))
            memcpy(type + length - tail, ">", sizeof ">");
    }
}

// Tells whether the second of Rust's types is what the program named, and the first, further in,
// what that is made of.
static bool is_made_of(const char *inner, const char *outer) {
    static const char *const pairs[][2] = {
        {"alloc::boxed::Box", "alloc::collections::"},
        {"alloc::vec::Vec<u8>", "alloc::string::String"},
        {"hashbrown::", "std::collections::hash::"},
        {"std::collections::hash::map::", "std::collections::hash::set::"},
        {"alloc::collections::btree::map::", "alloc::collections::btree::set::"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (starts_with(inner, pairs[i][0]) && starts_with(outer, pairs[i][1])) return true;
    return false;
}

// The argument list of a template, without the outer brackets; false if there is none.
static bool arguments_of(const char *part, const char *end, char *out, size_t size) {
    const char *open = memchr(part, '<', (size_t)(end - part));
    const char *close = end;
    while (open && close > open && *close != '>') close--;
    if (!open || close <= open + 1) return false;
    snprintf(out, size, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

// Cuts a list of arguments behind the first one.
static void keep_first_argument(char *arguments) {
    int depth = 0;
    for (char *at = arguments; *at; at++) {
        if (strchr("<([", *at)) depth++;
        if (strchr(">)]", *at)) depth--;
        if (*at == ',' && !depth) {
            *at = 0;
            return;
        }
    }
}

static bool is_allocator_class(const char *part) {
    static const char *const names[] = {"allocator<", "allocator_traits<", "new_allocator<",
                                        "__new_allocator<", "__alloc_traits<"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts_with(part, names[i])) return true;
    return false;
}

static bool is_making_function(const char *part) {
    return starts_with(part, "make_shared<") || starts_with(part, "make_unique<") ||
           starts_with(part, "allocate_shared<") || starts_with(part, "make_shared_for_overwrite<");
}

// Tells the type in "<alloc::string::String>::push", which Rust's names begin with.
static bool type_of_self(const char *self, const char *end, char *type, size_t size) {
    if (!is_rust(self) || is_inner_part(self)) return false;
    if (!isupper((unsigned char)*last_part(self, end))) return false;
    snprintf(type, size, "%.*s", (int)(end - self), self);
    drop_defaults(type);
    return true;
}

bool type_of_name(const char *name, char *type, size_t size, bool *is_element) {
    const char *self_end, *self = self_of(name, &self_end);
    *is_element = false;
    if (self) return type_of_self(self, self_end, type, size);
    if (is_inner_part(name)) return false;
    const char *end = name + strlen(name), *function = last_part(name, end);
    if (is_making_function(function) && arguments_of(function, end, type, size)) {
        keep_first_argument(type);
        return true;
    }
    if (function < name + 2) return false;
    const char *class_end = function - 2, *class = last_part(name, class_end);
    if (class >= class_end) return false;
    if (is_allocator_class(class)) {
        *is_element = true;
        if (!arguments_of(class, class_end, type, size)) return false;
        keep_first_argument(type);
        return strncmp(type, "\xe2\x80\xa6", 3) != 0;
    }
    bool is_public = isalpha((unsigned char)*class);
    bool is_class = memchr(class, '<', (size_t)(class_end - class)) ||
                    starts_with(class, "string") || starts_with(class, "wstring") ||
                    isupper((unsigned char)*class);
    if (!is_public || !is_class) return false;
    snprintf(type, size, "%.*s", (int)(class_end - name), name);
    if (is_rust(type)) drop_defaults(type);
    return true;
}

void type_of_stack(const struct frame_list *frames, char *label, char *location) {
    char type[FRAME_TEXT_BYTES], element[FRAME_TEXT_BYTES] = "", found[FRAME_TEXT_BYTES] = "";
    bool is_element;
    *location = 0;
    for (size_t i = 0; i < frames->frames.count; i++) {
        const struct frame *frame = frames->frames.items[i];
        if (!frame->function) break;
        if (!is_library(frame->function)) {
            if (frame->is_allocator) continue;
            break;
        }
        if (!type_of_name(frame->function, type, sizeof type, &is_element)) continue;
        if (is_element && !*found && !*element) snprintf(element, sizeof element, "%s", type);
        if (!is_element && (!*found || is_made_of(found, type)))
            snprintf(found, sizeof found, "%s", type);
        if (*found && !is_rust(found)) break;
    }
    text_escape(label, FRAME_TEXT_BYTES, *found ? found : *element ? element : no_type);
}

static const char no_file[] = "[file not known]", no_module[] = "[no module]";

// The last two parts of a path: "django/__init__.py".
static const char *short_path(const char *path) {
    const char *part = text_base_name(path);
    while (part > path && part[-1] == '/') part--;
    while (part > path && part[-1] != '/') part--;
    return part;
}

// Code without a name is known by its file.
static bool function_of(const struct frame *frame, char *label, char *location) {
    if (frame_is_nameless(frame) && frame->file) {
        char text[GROUP_TEXT_BYTES];
        snprintf(text, sizeof text, "%s %s", frame->function, short_path(frame->file));
        text_escape(label, GROUP_TEXT_BYTES, text);
        *location = 0;
        return true;
    }
    frame_label(frame, label, GROUP_TEXT_BYTES, GROUP_TEXT_BYTES / 2);
    const char *path = frame->file ? frame->file : frame->function ? frame->module : NULL;
    text_escape(location, GROUP_TEXT_BYTES, path ? text_base_name(path) : "");
    return true;
}

static bool line_of(const struct frame *frame, char *label, char *location) {
    enum { NUMBER_BYTES = 16 };
    frame_label(frame, location, GROUP_TEXT_BYTES, GROUP_TEXT_BYTES / 2);
    if (frame->file) {
        text_escape(label, GROUP_TEXT_BYTES - NUMBER_BYTES, frame->file);
        size_t used = strlen(label);
        snprintf(label + used, GROUP_TEXT_BYTES - used, ":%u", frame->line);
    } else {
        snprintf(label, GROUP_TEXT_BYTES, "%s", location);
        frame_location(frame, location, GROUP_TEXT_BYTES);
    }
    return true;
}

static bool file_of(const struct frame *frame, char *label, char *location) {
    *location = 0;
    text_escape(label, GROUP_TEXT_BYTES, frame->file ? frame->file : no_file);
    if (!frame->file && frame->module)
        text_escape(location, GROUP_TEXT_BYTES, text_base_name(frame->module));
    return true;
}

static bool directory_of(const struct frame *frame, char *label, char *location) {
    if (!frame->file) return file_of(frame, label, location);
    char path[GROUP_TEXT_BYTES];
    snprintf(path, sizeof path, "%.*s", (int)(text_base_name(frame->file) - frame->file),
             frame->file);
    *location = 0;
    text_escape(label, GROUP_TEXT_BYTES, *path ? path : "./");
    return true;
}

static bool module_of(const struct frame *frame, char *label, char *location) {
    bool has_module = frame->module && *frame->module;
    *location = 0;
    text_escape(label, GROUP_TEXT_BYTES, has_module ? frame->module : no_module);
    return true;
}

const struct grouping groupings[GROUPINGS] = {
    [GROUP_FUNCTIONS] = {"functions", "function", true, true, true, function_of, NULL},
    [GROUP_LINES] = {"lines", "line", true, false, false, line_of, NULL},
    [GROUP_FILES] = {"files", "file", true, true, false, file_of, NULL},
    [GROUP_DIRECTORIES] = {"directories", "directory", true, true, false, directory_of, NULL},
    [GROUP_MODULES] = {"modules", "module", true, true, false, module_of, NULL},
    [GROUP_TYPES] = {"types", "type", false, true, false, NULL, type_of_stack},
};

static uint64_t hash_of_text(const char *text) {
    uint64_t hash = index_table_seed();
    for (; *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

int64_t group_list_find(const struct group_list *list, const char *label) {
    struct index_probe probe = index_probe_start(&list->by_label, hash_of_text(label));
    for (uint32_t index; index_probe_next(&list->by_label, &probe, &index);)
        if (!strcmp(list->groups.items[index].label, label)) return index;
    return -1;
}

// Returns the index of the group with this label, and that location if it tells groups apart; -1:
// there is none. Those of other locations become ambiguous, which `is_ambiguous` says too.
static int64_t find_at(struct group_list *list, const struct grouping *grouping, const char *label,
                       const char *location, bool *is_ambiguous) {
    struct index_probe probe = index_probe_start(&list->by_label, hash_of_text(label));
    for (uint32_t index; index_probe_next(&list->by_label, &probe, &index);) {
        struct group *group = &list->groups.items[index];
        if (strcmp(group->label, label) != 0) continue;
        if (!grouping->is_in_location || !strcmp(group->location, location)) return index;
        group->is_ambiguous = *is_ambiguous = true;
    }
    return -1;
}

// Index of the group, made if there is none; -1 without memory.
static int64_t find_or_add(struct group_list *list, const struct grouping *grouping,
                           const char *label, const char *location) {
    bool is_ambiguous = false;
    int64_t known = find_at(list, grouping, label, location, &is_ambiguous);
    if (known >= 0) return known;
    struct group *group = array_push(&list->groups);
    if (!group) return -1;
    *group = (struct group){
        .label = strdup(label), .location = strdup(location), .is_ambiguous = is_ambiguous};
    uint32_t index = (uint32_t)(list->groups.count - 1);
    bool is_ok = group->label && group->location &&
                 index_table_insert(&list->by_label, hash_of_text(label), index);
    return is_ok ? (int64_t)index : -1;
}

// Group of a frame: its text is made once. -1 without memory, -2: the frame has none.
enum { NO_MEMORY = -1, NO_GROUP = -2 };
static int64_t group_of(struct group_list *list, const struct grouping *grouping,
                        const struct frame *frame) {
    uint64_t hash = hash_mix(index_table_seed(), (uintptr_t)frame);
    struct index_probe probe = index_probe_start(&list->by_frame, hash);
    for (uint32_t index; index_probe_next(&list->by_frame, &probe, &index);)
        if (list->frames.items[index].frame == frame)
            return (int64_t)list->frames.items[index].group_plus_1 - 1;
    char label[GROUP_TEXT_BYTES], location[GROUP_TEXT_BYTES];
    bool has_group = grouping->of_frame(frame, label, location);
    int64_t group = has_group ? find_or_add(list, grouping, label, location) : NO_GROUP;
    if (group < 0) return group;
    struct group_of_frame *known = array_push(&list->frames);
    if (!known) return NO_MEMORY;
    *known = (struct group_of_frame){frame, (uint32_t)group + 1};
    return index_table_insert(&list->by_frame, hash, (uint32_t)(list->frames.count - 1))
               ? group
               : NO_MEMORY;
}

// For each group the number of the last stack that came by, so that it is added once.
struct marks {
    ARRAY(uint32_t) stack_plus_1;
};

static bool is_first(struct marks *marks, int64_t group, uint32_t stack, bool *has_memory) {
    while (marks->stack_plus_1.count <= (size_t)group) {
        uint32_t *mark = array_push(&marks->stack_plus_1);
        *has_memory = mark != NULL;
        if (!mark) return false;
        *mark = 0;
    }
    uint32_t *mark = &marks->stack_plus_1.items[group];
    if (*mark == stack + 1) return false;
    *mark = stack + 1;
    return true;
}

static bool add_frames(struct group_list *list, const struct grouping *grouping,
                       const struct frame_list *frames, uint32_t stack, struct measured measured,
                       struct marks *marks) {
    bool is_self = true, has_memory = true;
    size_t index = 0;
    const struct frame *frame;
    while (has_memory && (frame = frame_list_next(frames, &index))) {
        int64_t group = group_of(list, grouping, frame);
        if (group == NO_MEMORY) return false;
        if (group == NO_GROUP) continue;
        if (is_self) measured_add(&list->groups.items[group].self, measured);
        is_self = false;
        if (is_first(marks, group, stack, &has_memory))
            measured_add(&list->groups.items[group].total, measured);
    }
    return has_memory;
}

static bool add_text(struct group_list *list, const struct grouping *grouping, const char *label,
                     const char *location, struct measured measured) {
    int64_t group = find_or_add(list, grouping, label, location);
    if (group < 0) return false;
    measured_add(&list->groups.items[group].self, measured);
    measured_add(&list->groups.items[group].total, measured);
    return true;
}

static bool add_stack(struct group_list *list, const struct grouping *grouping,
                      const struct frame_list *frames, uint32_t stack, struct measured measured,
                      struct marks *marks) {
    char label[GROUP_TEXT_BYTES], location[GROUP_TEXT_BYTES] = "";
    if (!frames->frames.count) return add_text(list, grouping, STACK_NOT_RECORDED, "", measured);
    if (grouping->of_frame) return add_frames(list, grouping, frames, stack, measured, marks);
    grouping->of_stack(frames, label, location);
    return add_text(list, grouping, label, location, measured);
}

static int compare(const void *a, const void *b) {
    const struct group *first = a, *second = b;
    if (first->self.value != second->self.value)
        return first->self.value < second->self.value ? 1 : -1;
    if (first->total.value != second->total.value)
        return first->total.value < second->total.value ? 1 : -1;
    int order = strcmp(first->label, second->label);
    return order ? order : strcmp(first->location, second->location);
}

// Sorting moves the groups, so that the tables have to be made anew.
static bool sort(struct group_list *list) {
    index_table_free(&list->by_label);
    index_table_free(&list->by_frame);
    array_free(&list->frames);
    if (!list->groups.count) return true;
    qsort(list->groups.items, list->groups.count, sizeof *list->groups.items, compare);
    for (uint32_t i = 0; i < list->groups.count; i++)
        if (!index_table_insert(&list->by_label, hash_of_text(list->groups.items[i].label), i))
            return false;
    return true;
}

bool group_list_build(struct group_list *list, const struct grouping *grouping,
                      const struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error) {
    *list = (struct group_list){0};
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct marks marks = {0};
    bool is_ok = true;
    for (uint32_t i = 0; i < profile->stack_count && is_ok; i++) {
        struct measured measured = measure_stack(view->by, &profile->stacks[i]);
        if (measured.value <= 0) continue;
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0) &&
                add_stack(list, grouping, &frames, i, measured, &marks);
    }
    is_ok = is_ok && sort(list);
    frame_list_free(&frames);
    array_free(&marks.stack_plus_1);
    return is_ok || error_set(error, "no memory for the list of %s", grouping->name);
}

void group_list_free(struct group_list *list) {
    for (size_t i = 0; i < list->groups.count; i++) {
        free(list->groups.items[i].label);
        free(list->groups.items[i].location);
    }
    array_free(&list->groups);
    array_free(&list->frames);
    index_table_free(&list->by_label);
    index_table_free(&list->by_frame);
}
