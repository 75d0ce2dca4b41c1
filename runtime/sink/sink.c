// SPDX-License-Identifier: Apache-2.0
#include "runtime/sink/sink.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/settings.h"
#include "runtime/sink/compact.h"
#include "runtime/sink/layout.h"
#include "runtime/sink/place.h"
#include "runtime/sink/tool_link.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/holdings.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/veil.h"

struct sink sink;

// For debuggers (cairn gdb-script): where the recording lies is its first word.
extern struct sink cairn_recording __attribute__((alias("sink"), visibility("default"), used));

enum { NAME_ATTEMPTS = 1000, CHUNK_BYTES = 64 << 10 };

// Sections that are covered, by their size, and how much of them is open from the start.
enum { SECTION_LARGE_BYTES = 2 << 20, SECTION_OPEN_BYTES = 256 << 10 };

// Address space for the recording: everything, unless the program lives under a limit.
static uint64_t sink_space(void) {
    const uint64_t least_address_space = 64u << 20, most_space = 6ull << 30;
    const uint64_t limit = sys_limit(RLIMIT_AS);
    if (limit < least_address_space) return 0;
    return limit / 8 < most_space ? limit / 8 : most_space;
}

static void file_close(long file) {
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
}

// A recording that is about to be opened: what it consists of, and how much that takes.
struct opening {
    struct cairn_header *layout;
    struct sink_rooms rooms;
    uint64_t bytes;  // 0: there is too little room
};

static COLD long map_shared(long at, uint64_t bytes, long file, int flags) {
    at = sys_call(SYS_mmap, at, (long)bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE | flags, file, 0);
    if (sys_is_error(at)) return at;
    sys_call(SYS_madvise, at, (long)bytes, MADV_DONTDUMP, 0, 0, 0);
    // Without this, file systems with large folios read ahead in the hole: milliseconds a section.
    sys_call(SYS_madvise, at, (long)bytes, MADV_RANDOM, 0, 0, 0);
    return at;
}

// Covers large sections. The first one shows whether the kernel uncovers them again.
static COLD bool cover_sections(const struct opening *opening, uint8_t *at) {
    const struct cairn_header *layout = opening->layout;
    bool is_first = true;
    for (uint32_t i = 0; i < layout->section_count; i++) {
        const struct cairn_section *section = &layout->sections[i];
        uint8_t *start = at + section->offset, *open = start + SECTION_OPEN_BYTES;
        if (section->capacity_bytes <= SECTION_LARGE_BYTES) continue;
        if (!veil_draw(start, section->capacity_bytes, SECTION_OPEN_BYTES, VEIL_SHARED))
            return true;
        if (is_first && !veil_lift(open + 1)) return false;
        is_first = false;
    }
    return true;
}

// Maps the file for good; the descriptor is not needed any more.
static COLD struct cairn_header *sink_map(const struct opening *opening, long file,
                                          bool is_covered) {
    const uint64_t bytes = opening->bytes;
    long at = map_shared(0, bytes, file, 0);
    if (sys_is_error(at)) return NULL;
    if (is_covered && !cover_sections(opening, (uint8_t *)at)) {
        veil_leave((uintptr_t)at, (uintptr_t)at + bytes);
        map_shared(at, bytes, file, MAP_FIXED);
    }
    sys_note_mapped((const void *)at, bytes);
    if (sys_claim((void *)at, CAIRN_HEADER_BYTES)) return (struct cairn_header *)at;
    sys_release((void *)at, bytes);
    return NULL;
}

