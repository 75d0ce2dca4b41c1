// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"
#include "format/settings.h"
#include "tool/attach/existing_blocks.h"
#include "tool/attach/load.h"
#include "tool/attach/locals.h"
#include "tool/attach/quiesce.h"
#include "tool/attach/static_attach.h"
#include "tool/attach/static_program.h"
#include "tool/attach/wrapped.h"
#include "tool/base/clock.h"
#include "tool/proc/examine.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"

// How long a safe moment is waited for, and between two tries, so that the process gets on.
#define SAFE_PATIENCE_NS UINT64_C(10000000000)
// How long the last call of the library may take to return: it may wait for the allocator.
#define LEAVE_PATIENCE_NS UINT64_C(10000000000)
// Time to wait for threads that make another one as the library is loaded.
#define BIRTH_PATIENCE_NS UINT64_C(30000000000)
enum { LOOK_PAUSE_US = 1000, LOOK_PAUSE_SPREAD_US = 4000 };

static const uint64_t no_arguments[REGISTERS_ARGUMENTS];

// Reads modules and slots as they are now; takes a while, so that nothing is stopped for it.
static bool survey(struct attach *attach, struct error *error) {
    if (!session_read_modules(attach, error)) return false;
    struct loaded_module *library = session_library(attach);
    if (attach->modules.is_static) return true;
    got_patch_free(&attach->slots);
    if (!got_patch_find_functions(&attach->slots, &attach->modules, library, attach->wrapped.wishes,
                                  attach->wrapped.count, &attach->remote, error))
        return false;
    wrapped_lead(attach);
    // those whose first instruction leads to the library need no slots that do
    for (size_t i = 0; i < attach->slots.functions.count; i++)
        if (entries_at(&attach->entries, attach->slots.functions.items[i].real))
            attach->slots.functions.items[i].hook = 0;
    return !library ||
           got_patch_find(&attach->slots, &attach->modules, library, &attach->remote, error);
}

// An allocator that is linked into the executable.
static bool find_entries(struct attach *attach, struct error *error) {
    struct loaded_module *executable = &attach->modules.items.items[0];
    if (!entries_find(&attach->entries, &attach->remote, error) ||
        (attach->entries.is_malloc &&
         !entries_find_parts(&attach->entries, &attach->remote, error)))
        return error_wrap(error, "the allocator in its executable cannot be recorded");
    if (!attach->entries.is_malloc && module_symbol(executable, &attach->remote, "malloc"))
        return error_set(error, "an allocator is linked into its executable, of which not all "
                                "functions can be found");
    return true;
}

static bool open_all(struct attach *attach, bool is_anyway, struct error *error) {
    struct examined examined = {0};
    if (!examine(attach->pid, is_anyway, &examined, error)) return false;
    attach->has_filter = examined.has_filter;
    if (!remote_open(&attach->remote, attach->pid, error) || !session_read_modules(attach, error))
        return false;
    if (attach->modules.is_static) return static_attach_open(attach, error);
    if (!find_entries(attach, error) || !survey(attach, error) ||
        !session_find_functions(attach, error) || !session_check_library(attach, error))
        return false;
    if (examined.has_musl &&
        !session_choose_library(attach, "libcairn-musl.so", "it uses musl's libc", error))
        return false;
    if (!load_read_library(attach, error)) return false;
    uint64_t allocator = attach->entries.is_malloc ? 0 : attach->allocator;
    attach->unwinder = remote_unwind_open(&attach->remote, allocator, attach->library_path, error);
    if (!attach->unwinder) return false;
    if (examined.has_musl) {
        const struct loaded_module *libc = session_libc(attach);
        remote_unwind_set_blind(attach->unwinder, libc->start, libc->end);
    }
    if (attach->entries.is_malloc) remote_unwind_set_entries(attach->unwinder, &attach->entries);
    return true;
}

// A process whose threads want every processor would leave the tool a small share of one, and make
// tenths of a second minutes: so the tool runs at a higher priority while it attaches.
bool attach_open(struct attach *attach, pid_t pid, const char *library_path, bool is_anyway,
                 struct error *error) {
    *attach = (struct attach){.pid = pid,
                              .library_path = library_path,
                              .library = SESSION_NO_LIBRARY,
                              .remote = remote_of(pid)};
    sched_boost(&attach->boost, 0);
    bool is_open = open_all(attach, is_anyway, error);
    sched_unboost(&attach->boost, 0);
    return is_open;
}

