// SPDX-License-Identifier: Apache-2.0
#include "tool/render/suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/narrow.h"
#include "tool/render/interval.h"

enum { LINE_BYTES = 4096 };

// What libraries allocate once, by those functions that do it. Patterns are anchored: a program's
// own function that merely sounds alike is not meant.
// clang-format off
static const struct suppression common[] = {
    {"libstdc++: pool for exceptions", NULL, "^libstdc++.so*", "^ld-*", false, 0, 0, {.samples = 0}},
    {"libc: buffers of open streams", "^_IO_file_doallocate$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: locales", "^_nl_load_locale*", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: locales", "^_nl_intern_locale_data$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: locales", "^setlocale$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: message catalogues", "^_nl_*domain*", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: message catalogues", "^__dcigettext$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: message catalogues", "^bindtextdomain$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: time zones", "^__tzfile_read$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: time zones", "^tzset_internal$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: time zones", "^__tzstring*", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: character conversion", "^__gconv_*", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: name services", "^__nss_*", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: lists of exit handlers", "^__new_exitfn$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: storage of kept threads", "^_dl_allocate_tls", "^ld-*", NULL, false, 0, 0, {.samples = 0}},
    {"libc: storage of kept threads", "^allocate_stack$", "^libc.so*", NULL, false, 0, 0, {.samples = 0}},
    {"ld.so: loaded libraries", "^_dl_new_object$", "^ld-*", NULL, false, 0, 0, {.samples = 0}},
    {"ld.so: loaded libraries", "^_dl_map_object*", "^ld-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: types", "^g_type_register_*", "^libgobject-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: types", "^g_type_add_interface_*", "^libgobject-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: types", "^g_type_class_ref$", "^libgobject-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: quarks and interned texts", "^g_quark_*", "^libglib-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: quarks and interned texts", "^g_intern_*", "^libglib-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: threads and once", "^g_private_*", "^libglib-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: threads and once", "^g_thread_self$", "^libglib-*", NULL, false, 0, 0, {.samples = 0}},
    {"glib: initialization", NULL, "^libglib-*", "^ld-*", false, 0, 0, {.samples = 0}},
    {"glib: initialization", NULL, "^libgobject-*", "^ld-*", false, 0, 0, {.samples = 0}},
    {"fontconfig: configuration", "^FcInit*", "^libfontconfig.so*", NULL, false, 0, 0, {.samples = 0}},
    {"fontconfig: configuration", "^FcConfig*", "^libfontconfig.so*", NULL, false, 0, 0, {.samples = 0}},
    {"openssl: initialization", "^OPENSSL_init_*", NULL, NULL, false, 0, 0, {.samples = 0}},
    {"openssl: initialization", "^ossl_init_*", NULL, NULL, false, 0, 0, {.samples = 0}},
    {"openssl: error state of threads", "^ERR_get_state$", NULL, NULL, false, 0, 0, {.samples = 0}},
};
// clang-format on

void suppressions_start(struct suppressions *suppressions) {
    *suppressions = (struct suppressions){0};
}

void suppressions_free(struct suppressions *suppressions) {
    for (size_t i = 0; i < suppressions->texts.count; i++) free(suppressions->texts.items[i]);
    array_free(&suppressions->texts);
    array_free(&suppressions->rules);
}

static bool add(struct suppressions *suppressions, const struct suppression *rule,
                struct error *error) {
    struct suppression *slot = array_push(&suppressions->rules);
    if (!slot) return error_set(error, "no memory for suppressions");
    *slot = *rule;
    return true;
}

bool suppressions_add_common(struct suppressions *suppressions, struct error *error) {
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (!add(suppressions, &common[i], error)) return false;
    return true;
}

// A piece of a pattern without `*`, of `length` bytes, found in `text` from its start on; NULL: not
// found. At the end: the piece has to be the last of the text.
static const char *find_piece(const char *text, const char *piece, size_t length, bool is_at_start,
                              bool is_at_end) {
    size_t left = strlen(text);
    if (length > left) return NULL;
    if (is_at_start && is_at_end && length != left) return NULL;
    if (is_at_end) text += is_at_start ? 0 : left - length;
    if (is_at_start || is_at_end) return memcmp(text, piece, length) ? NULL : text + length;
    const char *found = memmem(text, left, piece, length);
    return found ? found + length : NULL;
}

bool suppression_matches(const char *pattern, const char *text) {
    bool is_at_start = *pattern == '^';
    if (is_at_start) pattern++;
    size_t size = strlen(pattern);
    bool has_end = size && pattern[size - 1] == '$';
    if (has_end) size--;
    for (const char *end = pattern + size; pattern <= end && text;) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern));
        const char *piece_end = star ? star : end;
        text =
            find_piece(text, pattern, (size_t)(piece_end - pattern), is_at_start, has_end && !star);
        is_at_start = false;
        pattern = piece_end + 1;
    }
    return text != NULL;
}

