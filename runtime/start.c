// SPDX-License-Identifier: Apache-2.0
#include "runtime/start.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "runtime/ages.h"
#include "runtime/attach.h"
#include "runtime/check.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/guard.h"
#include "runtime/inherit.h"
#include "runtime/lead.h"
#include "runtime/live/live.h"
#include "runtime/mapped.h"
#include "runtime/moments.h"
#include "runtime/points.h"
#include "runtime/python/python.h"
#include "runtime/real.h"
#include "runtime/sampling.h"
#include "runtime/settings.h"
#include "runtime/signals.h"
#include "runtime/sink/sink.h"
#include "runtime/slots.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/module.h"
#include "runtime/stack/scope.h"
#include "runtime/stack/use.h"
#include "runtime/stack/values.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/object.h"
#include "runtime/totals.h"
#include "runtime/unwind/rule.h"

static enum process_state state;  // (atomic)

enum process_state process_state(void) {
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

static bool process_move(enum process_state from, enum process_state to) {
    return __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

void process_forget(void) {
    __atomic_store_n(&state, PROCESS_NEW, __ATOMIC_RELEASE);
}

static void connect_rooms(void) {
    struct cairn_header *header = sink.header;
    modules.header = header;
    modules.entries = sink_region(CAIRN_SECTION_MODULES);
    modules.strings = sink_region(CAIRN_SECTION_STRINGS);
    modules.locked_by = 0;
    stacks.records = sink_region(CAIRN_SECTION_RECORDS);
    python.codes = sink_region(CAIRN_SECTION_CODES);
    scopes.entries = sink_region(CAIRN_SECTION_SCOPES);
    cells.hot_region = sink_region(CAIRN_SECTION_CELLS);
    cells.cold_region = sink_region(CAIRN_SECTION_CELLS_COLD);
    cells.use_region = sink_region(CAIRN_SECTION_CELLS_USE);
    cells.owner_region = sink_region(CAIRN_SECTION_OWNERS);
    cells.hot = (struct cairn_cell *)cells.hot_region.base;
    cells.cold = (struct cairn_cell_cold *)cells.cold_region.base;
    cells.use = (struct cairn_cell_use *)cells.use_region.base;
    cells.owners = (uint16_t *)cells.owner_region.base;
    cells.totals = &header->totals;
    totals_begin();
    uint64_t room = cells.cold_region.capacity_bytes / sizeof *cells.cold;
    cells.id_limit = room < LIVE_ID_LIMIT ? (uint32_t)room : LIVE_ID_LIMIT;
    bool has_slow_frees = settings.has_ages || settings.has_free_stacks;
    cells.fast_limit = has_slow_frees ? 0 : cells.id_limit;
    header->has_free_stacks = settings.has_free_stacks;
    stacks.freed_count = 0;
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
    moments_open(sink_region(CAIRN_SECTION_MOMENTS), header, settings.every_bytes);
    points_open(sink_region(CAIRN_SECTION_POINTS), &header->totals);
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
    if (settings.has_python && !python_begin()) return false;
    return module_string("") == 0 && cells_init() &&
           region_take(&stacks.records, unused_record_words * sizeof(uint32_t));
}

void process_release_space(void) {
    const uint64_t headroom_bytes = 4u << 20;
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    if (sys_pid() != (int)sink.header->pid) return;  // a vforked child's limit is not ours
    region_shrink(&cells.hot_region, headroom_bytes);
    region_shrink(&cells.cold_region, headroom_bytes);
    region_shrink(&cells.use_region, headroom_bytes);
    region_shrink(&stacks.records, headroom_bytes);
    region_shrink(&uses.sizes, headroom_bytes);
    region_shrink(&uses.reallocs, headroom_bytes);
    region_shrink(&uses.ages, headroom_bytes);
    region_shrink(&values.entries, headroom_bytes);
    uint64_t room = cells.cold_region.capacity_bytes / sizeof *cells.cold;
    if (room < cells.id_limit) cells.id_limit = (uint32_t)room;
    if (cells.fast_limit) cells.fast_limit = cells.id_limit;
    sampling_shrink(headroom_bytes);
    slots_shrink();
}

void process_exit(void) {
    bool has_bands = settings.guard_bytes && !sys_is_confined();
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    if ((!sink.is_file && !has_bands) || sys_pid() != (int)sink.header->pid) return;
    if (has_bands) guard_end();
    if (sink.is_file) sink_end();
}

void process_leave(void) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped() || !sink.is_file) return;
    if (sys_pid() == (int)sink.header->pid) sink_leave();
}

void process_detach(void) {
    int saved_errno = errno;
    sink_detach();
    errno = saved_errno;
}

static enum event_mode mode_wanted(void) {
    if (settings.is_sampled) return EVENT_SAMPLED;
    if (settings.has_python) return EVENT_PYTHON;
    if (settings.has_no_stacks) return EVENT_TOTALS;
    if (settings.min_bytes || settings.max_bytes) return EVENT_BOUNDED;
    if (settings.is_verified) return EVENT_VERIFIED;
    if (settings.has_ages && !settings.has_free_stacks && !settings.guard_bytes) return EVENT_AGED;
    return settings.has_notes ? EVENT_NOTED : EVENT_FULL;
}

