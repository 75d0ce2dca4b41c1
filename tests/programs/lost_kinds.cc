// SPDX-License-Identifier: Apache-2.0
// Loses blocks as real code does: lost_kinds CASE [wait], see lost.c. Each case loses something;
// what others it has beside that is kept in a way of its own. Built with -fsanitize=leak it says
// itself what it lost. `LOST_LIBRARY` is the path of liblost.so.
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <any>
#include <deque>
#include <exception>
#include <forward_list>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

// LeakSanitizer searches no mappings but those that it is told of.
extern "C" __attribute__((weak)) void __lsan_register_root_region(const void *, size_t);

namespace {

enum { SMALL = 24, MEDIUM = 56, LARGE = 1016, COUNT = 12, PAGE = 4096, STACK = 1 << 16 };

struct Node {
    Node *volatile next, *volatile back, *volatile other;
};

void *volatile kept[COUNT];
void *volatile hidden;

Node *make(size_t size = SMALL) {
    return static_cast<Node *>(calloc(1, size));
}

uintptr_t turned(void *block) {
    return ~reinterpret_cast<uintptr_t>(block);
}

template <class T> T *keep(T *object) {
    static int count;
    kept[count++] = object;
    return object;
}

// --- shapes

Node *ring(int length, size_t size) {
    Node *first = make(size), *last = first;
    for (int i = 1; i < length; i++) {
        Node *node = make(size);
        last->next = node;
        node->back = last;
        last = node;
    }
    last->next = first;
    first->back = last;
    return first;
}

Node *tree(int depth, Node *above) {
    Node *node = make();
    node->other = above;
    if (depth) node->next = tree(depth - 1, node);
    if (depth) node->back = tree(depth - 1, node);
    return node;
}

void lose_ring() {
    ring(COUNT, SMALL);
}
void lose_two_rings() {  // one leads to the other
    Node *first = ring(3, SMALL), *second = ring(4, MEDIUM);
    first->other = second;
}
void lose_self() {
    Node *node = make(MEDIUM);
    node->next = node;
}
void lose_tree_with_parents() {
    tree(4, nullptr);
}
void lose_hung_on_ring() {  // a chain that ends in a ring
    Node *node = make();
    node->next = make(MEDIUM);
    node->next->next = ring(5, LARGE);
}
void lose_deep_list() {
    Node *first = nullptr;
    for (int i = 0; i < 100000; i++) {
        Node *node = make();
        node->next = first;
        first = node;
    }
}
void lose_intrusive() {  // links lead to links in the midst of objects
    struct Object {
        long number;
        Node link;
        long more[3];
    };
    Node *links = &static_cast<Object *>(calloc(1, sizeof(Object)))->link, *last = links;
    for (int i = 1; i < COUNT; i++) {
        Node *link = &static_cast<Object *>(calloc(1, sizeof(Object)))->link;
        last->next = link;
        link->back = last;
        last = link;
    }
}

// --- pointers in other forms

void lose_tagged_high() {  // the tag is in bits that no address has
    hidden =
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(make(MEDIUM)) | UINT64_C(7) << 60);
}
void lose_tagged_low() {  // still leads into the block
    keep(reinterpret_cast<char *>(make(MEDIUM)) + 3);
    make();
}
void lose_xor_list() {
    Node *one = make(), *two = make(), *three = make();
    two->other = reinterpret_cast<Node *>(reinterpret_cast<uintptr_t>(one) ^
                                          reinterpret_cast<uintptr_t>(three));
    one->other = reinterpret_cast<Node *>(turned(two));
}
void lose_unaligned() {
    struct __attribute__((packed)) Packed {
        char kind;
        void *pointer;
        char more[15];
    };
    auto *packed = static_cast<Packed *>(calloc(1, sizeof(Packed)));
    packed->pointer = make(LARGE);
    keep(packed);
}
void lose_compressed() {  // distances from a base instead of pointers
    Node *base = make(LARGE), *node = make(MEDIUM);
    base->other =
        reinterpret_cast<Node *>(reinterpret_cast<char *>(node) - reinterpret_cast<char *>(base));
    keep(base);
}
void lose_end_pointer() {  // begin and end; the end is no part of it
    char *block = reinterpret_cast<char *>(make(MEDIUM));
    keep(block + MEDIUM + 8);
}

