// SPDX-License-Identifier: Apache-2.0
// Objects as managed languages have them, with a header that leads to their class: two versions of
// a tree, which share most of their nodes, a cache, weak references, a ring that is lost. The
// program knows who keeps what: from each variable it visits what that leads to, by the classes'
// own members, and what only one visit came to is that variable's. It prints the ledger, then
// "ready", and waits.
//
//     root VARIABLE BYTES BLOCKS        what would go if the variable went
//     type VARIABLE CLASS BYTES BLOCKS  the same by class
//     inner CLASS BYTES BLOCKS          what the entries of the cache keep, all together
//
// VARIABLE is "several" for what no single variable keeps, and "lost" for what nobody does.
//
// Arguments: the seed; "fork": a child goes on after a part, as daemons do. What brk adds there is
// a mapping of its own. Weak references and the list of all objects are kept in a form that is no
// address.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NODES = 3000,
    CHANGED = 60,
    ENTRIES = 500,
    BUCKETS = 1024,
    INTERNED = 40,
    WEAK = 200,
    RING = 30
};
enum { OBJECTS_MOST = 1 << 16, LINE_BYTES = 128 };
enum { VERSION_BEFORE = 1, VERSION_AFTER = 2 };

// What glibc's block of so many bytes has.
static size_t room_of(size_t bytes) {
    const size_t header = 8, align = 16, least = 24;
    size_t room = (bytes + header + align - 1) / align * align - header;
    return room < least ? least : room;
}

struct Class {
    const char *name;
    Class *next;
    uint32_t seen;  // bits of the variables that lead there
};

struct Object {
    Class *its_class;
    uint32_t hash, seen;
    size_t room;
    virtual void each(void (*see)(Object *)) {
        (void)see;
    }
};

struct String : Object {
    size_t length;
    char text[];
};

struct Number : Object {
    int64_t value;
};

struct Array : Object {
    size_t length;
    Object *items[];
    void each(void (*see)(Object *)) override {
        for (size_t i = 0; i < length; i++) see(items[i]);
    }
};

struct Node : Object {
    Node *left, *right;
    String *key;
    Object *value;
    long version;
    void each(void (*see)(Object *)) override {
        see(left), see(right), see(key), see(value);
    }
};

struct Entry : Object {
    String *key;
    Array *values;
    void each(void (*see)(Object *)) override {
        see(key), see(values);
    }
};

struct Cache : Object {
    Array *buckets;
    size_t count;
    void each(void (*see)(Object *)) override {
        see(buckets);
    }
};

struct Weak : Object {
    uintptr_t masked;
};

struct Link : Object {
    Link *next, *before;
    String *label;
    void each(void (*see)(Object *)) override {
        see(next), see(before), see(label);
    }
};

// The variables.
Class *classes;
Node *tree_before, *tree_after;
Cache *cache;
Array *weak_references;
enum {
    ROOT_CLASSES,
    ROOT_BEFORE,
    ROOT_AFTER,
    ROOT_CACHE,
    ROOT_WEAK,
    ROOTS,
    SEVERAL = ROOTS,
    LOST,
    OWNERS
};
static const char *const owner_names[] = {"classes",         "tree_before", "tree_after", "cache",
                                          "weak_references", "several",     "lost"};

static uint32_t random_state = 1;
static uintptr_t *objects;  // all, masked
static size_t object_count;

static uint32_t next_random(uint32_t below) {
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 8) % below;
}

// --- objects

static Class *class_named(const char *name) {
    Class *found = classes;
    while (found && strcmp(found->name, name) != 0) found = found->next;
    return found;
}

__attribute__((noinline)) static Class *new_class(const char *name) {
    Class *made = static_cast<Class *>(malloc(sizeof *made));
    *made = Class{name, classes, 0};
    classes = made;
    return made;
}

template <class T> static T *begin(void *block, size_t bytes, const char *name) {
    T *object = new (block) T();
    Class *known = class_named(name);
    object->its_class = known ? known : new_class(name);
    object->hash = next_random(1u << 24);
    object->room = room_of(bytes);
    objects[object_count++] = ~reinterpret_cast<uintptr_t>(object);
    return object;
}

