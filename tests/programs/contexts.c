// SPDX-License-Identifier: Apache-2.0
// Contexts of threads and tasks: labels put together in any order, handed to another thread, within
// regions and around them, inner ones in place of outer ones. argv[1]: so many requests more, each
// with a label of its own.
#include <cairn/cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *kept[64];
static int kept_count;

// Blocks of a size that tells who made them.
__attribute__((noinline)) static void take(size_t size) {
    kept[kept_count++] = malloc(size);
}

static void *work(void *context) {
    cairn_context_enter((cairn_context)(uintptr_t)context);
    take(1000);
    cairn_region_begin("parse");
    take(2000);
    cairn_region_end(NULL);
    cairn_context_leave();
    take(4000);
    return NULL;
}

static void check(const char *what, int is_right) {
    if (!is_right) printf("wrong: %s\n", what);
}

static void check_numbers(void) {
    cairn_context one = cairn_context_with(cairn_context_with(0, "tenant", "7"), "endpoint", "/a");
    cairn_context other =
        cairn_context_with(cairn_context_with(0, "endpoint", "/a"), "tenant", "7");
    int is_there = cairn_is_loaded();
    check("order", one == other && (one != 0) == is_there);
    check("another value",
          cairn_context_with(one, "tenant", "8") ==
              cairn_context_with(cairn_context_with(0, "tenant", "8"), "endpoint", "/a"));
    check("no key",
          cairn_context_with(one, "", "x") == one && cairn_context_with(one, "a=b", "x") == one);
    check("nothing is entered", cairn_context_current() == 0);
    cairn_context_enter(one);
    check("what is entered", cairn_context_current() == one);
    cairn_region_begin("r");
    check("in a region", cairn_context_current() == one);
    cairn_region_end(NULL);
    cairn_context_leave();
    check("left", cairn_context_current() == 0 && !cairn_context_leave());
    cairn_context_enter(1u << 30);
    check("no such context", cairn_context_current() == 0);
    cairn_context_leave();
}

int main(int argc, char **argv) {
    pthread_t thread;
    check_numbers();
    cairn_context tenant = cairn_context_with(0, "tenant", "7");
    cairn_region_begin("load");
    cairn_context_enter(tenant);
    take(8000);
    cairn_context_enter(cairn_context_with(cairn_context_current(), "tenant", "8"));
    take(16000);
    cairn_context_leave();
    cairn_context handed = cairn_context_with(cairn_context_current(), "endpoint", "/b c");
    pthread_create(&thread, NULL, work, (void *)(uintptr_t)handed);
    pthread_join(thread, NULL);
    cairn_context_leave();
    take(32000);
    cairn_region_end(NULL);
    int more = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < more; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        cairn_context_enter(cairn_context_with(0, "request", value));
        free(malloc(100));
        cairn_context_leave();
    }
    puts("done");
    return 0;
}