// --- threads

pthread_barrier_t are_ready;

void *hold_on_stack(void *) {
    void *volatile mine = make(LARGE);
    pthread_barrier_wait(&are_ready);
    pause();
    return mine;
}
// The register is made of `hidden` there, so that nothing else leads to the block; `is_held` says
// that it has been.
volatile int is_held;
void *hold_in_register(void *) {
    pthread_barrier_wait(&are_ready);
#if defined __x86_64__
    __asm__ volatile("not %%rbx\n\tmovl $1, %0\n\tsyscall"
                     : "=m"(is_held)
                     : "b"(hidden), "a"(SYS_pause)
                     : "rcx", "r11", "memory");
#else
    register void *held __asm__("x19") = hidden;
    __asm__ volatile("mvn x19, x19\n\tmov w0, #1\n\tstr w0, %1\n\t"
                     "mov x0, #0\n\tmov x1, #0\n\tmov x2, #0\n\tmov x3, #0\n\tmov x8, %2\n\tsvc 0"
                     : "+r"(held), "=m"(is_held)
                     : "i"(SYS_ppoll)
                     : "x0", "x1", "x2", "x3", "x8", "memory");
#endif
    return nullptr;
}
thread_local void *volatile of_thread;
void *hold_thread_local(void *) {
    of_thread = make(LARGE);
    pthread_barrier_wait(&are_ready);
    pause();
    return of_thread;
}
pthread_key_t key;
void *hold_specific(void *) {
    pthread_setspecific(key, make(LARGE));
    pthread_barrier_wait(&are_ready);
    pause();
    return nullptr;
}
void *end_with_local(void *) {
    void *volatile mine[COUNT];
    for (auto &one : mine) one = make(MEDIUM);
    return nullptr;
}
void *end_with_thread_local(void *) {
    of_thread = make(LARGE);
    return nullptr;
}
void *end_with_specific(void *) {
    pthread_setspecific(key, make(LARGE));
    return nullptr;
}

void beside(void *(*run)(void *)) {
    pthread_t thread;
    pthread_barrier_init(&are_ready, nullptr, 2);
    pthread_create(&thread, nullptr, run, nullptr);
    pthread_barrier_wait(&are_ready);
    make();
}
void ended(void *(*run)(void *)) {
    pthread_t threads[3];
    for (auto &thread : threads) pthread_create(&thread, nullptr, run, nullptr);
    for (auto &thread : threads) pthread_join(thread, nullptr);
}

void lose_beside_stack() {
    beside(hold_on_stack);
}
void lose_beside_register() {
    // not in this function's registers either: a thread that begins has its maker's
    Node *block = make(LARGE);
    hidden = reinterpret_cast<void *>(turned(block));
    beside(hold_in_register);
    while (!is_held) sched_yield();
}
void lose_beside_thread_local() {
    beside(hold_thread_local);
}
void lose_beside_specific() {
    pthread_key_create(&key, nullptr);
    beside(hold_specific);
}
void lose_of_ended_stack() {
    ended(end_with_local);
}
void lose_of_ended_thread_local() {
    ended(end_with_thread_local);
}
void lose_of_ended_specific() {
    pthread_key_create(&key, nullptr);
    ended(end_with_specific);
}

ucontext_t outside, inside;
void run_coroutine() {
    void *volatile mine = reinterpret_cast<void *>(turned(hidden));
    swapcontext(&inside, &outside);
    kept[0] = mine;
}
void lose_coroutine() {  // that waits, with its stack in a block
    // allocated here: LeakSanitizer takes what it knows no caller of for the dynamic linker's
    hidden = reinterpret_cast<void *>(turned(make(LARGE)));
    getcontext(&inside);
    inside.uc_stack.ss_sp = malloc(STACK - 8);
    inside.uc_stack.ss_size = STACK - 8;
    makecontext(&inside, run_coroutine, 0);
    swapcontext(&outside, &inside);
    memset(static_cast<void *>(&inside), 0, sizeof inside);
    memset(static_cast<void *>(&outside), 0, sizeof outside);
}

