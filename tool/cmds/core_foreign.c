// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_foreign.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/proc/maps.h"

// By the beginning of a file's name; `how`: NULL, where nothing of theirs is known.
static const struct {
    const char *file, *what, *how;
} heaps[] = {
    {"libjvm.", "the Java heap", "jcmd PID GC.class_histogram"},
    {"node", "V8's heap, JavaScript", "node --heapsnapshot-signal=SIGUSR2"},
    {"libnode.", "V8's heap, JavaScript", "node --heapsnapshot-signal=SIGUSR2"},
    {"chrom", "PartitionAlloc's or V8's heap", "chrome://tracing, category memory-infra"},
    {"libpython3", "Python's own allocator, pymalloc", "sys._debugmallocstats()"},
    {"python3", "Python's own allocator, pymalloc", "sys._debugmallocstats()"},
    {"ruby", "Ruby's heap", "ObjectSpace.dump_all"},
    {"libruby", "Ruby's heap", "ObjectSpace.dump_all"},
    {"php", "PHP's own heap", "memory_get_usage"},
    {"libphp", "PHP's own heap", "memory_get_usage"},
    {"libcoreclr.", ".NET's heap", "dotnet-gcdump"},
    {"libmonosgen", "Mono's heap", NULL},
    {"beam.", "Erlang's own allocators", "erlang:memory"},
    {"libgc.", "the Boehm collector's heap", "GC_dump"},
    {"libmozjs", "SpiderMonkey's heap, JavaScript", NULL},
    {"libjavascriptcoregtk", "WebKit's heap, JavaScript", NULL},
    {"libsnmalloc", "snmalloc's heap", "get_malloc_info_v1"},
    {"libscudo", "Scudo's heap", "__scudo_print_stats"},
    {"libclang_rt.scudo", "Scudo's heap", "__scudo_print_stats"},
    {"libhoard", "Hoard's heap", NULL},
    {"libtbbmalloc", "tbbmalloc's heap", NULL},
    {"librpmalloc", "rpmalloc's heap", "rpmalloc_dump_statistics"},
    {"libjemalloc", "another jemalloc's heap", "malloc_stats_print"},
    {"libtcmalloc", "another tcmalloc's heap", "MallocExtension_GetStats"},
    {"libmimalloc", "another mimalloc's heap", "mi_stats_print"},
    {"ld-musl", "musl's malloc", NULL},
};
enum { HEAPS = sizeof heaps / sizeof *heaps };

// Go asks for its first arenas there (runtime/malloc.go); no other program is known that does.
#define GO_START UINT64_C(0xc000000000)
#define GO_END UINT64_C(0xc100000000)

static bool has_go(const struct foreign_subject *subject) {
    struct mapping mapping;
    char name[PATH_MAX];
    struct span part;
    uint64_t at = GO_START;
    if (subject->core) return core_next_part(subject->core, &at, GO_END, &part);
    return maps_find(subject->pid, at, &mapping, name);
}

// An allocator's heap that was read is no other one.
static bool is_read(const struct foreign_subject *subject, const char *beginning) {
    return (subject->has_python && strstr(beginning, "python")) ||
           (subject->allocator && strstr(beginning, subject->allocator));
}

static bool has_file(const struct foreign_subject *subject, const char *beginning) {
    const struct core_image *core = subject->core;
    char part[NAME_MAX];
    for (size_t i = 0; core && i < core->files.count; i++)
        if (!strncmp(text_base_name(core->files.items[i].path), beginning, strlen(beginning)))
            return true;
    snprintf(part, sizeof part, "/%s", beginning);
    return !core && maps_have_name(subject->pid, part);
}

bool core_foreign_heap(const struct foreign_subject *subject, char text[FOREIGN_BYTES]) {
    const char *what = NULL, *how = NULL;
    for (size_t i = 0; i < HEAPS && !what; i++) {
        if (is_read(subject, heaps[i].file) || !has_file(subject, heaps[i].file)) continue;
        what = heaps[i].what;
        how = heaps[i].how;
    }
    if (!what && has_go(subject)) {
        what = "Go's heap";
        how = "go tool pprof";
    }
    if (!what) return false;
    snprintf(text, FOREIGN_BYTES, "%s%s, as a rule%s%s%s",
             subject->core ? "" : "malloc's blocks, and ", what, how ? " (" : "", how ? how : "",
             how ? ")" : "");
    return true;
}
