// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_foreign.h"
#include "tool/cmds/core_heap.h"
#include "tool/cmds/core_overview_internal.h"
#include "tool/cmds/core_owners.h"
#include "tool/cmds/core_save.h"
#include "tool/cmds/core_types.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/frames.h"
#include "tool/heap/other_heaps.h"
#include "tool/proc/process.h"
#include "tool/watch/free_chunks.h"
#include "tool/watch/rss_parts.h"

static void tell(int progress, enum evidence_stage stage) {
    uint8_t byte = (uint8_t)stage;
    while (write(progress, &byte, 1) < 0 && errno == EINTR) continue;
}

// What other rooms say goes to stderr, which is the same file.
static void heading(const char *text) {
    printf("\n== %s\n", text);
    fflush(stdout);
}

// The text so far is on disk, whatever comes.
static void end_part(bool is_ok, const struct error *error) {
    char text[sizeof error->text * 2];
    if (!is_ok) {
        text_escape(text, sizeof text, error->text);
        printf("not known: %s\n", text);
    }
    fflush(stdout);
}

static void print_bytes(uint64_t bytes, const char *what) {
    if (bytes) printf("  %10s  %s\n", units_size((int64_t)bytes).text, what);
}

// What /proc says. `has_free`: with the free chunks of glibc's malloc, which takes longer.
// `heap_bytes` (NULL: not asked) becomes what of it is heap and other anonymous memory.
static bool print_memory(pid_t pid, bool has_free, uint64_t *heap_bytes, struct error *error) {
    struct rss_parts parts;
    bool is_ok = rss_parts_of_process(pid, &parts);
    struct cairn_picture *picture = &parts.picture;
    if (heap_bytes) *heap_bytes = is_ok ? picture->heap_bytes : 0;
    if (is_ok && !has_free) {
        print_bytes(picture->rss_bytes, "resident");
        print_bytes(picture->heap_bytes, "of it heap and other anonymous memory");
        print_bytes(picture->files_bytes, "code, data and files");
        print_bytes(picture->shared_bytes, "shared memory without a file");
        print_bytes(picture->stacks_bytes, "stacks of threads");
        print_bytes(picture->swap_bytes, "swapped out");
    } else if (is_ok && free_chunks_find(pid, parts.libc_data.start, parts.libc_data.end,
                                         FREE_CHUNKS_NS, picture)) {
        print_bytes(picture->free_chunk_bytes, "free in glibc's arenas, between blocks");
        print_bytes(picture->free_top_bytes, "free at their ends");
    }
    rss_parts_free(&parts);
    return is_ok || error_set(error, "process %d: it is gone, or may not be read", (int)pid);
}

static void print_facts(const struct evidence_wish *wish, uint64_t *heap_bytes) {
    char command[1024], when[64], text[2 * sizeof command];
    struct error error;
    time_t now = time(NULL);
    struct tm local;
    size_t length = process_read(wish->pid, "cmdline", command, sizeof command);
    for (size_t i = 0; i + 1 < length; i++)
        if (!command[i]) command[i] = ' ';
    text_escape(text, sizeof text, command);
    strftime(when, sizeof when, "%F %T %z", localtime_r(&now, &local));
    printf("process %d: %s\n%s\n%s\n", (int)wish->pid, text, when, wish->why);
    heading("memory");
    end_part(print_memory(wish->pid, false, heap_bytes, &error), &error);
}

// --- the heap that Go's runtime keeps

static void print_section(const struct section *section, const char *name) {
    struct error why;
    printf("%s\n", name);
    for (size_t i = 0; i < section->count; i++)
        print_bytes(section->rows[i].bytes, section->rows[i].label);
    if (section->why[0]) error_set(&why, "%s", section->why);
    end_part(!section->why[0], &why);
}

static bool copy_file(const char *from, const char *to) {
    const size_t piece_bytes = 1 << 20;
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t copied = in < 0 || out < 0 ? -1 : 1;
    while (copied > 0) copied = sendfile(out, in, NULL, piece_bytes);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return !copied;
}

