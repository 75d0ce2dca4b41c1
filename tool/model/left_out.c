// SPDX-License-Identifier: Apache-2.0
#include "tool/model/left_out.h"

#include <stdio.h>
#include <string.h>

#include "format/hello.h"

static const struct {
    const char *clause, *words, *key;
} reasons[CAIRN_UNRECORDED_KINDS] = {
#define SANITIZER(kind, name)                                                                      \
    [CAIRN_UNRECORDED_##                                                                           \
        kind] = {"it is built with " name ", which brings a malloc of its own", name, "sanitizer"}
    SANITIZER(ASAN, "AddressSanitizer"),
    SANITIZER(HWASAN, "HWAddressSanitizer"),
    SANITIZER(TSAN, "ThreadSanitizer"),
    SANITIZER(MSAN, "MemorySanitizer"),
    SANITIZER(LSAN, "LeakSanitizer"),
#undef SANITIZER
    [CAIRN_UNRECORDED_VALGRIND] = {"it is valgrind, which watches all memory, that of cairn too",
                                   "valgrind", "valgrind"},
    [CAIRN_UNRECORDED_LIBRARY] = {"it cannot open cairn's library: another root directory or user, "
                                  "or it was removed",
                                  "cannot open cairn's library", "library"},
    [CAIRN_UNRECORDED_LIMIT] = {"a memory limit (ulimit -v, -d) left no room for cairn",
                                "a memory limit left no room", "limit"},
    [CAIRN_UNRECORDED_ENVIRONMENT] = {"it was started without cairn in LD_PRELOAD, and so is what "
                                      "it starts",
                                      "without cairn in LD_PRELOAD", "environment"},
    [CAIRN_UNRECORDED_STATIC] = {"it is statically linked, and cairn's library could not be "
                                 "put into it (cairn run of it alone says why)",
                                 "statically linked", "static"},
    [CAIRN_UNRECORDED_PRIVILEGES] = {"it has another user's or more privileges than its starter, "
                                     "and the dynamic linker ignores LD_PRELOAD there",
                                     "setuid or more privileged", "privileges"},
    [CAIRN_UNRECORDED_MACHINE] = {"it is built for 32 bits or another processor, and what "
                                  "it starts is not recorded either",
                                  "for 32 bits or another processor", "machine"},
};

static bool is_known(uint32_t reason) {
    return reason < CAIRN_UNRECORDED_KINDS && reasons[reason].key;
}

const char *left_out_clause(uint32_t reason) {
    return is_known(reason) ? reasons[reason].clause : "it cannot be";
}

const char *left_out_words(uint32_t reason) {
    return is_known(reason) ? reasons[reason].words : "for a reason that is not known";
}

const char *left_out_key(uint32_t reason) {
    return is_known(reason) ? reasons[reason].key : "unknown";
}

// The entry of that name, or one that is not in use; NULL: there is no room.
static struct cairn_left_out_program *entry_of(struct cairn_left_out *list, uint32_t reason,
                                               const char *name) {
    struct cairn_left_out_program *unused = NULL;
    for (size_t i = CAIRN_LEFT_OUT_PROGRAMS; i-- > 0;) {
        struct cairn_left_out_program *entry = &list->programs[i];
        if (!entry->count)
            unused = entry;
        else if (entry->reason == reason && !strncmp(entry->name, name, sizeof entry->name - 1))
            return entry;
    }
    return unused;
}

void left_out_add(struct cairn_left_out *list, uint32_t reason, const char *name, int64_t change) {
    struct cairn_left_out_program *entry = entry_of(list, reason, name);
    if (change < 0 && list->count < (uint64_t)-change) return;
    list->count += (uint64_t)change;
    if (!entry || (change < 0 && entry->count < (uint64_t)-change)) return;
    if (!entry->count) {
        entry->reason = reason;
        snprintf(entry->name, sizeof entry->name, "%s", name);
    }
    entry->count += (uint32_t)change;
}

uint64_t left_out_unnamed(const struct cairn_left_out *list) {
    uint64_t named = 0;
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) named += list->programs[i].count;
    return list->count > named ? list->count - named : 0;
}

void left_out_add_recording(struct cairn_left_out *list, const struct recording *recording) {
    const struct cairn_left_out *said = &recording->header.left_out;
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) {
        struct cairn_left_out_program program = said->programs[i];
        program.name[sizeof program.name - 1] = 0;
        if (program.count) left_out_add(list, program.reason, program.name, program.count);
    }
    list->count += left_out_unnamed(said);
}

void unkept_add(struct cairn_unkept *sum, const struct cairn_unkept *added) {
    sum->processes += added->processes;
    sum->allocations += added->allocations;
    sum->allocated_bytes += added->allocated_bytes;
}
