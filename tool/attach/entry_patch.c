// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/entry_patch.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/wrap.h"
#include "tool/attach/code.h"
#include "tool/attach/entries.h"
#include "tool/attach/patch.h"
#include "tool/attach/wrapped.h"
#include "tool/base/array.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"

// --- of a process that has just been started

// The process is on its way to wait for the answer, and each stop makes it wait anew.
enum { TRIES = 200, PAUSE_US = 200 };

static bool is_same_time(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static bool is_remembered(const struct entry_patcher *begin, const struct stat *status) {
    for (unsigned i = 0; i < begin->file_count && i < ENTRY_PATCH_REMEMBERED; i++) {
        const struct entry_patch_file *file = &begin->files[i];
        if (file->device == status->st_dev && file->number == status->st_ino &&
            is_same_time(&file->changed, &status->st_ctim))
            return true;
    }
    return false;
}

// A dynamic linker that is executed may be given any program.
static void remember(struct entry_patcher *begin, pid_t pid, const struct stat *status) {
    uint64_t linker = 0;
    if (!process_auxiliary(pid, AT_BASE, &linker) || !linker) return;
    begin->files[begin->file_count++ % ENTRY_PATCH_REMEMBERED] =
        (struct entry_patch_file){status->st_dev, status->st_ino, status->st_ctim};
}

static bool read_attachment(const struct remote *remote, uint64_t address,
                            struct cairn_attachment *known, struct error *error) {
    if (!remote_read(remote, address, known, sizeof *known) ||
        known->magic != CAIRN_ATTACHMENT_MAGIC || known->struct_bytes != sizeof *known)
        return error_set(error, "its library is of another version of cairn");
    return true;
}

// The thread that waits for the answer: it has just made a system call.
static const struct stopped_thread *find_waiting(const struct threads *threads,
                                                 const struct remote *remote, uint64_t *call_at) {
    for (size_t i = 0; i < threads->stopped.count; i++) {
        const struct stopped_thread *thread = &threads->stopped.items[i];
        uint8_t code[sizeof registers_system_call_code];
        *call_at = registers_pc(&thread->registers) - sizeof code;
        if (!thread->signal && registers_are_in_system_call(&thread->registers) &&
            remote_read(remote, *call_at, code, sizeof code) &&
            !memcmp(code, registers_system_call_code, sizeof code))
            return thread;
    }
    return NULL;
}

static bool is_free(const struct patch *patch, const struct threads *threads) {
    for (size_t i = 0; i < threads->stopped.count; i++)
        if (patch_is_in_way(patch, registers_pc(&threads->stopped.items[i].registers)))
            return false;
    return true;
}

// Where the hook of each wished function finds the function itself.
static bool tell_moved(const struct entries *entries, const struct patch *patch,
                       const struct remote *remote, const struct cairn_attachment *known) {
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        uint64_t moved = patch_moved_at(patch, entries, i);
        uint64_t at = known->wrap_functions + entry->number * known->wrap_bytes;
        if (entry->way && !remote_write(remote, at, &moved, sizeof moved)) return false;
    }
    return true;
}

// An allocator in the executable, not wished functions alone.
static bool tell_entries(const struct entries *entries, const struct patch *patch,
                         const struct remote *remote, uint64_t attachment) {
    uint64_t at = attachment + offsetof(struct cairn_attachment, entries_at);
    return !entries->allocator || remote_write(remote, at, &patch->start, sizeof patch->start);
}

// All its threads are stopped.
static bool take_stopped(const struct entries *entries, const struct remote *remote,
                         uint64_t attachment, const struct cairn_attachment *known,
                         const struct stopped_thread *thread, uint64_t call_at,
                         const struct threads *threads, struct error *error) {
    struct patch patch = {.start = 0};
    struct caller caller = {.when_slow = NULL};
    struct error unused;
    struct call_site site = {.system_call_at = call_at};
    if (!stub_find(&site.stub_at, remote, entries->low)) stub_find_last(&site.stub_at, remote);
    if (!caller_begin(&caller, remote, thread, &site, error)) return false;
    bool is_taken = patch_prepare(&patch, entries, known->entry_hooks, &caller, error);
    if (is_taken && !is_free(&patch, threads))
        is_taken = error_set(error, "a thread of it is at work there already");
    if (is_taken &&
        !(tell_moved(entries, &patch, remote, known) &&
          tell_entries(entries, &patch, remote, attachment) && patch_take(&patch, remote)))
        is_taken = error_set(error, "its memory cannot be written");
    if (!is_taken && patch.start) patch_drop(&patch, &caller, &unused);
    if (!caller_end(&caller, &unused) && is_taken) is_taken = error_set(error, "%s", unused.text);
    patch_free(&patch);
    return is_taken;
}

static bool take(const struct entries *entries, const struct remote *remote, uint64_t attachment,
                 const struct cairn_attachment *known, struct error *error) {
    struct threads threads = {.pid = remote->pid};
    bool is_taken = false;
    error_set(error, "it does not wait for cairn");
    for (unsigned tries = 0; tries < TRIES; tries++) {
        uint64_t call_at;
        if (!threads_stop(&threads, remote->pid, error)) break;
        const struct stopped_thread *thread = find_waiting(&threads, remote, &call_at);
        if (thread)
            is_taken =
                take_stopped(entries, remote, attachment, known, thread, call_at, &threads, error);
        threads_go(&threads, 0);
        if (thread) break;
        usleep(PAUSE_US);
    }
    threads_free(&threads);
    return is_taken;
}

