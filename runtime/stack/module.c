// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/module.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/sys/environment.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/object.h"

struct modules modules;

// An entry that found no room is counted as taken, but there is no page below it.
static uint32_t module_count(void) {
    uint64_t taken = __atomic_load_n(modules.entries.used_bytes, __ATOMIC_ACQUIRE);
    uint64_t claimed = __atomic_load_n(&modules.entries.claimed_bytes, __ATOMIC_ACQUIRE);
    return (uint32_t)((taken < claimed ? taken : claimed) / sizeof(struct cairn_module));
}

static struct cairn_module *module_at(uint32_t index) {
    return (struct cairn_module *)modules.entries.base + index;
}

static bool module_covers(const struct cairn_module *module, uintptr_t pc) {
    return __atomic_load_n(&module->is_ready, __ATOMIC_ACQUIRE) && pc >= module->start &&
           pc < module->end;
}

// The loaded module that covers the address, as far as the table knows; NULL if none.
static struct cairn_module *module_current(uintptr_t pc) {
    for (uint32_t i = module_count(); i-- > 0;)
        if (module_covers(module_at(i), pc) && !module_at(i)->unloaded_ns) return module_at(i);
    return NULL;
}

uint32_t module_variant_slow(uintptr_t pc) {
    const struct cairn_module *current = module_current(pc);
    for (uint32_t i = 0; i < module_count(); i++)
        if (module_covers(module_at(i), pc))
            return !current || module_at(i) == current ? 0 : (uint32_t)(current - module_at(0)) + 1;
    return 0;
}

uint32_t module_string(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = region_take(&modules.strings, bytes);
    if (!copy) return 0;
    memcpy(copy, text, bytes);
    return (uint32_t)((uint8_t *)copy - modules.strings.base);
}

// The executable's was read as the recording began: neither seccomp nor the lack of /proc hides it.
static const char *object_path(const struct object *object) {
    return object->path[0] ? object->path : modules.header->executable;
}

// A relative path was so from a directory that may be another one by now: the kernel knows the
// whole.
static COLD uint32_t module_whole_path(const char *path, uintptr_t code) {
    char whole[CAIRN_TEXT_PATH];
    return module_string(environment_mapped_path(code, whole, sizeof whole) ? whole : path);
}

static uint32_t module_path(const struct object *object, uintptr_t code) {
    const char *path = object_path(object);
    if (path[0] && path[0] != '/') return module_whole_path(path, code);
    return path[0] ? module_string(path) : 0;
}

// Finds the build-id among the notes of one segment.
static void module_read_notes(struct cairn_module *module, const uint8_t *at, uint64_t bytes) {
    const uint8_t *end = at + bytes;
    while ((uint64_t)(end - at) >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof note);
        uint64_t name_bytes = ((uint64_t)note.n_namesz + 3) & ~3ull;
        uint64_t text_bytes = ((uint64_t)note.n_descsz + 3) & ~3ull;
        if (name_bytes + text_bytes > (uint64_t)(end - at) - sizeof note) return;
        const uint8_t *text = at + sizeof note + name_bytes;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            note.n_descsz <= CAIRN_BUILD_ID_MAX) {
            memcpy(module->build_id, text, note.n_descsz);
            module->build_id_bytes = note.n_descsz;
            return;
        }
        at = text + text_bytes;
    }
}

static void module_read_segments(struct cairn_module *module, const struct object *object) {
    for (uint32_t i = 0; i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        uintptr_t address = object->bias + segment->p_vaddr;
        bool is_inside = address >= object->start && segment->p_memsz <= object->end - address;
        if (segment->p_type == PT_NOTE && is_inside && !module->build_id_bytes)
            module_read_notes(module, (const uint8_t *)address, segment->p_memsz);
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        if (module->segment_count == CAIRN_MODULE_SEGMENTS) continue;
        uint32_t at = module->segment_count++;
        module->segments[at].address = segment->p_vaddr;
        module->segments[at].size = segment->p_memsz;
        module->segments[at].file_offset = segment->p_offset;
    }
}

static uint64_t module_now_ns(void) {
    uint64_t now = sys_clock_ns(), start = modules.header->start_clock_ns;
    return now > start ? now - start : 0;  // see sink_now_ns
}