void attach_close(struct attach *attach) {
    session_go(attach);
    existing_blocks_free(attach);
    remote_unwind_close(attach->unwinder);
    static_attach_close(attach);
    free(attach->library_bytes);
    got_patch_free(&attach->slots);
    patch_free(&attach->patch);
    entries_free(&attach->entries);
    modules_free(&attach->modules);
    threads_free(&attach->threads);
    array_free(&attach->makers);
    array_free(&attach->inside);
    remote_close(&attach->remote);
}

static bool is_slot_led(const struct attach *attach, const struct got_slot *slot) {
    uint64_t hook = attach->slots.functions.items[slot->hooked].hook, value;
    return remote_read(&attach->remote, slot->address, &value, sizeof value) && value == hook;
}

static bool is_any_slot_led(const struct attach *attach) {
    for (size_t i = 0; i < attach->slots.items.count; i++)
        if (is_slot_led(attach, &attach->slots.items.items[i])) return true;
    return false;
}

static bool is_every_slot_led(const struct attach *attach) {
    for (size_t i = 0; i < attach->slots.items.count; i++)
        if (!is_slot_led(attach, &attach->slots.items.items[i])) return false;
    return true;
}

enum attach_inherited attach_look_inherited(struct attach *attach) {
    struct error unused;
    uint32_t pid;
    if (attach->library == SESSION_NO_LIBRARY || !session_read_attachment(attach, &unused) ||
        !attach->known.is_running || attach->known.tool_pid != (uint32_t)getpid())
        return ATTACH_NOTHING;
    bool is_led = attach->known.entries_at || is_any_slot_led(attach) ||
                  (attach->program && attach->known.patch_at);
    if (!is_led || !session_recorded_pid(attach, &pid) || !pid) return ATTACH_IDLES;
    return pid == (uint32_t)examine_own_pid(attach->pid) ? ATTACH_RECORDS : ATTACH_WAITS;
}

// What is not led yet is so at the next look (attach_follow).
void attach_inherit(struct attach *attach) {
    struct error unused;
    wrapped_inherit(attach);
    if (!survey(attach, &unused) || !is_every_slot_led(attach)) attach->modules.fingerprint = 0;
}

bool attach_may_have_library(pid_t pid) {
    return maps_have_name(pid, "/memfd:libcairn");
}

bool attach_is_there(const struct attach *attach) {
    uint64_t magic;
    return remote_read(&attach->remote, attach->place, &magic, sizeof magic) &&
           magic == CAIRN_ATTACHMENT_MAGIC;
}

static bool add_maker(struct attach *attach, pid_t tid) {
    pid_t *slot = array_push(&attach->makers);
    if (slot) *slot = tid;
    return slot != NULL;
}

// The thread that may load the library; NULL, with the reason, if there is none at this moment.
static struct stopped_thread *choose_thread(struct attach *attach, char why[160]) {
    struct stopped_thread *chosen = NULL;
    attach->makers.count = 0;
    for (size_t i = 0; i < attach->threads.stopped.count; i++) {
        struct stopped_thread *thread = &attach->threads.stopped.items[i];
        struct safe_point point = remote_unwind_thread(attach->unwinder, thread, 0, 0);
        if (!point.is_safe) snprintf(why, 160, "thread %d: %s", (int)thread->tid, point.why);
        if (point.is_in_linker || (point.is_making_thread && !add_maker(attach, thread->tid)))
            return NULL;
        if (point.is_safe && !thread->signal && !chosen) chosen = thread;
    }
    return chosen;
}

// Stops the process at a moment at which a thread may load a library.
static struct stopped_thread *stop_safely(struct attach *attach, struct error *error) {
    if (attach->program) return static_attach_stop(attach, error);
    uint64_t patience_ns = attach->patience_ns ? attach->patience_ns : SAFE_PATIENCE_NS;
    uint64_t end = clock_now_ns() + patience_ns;
    char why[160] = "";
    for (unsigned tries = 1;; tries++) {
        if (!session_stop(attach, error)) return NULL;
        bool is_same =
            modules_fingerprint(&attach->modules, &attach->remote) == attach->modules.fingerprint;
        struct stopped_thread *chosen = is_same ? choose_thread(attach, why) : NULL;
        if (chosen) return chosen;
        session_go(attach);
        if (clock_now_ns() > end) {
            error_set(error, "no safe moment was found in %u looks (%s); nothing was changed in it",
                      tries, why);
            return NULL;
        }
        if (attach->meanwhile) attach->meanwhile(attach->context);
        usleep(LOOK_PAUSE_US + (unsigned)rand() % LOOK_PAUSE_SPREAD_US);
        if (!is_same && (!session_read_modules(attach, error) ||
                         !remote_unwind_refresh(attach->unwinder, error)))
            return NULL;
    }
}

