// SPDX-License-Identifier: Apache-2.0
// Types of this program as its own debug information has them, beside what the compiler says of
// them; and where the pointers of an object are.
#include "tool/types/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 4096, SEEN_MAX = 32 };

struct declared;

struct tail {
    int count;
    char *names[];
};

typedef struct {
    long number;
    char *text;
} no_name;

struct sample {
    int number;
    struct sample *next;
    no_name pairs[3];
    const char *const *volatile lists[2][3];
    union {
        char *as_text;
        long as_number;
    } either;
    struct declared *elsewhere;
    void (*call)(void);
    unsigned narrow : 3;
    struct {
        void *inside;
    };
};

struct sample kept;
struct tail *tail_kept;
__thread struct sample *of_thread;

static struct types *open_own(struct located *files, struct string_pool *store) {
    static char path[PATH_BYTES];
    static const struct symbol_options options;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    const struct symbol_module module = {.path = path};
    locate_open(files, &module, &options, store);
    struct types *types = types_open(files, &options);
    assert_non_null(types);
    return types;
}

struct own {
    struct string_pool *store;
    struct located files;
    struct types *types;
};

static int set_up(void **state) {
    static struct own own;
    // so that the compiler keeps them
    of_thread = &kept;
    tail_kept = calloc(1, sizeof *tail_kept);
    own.store = string_pool_open();
    own.types = open_own(&own.files, own.store);
    *state = &own;
    return 0;
}

static int tear_down(void **state) {
    struct own *own = *state;
    types_close(own->types);
    locate_close(&own->files);
    string_pool_close(own->store);
    free(tail_kept);
    return 0;
}

static const struct type_field *field_named(const struct type *type, const char *name) {
    const struct type_fields fields = type_fields(type);
    for (size_t i = 0; i < fields.count; i++)
        if (fields.items[i].name && !strcmp(fields.items[i].name, name)) return &fields.items[i];
    return NULL;
}

static void test_struct(void **state) {
    const struct own *own = *state;
    const struct type *type = types_named(own->types, "sample");
    assert_non_null(type);
    assert_null(field_named(type, "narrow"));
    assert_int_equal(type->kind, TYPE_STRUCT);
    assert_int_equal(type->bytes, sizeof(struct sample));
    assert_int_equal(field_named(type, "next")->offset, offsetof(struct sample, next));
    assert_ptr_equal(type_target(field_named(type, "next")->type), type);
    assert_int_equal(field_named(type, "elsewhere")->offset, offsetof(struct sample, elsewhere));
    const struct type *pairs = field_named(type, "pairs")->type;
    assert_int_equal(pairs->kind, TYPE_ARRAY);
    assert_int_equal(type_elements(pairs), 3);
    assert_string_equal(type_target(pairs)->name, "no_name");
    const struct type *lists = field_named(type, "lists")->type;
    assert_int_equal(type_elements(lists), 2);
    assert_int_equal(type_elements(type_target(lists)), 3);
    assert_int_equal(lists->bytes, sizeof kept.lists);
    assert_int_equal(type_target(lists)->bytes, sizeof kept.lists[0]);
    assert_int_equal(field_named(type, "either")->type->kind, TYPE_UNION);
}

static void test_names(void **state) {
    const struct own *own = *state;
    char text[64], small[4];
    const struct type *type = types_named(own->types, "sample");
    type_write_name(field_named(type, "next")->type, text, sizeof text);
    assert_string_equal(text, "sample *");
    type_write_name(type_target(field_named(type, "lists")->type), text, sizeof text);
    assert_string_equal(text, "char **[3]");
    type_write_name(type_target(field_named(type, "call")->type), text, sizeof text);
    assert_string_equal(text, "void");
    type_write_name(type, small, sizeof small);
    assert_string_equal(small, "sam");
    assert_null(types_named(own->types, "there is none of that name"));
}

struct variables {
    struct type_variable kept, of_thread;
};

static bool see_variable(void *context, const struct type_variable *variable) {
    struct variables *variables = context;
    if (!strcmp(variable->name, "kept")) variables->kept = *variable;
    if (!strcmp(variable->name, "of_thread")) variables->of_thread = *variable;
    return true;
}

static void test_variables(void **state) {
    const struct own *own = *state;
    struct variables variables = {0};
    types_each_variable(own->types, see_variable, &variables);
    assert_ptr_equal(variables.kept.type, types_named(own->types, "sample"));
    assert_false(variables.kept.is_thread_local);
    // loaded somewhere, at a whole page
    assert_int_equal(((uintptr_t)&kept - variables.kept.place) % 4096, 0);
    assert_true(variables.of_thread.is_thread_local);
}

