// SPDX-License-Identifier: Apache-2.0
// What include/cairn/cairn.h promises, at its edges: api_cases CASE. Each case prints nothing and
// ends with status 0 if all held; otherwise it says what did not.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/cairn.h>

enum { DEEP = 200, THREADS = 8, ROUNDS = 1000, PARTS = 5000 };

static int failures;

static void expect(const char *what, long long got, long long wanted) {
    if (got == wanted) return;
    printf("%s: %lld, should be %lld\n", what, got, wanted);
    failures++;
}

static struct cairn_stats of_thread(void) {
    struct cairn_stats stats;
    cairn_stats_of(CAIRN_THREAD, &stats);
    return stats;
}

// More regions than have a place of their own; an end too many.
static void nesting(void) {
    struct cairn_stats in_it;
    char name[16];
    for (int i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "deep %d", i);
        cairn_region_begin(name);
    }
    void *block = malloc(10);
    for (int i = 0; i < DEEP; i++) {
        expect("end of a region", cairn_region_end(&in_it), 1);
        expect("calls in it", (long long)in_it.allocations, 1);
        expect("bytes in it", in_it.live_bytes, 10);
    }
    expect("an end too many", cairn_region_end(&in_it), 0);
    expect("figures of no region", (long long)in_it.allocations, 0);
    free(block);
    cairn_region_stats("deep 3", &in_it);
    expect("bytes in a region", (long long)in_it.allocated_bytes, 10);
    expect("bytes that are left", in_it.live_bytes, 0);
    expect("a region that is none", cairn_region_stats("no such", &in_it), 0);
}

// The highest point of a region, inner regions included, wherever the process' own peak is.
static void rises(void) {
    struct cairn_stats outer, inner;
    free(malloc(1 << 20));
    cairn_region_begin("outer");
    void *kept = malloc(100);
    cairn_region_begin("inner");
    free(malloc(5000));
    void *grown = realloc(malloc(300), 700);
    free(malloc(50));
    cairn_region_end(&inner);
    free(grown);
    free(malloc(60));
    free(kept);
    cairn_region_end(&outer);
    expect("rise of the inner region", inner.peak_bytes, 5000);
    expect("what it left", inner.live_bytes, 700);
    expect("calls of the inner region", (long long)inner.allocations, 4);
    expect("rise of the outer region", outer.peak_bytes, 5100);
    expect("what the outer one left", outer.live_bytes, 0);
    long long before = of_thread().live_bytes;
    expect("thread's peak at first", of_thread().peak_bytes, before);
    free(malloc(2000));
    expect("thread's peak later", of_thread().peak_bytes - before, 2000);
}

static void *churn(void *name) {
    struct cairn_stats in_it;
    for (int i = 0; i < ROUNDS; i++) {
        cairn_region_begin(name);
        char *kept = malloc(40), *gone = malloc(60);
        free(gone);
        cairn_region_end(&in_it);
        expect("rise in a thread", in_it.peak_bytes, 100);
        if (i % 2) free(kept);
    }
    return NULL;
}

// Regions of the same name in many threads at once.
static void threads(void) {
    static char name[] = "churn";
    pthread_t all[THREADS];
    struct cairn_stats found;
    for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, churn, name);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
    cairn_region_stats(name, &found);
    expect("calls in all threads", (long long)found.allocations, 2LL * THREADS * ROUNDS);
    expect("bytes left", found.live_bytes, 40LL * THREADS * ROUNDS / 2);
    expect("most in one", found.peak_bytes, 100);
}

static void *count_one(void *unused) {
    long long before = (long long)of_thread().allocations;
    free(malloc(1));
    expect("another thread's call", (long long)of_thread().allocations - before, 1);
    return unused;
}

