// SPDX-License-Identifier: Apache-2.0
// Twenty-odd ways to get a failed allocation wrong, and a few to get it right; argv[1] chooses one.
// tests/e2e/torture.py says what `cairn torture` has to find of each. The bugs are meant.
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))
static void *volatile kept;

// For once, so that nothing of it is left out or moved.
static NOINLINE char *get(size_t size) {
    char *block = static_cast<char *>(malloc(size));
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

static int complain() {
    fputs("no memory\n", stderr);
    return 1;
}

static int done() {
    puts("all of it");
    return 0;
}

// ---- right --------------------------------------------------------------------------------------

static NOINLINE int right() {
    char *one = get(100), *other = one ? get(200) : nullptr;
    free(other);
    free(one);
    return other ? done() : complain();
}

static NOINLINE int without() {  // a cache that is not needed
    char *cache = get(100);
    free(cache);
    return done();
}

static NOINLINE int caught() {
    try {
        std::vector<std::string> names(3, std::string(100, 'x'));
        return names.size() == 3 ? done() : 1;
    } catch (const std::bad_alloc &) {
        return complain();
    }
}

// ---- wrong --------------------------------------------------------------------------------------

static NOINLINE int unchecked() {
    char *block = get(100);
    strcpy(block, "text");
    free(block);
    return done();
}

static NOINLINE int unchecked_calloc() {
    int *numbers = static_cast<int *>(calloc(10, sizeof *numbers));
    kept = numbers;
    numbers[3] = 7;
    free(numbers);
    return done();
}

static NOINLINE int unchecked_strdup() {
    char *copy = strdup("text");
    kept = copy;
    size_t length = strlen(copy);
    free(copy);
    return length == 4 ? done() : 1;
}

static NOINLINE int unchecked_aligned() {
    void *block = nullptr;
    int status = posix_memalign(&block, 64, 100);
    (void)status;
    kept = block;
    memset(block, 1, 100);
    free(block);
    return done();
}

static NOINLINE int leak() {
    char *one = get(100);
    if (!one) return complain();
    char *other = get(200);
    if (!other) return complain();
    free(other);
    free(one);
    return done();
}

static NOINLINE int lose_or_grow() {
    char *block = get(100);
    if (!block) return complain();
    block = static_cast<char *>(realloc(block, 100000));
    if (!block) return complain();
    free(block);
    return 0;
}

// Nothing leads to the block at exit, but no function has returned either.
static NOINLINE int ends_at_once() {
    char *block = get(100);
    if (!block) exit(complain());
    block = static_cast<char *>(realloc(block, 100000));
    if (!block) exit(complain());
    free(block);
    return done();
}

// The function that lost it is over.
static NOINLINE int ends_later() {
    if (lose_or_grow()) exit(1);
    return done();
}

static NOINLINE int lost_by_realloc() {
    char *block = get(100);
    if (!block) return complain();
    block = static_cast<char *>(realloc(block, 100000));
    if (!block) return complain();
    free(block);
    return done();
}

static NOINLINE int leak_by_exception() {
    try {
        char *one = new char[100];
        kept = one;
        kept = nullptr;
        std::string other(5000, 'x');
        delete[] one;
        return other.size() == 5000 ? done() : 1;
    } catch (const std::bad_alloc &) {
        return complain();
    }
}

static NOINLINE int double_free() {
    char *one = get(100);
    if (!one) return complain();
    char *other = get(200);
    if (!other) free(one);
    free(one);
    if (!other) return complain();
    free(other);
    return done();
}

static NOINLINE int wild_free() {
    char *blocks[2] = {reinterpret_cast<char *>(0x1234567), nullptr};
    char *one = get(100);
    if (one) blocks[0] = one;
    free(blocks[0]);
    return one ? done() : complain();
}

static NOINLINE int uncaught() {
    std::string text(5000, 'x');
    return text.size() == 5000 ? done() : 1;
}

static NOINLINE void promise(std::vector<int> &numbers) noexcept {
    numbers.resize(5000);
}

static NOINLINE int broken_promise() {
    std::vector<int> numbers;
    try {
        promise(numbers);
    } catch (...) {
        return complain();
    }
    return done();
}

static NOINLINE int gives_up() {
    char *block = get(100);
    if (!block) abort();
    free(block);
    return done();
}

static NOINLINE int asserts() {
    char *block = get(100);
    assert(block);
    free(block);
    return done();
}

static NOINLINE int divides() {
    char *block = get(100);
    volatile int count = block ? 4 : 0;
    int share = 100 / count;
    free(block);
    return share == 25 ? done() : 1;
}

static NOINLINE int wrong_index() {
    static char names[16];
    char *block = get(100);
    volatile long length = block ? 4 : -(1L << 40);
    names[length] = 'x';
    free(block);
    return names[4] == 'x' ? done() : 1;
}

static volatile bool is_endless = true;
static NOINLINE int recurses(int depth) {
    volatile char room[1000];
    room[depth % 1000] = 'x';
    return is_endless ? recurses(depth + 1) + room[depth % 1000] : 0;
}

static NOINLINE int endless_recursion() {
    char *block = get(100);
    if (!block) return recurses(0);
    free(block);
    return done();
}

static NOINLINE int waits() {
    char *block = get(100);
    while (!block) pause();
    free(block);
    return done();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static NOINLINE char *locked() {
    pthread_mutex_lock(&lock);
    char *block = get(100);
    if (!block) return nullptr;
    pthread_mutex_unlock(&lock);
    return block;
}

static NOINLINE int stays_locked() {
    char *one = locked(), *other = locked();
    free(one);
    free(other);
    return one && other ? done() : complain();
}

static NOINLINE int chatters() {
    char *block = get(100);
    while (!block) puts("no memory, trying again");
    free(block);
    return done();
}

static NOINLINE int fills_disk() {
    char *block = get(100);
    FILE *file = block ? nullptr : tmpfile();
    while (file && fputs("no memory, trying again\n", file) >= 0) {
    }
    free(block);
    return done();
}

static NOINLINE int skips() {
    for (int i = 0; i < 3; i++) {
        char *block = get(100);
        if (!block) continue;
        printf("item %d\n", i);
        free(block);
    }
    return 0;
}

static NOINLINE int second_time() {
    static char *table[4];
    for (int i = 0; i < 4; i++) {
        table[i] = get(100);
        if (!table[i] && !i) return complain();
        memset(table[i], i, 100);
    }
    for (char *entry : table) free(entry);
    return done();
}

static void *work(void *argument) {
    char *block = get(100);
    memset(block, 1, 100);
    free(block);
    return argument;
}

static NOINLINE int in_thread() {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, nullptr)) return complain();
    pthread_join(thread, nullptr);
    return done();
}