struct seen {
    uint64_t offsets[SEEN_MAX];
    bool are_guesses[SEEN_MAX];
    size_t count, most;
};

static bool see_pointer(void *context, const struct layout_pointer *pointer) {
    struct seen *seen = context;
    assert_true(seen->count < SEEN_MAX);
    seen->are_guesses[seen->count] = pointer->is_guess;
    seen->offsets[seen->count++] = pointer->offset;
    return seen->count < seen->most;
}

static struct layout layout_of(const void *bytes, uint64_t size, struct seen *seen) {
    return (struct layout){.bytes = bytes, .size = size, .see = see_pointer, .context = seen};
}

static void test_pointers(void **state) {
    const struct own *own = *state;
    struct seen seen = {.most = SEEN_MAX};
    struct layout layout = layout_of(&kept, sizeof kept, &seen);
    const uint64_t expected[] = {
        offsetof(struct sample, next),          offsetof(struct sample, pairs[0].text),
        offsetof(struct sample, pairs[1].text), offsetof(struct sample, pairs[2].text),
        offsetof(struct sample, lists[0][0]),   offsetof(struct sample, lists[0][1]),
        offsetof(struct sample, lists[0][2]),   offsetof(struct sample, lists[1][0]),
        offsetof(struct sample, lists[1][1]),   offsetof(struct sample, lists[1][2]),
        offsetof(struct sample, either),        offsetof(struct sample, elsewhere),
        offsetof(struct sample, call),          offsetof(struct sample, inside)};
    const size_t count = sizeof expected / sizeof *expected;
    layout_walk(&layout, types_named(own->types, "sample"), 0);
    assert_int_equal(seen.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen.offsets[i], expected[i]);
        assert_int_equal(seen.are_guesses[i], expected[i] == offsetof(struct sample, either));
    }
}

// Bytes that are not there have no pointers; an array without an end has as many as there is room.
static void test_bounds(void **state) {
    const struct own *own = *state;
    const uint8_t bytes[64] = {0};
    for (uint64_t size = 0; size <= sizeof kept; size++) {
        struct seen seen = {.most = SEEN_MAX};
        struct layout layout = layout_of(&kept, size, &seen);
        layout_walk(&layout, types_named(own->types, "sample"), 0);
        for (size_t i = 0; i < seen.count; i++) assert_true(seen.offsets[i] + 8 <= size);
    }
    struct seen seen = {.most = SEEN_MAX};
    struct layout layout = layout_of(bytes, sizeof bytes, &seen);
    layout_walk(&layout, types_named(own->types, "tail"), 0);
    assert_int_equal(seen.count, (sizeof bytes - offsetof(struct tail, names)) / sizeof(char *));
}

static void test_words(void **state) {
    const struct own *own = *state;
    static const char *const expected[] = {"kept.next",          "kept.pairs[0].text",
                                           "kept.pairs[1].text", "kept.pairs[2].text",
                                           "kept.lists[0][0]",   "kept.lists[0][1]"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct seen seen = {.most = i + 1};
        struct layout layout = layout_of(&kept, sizeof kept, &seen);
        layout.words = LAYOUT_EXACT;
        strcpy(layout.text, "kept");
        layout_walk(&layout, types_named(own->types, "sample"), 0);
        assert_string_equal(layout.text, expected[i]);
    }
}

static void test_members(void **state) {
    const struct own *own = *state;
    uint64_t offset;
    const struct type *found;
    const struct type *type = types_named(own->types, "sample");
    assert_true(layout_member(type, "inside", &offset, &found));
    assert_int_equal(offset, offsetof(struct sample, inside));
    assert_int_equal(found->kind, TYPE_POINTER);
    assert_false(layout_member(type, "outside", &offset, &found));
}

static void test_templates(void **state) {
    (void)state;
    const struct type whole = {.name = "std::vector<a::b<int>, c<(d)1> >"};
    const struct type inside = {.name = "std::vector<int>::iterator<int>"};
    const struct type open = {.name = "std::vector<int"};
    assert_true(layout_is_of_template(&whole, "std::vector<"));
    assert_false(layout_is_of_template(&inside, "std::vector<"));
    assert_false(layout_is_of_template(&open, "std::vector<"));
    assert_false(layout_is_of_template(&whole, "std::list<"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_struct),    cmocka_unit_test(test_names),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_words),
        cmocka_unit_test(test_members),   cmocka_unit_test(test_templates),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