// --- memory that malloc does not give

void *mapped(int how) {
    void *memory = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
    if (__lsan_register_root_region) __lsan_register_root_region(memory, PAGE);
    return memory;
}
void lose_beside_mapping() {
    *static_cast<void **>(mapped(MAP_PRIVATE)) = ring(COUNT, MEDIUM);
    make();
}
void lose_beside_shared() {
    *static_cast<void **>(mapped(MAP_SHARED)) = make(LARGE);
    make();
}
// Objects one after the other in a block; each has a text of its own.
void **fill_arena(void *arena) {
    auto **objects = static_cast<void **>(arena);
    for (int i = 0; i < COUNT; i++) objects[i * 4 + 1] = make(MEDIUM);
    return objects;
}
void lose_arena() {
    fill_arena(make(LARGE));
    keep(fill_arena(make(LARGE)) + COUNT * 2);  // from here on it is kept, with what is before
}
void lose_of_mapped_arena() {
    fill_arena(mapped(MAP_PRIVATE))[5] = nullptr;
}
void lose_to_kernel() {  // who alone knows it
    struct epoll_event event = {};
    event.data.ptr = make(LARGE);
    int pipes[2];
    if (pipe(pipes)) abort();
    epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, pipes[0], &event);
    void *sent = make(MEDIUM);
    if (write(pipes[1], &sent, sizeof sent) != sizeof sent) abort();
}

// --- libraries