static bool module_is_same(const struct cairn_module *a, const struct cairn_module *b) {
    return a->start == b->start && a->end == b->end && a->bias == b->bias &&
           a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

static void module_mark_reused(const struct cairn_module *module) {
    uintptr_t low = modules.reused_low, high = modules.reused_high;
    __atomic_store_n(&modules.reused_high, module->end > high ? module->end : high,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&modules.reused_low, !high || module->start < low ? module->start : low,
                     __ATOMIC_RELAXED);
}

// Marks what the new module lies over as gone. True if there was anything.
static bool module_displace(const struct cairn_module *module) {
    bool has_displaced = false;
    for (uint32_t i = 0; i < module_count(); i++) {
        struct cairn_module *other = module_at(i);
        if (!__atomic_load_n(&other->is_ready, __ATOMIC_ACQUIRE) || other == module) continue;
        if (other->start >= module->end || module->start >= other->end) continue;
        if (!other->unloaded_ns) other->unloaded_ns = module_now_ns();
        has_displaced = true;
    }
    return has_displaced;
}

static struct cairn_module *module_find_same(const struct cairn_module *wanted) {
    for (uint32_t i = 0; i < module_count(); i++)
        if (module_at(i)->is_ready && module_is_same(module_at(i), wanted)) return module_at(i);
    return NULL;
}

// Which file it is, where no build-id tells; the tool hashes its code by that, from outside.
static COLD void module_note_file(const struct object *object, struct cairn_module *module) {
    const uint64_t ns_per_s = 1000000000;
    bool is_started = !object->path[0] && !environment_is_by_linker();
    const char *path = is_started ? "/proc/self/exe" : object_path(object);
    struct stat status;
    if (sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0, 0, 0) != 0 &&
        sys_call(SYS_newfstatat, AT_FDCWD, (long)object_path(object), (long)&status, 0, 0, 0) != 0)
        return;
    module->file_bytes = (uint64_t)status.st_size;
    module->file_modified_ns =
        (uint64_t)status.st_mtim.tv_sec * ns_per_s + (uint64_t)status.st_mtim.tv_nsec;
    module->file_inode = status.st_ino;
}

static enum module_news module_add(const struct object *object, struct cairn_module *found) {
    struct cairn_module *again = module_find_same(found);
    struct cairn_module *entry = again ? again : region_take(&modules.entries, sizeof *entry);
    if (!entry) {
        __atomic_fetch_add(&modules.header->lost[CAIRN_LOST_MODULES], 1, __ATOMIC_RELAXED);
        return MODULE_KNOWN;
    }
    bool is_reused = module_displace(again ? again : found);
    if (is_reused) {
        module_mark_reused(found);
        __atomic_fetch_add(&modules.generation, 1, __ATOMIC_RELAXED);
    }
    if (again) {
        again->unloaded_ns = 0;
        return is_reused ? MODULE_REPLACED : MODULE_KNOWN;
    }
    found->loaded_ns = module_now_ns();
    found->path = module_path(object, found->bias + found->segments[0].address);
    if (!found->build_id_bytes) module_note_file(object, found);
    found->is_ready = 0;
    *entry = *found;
    __atomic_store_n(&entry->is_ready, 1, __ATOMIC_RELEASE);
    return is_reused ? MODULE_REPLACED : MODULE_ADDED;
}

// Waits for nobody. A thread that finds the lock its own was torn out of here by a signal handler
// that jumped.
static bool module_lock(void) {
    int32_t owner = 0, tid = sys_tid();
    return __atomic_compare_exchange_n(&modules.locked_by, &owner, tid, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED) ||
           owner == tid;
}

static bool module_is_noted(const struct object *object, struct cairn_module *found) {
    *found =
        (struct cairn_module){.start = object->start, .end = object->end, .bias = object->bias};
    module_read_segments(found, object);
    const struct cairn_module *current = module_current(object->start);
    return current && module_is_same(current, found);
}