static long file_create(char *path, size_t size) {
    for (unsigned attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
        place_path(path, size, attempt);
        if (!path[0]) return -ENAMETOOLONG;
        long file = sys_call(SYS_openat, AT_FDCWD, (long)path,
                             O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
        if (file != -EEXIST) return file;
    }
    return -EEXIST;
}

static void say(const char *text) {
    sys_call(SYS_write, STDERR_FILENO, (long)text, (long)strlen(text), 0, 0, 0);
}

// Lays it out anew where there is less room than it would take.
static bool opening_fits(struct opening *opening, uint64_t most_bytes) {
    if (opening->bytes > most_bytes)
        opening->bytes = layout_make(opening->layout, most_bytes, opening->rooms);
    return opening->bytes && opening->bytes <= most_bytes;
}

// Programs that change their title or end empty their environment (setproctitle, clearenv).
const char *sink_tool_name(void) {
    static char kept[108];  // as long as the name of a socket can be
    const char *name = environment_get(CAIRN_VARIABLE(SOCKET));
    size_t length = name ? strlen(name) : 0;
    if (length && length < sizeof kept && !kept[0]) memcpy(kept, name, length + 1);
    return name || !kept[0] ? name : kept;
}

static bool is_asked_for(uint32_t forked_from) {
    const char *socket = sink_tool_name();
    return !forked_from && !(socket && socket[0]);
}

// One line, as the dynamic linker has for a library that it cannot preload, where whoever started
// the program chose a place that cannot be written to. A fork that dropped privileges, or what a
// run goes on to without its tool, is not asked for.
static void say_no_place(long problem, const char *path, uint32_t forked_from) {
    if (!is_asked_for(forked_from)) return;
    if (problem != -EROFS && problem != -EACCES && problem != -ENOENT && problem != -ENOTDIR)
        return;
    say("cairn: ");
    say(path);
    say(": this file cannot be made: nothing is recorded\n");
}

static void say_too_small(uint32_t forked_from) {
    if (is_asked_for(forked_from))
        say("cairn: ulimit -f leaves no room for a recording's file: nothing is recorded\n");
}

// The recording as a file of this process' own.
static COLD bool sink_open_file(struct opening *opening, uint32_t forked_from) {
    char path[CAIRN_TEXT_PATH];
    if (!opening_fits(opening, sys_limit(RLIMIT_FSIZE))) {
        say_too_small(forked_from);
        return false;
    }
    long file = file_create(path, sizeof path);
    if (file < 0) {
        say_no_place(file, path, forked_from);
        return false;
    }
    if (sys_call(SYS_ftruncate, file, (long)opening->bytes, 0, 0, 0, 0) == 0)
        sink.header = sink_map(opening, file, false);
    veil_open(file);
    if (!sink.header) {
        sys_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
        return false;
    }
    memcpy(sink.header->destination, path, sizeof path);
    sink.is_file = true;
    sys_set_claims_safe(false);
    return true;
}

// The recording as the memfd that the tool gave; its size was set by the tool.
static bool sink_open_memory(int memory_fd, struct opening *opening) {
    struct stat status;
    long result = sys_call(SYS_fstat, memory_fd, (long)&status, 0, 0, 0, 0);
    if (result == 0 && opening_fits(opening, (uint64_t)status.st_size))
        sink.header = sink_map(opening, memory_fd, true);
    sink.is_file = false;
    sys_set_claims_safe(true);
    return sink.header != NULL;
}

// The descriptor of a memfd that the tool made in this process.
static long lent_memory(void) {
    const char *digits = environment_get(CAIRN_VARIABLE(MEMORY_FILE));
    long number = 0;
    for (; digits && *digits >= '0' && *digits <= '9'; digits++)
        number = number * 10 + (*digits - '0');
    return number;
}

static bool sink_obtain(struct opening *opening, uint32_t forked_from) {
    const char *name = sink_tool_name();
    struct tool_link_files files = {-1, -1};
    bool is_attached = environment_is_given();
    if (is_attached && !forked_from) {
        sink.is_lent = true;
        return sink_open_memory((int)lent_memory(), opening);  // which the tool closes
    }
    enum tool_answer answer =
        name && name[0] ? tool_link_ask(name, forked_from, sink.attachment, &files) : TOOL_ABSENT;
    sink.is_refused = answer == TOOL_REFUSED;
    if (sink.is_refused) return false;
    if (answer == TOOL_GAVE) {
        veil_open(files.named);
        bool is_open = sink_open_memory(files.memory, opening);
        file_close(files.memory);
        return is_open;
    }
    return !is_attached && sink_open_file(opening, forked_from);
}

static void sink_describe(struct cairn_header *header, uint32_t forked_from) {
    header->version = CAIRN_VERSION;
    header->header_bytes = CAIRN_HEADER_BYTES;
    header->self_address = (uintptr_t)header;
#if defined(__x86_64__)
    header->machine = EM_X86_64;
#else
    header->machine = EM_AARCH64;
#endif
    header->page_bytes = sys_page_bytes();
    header->pid = (uint32_t)sys_pid();
    header->ppid = (uint32_t)sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
    header->uid = (uint32_t)sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0);
    header->forked_from = forked_from;
    header->start_unix_ns = sys_clock_wall_ns();
    header->start_clock_ns = sys_clock_ns();
    environment_command(header->command, sizeof header->command - 1);
    environment_executable(header->executable, sizeof header->executable);
    environment_directory(header->directory, sizeof header->directory);
    memcpy(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    __atomic_store_n(&header->state, CAIRN_STATE_RUNNING, __ATOMIC_RELEASE);
}

COLD bool sink_open(uint32_t forked_from, struct sink_rooms rooms) {
    if (forked_from) veil_begin_child();
    struct cairn_header *layout = sys_map(sizeof *layout);
    struct opening opening = {.layout = layout, .rooms = rooms};
    sink.header = NULL;
    if (!layout) return false;
    place_remember();
    opening.bytes = layout_make(layout, sink_space(), rooms);
    bool is_open = opening.bytes && sink_obtain(&opening, forked_from);
    if (is_open) {
        memcpy(sink.header->sections, layout->sections, sizeof layout->sections);
        sink.header->section_count = layout->section_count;
        sink.header->has_mappings = rooms.has_mappings;
        sink.header->mapped_bytes = opening.bytes;
        sink_describe(sink.header, forked_from);
    }
    sys_unmap(layout, sizeof *layout);
    return is_open;
}

struct region sink_region(uint32_t kind) {
    struct region region = {0};
    for (uint32_t i = 0; i < sink.header->section_count; i++) {
        struct cairn_section *section = &sink.header->sections[i];
        if (section->kind != kind) continue;
        region.base = (uint8_t *)sink.header + section->offset;
        region.capacity_bytes = section->capacity_bytes;
        region.chunk_bytes = CHUNK_BYTES;
        region.used_bytes = &section->used_bytes;
        region.space_bytes = &section->capacity_bytes;
    }
    return region;
}

// The coarse clock, which counts under seccomp too, is behind the one that told the start.
static uint64_t since_start(uint64_t now) {
    uint64_t start = sink.header->start_clock_ns;
    return now > start ? now - start : 0;
}

uint64_t sink_now_ns(void) {
    return since_start(sys_clock_ns());
}

uint64_t sink_now_coarse_ns(void) {
    return since_start(sys_clock_coarse_ns());
}

enum { STATUS_BYTES = 4096 };

// Peak resident memory from the kernel's own account; 0 if /proc is not there.
static uint64_t resident_peak(void) {
    char text[STATUS_BYTES];
    const uint64_t kib = 1024;
    uint64_t value = 0;
    size_t length = environment_read("/proc/self/status", text, sizeof text - 1);
    text[length] = 0;
    const char *at = strstr(text, "VmHWM:");
    if (!at) return 0;
    for (at += 6; *at == ' ' || *at == '\t'; at++) {
    }
    for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
    return value * kib;
}

// Allocations and bytes below which the recording of a replaced image is not kept: shells and
// compiler drivers would leave one each.
enum { SHORT_LIVED_CALLS = 1000, SHORT_LIVED_BYTES = 1 << 20 };

static bool is_short_lived(void) {
    struct region region = sink_region(CAIRN_SECTION_THREADS);
    const struct cairn_thread *threads = (const struct cairn_thread *)region.base;
    uint64_t calls = 0, bytes = 0;
    if (!region.used_bytes) return true;
    for (uint64_t i = 0; i < *region.used_bytes / sizeof *threads; i++) {
        calls += threads[i].allocations;
        bytes += threads[i].allocated_bytes;
    }
    return calls < SHORT_LIVED_CALLS && bytes < SHORT_LIVED_BYTES;
}

// How long the tool may look at the memory of a process that ends: a hundredth of its life, within
// bounds; 0 for small children, of which there may be thousands. Longer if it is to copy it.
static uint32_t last_look_us(const struct cairn_header *header) {
    const uint64_t ns_per_us = 1000, share = 100, least_us = 5000, most_us = 50000;
    const uint32_t us_per_ms = 1000, wait_ms_most = 60000;
    uint64_t us = header->end_ns / ns_per_us / share;
    uint32_t wait_ms = header->control.end_wait_ms;
    if (wait_ms) return (wait_ms < wait_ms_most ? wait_ms : wait_ms_most) * us_per_ms;
    if (header->ppid != header->control.tool_pid && is_short_lived()) return 0;
    return (uint32_t)(us < least_us ? least_us : us > most_us ? most_us : us);
}

static bool tell_tool(const struct cairn_header *header) {
    const char *name = sink_tool_name();
    if (sink.is_file || header->control.is_tool_gone || !name) return false;
    uint32_t wait_us = last_look_us(header);
    return wait_us ? tool_link_say_end(name, wait_us) : tool_link_is_alive(name);
}

COLD void sink_end(void) {
    struct cairn_header *header = sink.header;
    if (!header) return;
    header->end_ns = sink_now_ns();
    header->rss_peak_bytes = resident_peak();
    header->cpu_ns = sys_clock_cpu_ns();
    __atomic_store_n(&header->state, CAIRN_STATE_ENDED, __ATOMIC_RELEASE);
    if (!sink.is_lent && !tell_tool(header)) compact_save(header, header->destination);
}

// Puts private memory of the same content in the place of the first `used` of `bytes` bytes.
static void detach_part(void *part, uint64_t used, uint64_t bytes) {
    void *copy = sys_reserve(bytes);
    if (!copy) return;
    memcpy(copy, part, used < bytes ? used : bytes);
    holdings_remove((uintptr_t)copy, bytes);
    veil_leave((uintptr_t)part, (uintptr_t)part + bytes);
    sys_call(SYS_mremap, (long)copy, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
             (long)part, 0);
}

// The header goes last: it says where the sections are.
void sink_detach(void) {
    struct cairn_header *header = sink.header;
    for (uint32_t i = 0; header && i < header->section_count; i++) {
        const struct cairn_section *section = &header->sections[i];
        uint8_t *start = (uint8_t *)header + section->offset;
        detach_part(start, veil_readable_bytes(start, section->used_bytes),
                    section->capacity_bytes);
    }
    if (header) detach_part(header, CAIRN_HEADER_BYTES, CAIRN_HEADER_BYTES);
}

void sink_give_up(void) {
    struct cairn_header *header = sink.header;
    if (!header) return;
    header->stop_reason = CAIRN_STOP_NO_MEMORY;
    __atomic_store_n(&header->state, CAIRN_STATE_STOPPED, __ATOMIC_RELEASE);
    if (!sink.is_file) return;
    header->section_count = 0;
    sys_call(SYS_truncate, (long)header->destination, CAIRN_HEADER_BYTES, 0, 0, 0, 0);
}

void sink_say_unrecorded(const struct tool_link_unrecorded *said) {
    const char *name = sink_tool_name();
    if (name && name[0] && !environment_is_given()) tool_link_say_unrecorded(name, said);
}

void sink_stop(void) {
    struct cairn_header *header = sink.header;
    header->rss_peak_bytes = resident_peak();
    if (sink.is_file) header->end_ns = sink_now_ns();
    __atomic_store_n(&header->state, CAIRN_STATE_STOPPED, __ATOMIC_RELEASE);
    if (sink.is_file) compact_save(header, header->destination);
}

void sink_unmap(struct cairn_header *header) {
    for (uint32_t i = 0; i < header->section_count && i < CAIRN_SECTION_MAX; i++) {
        const struct cairn_section *section = &header->sections[i];
        sys_release((uint8_t *)header + section->offset, section->capacity_bytes);
    }
    sys_release(header, CAIRN_HEADER_BYTES);
}

void sink_leave(void) {
    struct cairn_header *header = sink.header;
    if (!sink_region(CAIRN_SECTION_THREADS).used_bytes) return;
    if (is_short_lived() && !header->lost[CAIRN_LOST_PROCESSES]) {
        sys_call(SYS_unlinkat, AT_FDCWD, (long)header->destination, 0, 0, 0, 0);
        return;
    }
    header->stop_reason = CAIRN_STOP_EXEC;
    header->end_ns = sink_now_ns();
    compact_save(header, header->destination);
    header->stop_reason = CAIRN_STOP_NONE;
    header->end_ns = 0;
}