static bool read_line(struct suppressions *suppressions, char *line, const char *path,
                      unsigned number, struct error *error) {
    static const char kind[] = "leak:";
    line[strcspn(line, "\r\n")] = 0;
    line += strspn(line, " \t");
    for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]);) line[--end] = 0;
    if (!*line || *line == '#') return true;
    if (strncmp(line, kind, sizeof kind - 1) != 0 || !line[sizeof kind - 1])
        return error_set(error, "%s:%u: a suppression is \"leak:PATTERN\", not \"%s\"", path,
                         number, line);
    char **slot = array_push(&suppressions->texts);
    if (!slot) return error_set(error, "no memory for suppressions");
    char *pattern = *slot = strdup(line + sizeof kind - 1);
    if (!pattern) return error_set(error, "no memory for suppressions");
    const struct suppression rule = {.name = pattern, .function = pattern, .is_any_text = true};
    return add(suppressions, &rule, error);
}

static bool read_lines(struct suppressions *suppressions, FILE *file, const char *name,
                       struct error *error) {
    char line[LINE_BYTES];
    unsigned number = 0;
    while (fgets(line, sizeof line, file))
        if (!read_line(suppressions, line, name, ++number, error)) return false;
    return !ferror(file) || error_set(error, "%s: %s", name, strerror(errno));
}

bool suppressions_add_text(struct suppressions *suppressions, const char *text, const char *name,
                           struct error *error) {
    if (!*text) return true;
    FILE *file = fmemopen((char *)text, strlen(text), "r");
    if (!file) return error_set(error, "no memory for suppressions");
    bool is_ok = read_lines(suppressions, file, name, error);
    fclose(file);
    return is_ok;
}

bool suppressions_add_file(struct suppressions *suppressions, const char *path,
                           struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_ok = read_lines(suppressions, file, path, error);
    fclose(file);
    return is_ok;
}

static bool matches_module(const char *pattern, const struct frame *frame) {
    return !pattern ||
           (frame && frame->module && suppression_matches(pattern, text_base_name(frame->module)));
}

static bool matches_code(const struct suppression *rule, const struct frame *frame) {
    const char *pattern = rule->function;
    if (!pattern) return true;
    if (frame->function && suppression_matches(pattern, frame->function)) return true;
    if (!rule->is_any_text) return false;
    return (frame->file && suppression_matches(pattern, frame->file)) ||
           (frame->module && suppression_matches(pattern, frame->module));
}

// Index + 1 of the first rule that a place matches, called by `caller`; 0: none.
static uint32_t rule_of(const struct suppressions *suppressions, const struct frame_names *names,
                        uint32_t place, const struct frame *caller) {
    size_t count;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t r = 0; r < suppressions->rules.count; r++) {
            const struct suppression *rule = &suppressions->rules.items[r];
            if (matches_code(rule, &frames[i]) && matches_module(rule->module, &frames[i]) &&
                matches_module(rule->caller_module, caller))
                return r + 1;
        }
    }
    return 0;
}

static const struct frame *first_frame(const struct profile *profile,
                                       const struct frame_names *names, uint32_t node) {
    size_t count;
    if (node == TREE_ROOT) return NULL;
    uint32_t place = profile->tree.nodes.items[node].place;
    if (profile->places.list.items[place].cut) return NULL;
    const struct frame *frames = names->of_place(names->context, place, &count);
    return count ? frames : NULL;
}