static bool add_wishes(struct entries *entries, const struct remote *remote, const char *rows,
                       const struct cairn_attachment *known, struct error *error) {
    struct entry_wish wishes[CAIRN_WRAP_FUNCTIONS];
    size_t count = known->wrap_ways ? wrapped_read(rows, wishes, NULL) : 0;
    for (size_t i = 0; i < count; i++) wishes[i].way = known->wrap_ways + i * CAIRN_WRAP_WAY_BYTES;
    if (count && !entries_add_wishes(entries, remote, wishes, count, error)) return false;
    for (size_t i = 0; i < count; i++)
        if (wishes[i].address &&
            !remote_write(remote, known->wrap_functions + i * known->wrap_bytes, &wishes[i].address,
                          sizeof wishes[i].address))
            return error_set(error, "its memory cannot be written");
    return true;
}

bool entry_patch_check_wrapped(const char *path, const char *wrap_rows, struct error *error) {
    struct entry_wish wishes[CAIRN_WRAP_FUNCTIONS];
    size_t count = wrapped_read(wrap_rows, wishes, NULL);
    return !count || entries_check_wishes(path, wishes, count, error);
}

static bool look(const struct remote *remote, uint64_t attachment,
                 const struct entry_patcher *begin, bool *has_any, struct error *error) {
    struct entries entries;
    struct cairn_attachment known = {.wrap_ways = 0};
    bool is_ok = entries_find(&entries, remote, error);
    *has_any = true;
    is_ok = is_ok && (!(begin->wrap_rows || entries.items.count) ||
                      read_attachment(remote, attachment, &known, error));
    is_ok = is_ok && add_wishes(&entries, remote, begin->wrap_rows, &known, error);
    if (is_ok) *has_any = entries.items.count;
    if (is_ok && *has_any)
        is_ok = examine_processor(begin->is_anyway, error) &&
                take(&entries, remote, attachment, &known, error);
    entries_free(&entries);
    return is_ok;
}

static void note_refused(struct entry_patcher *begin, pid_t pid, const struct error *error) {
    enum { IMAGE = 1 };
    char names[PROCESS_NAMES][NAME_MAX];
    if (begin->refused_count++) return;
    if (!process_names(pid, names)) *names[IMAGE] = 0;
    snprintf(begin->refused, sizeof begin->refused, "%s", names[IMAGE]);
    begin->problem = *error;
}

void entry_patch_started(struct entry_patcher *begin, pid_t pid, uint64_t attachment) {
    char path[PROCESS_PATH_BYTES];
    struct stat status;
    struct error error;
    struct remote remote;
    bool has_any;
    process_path(path, pid, "exe");
    if (!attachment || stat(path, &status) != 0 || is_remembered(begin, &status)) return;
    if (!remote_open(&remote, pid, &error)) return;  // what it has is not known
    if (!look(&remote, attachment, begin, &has_any, &error))
        note_refused(begin, pid, &error);
    else if (!has_any)
        remember(begin, pid, &status);
    remote_close(&remote);
}

// --- of a file

struct making {
    struct entries entries;
    struct cairn_lead lead;
    bool is_given;  // to a dynamic linker
    ARRAY(struct cairn_lead_part) parts;
};

// An executable with addresses of its own lies at these, whoever maps it.
static uint64_t place_of(const struct making *making) {
    const struct entries *entries = &making->entries;
    uint64_t bytes = entries->items.count * CAIRN_LEAD_CODE_BYTES;
    bool is_among_libraries = making->is_given && entries->low == 0;
    return is_among_libraries ? patch_place_above(entries->high)
                              : patch_place_below(entries->low, bytes);
}

static bool note_part(void *context, const struct entry *entry, const struct code_function *code,
                      struct error *error) {
    struct making *making = context;
    struct cairn_lead_part *part = array_push(&making->parts);
    struct code_moved moved;
    if (!part) return error_set(error, "out of memory");
    *part = (struct cairn_lead_part){.address = entry->address, .kind = (uint16_t)entry->kind};
    size_t number = making->parts.count - 1;
    if (number == 0) making->lead.place = place_of(making);
    uint64_t place = making->lead.place + number * CAIRN_LEAD_CODE_BYTES;
    memcpy(part->before, code->bytes, sizeof part->before);
    code_thunk(part->code, 0);
    if (!code_move(code, place + CODE_THUNK_BYTES, &moved, error))
        return error_wrap(error, "%s", entry->name);
    memcpy(part->code + CODE_THUNK_BYTES, moved.bytes, moved.count);
    return code_jump(part->jump, entry->address, place) ||
           error_set(error, "%s: it is too far from free memory", entry->name);
}

static char *put_digits(char *at, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) at += sprintf(at, "%02x", byte[i]);
    return at;
}

static char *digits_of(const struct making *making) {
    size_t bytes = sizeof making->lead + making->parts.count * sizeof *making->parts.items;
    char *digits = malloc(2 * bytes + 1);
    if (!digits) return NULL;
    char *at = put_digits(digits, &making->lead, sizeof making->lead);
    put_digits(at, making->parts.items, making->parts.count * sizeof *making->parts.items);
    return digits;
}

bool entry_patch_plan(const char *path, bool is_given, bool is_anyway, char **digits,
                      struct error *error) {
    struct making making = {.lead = {.magic = CAIRN_LEAD_MAGIC}, .is_given = is_given};
    *digits = NULL;
    bool is_ok = entries_find_in_file(&making.entries, path, note_part, &making, error);
    bool has_any = is_ok && making.parts.count;
    is_ok = is_ok && (!has_any || examine_processor(is_anyway, error));
    if (is_ok && has_any) {
        making.lead.start = making.entries.start;
        making.lead.count = making.parts.count;
        *digits = digits_of(&making);
        is_ok = *digits || error_set(error, "out of memory");
    }
    array_free(&making.parts);
    entries_free(&making.entries);
    return is_ok;
}
