// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/start.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "format/settings.h"
#include "runtime/check/check.h"
#include "runtime/go/go.h"
#include "runtime/inject/attach.h"
#include "runtime/inject/entry_patch.h"
#include "runtime/inject/wrap.h"
#include "runtime/java/java.h"
#include "runtime/js/js.h"
#include "runtime/live/live.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/managed/stack.h"
#include "runtime/php/php.h"
#include "runtime/process/fork.h"
#include "runtime/process/limits.h"
#include "runtime/process/own.h"
#include "runtime/process/real.h"
#include "runtime/process/run_mark.h"
#include "runtime/process/settings.h"
#include "runtime/process/signals.h"
#include "runtime/process/state.h"
#include "runtime/python/python.h"
#include "runtime/record/ages.h"
#include "runtime/record/event.h"
#include "runtime/record/event_log.h"
#include "runtime/record/guard.h"
#include "runtime/record/mapped.h"
#include "runtime/record/sampling.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/timeline.h"
#include "runtime/record/totals.h"
#include "runtime/ruby/ruby.h"
#include "runtime/sink/sink.h"
#include "runtime/sink/tool_link.h"
#include "runtime/stack/block_stats.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/module.h"
#include "runtime/stack/scope.h"
#include "runtime/stack/values.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/object.h"
#include "runtime/sys/seccomp.h"
#include "runtime/sys/veil.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"
#include "runtime/unwind/unwind_cache.h"

static void open_log(void) {
    if (event_log_open()) return;
    settings_set_events(false);
    event_mode_renew();
}

static COLD void connect_rooms(void) {
    struct cairn_header *header = sink.header;
    modules.header = header;
    modules.entries = sink_region(CAIRN_SECTION_MODULES);
    modules.strings = sink_region(CAIRN_SECTION_STRINGS);
    modules.locked_by = 0;
    stacks.records = sink_region(CAIRN_SECTION_RECORDS);
    codes.region = sink_region(CAIRN_SECTION_CODES);
    scopes.entries = sink_region(CAIRN_SECTION_SCOPES);
    cells.region = sink_region(CAIRN_SECTION_CELLS);
    cells.rare_region = sink_region(CAIRN_SECTION_CELLS_RARE);
    cells.owner_region = sink_region(CAIRN_SECTION_OWNERS);
    cells.items = (struct cairn_cell *)cells.region.base;
    cells.rare = (struct cairn_cell_rare *)cells.rare_region.base;
    cells.owners = (uint16_t *)cells.owner_region.base;
    cells.totals = &header->totals;
    totals_begin();
    uint64_t room = cells.region.capacity_bytes / sizeof *cells.items;
    cells.id_limit = room < LIVE_ID_LIMIT ? (uint32_t)room : LIVE_ID_LIMIT;
    if (settings.has_events) open_log();
    cells.fast_limit = settings_has_slow_frees() ? 0 : cells.id_limit;
    header->has_free_stacks = settings.has_free_stacks;
    header->max_depth = settings.has_no_stacks ? 0 : settings.max_depth;
    stacks.freed_count = 0;
    header->has_births = settings.has_ages && !settings.is_sampled;
    ages_open(header, !sink.is_file);
    if (sink.is_file) event_age_slowly();
    uses.ages = sink_region(CAIRN_SECTION_AGES);
    uses.sizes = sink_region(CAIRN_SECTION_SIZES);
    uses.reallocs = sink_region(CAIRN_SECTION_REALLOCS);
    uses.aligned = sink_region(CAIRN_SECTION_ALIGNED);
    values.entries = sink_region(CAIRN_SECTION_VALUES);
    values.samples = sink_region(CAIRN_SECTION_SAMPLE_VALUES);
    values.sample_cells = sink_region(CAIRN_SECTION_SAMPLE_CELLS);
    if (settings.guard_bytes) guard_connect();
    snapshots_open(sink_region(CAIRN_SECTION_SNAPSHOTS), header, settings.every_bytes);
    timeline_open(sink_region(CAIRN_SECTION_POINTS), &header->totals);
}

static void describe_allocator(void) {
    struct cairn_header *header = sink.header;
    bool is_own = attach_has_entries(), is_glibc = !is_own && real_is_glibc();
    bool is_narrow = !live.is_wide;
    const char *path = is_own ? header->executable : real_allocator_path();
    header->allocator = is_glibc ? CAIRN_ALLOCATOR_GLIBC : CAIRN_ALLOCATOR_OTHER;
    header->allocator_module = module_string(path);
    header->slot_bytes = is_narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    header->slot_granule = 1u << (is_narrow ? LIVE_NARROW_SHIFT : LIVE_WIDE_SHIFT);
    header->live_map = (uintptr_t)live.tops;
}

// What a new recording begins with: the empty string, the record number 0 that nobody has, and the
// cell for lost stacks.
static bool begin_sections(void) {
    const uint64_t unused_record_words = 4;
    if (settings_has_code_frames() && !codes_begin()) return false;
    return module_string("") == 0 && cells_init() &&
           region_take(&stacks.records, unused_record_words * sizeof(uint32_t));
}