// By node of the tree: the rule of its innermost frame that has one; for free().
static uint32_t *rules_of_nodes(const struct suppressions *suppressions,
                                const struct profile *profile, const struct frame_names *names) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t count = profile->tree.nodes.count;
    uint32_t *rules = calloc(count + 1, sizeof *rules);
    for (size_t i = 1; rules && i < count; i++) {
        uint32_t parent = nodes[i].parent;
        bool is_code = !profile->places.list.items[nodes[i].place].cut;
        if (is_code)
            rules[i] =
                rule_of(suppressions, names, nodes[i].place, first_frame(profile, names, parent));
        if (!rules[i]) rules[i] = rules[parent];
    }
    return rules;
}

bool suppressions_apply(struct suppressions *suppressions, struct profile *profile,
                        const struct frame_names *names, struct error *error) {
    uint32_t *rules = rules_of_nodes(suppressions, profile, names);
    bool *are_kept = calloc(profile->stack_count + 1, sizeof *are_kept);
    bool is_ok = rules && are_kept;
    suppressions->has_blocks = profile_has_blocks(profile);
    for (size_t i = 0; is_ok && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        uint32_t rule = rules[stack->node];
        are_kept[i] = !rule || stack->exit_bytes <= 0;
        if (are_kept[i]) continue;
        struct suppression *used = &suppressions->rules.items[rule - 1];
        used->bytes = figures_add(used->bytes, stack->exit_bytes);
        used->blocks = figures_add(used->blocks, stack->exit_blocks);
        estimate_add(&used->estimate, &stack_more(stack)->estimates[ESTIMATED_EXIT]);
    }
    if (is_ok) profile_keep_stacks(profile, are_kept);
    free(rules);
    free(are_kept);
    if (!is_ok) error_set(error, "no memory for suppressions");
    return is_ok;
}

// Rules of one name are one line: the first of them prints what all took out.
static bool is_first_of_name(const struct suppressions *suppressions, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (!strcmp(suppressions->rules.items[i].name, suppressions->rules.items[index].name))
            return false;
    return true;
}

void suppressions_sum(const struct suppressions *suppressions, int64_t *bytes, int64_t *blocks) {
    *bytes = *blocks = 0;
    for (size_t i = 0; i < suppressions->rules.count; i++) {
        *bytes = figures_add(*bytes, suppressions->rules.items[i].bytes);
        *blocks = figures_add(*blocks, suppressions->rules.items[i].blocks);
    }
}

void suppressions_print(const struct suppressions *suppressions, const struct terminal *terminal,
                        const struct view_options *view) {
    enum { SIZE_COLUMNS = 12, BLOCKS_COLUMNS = 10 };
    bool has_heading = false;
    for (size_t i = 0; i < suppressions->rules.count; i++) {
        const struct suppression *rule = &suppressions->rules.items[i];
        int64_t bytes = 0, blocks = 0;
        struct estimate estimate = {0};
        char name[LINE_BYTES];
        if (!is_first_of_name(suppressions, i)) continue;
        for (size_t other = i; other < suppressions->rules.count; other++) {
            const struct suppression *same = &suppressions->rules.items[other];
            if (strcmp(same->name, rule->name) != 0) continue;
            bytes = figures_add(bytes, same->bytes);
            blocks = figures_add(blocks, same->blocks);
            estimate_add(&estimate, &same->estimate);
        }
        if (!bytes) continue;
        if (!has_heading) terminal_print(terminal, STYLE_DIM, "\nsuppressed:\n");
        has_heading = true;
        text_escape(name, sizeof name, rule->name);
        const struct measured sum = measured_bytes(bytes, &estimate);
        fprintf(terminal->out, "%*s", SIZE_COLUMNS,
                units_size_as(measured_shown(sum), view->is_plain_number).text);
        if (suppressions->has_blocks)
            fprintf(terminal->out, " %*s %s", BLOCKS_COLUMNS, units_count(blocks).text,
                    blocks == 1 ? "block " : "blocks");
        if (measured_interval(sum)) interval_print(terminal, sum, false);
        terminal_print(terminal, STYLE_DIM, "  %s\n", name);
    }
}