// Switched off, nothing is counted but frees of what is known.
static void switching(void) {
    pthread_t other;
    void *known = malloc(30);
    struct cairn_stats before = of_thread(), after;
    expect("enabled at first", cairn_is_enabled(CAIRN_THREAD), 1);
    cairn_disable(CAIRN_THREAD);
    expect("disabled", cairn_is_enabled(CAIRN_THREAD), 0);
    void *unknown = malloc(500);
    unknown = realloc(unknown, 5000);
    for (int i = 0; i < 3000; i++) free(malloc(7));
    free(known);
    after = of_thread();
    expect("calls while off", (long long)(after.allocations - before.allocations), 0);
    expect("known blocks freed while off", (long long)(after.frees - before.frees), 1);
    expect("bytes after that", after.live_bytes, before.live_bytes - 30);
    pthread_create(&other, NULL, count_one, NULL);
    pthread_join(other, NULL);
    cairn_enable(CAIRN_THREAD);
    before = of_thread();
    free(unknown);
    free(malloc(7));
    after = of_thread();
    expect("calls when on again", (long long)(after.allocations - before.allocations), 1);
    expect("unknown block freed", (long long)(after.frees - before.frees), 1);
    cairn_disable(CAIRN_PROCESS);
    expect("process disabled", cairn_is_enabled(CAIRN_PROCESS), 0);
    free(malloc(9));
    expect("process off", (long long)(of_thread().allocations - after.allocations), 0);
    cairn_enable(CAIRN_PROCESS);
    free(malloc(9));
    expect("process on", (long long)(of_thread().allocations - after.allocations), 1);
}

// A pool with parts taken and given back in all orders, against a plain count.
static void pools(void) {
    static char memory[PARTS * 8];
    static unsigned char is_in[PARTS];
    struct cairn_pool *pool = cairn_pool_create("parts"), *other = cairn_pool_create("parts");
    struct cairn_stats found;
    long long in_use = 0, calls = 0, bytes = 0, random = 1;
    for (int i = 0; i < 20 * PARTS; i++) {
        random = random * 48271 % 2147483647;
        int part = (int)(random % PARTS), size = part % 100;
        if (is_in[part]) {
            expect("a part's free", cairn_pool_free(pool, memory + part * 8), 1);
            expect("its second free", cairn_pool_free(pool, memory + part * 8), 0);
        } else {
            cairn_pool_alloc(pool, memory + part * 8, (size_t)size);
            calls++;
        }
        is_in[part] = !is_in[part];
        in_use += is_in[part] ? 1 : -1;
        bytes += is_in[part] ? size : -size;
    }
    cairn_pool_alloc(other, memory, 1000);
    cairn_pool_stats("parts", &found);
    expect("parts taken", (long long)found.allocations, calls + 1);
    expect("parts in use", (long long)(found.allocations - found.frees), in_use + 1);
    expect("bytes in use", found.live_bytes, bytes + 1000);
    cairn_pool_destroy(pool);
    cairn_pool_stats("parts", &found);
    expect("after the pool's end", found.live_bytes, 1000);
    cairn_pool_destroy(other);
    cairn_pool_alloc(NULL, memory, 1);
    expect("no pool", cairn_pool_free(NULL, memory), 0);
}