static void keep_go(const struct go_heap *heap, const struct evidence_wish *wish) {
    char made[PATH_MAX], path[PATH_MAX];
    struct error error;
    if (snprintf(path, sizeof path, "%s.go.cairn", wish->base) >= PATH_MAX) return;
    if (!go_heap_record(heap, made, &error)) return;  // the functions' part says why
    if (copy_file(made, path)) printf("Kept: %s\n", text_base_name(path));
    fflush(stdout);
}

// Reads it from the process itself, which is not recorded yet. Returns whether it is one of Go;
// `*bytes` becomes the size of its spans.
static bool print_go(const struct evidence_wish *wish, uint64_t *bytes) {
    static struct section sections[2];
    struct go_heap heap;
    struct error error;
    const enum go_finding finding = go_heap_of_process(wish->pid, &heap, &error);
    if (finding == GO_ABSENT) return false;
    heading("Go's own heap");
    end_part(finding == GO_FOUND, &error);
    if (finding != GO_FOUND) return false;
    go_sections_fill(&heap, &sections[0], &sections[1]);
    print_section(&sections[0], "spans, by size of objects");
    print_section(&sections[1], "what is in use, by function, by Go's samples");
    keep_go(&heap, wish);
    *bytes = heap.spans.bytes;
    go_heap_close(&heap);
    return true;
}

// --- what the tables do not have

static uint64_t bytes_of_malloc(const struct core_subject *subject) {
    const struct glibc_heap *heap = core_heap_of(subject);
    uint64_t sum = heap->top_bytes;
    if (heap->other.name)
        return other_heap_there(subject->core, &subject->look.live, &heap->other.memory);
    for (size_t i = 0; i < heap->chunks.count; i++)
        sum += heap->chunks.items[i].size + CHUNK_HEADER_BYTES / 2;
    return sum;
}

// Blocks of malloc's that are not resident count too: so at least so much is missing.
static void print_uncovered(struct core_subject *subject, uint64_t heap_bytes, uint64_t go_bytes) {
    enum { PART_LEAST = 10 };  // a tenth: less is slack and caches
    char safe[PATH_MAX], taker[FOREIGN_BYTES];
    struct error unused;
    const struct foreign_subject files = {.core = subject->core};
    uint64_t known = core_need_heap(subject, &unused) ? bytes_of_malloc(subject) : 0;
    known += go_bytes;
    if (known >= heap_bytes || (heap_bytes - known) < heap_bytes / PART_LEAST) return;
    text_escape(safe, sizeof safe,
                core_foreign_heap(&files, taker)
                    ? taker
                    : "an allocator of its own, or memory that it mapped itself");
    printf("\n%s of the %s of heap and other anonymous memory are not in these tables: %s\n",
           units_size((int64_t)(heap_bytes - known)).text, units_size((int64_t)heap_bytes).text,
           safe);
    fflush(stdout);
}

// --- stacks of threads

enum { FRAMES_SHOWN = 40, THREADS_SHOWN = 100 };

struct shown_stacks {
    struct core_subject *subject;
    uint32_t tid;
    unsigned frames, threads;
};

static bool print_frame(void *context, const struct thread_frame *frame) {
    struct shown_stacks *shown = context;
    char place[PATH_MAX];
    if (frame->thread->tid != shown->tid || !shown->threads) {
        if (shown->threads++ == THREADS_SHOWN) return false;
        shown->tid = frame->thread->tid;
        shown->frames = 0;
        printf("thread %u\n", shown->tid);
    }
    if (shown->frames++ >= FRAMES_SHOWN) return true;
    if (!core_types_place(shown->subject->types, frame->pc, place, sizeof place))
        snprintf(place, sizeof place, "0x%" PRIx64, frame->pc);
    printf("    %s\n", place);
    return true;
}

static bool print_stacks(struct core_subject *subject, struct error *error) {
    struct shown_stacks shown = {.subject = subject};
    if (!core_need_types(subject, error)) return false;
    frames_each(subject->core, subject->types, print_frame, &shown);
    if (shown.threads > THREADS_SHOWN) printf("and more threads\n");
    return shown.threads || error_set(error, "no thread's stack could be followed");
}

