// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_foreign.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/elf_names.h"
#include "tool/base/text.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"

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

// Heaps of allocators that are a part of the program, by the beginning of a name that it defines;
// C++ names begin with their namespace.
static const struct {
    const char *name, *what, *how;
} linked[] = {
    {"__scudo_", "Scudo's heap", "__scudo_print_stats"},
    {"_ZN8snmalloc", "snmalloc's heap", "get_malloc_info_v1"},
    {"sn_rust_alloc", "snmalloc's heap", "get_malloc_info_v1"},
    {"_ZN5Hoard", "Hoard's heap", NULL},
    {"_ZN15partition_alloc", "PartitionAlloc's heap", "chrome://tracing, category memory-infra"},
    {"rpmalloc", "rpmalloc's heap", "rpmalloc_dump_statistics"},
    {"_rjem_mallctl", "another jemalloc's heap", "malloc_stats_print"},
    {"mallctl", "another jemalloc's heap", "malloc_stats_print"},
    {"tc_malloc", "another tcmalloc's heap", "MallocExtension_GetStats"},
    {"mi_malloc", "another mimalloc's heap", "mi_stats_print"},
};
enum { LINKED = sizeof linked / sizeof *linked };

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

// Returns the first row of `linked` that a table of symbols has a name of, or LINKED.
static size_t find_in_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    struct elf_names names = {.text = NULL};
    Elf_Data *data = elf_getdata(section, NULL);
    const size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    size_t found = LINKED;
    for (size_t i = 0; i < LINKED; i++) elf_names_want(&names, linked[i].name);
    elf_names_open(&names, elf, header->sh_link);
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF) continue;
        const char *name = elf_names_at(&names, symbol.st_name);
        for (size_t k = 0; name && k < found; k++)
            if (!strncmp(name, linked[k].name, strlen(linked[k].name))) found = k;
    }
    return found;
}

static size_t find_in_file(int file) {
    elf_version(EV_CURRENT);
    Elf *elf = file >= 0 ? elf_begin(file, ELF_C_READ_MMAP, NULL) : NULL;
    size_t found = LINKED;
    for (Elf_Scn *section = elf ? elf_nextscn(elf, NULL) : NULL; section;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) ||
            (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            continue;
        const size_t in_table = find_in_table(elf, section, &header);
        if (in_table < found) found = in_table;
    }
    elf_end(elf);
    return found;
}

// Finds an allocator by the names in the executable of a process; a core has no such file.
static bool find_linked(const struct foreign_subject *subject, const char **what,
                        const char **how) {
    const struct core_image *core = subject->core;
    if (core && !core->taken_ns) return false;
    const int file = process_open(core ? (pid_t)core->pid : subject->pid, "exe", O_RDONLY);
    const size_t found = find_in_file(file);
    if (file >= 0) close(file);
    if (found == LINKED || (subject->allocator && strstr(linked[found].what, subject->allocator)))
        return false;
    *what = linked[found].what;
    *how = linked[found].how;
    return true;
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
    if (!what && !find_linked(subject, &what, &how)) return false;
    snprintf(text, FOREIGN_BYTES, "%s%s, as a rule%s%s%s",
             subject->core ? "" : "malloc's blocks, and ", what, how ? " (" : "", how ? how : "",
             how ? ")" : "");
    return true;
}