// The call waits for something that a stopped thread holds: the others may go on.
static void let_others_go(void *context) {
    struct attach *attach = context;
    attach->have_others_run = true;
    threads_go(&attach->threads, attach->caller_tid);
}

static bool begin_calls(struct attach *attach, const struct stopped_thread *thread,
                        struct caller *caller, struct error *error) {
    if (stub_is_busy(attach->site.stub_at, &attach->remote, &attach->threads))
        return error_set(error, "a call that an earlier cairn began in it is still under way; "
                                "try again when it is over");
    *caller = (struct caller){.when_slow = let_others_go, .context = attach};
    attach->caller_tid = thread->tid;
    attach->have_others_run = false;
    return caller_begin(caller, &attach->remote, thread, &attach->site, error);
}

// The memory of the recording, made in the process and handed to the caller of attach_start.
static bool give_memory(struct attach *attach, struct caller *caller,
                        const struct attach_request *request, int64_t *there, struct error *error) {
    int here = -1;
    return load_make_file(attach, caller, "cairn", false, there, &here, error) &&
           request->take_memory(request->context, here, error);
}

static bool write_settings(struct attach *attach, const struct attach_request *request,
                           int64_t memory_file, struct error *error) {
    struct cairn_attachment *known = &attach->known;
    char *settings = attach->settings;
    const size_t room = sizeof attach->settings;
    size_t used = (size_t)snprintf(settings, room, "CAIRN_MEMORY_FILE=%d", (int)memory_file) + 1;
    for (size_t i = 0; i < attach->slots.wanted_count && used < room; i++) {
        const struct hooked *function = &attach->slots.functions.items[i];
        if (function->real)
            used += (size_t)snprintf(settings + used, room - used, "@%s=%" PRIx64, function->name,
                                     function->real) +
                    1;
    }
    if (request->wrap_rows && used < room)
        used += (size_t)snprintf(settings + used, room - used, "%s=%s", CAIRN_VARIABLE(WRAP),
                                 request->wrap_rows) +
                1;
    if (used > room || room - used < request->settings_bytes)
        return error_set(error, "the settings are too long");
    memcpy(settings + used, request->settings, request->settings_bytes);
    known->tool_pid = (uint32_t)getpid();
    known->is_confined = attach->has_filter;
    bool is_libc = attach->program && attach->program->is_glibc;
    bool is_own = attach->entries.allocator && !is_libc;
    known->entries_at = is_own ? attach->patch.start : 0;
    known->patch_at = attach->patch.start;
    return (remote_write(&attach->remote, known->settings, settings, room) &&
            remote_write(&attach->remote, attach->place, known, sizeof *known)) ||
           error_set(error, "it has ended");
}

// The library that dlopen has just loaded; all modules are read again when the process runs.
static bool find_loaded(struct attach *attach, uint64_t handle) {
    struct loaded_module module;
    if (!module_read_at(&module, &attach->remote, handle)) return false;
    attach->place = module_symbol(&module, &attach->remote, "cairn_attachment");
    module_free(&module);
    return attach->place != 0;
}

// The library is in the process then, and the ways to it are made.
static bool bring_library(struct attach *attach, struct caller *caller, struct error *error) {
    if (attach->program)
        return static_attach_load(attach, caller, error) && session_read_attachment(attach, error);
    if (attach->library == SESSION_NO_LIBRARY) {
        uint64_t handle = 0;
        if (!load_library(attach, caller, &handle, error)) return false;
        if (!find_loaded(attach, handle))
            return error_set(error, "the symbols of the library that was loaded cannot be read");
    } else {
        load_rename(attach, session_library(attach)->link_map);  // whoever loaded it was killed
    }
    if (!session_read_attachment(attach, error)) return false;
    locals_reset(attach);
    return wrapped_choose_ways(attach, error) &&
           (!attach->entries.items.count ||
            patch_prepare(&attach->patch, &attach->entries, attach->known.entry_hooks, caller,
                          error));
}