void *load() {
    const char *path = getenv("LOST_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW) : nullptr;
    if (!library) abort();
    return library;
}
void **place(void *library, int which) {
    return reinterpret_cast<void **(*)(int)>(dlsym(library, "lost_place"))(which);
}
void lose_beside_loaded() {
    *place(load(), 0) = ring(3, MEDIUM);
    make();
}
void lose_beside_loaded_thread_local() {
    *place(load(), 1) = ring(3, MEDIUM);
    make();
}
void lose_of_unloaded() {
    void *library = load();
    *place(library, 0) = make(LARGE);
    dlclose(library);
}
void lose_of_libc() {
    regex_t expression;
    if (regcomp(&expression, "a[bc]*(d|e)+f", REG_EXTENDED)) abort();
    if (!opendir("/")) abort();
    keep(fopen("/dev/null", "r"));
    kept[0] = nullptr;  // libc has it in a list
    char *line = nullptr, *text = strdup("a text of thirty-nine bytes, zero too..");
    size_t size = 0;
    FILE *stream = fmemopen(text, strlen(text), "r");
    if (getline(&line, &size, stream) < 0) abort();
    fclose(stream);
}
int by_address(const void *one, const void *other) {
    return one < other ? -1 : one > other;
}
void lose_search_tree() {
    void *root = nullptr;
    for (int i = 0; i < COUNT; i++) tsearch(make(MEDIUM), &root, by_address);
}

// --- C++

struct Owner {
    std::unique_ptr<Owner> other;
    std::shared_ptr<Owner> shared;
    std::weak_ptr<Owner> weak;
    std::function<void()> call;
    std::string text = std::string(60, 'x');
};
struct First {
    virtual ~First() {}
    long one = 1;
};
struct Second {
    virtual ~Second() {}
    long two = 2;
};
struct Both : First, Second {
    std::string text = std::string(40, 'x');
};
struct Texts {
    std::string text = std::string(40, 'x');
    ~Texts() {}
};

template <class T> void lose_object(T &&object) {
    new T(std::move(object));
}
void lose_vector() {
    lose_object(std::vector<std::string>(COUNT, std::string(100, 'x')));
    lose_object(std::vector<std::vector<int>>(COUNT, std::vector<int>(30, 1)));
}
void lose_maps() {
    std::map<int, std::string> map;
    std::unordered_map<std::string, std::vector<long>> table;
    std::set<std::string> set;
    for (int i = 0; i < COUNT; i++) {
        map[i] = std::string(50, 'x');
        table[std::string(30, static_cast<char>('a' + i))] = std::vector<long>(10);
        set.insert(std::string(30, static_cast<char>('a' + i)));
    }
    lose_object(std::move(map));
    lose_object(std::move(table));
    lose_object(std::move(set));
}
void lose_lists() {
    std::list<std::string> list(COUNT, std::string(50, 'x'));
    std::forward_list<std::string> forward(COUNT, std::string(50, 'x'));
    std::deque<std::string> deque(100, std::string(50, 'x'));
    lose_object(std::move(list));
    lose_object(std::move(forward));
    lose_object(std::move(deque));
}
void lose_values() {
    lose_object(std::optional<std::string>(std::string(50, 'x')));
    lose_object(std::any(std::string(50, 'x')));
    lose_object(std::variant<int, std::vector<int>>(std::vector<int>(30)));
}
void lose_unique_cycle() {
    auto one = std::make_unique<Owner>();
    one->other = std::make_unique<Owner>();
    Owner *raw = one.get();
    raw->other->other = std::move(one);
}
void lose_shared_ring() {
    auto first = std::make_shared<Owner>(), last = first;
    for (int i = 1; i < COUNT; i++) {
        last->shared = std::make_shared<Owner>();
        last = last->shared;
    }
    last->shared = first;
}
void lose_weak_ring() {  // back by weak ones: all is freed; but for one that was released
    auto first = std::make_shared<Owner>();
    first->shared = std::make_shared<Owner>();
    first->shared->weak = first;
    new std::weak_ptr<Owner>(first);  // keeps the memory of what has ended
}
void lose_closure() {  // that has itself
    auto owner = std::make_shared<Owner>();
    owner->call = [owner, text = std::string(50, 'x')] { owner->call(); };
}
void lose_second_base() {
    keep(static_cast<Second *>(new Both));
    new Both;
}
void lose_array_new() {  // its count lies before what new gives
    keep(new Texts[COUNT]);
    new Texts[COUNT];
}
void lose_exception() {
    try {
        throw std::string(100, 'x');
    } catch (...) {
        keep(new std::exception_ptr(std::current_exception()));
        new std::exception_ptr(std::current_exception());
    }
    try {
        throw Texts();
    } catch (...) {
        new std::exception_ptr(std::current_exception());
    }
}
void lose_future() {
    auto *promise = new std::promise<std::string>;
    keep(new std::future<std::string>(promise->get_future()));
    promise->set_value(std::string(100, 'x'));
    new std::promise<std::string>;
}
void lose_thread_object() {
    std::thread([text = std::string(100, 'x')] { new std::string(text); }).join();
}

void (*const cases[])() = {
    lose_ring,
    lose_two_rings,
    lose_self,
    lose_tree_with_parents,
    lose_hung_on_ring,
    lose_deep_list,
    lose_intrusive,
    lose_tagged_high,
    lose_tagged_low,
    lose_xor_list,
    lose_unaligned,
    lose_compressed,
    lose_end_pointer,
    lose_beside_stack,
    lose_beside_register,
    lose_beside_thread_local,
    lose_beside_specific,
    lose_of_ended_stack,
    lose_of_ended_thread_local,
    lose_of_ended_specific,
    lose_coroutine,
    lose_beside_mapping,
    lose_beside_shared,
    lose_arena,
    lose_of_mapped_arena,
    lose_to_kernel,
    lose_beside_loaded,
    lose_beside_loaded_thread_local,
    lose_of_unloaded,
    lose_of_libc,
    lose_search_tree,
    lose_vector,
    lose_maps,
    lose_lists,
    lose_values,
    lose_unique_cycle,
    lose_shared_ring,
    lose_weak_ring,
    lose_closure,
    lose_second_base,
    lose_array_new,
    lose_exception,
    lose_future,
    lose_thread_object,
};

__attribute__((noinline)) bool lose(const char *number) {
    size_t at = strtoul(number, nullptr, 10);
    if (at >= sizeof cases / sizeof *cases) return false;
    cases[at]();
    return true;
}

// What calls left on the stack.
__attribute__((noinline)) void forget() {
    volatile char old[1 << 17];
    for (size_t i = 0; i < sizeof old; i++) old[i] = 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2 || !lose(argv[1])) return 1;
    forget();
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    return 0;
}