__attribute__((noinline)) static String *new_string(const char *prefix, uint32_t number) {
    char text[LINE_BYTES];
    int length = snprintf(text, sizeof text, "%s %u", prefix, number);
    size_t bytes = sizeof(String) + static_cast<size_t>(length) + 1 + number % 200;
    String *string = begin<String>(calloc(1, bytes), bytes, "String");
    string->length = static_cast<size_t>(length);
    memcpy(string->text, text, string->length);
    return string;
}

__attribute__((noinline)) static Number *new_number(int64_t value) {
    Number *number = begin<Number>(calloc(1, sizeof *number), sizeof *number, "Number");
    number->value = value;
    return number;
}

__attribute__((noinline)) static Array *new_array(size_t length) {
    size_t bytes = sizeof(Array) + length * sizeof(Object *);
    Array *array = begin<Array>(calloc(1, bytes), bytes, "Array");
    array->length = length;
    return array;
}

__attribute__((noinline)) static Node *new_node(String *key, Object *value, long version) {
    Node *node = begin<Node>(calloc(1, sizeof *node), sizeof *node, "Node");
    node->key = key;
    node->value = value;
    node->version = version;
    return node;
}

__attribute__((noinline)) static Entry *new_entry(String *key, Array *values) {
    Entry *entry = begin<Entry>(calloc(1, sizeof *entry), sizeof *entry, "Entry");
    entry->key = key;
    entry->values = values;
    return entry;
}

__attribute__((noinline)) static Cache *new_cache() {
    Cache *made = begin<Cache>(calloc(1, sizeof *made), sizeof *made, "Cache");
    made->buckets = new_array(BUCKETS);
    return made;
}

__attribute__((noinline)) static Weak *new_weak(const Object *to) {
    Weak *weak = begin<Weak>(calloc(1, sizeof *weak), sizeof *weak, "Weak");
    weak->masked = ~reinterpret_cast<uintptr_t>(to);
    return weak;
}

__attribute__((noinline)) static Link *new_link() {
    Link *link = begin<Link>(calloc(1, sizeof *link), sizeof *link, "Link");
    link->label = new_string("of a lost ring", next_random(1000));
    return link;
}

// --- the graph

static Object *new_value() {
    uint32_t form = next_random(4);
    if (form < 2) return new_number(next_random(1000));
    if (form == 2) return new_string("a value", next_random(1000));
    Array *array = new_array(1 + next_random(6));
    for (size_t i = 0; i < array->length; i++)
        array->items[i] = new_number(static_cast<int64_t>(i));
    return array;
}

static Node **side_of(Node *node, uint32_t hash) {
    return hash < node->key->hash ? &node->left : &node->right;
}

// In place; of nodes that are an older version's there come copies, which have the same key and
// value.
__attribute__((noinline)) static void insert(Node **tree, long version) {
    String *key = new_string("a key", next_random(100000));
    Node **link = tree;
    while (*link) {
        Node *node = *link;
        if (node->version != version) {
            Node *copy = new_node(node->key, node->value, version);
            copy->left = node->left;
            copy->right = node->right;
            *link = node = copy;
        }
        link = side_of(node, key->hash);
    }
    *link = new_node(key, new_value(), version);
}

static Object *any_object() {
    return reinterpret_cast<Object *>(~objects[next_random(static_cast<uint32_t>(object_count))]);
}

// A key of the newer tree, somewhere in it.
static String *any_key() {
    Node *node = tree_after;
    for (Node *next = node; next && next_random(12); next = *side_of(node, next_random(1u << 24)))
        node = next;
    return node->key;
}

// Entries have strings of their own, strings that others have too, and keys of the tree.
__attribute__((noinline)) static void fill_cache() {
    Array *interned = cache->buckets;  // the last ones are no entries
    for (size_t i = 0; i < INTERNED; i++)
        interned->items[BUCKETS - 1 - i] = new_string("interned", next_random(1000));
    for (size_t i = 0; i < ENTRIES; i++) {
        Array *values = new_array(3);
        values->items[0] = new_string("its own", next_random(1000));
        values->items[1] = interned->items[BUCKETS - 1 - next_random(INTERNED)];
        if (!next_random(5)) values->items[2] = any_key();
        cache->buckets->items[i] = new_entry(new_string("name", next_random(1000)), values);
        cache->count++;
    }
}