static bool start_inside(struct attach *attach, struct caller *caller,
                         const struct attach_request *request, struct error *error) {
    int64_t there = -1;
    if (!bring_library(attach, caller, error)) return false;
    wrapped_tell(attach);
    bool is_started = give_memory(attach, caller, request, &there, error) &&
                      write_settings(attach, request, there, error) &&
                      load_call(caller, attach->known.start, no_arguments, error);
    if (there < 0) return is_started;
    return caller_close(caller, there, is_started ? error : NULL) && is_started;
}

// Loads and starts the library, by one thread, which does not notice.
static bool start_at_safe_snapshot(struct attach *attach, const struct attach_request *request,
                                   struct error *error) {
    struct caller caller;
    struct error problem;
    int kept_errno = 0;
    struct stopped_thread *thread = stop_safely(attach, error);
    if (!thread || !begin_calls(attach, thread, &caller, error)) {
        session_go(attach);
        return false;
    }
    uint64_t locked_kib = load_locked_kib(attach);
    uint64_t errno_at = attach->program ? 0 : load_find_errno(attach, &caller, &kept_errno, error);
    bool is_started = (errno_at || attach->program) &&
                      load_check_locked(attach, locked_kib, error) &&
                      start_inside(attach, &caller, request, error);
    if (errno_at) remote_write(&attach->remote, errno_at, &kept_errno, sizeof kept_errno);
    if (!is_started && attach->program) static_attach_unload(attach, &caller);
    if (!caller_end(&caller, &problem) && is_started) {
        is_started = false;
        *error = problem;
    }
    session_go(attach);
    return is_started;
}

// At this stop: all slots, and the allocator in the executable.
static bool take_now(struct attach *attach) {
    struct patch *patch = &attach->patch;
    if (patch->items.count && !patch->is_taken &&
        (!quiesce_is_way_free(attach) || !patch_take(patch, &attach->remote)))
        return false;
    locals_repair(attach);
    got_patch_tell(&attach->slots, &attach->remote);
    wrapped_tell(attach);
    got_patch_take(&attach->slots, &attach->remote);
    wrapped_count(attach);
    return true;
}

// Longer and longer: on a loaded machine a thread that is in the allocator waits for a processor.
static void pause_between(int tries) {
    enum { TRIES_A_STEP = 5, MOST_STEPS = 6 };
    int steps = tries / TRIES_A_STEP;
    usleep(LOOK_PAUSE_US << (steps < MOST_STEPS ? steps : MOST_STEPS));
}

// The slots were found while the process ran: if modules came or went meanwhile, once more.
static bool take_slots(struct attach *attach, struct error *error) {
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        if (!survey(attach, error)) return false;
        if (attach->library == SESSION_NO_LIBRARY) return error_set(error, "the library is gone");
        if (!session_stop(attach, error)) return false;
        bool is_same =
            modules_fingerprint(&attach->modules, &attach->remote) == attach->modules.fingerprint;
        bool is_ready = is_same && existing_blocks_find(attach),
             is_taken = is_ready && take_now(attach);
        if (is_taken) existing_blocks_give(attach);
        session_go(attach);
        if (is_taken) return true;
        if (is_same) pause_between(i);
    }
    return error_set(error, "it loads libraries, or is in its allocator, without a pause");
}

// A tool that was killed, or that attached to the process that this one is a fork of, has left
// slots that lead to the hooks.
static bool put_back_slots_of_before(struct attach *attach, struct error *error) {
    if (attach->library == SESSION_NO_LIBRARY || !attach->known.is_running) return true;
    wrapped_recover(attach);
    return attach_stop(attach, error) &&
           (attach->library == SESSION_NO_LIBRARY || session_read_attachment(attach, error));
}

// No thread that was being made as the library was loaded is still to begin (locals.h): those that
// begin later are as they should be, and those that have begun are repaired with the slots.
static bool await_births(struct attach *attach, struct error *error) {
    if (attach->have_others_run) quiesce_list_threads(attach->pid, &attach->makers);
    return quiesce_await_makers(attach, clock_now_ns() + BIRTH_PATIENCE_NS) ||
           error_set(error, "thread %d makes threads without a pause",
                     (int)attach->makers.items[0]);
}