// A child begins outside of all regions; its pools are there.
static void forks(void) {
    static char part[8];
    struct cairn_pool *pool = cairn_pool_create("inherited");
    struct cairn_stats found;
    int status;
    cairn_pool_alloc(pool, part, 8);
    cairn_region_begin("parent");
    void *block = malloc(70);
    pid_t child = fork();
    if (!child) {
        expect("child's region", cairn_region_end(NULL), 0);
        expect("child's part", cairn_pool_free(pool, part), 1);
        cairn_region_begin("child");
        free(block);
        cairn_region_end(NULL);
        cairn_region_stats("parent", &found);
        expect("inherited block freed", found.live_bytes, 0);
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    expect("child", status, 0);
    expect("parent's region", cairn_region_end(NULL), 1);
    cairn_region_stats("parent", &found);
    expect("parent's block", found.live_bytes, 70);
    free(block);
}

static const char *shorten(const char *name, void *context) {
    ++*(int *)context;
    if (!strcmp(name, "leave_me_out")) return "";
    if (!strcmp(name, "cut_here")) return NULL;
    return strcmp(name, "keep_it") ? name : "kept";
}

static void *volatile kept;
__attribute__((noinline)) static void beyond(void) {
    kept = malloc(333);
}
__attribute__((noinline)) static void cut_here(void) {
    beyond();
}
__attribute__((noinline)) static void leave_me_out(void) {
    kept = malloc(222);
    cut_here();
}
__attribute__((noinline)) static void keep_it(void) {
    leave_me_out();
    kept = malloc(111);
}

// Reports to a descriptor; the child that makes them is not seen by the program.
static void reports(void) {
    int count = 0, pipes[2], status;
    char text[4096] = "";
    keep_it();
    if (pipe(pipes)) return;
    errno = ENOTTY;
    expect("report", cairn_report(pipes[1], "collapsed", shorten, &count), 0);
    expect("errno", errno, ENOTTY);
    expect("no child to wait for", waitpid(-1, &status, WNOHANG), -1);
    close(pipes[1]);
    ssize_t length = read(pipes[0], text, sizeof text - 1);
    expect("text", length > 0, 1);
    expect("frames asked for", count > 3, 1);
    expect("a frame left out", strstr(text, "main;reports;kept 222\n") != NULL, 1);
    expect("a stack cut off", strstr(text, "main;reports;kept 333\n") != NULL, 1);
    expect("no name of either", strstr(text, "cut_here") || strstr(text, "leave_me"), 0);
    static const char *const forms[] = {"mptrace", "csv",        "json", "massif",    "callgrind",
                                        "dhat",    "speedscope", "tree", "flamegraph"};
    int null = open("/dev/null", O_WRONLY);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        expect(forms[i], cairn_report(null, forms[i], NULL, NULL), 0);
    expect("options", cairn_report(pipes[0], "stacks --no-such 3", NULL, NULL), EINVAL);
    expect("unknown form", cairn_report(1, "no-such", NULL, NULL), EINVAL);
    expect("form without callback", cairn_report(1, "tree", shorten, &count), EINVAL);
}

// Snapshots by name, sizes, thresholds.
static void snapshots(void) {
    static struct cairn_histogram before, after;
    void *blocks[100];
    expect("histogram", cairn_histogram_of(&before), 1);
    expect("snapshot", cairn_snapshot("empty"), 1);
    for (int i = 0; i < 100; i++) blocks[i] = malloc(1000);
    expect("mark", cairn_mark("full"), 1);
    for (int i = 0; i < 50; i++) free(blocks[i]);
    cairn_histogram_of(&after);
    expect("blocks of 10 bits", (long long)(after.allocations[10] - before.allocations[10]), 100);
    expect("live ones", (long long)(after.live[10] - before.live[10]), 50);
    expect("no rate", cairn_set_rate(1 << 20), 0);
    cairn_set_thresholds(500, 0);
    for (int i = 0; i < 50; i++) blocks[i] = malloc(i % 2 ? 10 : 600);
    cairn_set_thresholds(0, 0);
    for (int i = 0; i < 100; i++) free(blocks[i]);
}

static void expect_near(const char *what, long long got, long long wanted) {
    if (got < wanted - wanted / 4 || got > wanted + wanted / 4) expect(what, got, wanted);
}

// Of samples: what is counted exactly all the same, and what is an estimate.
static void sampled(void) {
    enum { BLOCKS = 4000, KEPT = 2000, BYTES = 1000 };
    static struct cairn_histogram sizes;
    static void *blocks[BLOCKS];
    struct cairn_stats in_it, by_name, all;
    cairn_region_begin("sampled");
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BYTES);
    for (int i = KEPT; i < BLOCKS; i++) free(blocks[i]);
    cairn_region_end(&in_it);
    expect("calls", (long long)in_it.allocations, BLOCKS);
    expect("bytes", (long long)in_it.allocated_bytes, BLOCKS * BYTES);
    expect_near("frees", (long long)in_it.frees, BLOCKS - KEPT);
    expect_near("live", in_it.live_bytes, KEPT * BYTES);
    expect_near("peak", in_it.peak_bytes, BLOCKS * BYTES);
    expect("region", cairn_region_stats("sampled", &by_name), 1);
    expect_near("calls by name", (long long)by_name.allocations, BLOCKS);
    expect_near("frees by name", (long long)by_name.frees, BLOCKS - KEPT);
    expect_near("bytes by name", (long long)by_name.allocated_bytes, BLOCKS * BYTES);
    expect_near("live by name", by_name.live_bytes, KEPT * BYTES);
    cairn_stats_of(CAIRN_PROCESS, &all);
    expect_near("frees of all", (long long)all.frees, BLOCKS - KEPT);
    expect_near("live of all", all.live_bytes, KEPT * BYTES);
    expect("sizes are not known", cairn_histogram_of(&sizes), 0);
    expect("rate", cairn_set_rate(1 << 20), 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"nesting", nesting},     {"rises", rises},     {"threads", threads},
             {"pools", pools},         {"forks", forks},     {"switching", switching},
             {"snapshots", snapshots}, {"reports", reports}, {"sampled", sampled}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) cases[i].run();
    return failures != 0;
}