// What a region may still grow by under a limit; enough for two threads that claim at once.
static uint64_t headroom_under(uint64_t limit_bytes) {
    const uint64_t share = 256, least_bytes = 128u << 10, most_bytes = 4u << 20;
    uint64_t bytes = limit_bytes / share;
    return bytes < least_bytes ? least_bytes : bytes > most_bytes ? most_bytes : bytes;
}

static uint32_t threads_under(uint64_t limit_bytes) {
    const uint64_t bytes_per_thread = 1u << 20;
    enum { LEAST = 32, MOST = 512 };
    uint64_t count = limit_bytes / bytes_per_thread;
    return count < LEAST ? LEAST : count > MOST ? MOST : (uint32_t)count;
}

static void release_recording(uint64_t space_bytes, uint64_t headroom) {
    struct region *const regions[] = {
        &cells.region,   &cells.rare_region, &cells.owner_region, &stacks.records, &codes.region,
        &uses.sizes,     &uses.reallocs,     &uses.aligned,       &uses.ages,      &values.entries,
        &values.samples, &modules.entries,   &modules.strings,    &scopes.entries,
    };
    if (space_bytes == UINT64_MAX) return;  // shared memory is no data
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++)
        if (regions[i]->base) region_shrink(regions[i], headroom);
    uint64_t room = cells.region.capacity_bytes / sizeof *cells.items;
    if (room < cells.id_limit) cells.id_limit = (uint32_t)room;
    if (cells.fast_limit) cells.fast_limit = cells.id_limit;
    event_log_shrink();
    sampling_shrink(headroom);
}

void process_release_space(uint64_t space_bytes, uint64_t data_bytes) {
    uint64_t least = space_bytes < data_bytes ? space_bytes : data_bytes;
    uint64_t headroom = headroom_under(space_bytes);
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    if (sys_pid() != (int)sink.header->pid) return;  // a vforked child's limit is not ours
    release_recording(space_bytes, headroom);
    slots_shrink(headroom, threads_under(least));
}

void process_detach(void) {
    int saved_errno = errno;
    sink_detach();
    errno = saved_errno;
}

// Of the memory that cairn may take, an eighth is kept for samples, to which it degrades.
static void configure(void) {
    const uint64_t part_for_samples = 8;
    settings_read();
    uint64_t most = settings.overhead_bytes;
    if (most) sys_set_budget(most - most / part_for_samples);
    walk_limit_depth(settings.max_depth);
    managed_mark = settings.max_depth ? CAIRN_CUT_MAX_DEPTH : CAIRN_CUT_DEPTH;
    if (settings.has_python && !settings.has_no_stacks) python_find();
    if (!python.can_be_read) settings.has_python = false;
    if (settings.has_no_stacks)
        settings.has_java = settings.has_go = settings.has_js = settings.has_php =
            settings.has_ruby = settings.has_async = false;
    if (settings.is_sampled || settings_has_code_frames() || settings.has_no_stacks)
        settings.has_free_stacks = false;
    event_mode_wanted = event_mode_by_settings();
    probes_event.mode = settings.is_off ? EVENT_OFF : event_mode_wanted;
}

// A program that has us linked in is recorded if somebody asked for it, and by a preloaded library
// if there is one. One that was attached to, when the tool says so.
static COLD bool is_wanted(void) {
    if (attach_is_by_tool()) return attach_is_running();

#if defined(CAIRN_STATIC)
    const char *preload = environment_get("LD_PRELOAD");
    bool is_preloaded = preload && strstr(preload, "libcairn");
    return !is_preloaded &&
           (environment_get(CAIRN_VARIABLE(SOCKET)) || environment_get(CAIRN_VARIABLE(OUTPUT)));
#else
    return run_mark_complete();
#endif
}

// Off by our own settings or by the tool's word, which came with the recording: no event before it
// is switched on needs more than a look at that word.
static void begin_switched(void) {
    if (probes_event.mode == EVENT_OFF) sink.header->control.is_off = CAIRN_CONTROL_OFF;
    if (!gate_is_recording()) probes_event.mode = EVENT_OFF;
}

static struct sink_rooms rooms_wanted(void) {
    return (struct sink_rooms){.has_codes = settings_has_code_frames(),
                               .has_samples = settings_may_sample(),
                               .has_sample_values = settings.is_sampled,
                               .has_bands = settings.guard_bytes,
                               .has_mappings = settings.has_mappings,
                               .has_heaps = wrap_is_wanted(),
                               .has_events = settings_may_log()};
}

// Narrow slots read glibc's header before a block, where a guard band lies or another allocator's
// block. Such an allocator has been led to us by now.
static bool open_live_map(void) {
    return live_init(!real_is_glibc() || attach_has_entries() || settings.guard_bytes);
}