static NOINLINE int in_child() {
    pid_t child = fork();
    if (!child) {
        char *block = get(100);
        memset(block, 1, 100);
        free(block);
        if (write(STDOUT_FILENO, "the child's part\n", 17) < 0) _exit(1);
        _exit(0);
    }
    waitpid(child, nullptr, 0);  // whatever became of it
    return done();
}

static NOINLINE int leaves_daemon() {  // and a process in a session of its own that never ends
    char *block = get(100);
    if (!fork()) {
        setsid();
        for (;;) pause();
    }
    free(block);
    return block ? done() : complain();
}

static const struct {
    const char *name;
    int (*run)();
} modes[] = {{"right", right},
             {"without", without},
             {"caught", caught},
             {"unchecked", unchecked},
             {"unchecked_calloc", unchecked_calloc},
             {"unchecked_strdup", unchecked_strdup},
             {"unchecked_aligned", unchecked_aligned},
             {"leak", leak},
             {"lost_by_realloc", lost_by_realloc},
             {"ends_at_once", ends_at_once},
             {"ends_later", ends_later},
             {"leak_by_exception", leak_by_exception},
             {"double_free", double_free},
             {"wild_free", wild_free},
             {"uncaught", uncaught},
             {"broken_promise", broken_promise},
             {"gives_up", gives_up},
             {"asserts", asserts},
             {"divides", divides},
             {"wrong_index", wrong_index},
             {"endless_recursion", endless_recursion},
             {"waits", waits},
             {"stays_locked", stays_locked},
             {"chatters", chatters},
             {"fills_disk", fills_disk},
             {"skips", skips},
             {"second_time", second_time},
             {"in_thread", in_thread},
             {"in_child", in_child},
             {"leaves_daemon", leaves_daemon}};

int main(int argc, char **argv) {
    for (const auto &mode : modes)
        if (argc > 1 && !strcmp(argv[1], mode.name)) return mode.run();
    return 2;
}