static bool start_all(struct attach *attach, const struct attach_request *request,
                      struct error *error) {
    if ((attach->program && !static_attach_allows(request, error)) ||
        !put_back_slots_of_before(attach, error) ||
        !wrapped_open(attach, request->wrap_rows, error) || !survey(attach, error))
        return false;
    existing_blocks_prepare(attach, request);
    quiesce_rehearse(attach);
    if (!start_at_safe_snapshot(attach, request, error)) return false;
    bool is_taken = session_read_attachment(attach, error) && await_births(attach, error) &&
                    take_slots(attach, error);
    existing_blocks_free(attach);
    if (is_taken) return true;
    struct error unused;
    attach_stop(attach, &unused);
    return false;
}

bool attach_start(struct attach *attach, const struct attach_request *request,
                  struct error *error) {
    sched_boost(&attach->boost, 0);
    bool is_started = start_all(attach, request, error);
    sched_unboost(&attach->boost, 0);
    return is_started;
}

bool attach_follow(struct attach *attach, bool *has_changed, struct error *error) {
    uint64_t now = modules_fingerprint(&attach->modules, &attach->remote);
    *has_changed = now && (now != attach->modules.fingerprint ||
                           !got_patch_hold(&attach->slots, &attach->remote));
    return !*has_changed || take_slots(attach, error);
}

// The slots lead past the library; waits until its last call has returned. Only threads that were
// inside at the stop are looked at until then, since those that are outside do not come in again.
static bool stop_when_nobody_is_inside(struct attach *attach, struct error *error) {
    uint64_t end = clock_now_ns() + LEAVE_PATIENCE_NS;
    for (;;) {
        if (!session_stop(attach, error)) return false;
        got_patch_put_back(&attach->slots, &attach->remote);
        patch_put_back(&attach->patch, &attach->remote);
        if (!quiesce_is_any_inside(attach)) return true;
        session_go(attach);
        quiesce_await(attach, end);
        if (clock_now_ns() > end)
            return error_set(error, "a thread does not come out of cairn's code; the library lies "
                                    "idle, but keeps its memory");
    }
}

// The library's data are as before, but for what was written before its start.
static void forget_patch(struct attach *attach, struct caller *caller) {
    const uint64_t none = 0;
    patch_drop(&attach->patch, caller, NULL);
    remote_write(&attach->remote, attach->place + offsetof(struct cairn_attachment, entries_at),
                 &none, sizeof none);
    remote_write(&attach->remote, attach->place + offsetof(struct cairn_attachment, patch_at),
                 &none, sizeof none);
}

// `stop` takes no lock, so that any thread can call it anywhere.
static bool stop_inside(struct attach *attach, struct error *error) {
    struct caller caller;
    struct error problem;
    struct wrapped_table table;
    // a fork was not attached to: its slots lead where its parent's did
    if (!attach->wrapped.count) wrapped_recover(attach);
    if (!survey(attach, error) || !remote_unwind_refresh(attach->unwinder, error)) return false;
    if (attach->library == SESSION_NO_LIBRARY) return true;
    if (!session_read_attachment(attach, error)) return false;
    patch_recover(&attach->patch, attach->known.patch_at, &attach->remote);
    wrapped_keep(attach, &table);
    if (!stop_when_nobody_is_inside(attach, error)) return false;
    const struct stopped_thread *thread = threads_without_signal(&attach->threads);
    if (!thread) error_set(error, "all its threads are handling signals");
    bool is_begun = thread && begin_calls(attach, thread, &caller, error);
    // before its state is gone, should the tool be killed in between
    if (is_begun) locals_reset(attach);
    bool is_stopped = is_begun && load_call(&caller, attach->known.stop, no_arguments, error);
    if (is_stopped) {
        locals_reset(attach);
        got_patch_tell(&attach->slots,
                       &attach->remote);  // who had read a slot before it was put back
        wrapped_put_back(attach, &table);
        if (attach->program)
            static_attach_unload(attach, &caller);
        else
            forget_patch(attach, &caller);
    }
    if (is_begun && !caller_end(&caller, &problem) && is_stopped) {
        *error = problem;
        is_stopped = false;
    }
    session_go(attach);
    return is_stopped;
}

bool attach_stop(struct attach *attach, struct error *error) {
    struct sched_boost boost;
    sched_boost(&boost, 0);
    bool is_stopped = stop_inside(attach, error);
    sched_unboost(&boost, 0);
    return is_stopped;
}