static void describe_languages(void) {
    struct cairn_header *header = sink.header;
    header->python_version = python.version;
    header->has_python_frames = settings.has_python ? CAIRN_PYTHON_OUTSIDE : 0;
    header->java_version = (uint16_t)java.version;
    header->has_java_frames = java.can_be_read;
    header->go_version = (uint16_t)go.version;
    header->has_go_frames = go.can_be_read;
    header->js_version = js.version;
    header->has_js_frames = js.can_be_read;
    header->php_version = php.version;
    php.misses_events = settings.is_sampled;
    header->has_php_frames = php.can_be_read;
    header->ruby_version = ruby.version;
    header->has_ruby_frames = ruby.can_be_read;
}

// Under a filter that nobody can vouch for no call is made from here on. The tool has looked for
// itself where it attached.
static bool is_confined_from_start(void) {
    long unused;
    if (attach_is_by_tool() || !seccomp_is_foreign(&unused)) return false;
    sys_confine(SYS_STRICT);
    return true;
}

static bool process_open(void) {
    if (!is_wanted() || is_confined_from_start()) return false;
    sys_clock_init();
    check_start();
    configure();
    object_init();
    sink.attachment = attach_address();
    wrap_offer();
    if (!slots_init() || !rule_init() || !sink_open(0, rooms_wanted())) return false;
    slots_cover();
    veil_close();
    if (sink.is_file) entry_patch_entries();
    if (!open_live_map()) return false;
    sink.attachment = 0;  // a forked child has what its parent has
    live.has_births = settings.has_ages || settings.has_events;
    begin_switched();
    connect_rooms();
    if (!sampling_open(event_mode_wanted == EVENT_SAMPLED)) return false;
    stacks.seed = (struct stack_hash){sys_random(), sys_random()};
    if (!begin_sections()) return false;
    describe_allocator();
    if (sink.header->has_mappings) sink.header->has_mappings = mapped_begin();
    describe_languages();
    slots_open(sink_region(CAIRN_SECTION_THREADS));
    own_begin(0);
    memory_remember_pid(gate_wiped_pid());
    guard_open();
    signals_open();
    return true;
}

// A program without room for a recording is named where the tool is: what this process was before
// has a recording perhaps, which is no word about this program.
static COLD void say_left_out(void) {
    char path[CAIRN_TEXT_PATH];
    bool is_asked = is_wanted() && !attach_is_by_tool() && !sys_is_confined() && !sink.is_refused;
    if (!is_asked || !limits_are_small()) return;
    environment_executable(path, sizeof path);
    const char *slash = strrchr(path, '/');
    const struct tool_link_unrecorded said = {
        .reason = CAIRN_UNRECORDED_LIMIT, .is_in_place = true, .program = slash ? slash + 1 : path};
    sink_say_unrecorded(&said);
}

COLD bool process_start(void) {
    if (!environment_is_ready() || !real_is_resolved()) return false;
    if (!process_begin(PROCESS_NEW)) return false;
    bool is_open = process_open();
    veil_close();
    if (!is_open) sink_give_up();
    process_become(is_open ? PROCESS_RECORDING : PROCESS_INERT);
    if (is_open) wrap_open();
    limits_begin();
    if (!is_open) say_left_out();
    return is_open;
}

// Children of a process that was attached to are recorded only if the tool follows them: nobody
// else is there to detach them.
static bool is_left_to_parent(void) {
    return attach_is_by_tool() && (!environment_get(CAIRN_VARIABLE(SOCKET)) || sys_is_confined());
}

static bool leave_to_parent(struct cairn_header *parent) {
    sink.header = NULL;
    sink_unmap(parent);
    process_become(PROCESS_INERT);
    return false;
}

// The one thing that a child writes into its parent's recording, which is named there: this child
// has none.
static void count_unrecorded(struct cairn_header *parent) {
    if (sink.is_refused) return;
    __atomic_fetch_add(&parent->lost[CAIRN_LOST_PROCESSES], 1, __ATOMIC_RELAXED);
    const struct tool_link_unrecorded said = {.reason = CAIRN_UNRECORDED_LIMIT, .program = ""};
    if (limits_are_set()) sink_say_unrecorded(&said);
}

void process_leave_unrecorded(void) {
    if (!process_begin(PROCESS_RECORDING)) return;
    sink.is_refused = false;
    if (!is_left_to_parent()) count_unrecorded(sink.header);
    leave_to_parent(sink.header);
}

COLD bool process_start_forked(void) {
    if (!process_begin(PROCESS_RECORDING)) return false;
    struct cairn_header *parent = sink.header;
    if (is_left_to_parent()) return leave_to_parent(parent);
    guard_disconnect();
    if (event_log_leave_parent()) event_mode_renew();
    int64_t found_bytes = own_taken_bytes();
    bool is_open = sink_open(parent->pid, rooms_wanted());
    veil_close();
    if (is_open) {
        sink.header->control.is_off = parent->control.is_off & CAIRN_CONTROL_OFF;
        connect_rooms();
        is_open = sampling_open(event_mode_samples()) && fork_recording(parent);
        describe_languages();
    }
    if (is_open) {
        slots_open(sink_region(CAIRN_SECTION_THREADS));
        own_begin(found_bytes);
    } else {
        count_unrecorded(parent);
        sink_give_up();
    }
    sink_unmap(parent);
    process_become(is_open ? PROCESS_RECORDING : PROCESS_INERT);
    return is_open;
}