// Of the memory that cairn may take, an eighth is kept for samples, to which it degrades.
static void configure(void) {
    const uint64_t part_for_samples = 8;
    settings_read();
    uint64_t most = settings.overhead_bytes;
    if (most) sys_set_budget(most - most / part_for_samples);
    if (settings.has_python && !settings.has_no_stacks) python_find();
    if (!python.can_be_read) settings.has_python = false;
    if (settings.is_sampled || settings.has_python || settings.has_no_stacks)
        settings.has_free_stacks = false;
    event_mode_wanted = mode_wanted();
    probes_event.mode = settings.is_off ? EVENT_OFF : event_mode_wanted;
}

// A program that has us linked in is recorded if somebody asked for it, and by a preloaded library
// if there is one. One that was attached to, when the tool says so.
static bool is_wanted(void) {
    if (attach_is_by_tool()) return attach_is_running();

#if defined(CAIRN_STATIC)
    const char *preload = environment_get("LD_PRELOAD");
    bool is_preloaded = preload && strstr(preload, "libcairn");
    return !is_preloaded && (environment_get("CAIRN_SOCKET") || environment_get("CAIRN_OUTPUT"));
#else
    return true;
#endif
}

// Off by our own settings or by the tool's word, which came with the recording: no event before it
// is switched on needs more than a look at that word.
static void begin_switched(void) {
    if (probes_event.mode == EVENT_OFF) sink.header->control.is_off = 1;
    if (!gate_is_recording()) probes_event.mode = EVENT_OFF;
}

static struct sink_rooms rooms_wanted(void) {
    return (struct sink_rooms){.has_codes = settings.has_python,
                               .has_samples = settings_may_sample(),
                               .has_sample_values = settings.is_sampled,
                               .has_bands = settings.guard_bytes,
                               .has_mappings = settings.has_mappings};
}

// Narrow slots read glibc's header before a block, where a guard band lies or another allocator's
// block. Such an allocator has been led to us by now.
static bool open_live_map(void) {
    return live_init(!real_is_glibc() || attach_has_entries() || settings.guard_bytes);
}

// aarch64 has kernels with pages of 16 or 64 KiB, where our mappings would not fit.
static bool are_pages_known(void) {
    static const char text[] =
        "cairn: the pages of this kernel are larger than 4 KiB: nothing is recorded\n";
    if (getauxval(AT_PAGESZ) == SYS_PAGE_BYTES) return true;
    sys_call(SYS_write, 2, (long)text, sizeof text - 1, 0, 0, 0);
    return false;
}

static bool process_open(void) {
    if (!is_wanted() || !are_pages_known()) return false;
    sys_clock_init();
    check_start();
    configure();
    object_init();
    sink.attachment = attach_address();
    if (!slots_init() || !rule_init() || !sink_open(0, rooms_wanted())) return false;
    if (sink.is_file) lead_entries();
    if (!open_live_map()) return false;
    sink.attachment = 0;  // a forked child has what its parent has
    live.has_births = settings.has_ages;
    begin_switched();
    connect_rooms();
    if (!sampling_open(event_mode_wanted == EVENT_SAMPLED)) return false;
    stacks.seed = (struct stack_hash){sys_random(), sys_random()};
    if (!begin_sections()) return false;
    describe_allocator();
    if (sink.header->has_mappings) sink.header->has_mappings = mapped_begin();
    sink.header->python_version = python.version;
    slots_open(sink_region(CAIRN_SECTION_THREADS));
    guard_open();
    signals_open();
    return true;
}

bool process_start(void) {
    if (!environment_is_ready() || !real_is_resolved()) return false;
    if (!process_move(PROCESS_NEW, PROCESS_STARTING)) return false;
    bool is_open = process_open();
    __atomic_store_n(&state, is_open ? PROCESS_RECORDING : PROCESS_INERT, __ATOMIC_RELEASE);
    if (sys_limit(RLIMIT_AS) != UINT64_MAX || sys_limit(RLIMIT_DATA) != UINT64_MAX)
        process_release_space();
    return is_open;
}

// Children of a process that was attached to are not recorded: nobody might be there to detach
// them.
static bool leave_to_parent(struct cairn_header *parent) {
    sink.header = NULL;
    sys_release(parent, parent->mapped_bytes);
    __atomic_store_n(&state, PROCESS_INERT, __ATOMIC_RELEASE);
    return false;
}

bool process_start_forked(void) {
    if (!process_move(PROCESS_RECORDING, PROCESS_STARTING)) return false;
    struct cairn_header *parent = sink.header;
    if (attach_is_by_tool()) return leave_to_parent(parent);
    guard_disconnect();
    bool is_open = sink_open(parent->pid, rooms_wanted());
    if (is_open) {
        sink.header->control.is_off = parent->control.is_off;
        connect_rooms();
        is_open = sampling_open(event_mode_samples()) && inherit_recording(parent);
        sink.header->python_version = python.version;
    }
    if (is_open) slots_open(sink_region(CAIRN_SECTION_THREADS));
    sys_release(parent, parent->mapped_bytes);
    __atomic_store_n(&state, is_open ? PROCESS_RECORDING : PROCESS_INERT, __ATOMIC_RELEASE);
    return is_open;
}
