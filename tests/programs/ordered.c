// SPDX-License-Identifier: Apache-2.0
// Does to its heap what standard input orders, a line an order, and answers each with a line:
//     THREAD KEEP COUNT SIZE   thread 0 or 1 allocates blocks by keep_a, keep_b or keep_c
//     THREAD DROP COUNT 0      it frees the oldest ones of a, b or c
//     0 fx 0 0                 forks: the child says "child PID" and goes on, the parent waits for
//     it
// KEEP is +a, +b, +c; DROP is -a, -b, -c. So a test knows what every stack holds at any moment.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTS = 3, BLOCKS_MAX = 1 << 16 };

struct list {
    void *blocks[BLOCKS_MAX];
    int first, end;
};

static struct list lists[LISTS];

struct order {
    char sign, name;
    int count;
    size_t size;
};

static void put(int number, void *block) {
    lists[number].blocks[lists[number].end++ % BLOCKS_MAX] = block;
}

__attribute__((noinline)) static void keep_a(size_t size) {
    put(0, malloc(size));
}

__attribute__((noinline)) static void keep_b(size_t size) {
    put(1, malloc(size));
}

__attribute__((noinline)) static void keep_c(size_t size) {
    put(2, malloc(size));
}

static void follow(const struct order *order) {
    static void (*const keepers[])(size_t) = {keep_a, keep_b, keep_c};
    struct list *list = &lists[order->name - 'a'];
    for (int i = 0; i < order->count; i++) {
        if (order->sign == '+')
            keepers[order->name - 'a'](order->size);
        else
            free(list->blocks[list->first++ % BLOCKS_MAX]);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const struct order *ordered;  // for the second thread

static void *follow_orders(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!ordered) pthread_cond_wait(&changed, &lock);
        follow(ordered);
        ordered = NULL;
        pthread_cond_broadcast(&changed);
    }
    return unused;
}

static void order_other(const struct order *order) {
    static pthread_t thread;
    if (!thread) pthread_create(&thread, NULL, follow_orders, NULL);
    pthread_mutex_lock(&lock);
    ordered = order;
    pthread_cond_broadcast(&changed);
    while (ordered) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static int go_on_as_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child) return waitpid(child, NULL, 0) == child ? 1 : 2;
    printf("child %d\n", (int)getpid());
    return 0;
}

int main(void) {
    static char in[1 << 12], out[1 << 12];
    struct order order;
    int thread;
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    puts("ready");
    while (scanf("%d %c%c %d %zu", &thread, &order.sign, &order.name, &order.count, &order.size) ==
           5) {
        if (order.sign == 'f') {
            if (go_on_as_child()) return 0;
            continue;
        }
        if (thread)
            order_other(&order);
        else
            follow(&order);
        puts("done");
    }
    return 0;
}
