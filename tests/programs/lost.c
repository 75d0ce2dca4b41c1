// SPDX-License-Identifier: Apache-2.0
// Loses blocks: lost CASE [wait|timed]; cases behind the last are random graphs. With "wait" it
// says "ready" and waits for its input to end, else it ends, so that LeakSanitizer, linked to it,
// can say what it lost. Sizes are those that glibc's malloc gives, so that both count the same
// bytes.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { SMALL = 24, MEDIUM = 56, LARGE = 1016, COUNT = 12 };

struct node {
    struct node *volatile left, *volatile right, *volatile third;
};

static void *volatile kept[32];
static __thread void *volatile kept_by_thread;
static void *hidden;  // with its bits turned over

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16 & 0x7fff;
}

static struct node *make(size_t size) {
    return calloc(1, size);
}

static struct node *chain(int length, size_t size) {
    struct node *first = NULL;
    for (int i = 0; i < length; i++) {
        struct node *node = make(size);
        node->left = first;
        first = node;
    }
    return first;
}

static struct node *tree(int depth) {
    struct node *node = make(SMALL);
    if (depth) node->left = tree(depth - 1);
    if (depth) node->right = tree(depth - 1);
    return node;
}

static void lose_one(void) {
    make(SMALL);
}
static void lose_many(void) {
    for (int i = 0; i < COUNT; i++) make(MEDIUM);
}
static void lose_chain(void) {
    chain(COUNT, SMALL);
}
static void lose_chains(void) {
    for (int i = 0; i < COUNT; i++) chain(i + 1, MEDIUM);
}
static void lose_tree(void) {
    tree(5);
}
static void lose_diamond(void) {
    struct node *top = make(SMALL);
    top->left = make(MEDIUM);
    top->right = make(MEDIUM);
    top->left->left = top->right->left = make(LARGE);
}
static void lose_shared(void) {
    struct node *one = make(SMALL), *other = make(MEDIUM);
    one->left = other->left = make(LARGE);
}
static void lose_inner(void) {  // only a pointer into its midst leads to the second
    struct node *one = make(SMALL);
    one->left = (struct node *)((char *)make(LARGE) + 500);
}
static void lose_behind(void) {  // an array of pointers
    struct node **array = calloc(127, sizeof *array);
    for (int i = 0; i < COUNT; i++) array[i * 10] = make(SMALL);
}
static void lose_large(void) {
    struct node *one = make(100008);
    one->third = make(SMALL);
}
static void lose_after_free(void) {  // what led to it is freed
    struct node *one = make(MEDIUM);
    one->third = make(LARGE);
    free(one);
}
static void lose_overwritten(void) {
    kept[0] = make(MEDIUM);
    kept[0] = make(LARGE);
}
static void lose_resized(void) {
    struct node *one = make(SMALL);
    one->left = make(MEDIUM);
    one = realloc(one, LARGE);
    if (one) one->right = NULL;
}
static void lose_hidden(void) {
    hidden = (void *)~(unsigned long)make(LARGE);
}
static void lose_nothing(void) {
    kept[0] = tree(4);
    kept[1] = chain(COUNT, LARGE);
}
static void lose_below_kept(void) {  // what is kept does not lead to it; it leads to what is kept
    kept[0] = make(MEDIUM);
    struct node *one = make(SMALL);
    one->left = kept[0];
}
static void lose_of_thread(void) {
    kept_by_thread = chain(COUNT, SMALL);
    make(MEDIUM);
}
static void lose_text(void) {
    for (int i = 0; i < COUNT; i++) memset(make(MEDIUM), 'x', MEDIUM);
}
static void lose_mixed(void) {
    lose_tree();
    lose_nothing();
    lose_shared();
    lose_chains();
}

static void (*const cases[])(void) = {
    lose_one,        lose_many,        lose_chain,     lose_chains, lose_tree,
    lose_diamond,    lose_shared,      lose_inner,     lose_behind, lose_large,
    lose_after_free, lose_overwritten, lose_resized,   lose_hidden, lose_text,
    lose_nothing,    lose_below_kept,  lose_of_thread, lose_mixed,
};

// What calls left on the stack and in registers.
static __attribute__((noinline)) void forget(void) {
    volatile char old[1 << 15];
    for (size_t i = 0; i < sizeof old; i++) old[i] = 0;
}

// Blocks of random sizes that refer to earlier ones, a few of which are kept.
static void lose_graph(unsigned seed) {
    enum { BLOCKS = 60, SIZES = 12, KEPT = 3 };
    struct node *made[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct node *node = made[i] = make(SMALL + 16 * (next_random(&seed) % SIZES));
        if (i) node->left = made[next_random(&seed) % i];
        if (i && next_random(&seed) % 2) node->right = made[next_random(&seed) % i];
        if (i && next_random(&seed) % 4 == 0) node->left = NULL;
    }
    for (unsigned i = 0; i < KEPT; i++) kept[i] = made[next_random(&seed) % BLOCKS];
    memset(made, 0, sizeof made);
}

// Free blocks in the lists of the allocator, among many that are kept.
static void scatter(void) {
    enum { MANY = 30000, SIZES = 30, EACH = 7 };
    struct node *made[MANY / 100], *first = NULL;
    for (unsigned i = 0; i < MANY; i++) {
        struct node *node = make(SMALL + 16 * (i % SIZES == i / SIZES % SIZES ? i % SIZES : 0));
        node->left = first;
        if (i % 100 || i / 100 >= SIZES * EACH)
            first = node;
        else
            made[i / 100] = node;
    }
    for (unsigned i = 0; i < SIZES * EACH; i++) free(made[i]);
    memset(made, 0, sizeof made);
    kept[0] = first;
}

static __attribute__((noinline)) int lose(const char *number) {
    if (!strcmp(number, "scattered")) {
        scatter();
        return 0;
    }
    size_t at = strtoul(number, NULL, 10), count = sizeof cases / sizeof *cases;
    if (at >= count)
        lose_graph((unsigned)at);
    else
        cases[at]();
    return 0;
}

static void do_nothing(int signal_number) {
    (void)signal_number;
}

static void be_interrupted(void) {
    const struct timeval soon = {.tv_usec = 500};
    const struct itimerval timer = {soon, soon};
    signal(SIGALRM, do_nothing);
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv) {
    if (argc < 2 || lose(argv[1])) return 1;
    forget();
    if (argc > 2 && !strcmp(argv[2], "timed")) {
        be_interrupted();
        return 0;
    }
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    return 0;
}
