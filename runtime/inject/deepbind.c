// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject/deepbind.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/inject/attach.h"
#include "runtime/inject/symbol_lead.h"
#include "runtime/process/real.h"
#include "runtime/process/state.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/module.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

// NOT_YET becomes BUSY in one thread alone; others do without meanwhile.
enum { NOT_YET, BUSY, IS_LED, IS_LEFT };
static int stage;            // (atomic)
static uint32_t allocators;  // (atomic) modules with a malloc, before the last such library
static bool is_expected;     // (atomic) it is to be looked at

struct both {
    struct dl_phdr_info own, libc;
    uint32_t allocators;
    char last[CAIRN_TEXT_PATH];  // path of the allocator that was loaded last
};

static void copy_path(char to[CAIRN_TEXT_PATH], const char *path) {
    size_t length = path ? strnlen(path, CAIRN_TEXT_PATH - 1) : 0;
    if (length) memcpy(to, path, length);
    to[length] = 0;
}

static int look_at(struct dl_phdr_info *module, size_t size, void *context) {
    struct both *both = context;
    (void)size;
    bool is_own = symbol_lead_is_of(module, (uintptr_t)look_at);
    bool is_libc = symbol_lead_is_of(module, (uintptr_t)real.malloc);
    struct linker_symbols symbols = linker_symbols_of(module);
    if (is_own) both->own = *module;
    if (is_libc) both->libc = *module;
    if (is_own || is_libc || !linker_symbols_find(&symbols, "malloc")) return 0;
    both->allocators++;
    copy_path(both->last, module->dlpi_name);
    return 0;
}

// A function that another library wraps as well stays: that library finds libc's by the table.
static void lead_one(const struct both *both, const char *name, bool *is_whole) {
    struct linker_symbols own = linker_symbols_of(&both->own);
    struct linker_symbols libc = linker_symbols_of(&both->libc);
    const Elf64_Sym *symbol = linker_symbols_entry(&libc, name);
    uintptr_t hook = linker_symbols_find(&own, name);
    uintptr_t actual = symbol ? libc.bias + symbol->st_value : 0;
    if (!hook || !symbol || actual == hook || (uintptr_t)real_find(name) != actual) return;
    if (!symbol_lead(&both->libc, symbol, hook)) *is_whole = false;
}

static bool lead_all(void) {
    struct both both = {.allocators = 0};
    bool is_whole = true;
    if (attach_is_by_tool() || sys_is_confined() || process_state() != PROCESS_RECORDING ||
        !real_is_glibc())
        return false;
    dl_iterate_phdr(look_at, &both);
    if (!both.own.dlpi_phdr || !both.libc.dlpi_phdr) return false;
    for (const char *name = real_names(); *name; name += strlen(name) + 1)
        lead_one(&both, name, &is_whole);
    return is_whole;
}

static bool is_led(void) {
    int now = NOT_YET;
    if (__atomic_compare_exchange_n(&stage, &now, BUSY, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
        now = lead_all() ? IS_LED : IS_LEFT;
        __atomic_store_n(&stage, now, __ATOMIC_RELEASE);
    }
    return now == IS_LED;
}

// Counts a library that bypasses us; the recording names the first.
static void note_bypassing(const char *path) {
    gate_count_loss(CAIRN_LOST_DEEPBIND);
    if (!sink.header || __atomic_load_n(&sink.header->bypassing, __ATOMIC_RELAXED)) return;
    uint32_t text = path && *path ? module_string(path) : 0;
    __atomic_store_n(&sink.header->bypassing, text, __ATOMIC_RELEASE);
}

COLD void deepbind_begin(const char *path) {
    int saved_errno = errno;
    if (is_led()) {
        struct both both = {.allocators = 0};
        dl_iterate_phdr(look_at, &both);
        __atomic_store_n(&allocators, both.allocators, __ATOMIC_RELAXED);
        __atomic_store_n(&is_expected, true, __ATOMIC_RELEASE);
    } else {
        note_bypassing(path);
    }
    errno = saved_errno;
}

static COLD void look(void) {
    int saved_errno = errno;
    struct both both = {.allocators = 0};
    dl_iterate_phdr(look_at, &both);
    if (both.allocators > __atomic_load_n(&allocators, __ATOMIC_RELAXED)) note_bypassing(both.last);
    errno = saved_errno;
}

void deepbind_look_if_expected(void) {
    if (likely(!__atomic_load_n(&is_expected, __ATOMIC_RELAXED))) return;
    if (__atomic_exchange_n(&is_expected, false, __ATOMIC_ACQUIRE)) look();
}
