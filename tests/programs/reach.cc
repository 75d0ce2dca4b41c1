// SPDX-License-Identifier: Apache-2.0
// Holds and loses blocks in known ways, says in a line how many of each, and waits for the end of
// its input. With an argument it first lets malloc_info write to that file; what it was built with
// -fsanitize=leak counts is then the same as what a core dump shows.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define DOGS 3
#define BOXES 4
#define HIDDEN 2
#define TASKS 5
#define LABELS 6
#define INTERIOR 5
#define LOST 7
#define LOST_BYTES 100
#define CHAIN 4
#define LARGE_BYTES (1u << 20)

namespace zoo {
struct Animal {
    virtual ~Animal() {}
    virtual int legs() const {
        return 4;
    }
    long weight = 1;
};
struct Dog : Animal {
    long ages[3] = {1, 2, 3};
};
template <class T> struct Box : Animal { T inside[4] = {}; };
namespace {
struct Hidden : Animal {
    int legs() const override {
        return 8;
    }
};
}  // namespace
}  // namespace zoo

static int run_task(void *task) {
    return task == nullptr;
}
extern const char label_text[];
const char label_text[16] = "a constant text";

struct Task {
    int (*run)(void *);
    long number;
};
struct Label {
    const char *text;
    long number;
};
struct Node {
    Node *next, *other;
    long number;
};

void *volatile sink;
void *volatile held[DOGS + BOXES + HIDDEN + TASKS + LABELS];
char *volatile inside[INTERIOR];
Node *volatile chain;
thread_local void *volatile of_thread;
static pthread_barrier_t ready;

static NOINLINE void hold() {
    int next = 0;
    for (int i = 0; i < DOGS; i++) held[next++] = new zoo::Dog;
    for (int i = 0; i < BOXES; i++) held[next++] = new zoo::Box<int>;
    for (int i = 0; i < HIDDEN; i++) held[next++] = new zoo::Hidden;
    for (int i = 0; i < TASKS; i++) held[next++] = new Task{run_task, i};
    for (int i = 0; i < LABELS; i++) held[next++] = new Label{label_text + 2, i};
    for (int i = 0; i < INTERIOR; i++) inside[i] = static_cast<char *>(calloc(1, 200)) + 96;
    for (int i = 0; i < CHAIN; i++) chain = new Node{chain, nullptr, i};
    sink = nullptr;
}

// Without references; a node that two others hang on; three in a ring; a large one.
static NOINLINE void lose() {
    for (int i = 0; i < LOST; i++) sink = calloc(1, LOST_BYTES);
    sink = new Node{new Node{nullptr, nullptr, 1}, new Node{nullptr, nullptr, 2}, 3};
    Node *ring = new Node{nullptr, nullptr, 1};
    ring->next = new Node{new Node{ring, nullptr, 2}, nullptr, 3};
    sink = ring;
    sink = calloc(1, LARGE_BYTES);
    sink = nullptr;
}

// What the functions before left below the stack pointer, for checkers that look there.
static NOINLINE void scrub() {
    volatile char bytes[16384];
    memset(const_cast<char *>(bytes), 0, sizeof bytes);
}

static NOINLINE void wait_forever(void *block) {
    void *volatile on_stack = block;
    pthread_barrier_wait(&ready);
    pause();
    sink = on_stack;
}

static void *work(void *) {
    of_thread = calloc(1, 300);
    wait_forever(calloc(1, 400));
    return nullptr;
}

int main(int argc, char **argv) {
    pthread_t thread;
    char line[512];
    pthread_barrier_init(&ready, nullptr, 2);
    if (pthread_create(&thread, nullptr, work, nullptr)) return 1;
    pthread_barrier_wait(&ready);
    hold();
    lose();
    scrub();
    if (argc > 1) {
        static char buffer[1 << 16];
        FILE *file = fopen(argv[1], "w");
        if (!file) return 1;
        setvbuf(file, buffer, _IOFBF, sizeof buffer);
        malloc_info(0, file);
        fflush(file);
    }
    int length = snprintf(line, sizeof line,
                          "dogs=%d boxes=%d hidden=%d tasks=%d labels=%d leaked=%d unreferenced=%d "
                          "leaked_bytes=%zu last=%lx interior=%lx\n",
                          DOGS, BOXES, HIDDEN, TASKS, LABELS, LOST + 3 + 3 + 1, LOST + 1 + 1,
                          LOST * LOST_BYTES + 6 * sizeof(Node) + LARGE_BYTES,
                          reinterpret_cast<uintptr_t>(chain->next->next->next),
                          reinterpret_cast<uintptr_t>(inside[0]));
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) return 1;
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