static const struct view_options owner_options = {
    .by = MEASURE_EXIT, .top = 12, .depth = 5, .threshold = 0.01};
static const struct view_options type_options = {.by = MEASURE_EXIT, .top = 40};

// From the copy alone; what takes longest comes last.
static void print_heap(struct core_subject *subject, const struct evidence_wish *wish,
                       uint64_t heap_bytes, uint64_t go_bytes) {
    struct error error;
    char path[PATH_MAX];
    heading("heap");
    end_part(core_print_heap_figures(subject, &error), &error);
    print_uncovered(subject, heap_bytes, go_bytes);
    heading("stacks of threads");
    end_part(print_stacks(subject, &error), &error);
    heading("types");
    end_part(core_types_print(subject, &type_options, &error), &error);
    heading("who keeps it");
    end_part(core_owners_print(subject, &owner_options, &error), &error);
    core_print_doubts(subject);
    core_forget_map(subject);
    if (snprintf(path, sizeof path, "%s.cairn", wish->base) >= PATH_MAX) return;
    heading("kept");
    const struct core_saving how = {0};
    end_part(core_save(subject, path, &how, &error), &error);
}

// The process goes on: there is no more hurry.
static void take_turns(void) {
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_OTHER, &none);
    setpriority(PRIO_PROCESS, 0, 0);
}

static void take(const struct evidence_wish *wish, int progress) {
    const struct heap_wish look = {
        .depth = HEAP_REFERENCES, .bytes_max = wish->bytes_most, .way_around = "--no-copy-limit"};
    struct core_subject subject;
    struct error error;
    char word[16];
    snprintf(word, sizeof word, "%d", (int)wish->pid);
    uint64_t heap_bytes = 0, go_bytes = 0;
    print_facts(wish, &heap_bytes);
    heading("the process as it stood");
    const bool is_copied = core_subject_open(word, &look, NULL, &subject, &error);
    end_part(is_copied, &error);
    const bool has_go = print_go(wish, &go_bytes);
    tell(progress, is_copied || has_go ? EVIDENCE_COPIED : EVIDENCE_REFUSED);
    if (!is_copied) {
        if (!has_go && print_memory(wish->pid, true, NULL, &error)) fflush(stdout);
        return;
    }
    take_turns();
    print_heap(&subject, wish, heap_bytes, go_bytes);
    core_subject_close(&subject);
}

// In the child. What the room of others prints goes to the text too.
static void child(const struct evidence_wish *wish, int progress) {
    char path[PATH_MAX];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(wish->seconds_most);
    snprintf(path, sizeof path, "%s.txt", wish->base);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(1);
    take(wish, progress);
    fflush(stdout);
    _exit(0);
}

bool evidence_start(const struct evidence_wish *wish, struct evidence *evidence,
                    struct error *error) {
    int ends[2];
    *evidence = (struct evidence){.progress = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return error_set(error, "cannot take evidence: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) child(wish, ends[1]);
    int problem = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_set(error, "cannot take evidence: %s", strerror(problem));
    }
    *evidence = (struct evidence){.child = pid, .progress = ends[0]};
    return true;
}

bool evidence_poll(struct evidence *evidence) {
    uint8_t byte;
    ssize_t got;
    while ((got = read(evidence->progress, &byte, 1)) == 1 || (got < 0 && errno == EINTR))
        if (got == 1) evidence->stage = (enum evidence_stage)byte;
    if (got < 0) return false;
    while (waitpid(evidence->child, NULL, 0) < 0 && errno == EINTR) continue;
    close(evidence->progress);
    if (evidence->stage == EVIDENCE_COPIED) evidence->stage = EVIDENCE_DONE;
    evidence->child = 0;
    evidence->progress = -1;
    return true;
}

void evidence_stop(struct evidence *evidence) {
    if (!evidence->child) return;
    kill(evidence->child, SIGKILL);
    while (waitpid(evidence->child, NULL, 0) < 0 && errno == EINTR) continue;
    close(evidence->progress);
    evidence->child = 0;
    evidence->progress = -1;
}