__attribute__((noinline)) static void lose_ring() {
    Link *first = new_link(), *last = first;
    for (int i = 1; i < RING; i++) {
        Link *link = new_link();
        link->before = last;
        last->next = link;
        last = link;
    }
    last->next = first;
    first->before = last;
    weak_references->items[0] = new_weak(first);
}

__attribute__((noinline)) static void make_first() {
    new_class("never used");
    for (int i = 0; i < NODES; i++) insert(&tree_before, VERSION_BEFORE);
}

__attribute__((noinline)) static void make_others() {
    tree_after = tree_before;
    for (int i = 0; i < CHANGED; i++) insert(&tree_after, VERSION_AFTER);
    cache = new_cache();
    fill_cache();
    weak_references = new_array(WEAK);
    for (size_t i = 1; i < WEAK; i++) weak_references->items[i] = new_weak(any_object());
    lose_ring();
}

// --- the ledger

static uint32_t visited;  // the bit of the variable

static void visit(Object *object) {
    if (!object || object->seen & visited) return;
    object->seen |= visited;
    for (Class *at = object->its_class; at; at = at->next) at->seen |= visited;
    object->each(visit);
}

static int owner_of(uint32_t seen) {
    if (!seen) return LOST;
    return seen & (seen - 1) ? SEVERAL : __builtin_ctz(seen);
}

struct Sum {
    size_t bytes, blocks;
};

static void print(const char *word, const char *owner, const char *name, const Sum &sum) {
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "%s %s%s%s %zu %zu\n", word, owner, name ? " " : "",
                          name ? name : "", sum.bytes, sum.blocks);
    if (sum.blocks && write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) abort();
}

static Sum sum_of(int owner, const char *name) {
    Sum sum = {0, 0};
    for (size_t i = 0; i < object_count; i++) {
        const Object *object = reinterpret_cast<Object *>(~objects[i]);
        if (owner_of(object->seen) != owner || (name && strcmp(object->its_class->name, name) != 0))
            continue;
        sum.bytes += object->room;
        sum.blocks++;
    }
    for (const Class *at = classes; at; at = at->next) {
        if (owner_of(at->seen) != owner || (name && strcmp(name, "Class") != 0)) continue;
        sum.bytes += room_of(sizeof *at);
        sum.blocks++;
    }
    return sum;
}

// What each entry alone leads to.
static Sum sum_of_entries() {
    Sum sum = {0, 0};
    auto add = [&sum](const Object *object) {
        if (owner_of(object->seen) != ROOT_CACHE) return;
        sum.bytes += object->room;
        sum.blocks++;
    };
    for (size_t i = 0; i < ENTRIES; i++) {
        const Entry *entry = static_cast<Entry *>(cache->buckets->items[i]);
        add(entry), add(entry->key), add(entry->values), add(entry->values->items[0]);
    }
    return sum;
}

__attribute__((noinline)) static void print_ledger() {
    static const char *const types[] = {"Class", "String", "Number", "Array", "Node",
                                        "Entry", "Cache",  "Weak",   "Link"};
    Object *const roots[] = {nullptr, tree_before, tree_after, cache, weak_references};
    for (int root = 0; root < ROOTS; root++) {
        visited = 1u << root;
        visit(roots[root]);
    }
    for (Class *at = classes; at; at = at->next) at->seen |= 1u << ROOT_CLASSES;
    for (int owner = 0; owner < OWNERS; owner++) {
        print("root", owner_names[owner], nullptr, sum_of(owner, nullptr));
        for (const char *type : types) print("type", owner_names[owner], type, sum_of(owner, type));
    }
    print("inner", "Entry", nullptr, sum_of_entries());
}

// What calls left on the stack.
__attribute__((noinline)) static void forget() {
    volatile char old[1 << 16];
    memset(const_cast<char *>(old), 0, sizeof old);
}

int main(int argc, char **argv) {
    char byte;
    if (argc > 1) random_state = static_cast<uint32_t>(atoi(argv[1]));
    void *room = mmap(nullptr, OBJECTS_MOST * sizeof *objects, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 1;
    objects = static_cast<uintptr_t *>(room);
    make_first();
    if (argc > 2 && fork()) {
        int status = 0;
        return wait(&status) < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
    }
    make_others();
    print_ledger();
    forget();
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
    }
    return 3;
}