// The holder of the lock enters what others leave, which meet the code's rule in the cache from now
// on and would not note it again. One that leaves after the holder's last look finds the lock open.
// It is an address in the code that is left: by that of its start only a part of an object with
// holes would be found.
static void module_leave(const struct object *object, uintptr_t address) {
    for (uint32_t i = 0; i < MODULE_LEFT_MAX; i++) {
        uintptr_t there = 0;
        if (__atomic_compare_exchange_n(&modules.left[i], &there, address, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST) ||
            there - object->start < object->end - object->start)
            return;
    }
    __atomic_fetch_add(&modules.header->lost[CAIRN_LOST_MODULES], 1, __ATOMIC_RELAXED);
}

static bool module_has_left(void) {
    for (uint32_t i = 0; i < MODULE_LEFT_MAX; i++)
        if (__atomic_load_n(&modules.left[i], __ATOMIC_SEQ_CST)) return true;
    return false;
}

static enum module_news module_add_left_locked(void) {
    enum module_news news = MODULE_KNOWN;
    for (uint32_t i = 0; i < MODULE_LEFT_MAX; i++) {
        uintptr_t address = __atomic_exchange_n(&modules.left[i], 0, __ATOMIC_SEQ_CST);
        struct object object;
        struct cairn_module found;
        if (!address || !object_find(address, &object) || module_is_noted(&object, &found))
            continue;
        enum module_news added = module_add(&object, &found);
        if (added > news) news = added;
    }
    return news;
}

static enum module_news module_add_left(void) {
    enum module_news news = MODULE_KNOWN;
    while (module_has_left() && module_lock()) {
        enum module_news added = module_add_left_locked();
        if (added > news) news = added;
        __atomic_store_n(&modules.locked_by, 0, __ATOMIC_SEQ_CST);
    }
    return news;
}

enum module_news module_note(uintptr_t pc, struct module_place *last) {
    struct object object;
    struct cairn_module found;
    if (pc < CAIRN_CUT_LIMIT || pc - 1 - last->start < last->end - last->start) return MODULE_KNOWN;
    if (!object_find(pc - 1, &object)) return MODULE_KNOWN;
    *last = (struct module_place){object.start, object.end};
    if (module_is_noted(&object, &found)) return MODULE_KNOWN;
    module_leave(&object, pc - 1);
    return module_add_left();
}

bool module_check_unloaded(void) {
    bool has_unloaded = false;
    for (uint32_t i = 0; i < module_count(); i++) {
        struct cairn_module *module = module_at(i);
        struct object object;
        if (!__atomic_load_n(&module->is_ready, __ATOMIC_ACQUIRE) || module->unloaded_ns) continue;
        uintptr_t code = module->bias + module->segments[0].address;
        if (object_find(code, &object) && object.start == module->start) continue;
        module->unloaded_ns = module_now_ns();
        has_unloaded = true;
    }
    return has_unloaded;
}

// The number of the 256 MiB window that the address lies in, taking a new one if need be;
// CAIRN_WINDOW_COUNT when all are taken. Window 0 starts at address 0.
static uint32_t window_of(uintptr_t pc) {
    uint64_t start = pc >> CAIRN_WINDOW_BITS << CAIRN_WINDOW_BITS;
    if (start == 0) return 0;
    for (uint32_t i = 1; i < CAIRN_WINDOW_COUNT; i++) {
        uint64_t there = __atomic_load_n(&modules.header->windows[i], __ATOMIC_RELAXED);
        if (there == start) return i;
        if (there) continue;
        if (__atomic_compare_exchange_n(&modules.header->windows[i], &there, start, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            there == start)
            return i;
    }
    return CAIRN_WINDOW_COUNT;
}

// The code of a pseudo address, its words; 0: it is none.
static COLD uint32_t mark_encode(uintptr_t pc, uint32_t code[MODULE_CODE_WORDS]) {
    bool has_codes = modules.header->has_python_frames || modules.header->has_java_frames ||
                     modules.header->has_js_frames || modules.header->has_php_frames ||
                     modules.header->has_ruby_frames;
    if (pc & FRAME_PYTHON && has_codes) {
        code[0] = CAIRN_CODE_PYTHON;
        code[1] = (uint32_t)((pc & ~FRAME_PYTHON) >> 32);
        code[2] = (uint32_t)pc;
        return MODULE_CODE_WORDS;
    }
    bool is_cut = pc < CAIRN_CUT_LIMIT, is_region = pc - FRAME_REGION < CAIRN_SCOPE_LIMIT;
    code[0] =
        is_cut ? CAIRN_CODE_CUT | (uint32_t)pc : CAIRN_CODE_REGION | (uint32_t)(pc - FRAME_REGION);
    return is_cut || is_region;
}

static uint32_t frame_encode(uintptr_t pc, uint32_t code[MODULE_CODE_WORDS]) {
    // Cuts lie below all code, regions and Python above: one comparison for all of them.
    bool may_be_mark = pc - CAIRN_CUT_LIMIT >= FRAME_REGION - CAIRN_CUT_LIMIT;
    uint32_t mark_words = unlikely(may_be_mark) ? mark_encode(pc, code) : 0;
    if (unlikely(mark_words)) return mark_words;
    uint32_t variant = module_variant(pc);
    if (variant) {
        code[0] = CAIRN_CODE_MODULE | (variant - 1);
        code[1] = (uint32_t)(pc - module_at(variant - 1)->start);
        return 2;
    }
    uint32_t window = window_of(pc);
    if (window < CAIRN_WINDOW_COUNT) {
        code[0] = window << CAIRN_WINDOW_BITS | (uint32_t)(pc & ((1u << CAIRN_WINDOW_BITS) - 1));
        return 1;
    }
    code[0] = CAIRN_CODE_FULL;
    code[1] = (uint32_t)pc;
    code[2] = (uint32_t)(pc >> 32);
    return 3;
}

// Without the cuts, which lie at the beginning of window 0. Sizes are powers of two, so that
// numbers are below one of them if all their bits together are.
static struct module_near near_around(uintptr_t pc, uint32_t code) {
    const uintptr_t all_bytes = (uintptr_t)1 << CAIRN_WINDOW_BITS;
    uintptr_t start = pc & ~(all_bytes - 1);
    uint32_t number_bits = code & ~(uint32_t)(all_bytes - 1);
    if (start) return (struct module_near){start, all_bytes, number_bits};
    return (struct module_near){CAIRN_CUT_LIMIT, all_bytes / 2, CAIRN_CUT_LIMIT};
}

// The window's number is still its own: the recording may be another one by now.
static bool is_near_known(const struct module_near *near) {
    uint32_t number = near->base >> CAIRN_WINDOW_BITS;
    return number == 0 ||
           __atomic_load_n(&modules.header->windows[number], __ATOMIC_RELAXED) == near->start;
}

// Four frames, if all of them lie there.
ALWAYS_INLINE bool encode_four(const struct frame *frame, uint32_t *code,
                               const struct module_near *near) {
    uintptr_t a = frame[0].pc - near->start, b = frame[1].pc - near->start;
    uintptr_t c = frame[2].pc - near->start, d = frame[3].pc - near->start;
    if (unlikely((a | b | c | d) >= near->bytes)) return false;
    code[0] = near->base + (uint32_t)a;
    code[1] = near->base + (uint32_t)b;
    code[2] = near->base + (uint32_t)c;
    code[3] = near->base + (uint32_t)d;
    return true;
}

// The frames that lie there, up to the first that does not.
ALWAYS_INLINE const struct frame *encode_near(const struct frame *frame, const struct frame *end,
                                              uint32_t **code, const struct module_near *near) {
    const struct module_near here = *near;
    uint32_t *at = *code;
    for (; end - frame >= 4 && encode_four(frame, at, &here); frame += 4) at += 4;
    for (; frame != end && frame->pc - here.start < here.bytes; frame++)
        *at++ = here.base + (uint32_t)(frame->pc - here.start);
    *code = at;
    return frame;
}

uint32_t *module_encode(const struct frame *frames, uint32_t count, uint32_t *code,
                        struct module_near *near) {
    const struct frame *frame = frames, *const end = frames + count;
    bool has_reused = module_has_reused();
    if (has_reused || !is_near_known(near)) *near = (struct module_near){0};
    for (;; frame++) {
        frame = encode_near(frame, end, &code, near);
        if (frame == end) return code;
        uint32_t words = frame_encode(frame->pc, code);
        bool is_in_window = words == 1 && code[0] >> CAIRN_WINDOW_BITS < CAIRN_WINDOW_COUNT;
        if (is_in_window && !has_reused) *near = near_around(frame->pc, code[0]);
        code += words;
    }
}
