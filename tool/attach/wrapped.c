// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/wrapped.h"

#include <stdio.h>
#include <string.h>

#include "format/format.h"
#include "format/settings.h"

size_t wrapped_read(const char *rows, struct entry_wish wishes[CAIRN_WRAP_FUNCTIONS],
                    uint8_t heaps[CAIRN_WRAP_FUNCTIONS]) {
    const char variable = 'v';
    size_t count = 0;
    uint8_t heap = 0;
    for (const char *at = rows; at && *at && count < CAIRN_WRAP_FUNCTIONS;) {
        at += strcspn(at, "|\n");
        if (*at == '\n') heap++;
        if (*at) at++;
        if (!*at || !at[1] || at[-1] == '\n') continue;
        if (heaps) heaps[count] = heap;
        struct entry_wish *wish = &wishes[count++];
        *wish = (struct entry_wish){
            .way = 1, .is_variable = *at == variable, .may_lack = at[1] == CAIRN_WRAP_MAY_LACK};
        at += strlen("a,") + wish->may_lack;
        snprintf(wish->name, sizeof wish->name, "%.*s", (int)strcspn(at, ","), at);
    }
    return count;
}

// The library reads a variable at its address: one that cannot be read there is not found.
static void check_variables(struct attach *attach) {
    for (size_t i = 0; i < attach->wrapped.count; i++) {
        struct entry_wish *wish = &attach->wrapped.wishes[i];
        uint64_t value;
        if (wish->address && !remote_read(&attach->remote, wish->address, &value, sizeof value))
            wish->address = 0;
    }
}

bool wrapped_open(struct attach *attach, const char *rows, struct error *error) {
    struct wrapped *wrapped = &attach->wrapped;
    *wrapped = (struct wrapped){.count = 0};
    wrapped->count = wrapped_read(rows, wrapped->wishes, wrapped->heaps);
    if (wrapped->count && !entries_add_wishes(&attach->entries, &attach->remote, wrapped->wishes,
                                              wrapped->count, error))
        return error_wrap(error, "--wrap");
    check_variables(attach);
    return true;
}

// Which heaps were led is not known: the slots of all of them are looked for.
void wrapped_recover(struct attach *attach) {
    const char *name = CAIRN_VARIABLE(WRAP), *end;
    struct wrapped *wrapped = &attach->wrapped;
    const struct cairn_attachment *known = &attach->known;
    char *settings = attach->settings;
    settings[sizeof attach->settings - 1] = 0;
    *wrapped = (struct wrapped){.count = 0};
    for (const char *at = settings; *at; at = end + 1) {
        end = memchr(at, 0, (size_t)(settings + sizeof attach->settings - at));
        if (!strncmp(at, name, strlen(name)) && at[strlen(name)] == '=')
            wrapped->count = wrapped_read(at + strlen(name) + 1, wrapped->wishes, wrapped->heaps);
        if (end + 1 >= settings + sizeof attach->settings) break;
    }
    for (size_t i = 0; i < wrapped->count; i++)
        wrapped->ways[i] = known->wrap_way[i] % CAIRN_WRAP_FUNCTIONS;
    memset(wrapped->is_led, true, sizeof wrapped->is_led);
}

static uint64_t table_at(const struct attach *attach, size_t way) {
    return attach->known.wrap_functions + way * attach->known.wrap_bytes;
}

void wrapped_keep(const struct attach *attach, struct wrapped_table *table) {
    *table = (struct wrapped_table){{0}};
    for (size_t i = 0; attach->known.wrap_ways && i < CAIRN_WRAP_FUNCTIONS; i++)
        remote_read(&attach->remote, table_at(attach, i), &table->actual[i], sizeof *table->actual);
}

void wrapped_inherit(struct attach *attach) {
    struct wrapped *wrapped = &attach->wrapped;
    if (wrapped->count) return;
    wrapped_recover(attach);
    memset(wrapped->is_led, false, sizeof wrapped->is_led);
    wrapped->is_inherited = true;
    for (size_t i = 0; attach->known.wrap_ways && i < wrapped->count; i++)
        remote_read(&attach->remote, table_at(attach, wrapped->ways[i]), &wrapped->told[i],
                    sizeof *wrapped->told);
}

// Nobody comes to a way any more where the jump to it is gone, and with it what was moved.
void wrapped_put_back(const struct attach *attach, const struct wrapped_table *table) {
    const struct patch *patch = &attach->patch;
    for (size_t i = 0; attach->known.wrap_ways && i < CAIRN_WRAP_FUNCTIONS; i++) {
        bool was_moved = table->actual[i] >= patch->start && table->actual[i] < patch->end;
        uint64_t actual = was_moved ? 0 : table->actual[i];
        remote_write(&attach->remote, table_at(attach, i), &actual, sizeof actual);
    }
}

// The entry of the executable that is a wish's; its index, or that behind the last one.
static size_t find_entry(const struct attach *attach, size_t wish) {
    const struct entries *entries = &attach->entries;
    size_t i = 0;
    while (i < entries->items.count &&
           !(entries->items.items[i].way && entries->items.items[i].number == wish))
        i++;
    return i;
}

static const struct hooked *find_function(const struct attach *attach, size_t wish) {
    return &attach->slots.functions.items[attach->slots.wanted_count + wish];
}

static void find_actual(struct attach *attach) {
    struct wrapped *wrapped = &attach->wrapped;
    for (size_t i = 0; i < wrapped->count; i++) {
        size_t entry = find_entry(attach, i);
        bool is_moved = attach->patch.start && entry < attach->entries.items.count;
        if (wrapped->told[i])
            wrapped->actual[i] = wrapped->told[i];
        else if (wrapped->wishes[i].is_variable)
            wrapped->actual[i] = wrapped->wishes[i].address;
        else if (is_moved)
            wrapped->actual[i] = patch_moved_at(&attach->patch, &attach->entries, entry);
        else
            wrapped->actual[i] = find_function(attach, i)->real;
    }
}

// The way that was this function's, or one that was nobody's.
static bool choose_way(const struct wrapped_table *table, bool is_used[CAIRN_WRAP_FUNCTIONS],
                       uint64_t actual, uint8_t *way) {
    for (unsigned pass = 0; pass < 2; pass++) {
        uint64_t wanted = pass ? 0 : actual;
        if (!pass && !actual) continue;
        for (size_t i = 0; i < CAIRN_WRAP_FUNCTIONS; i++) {
            if (is_used[i] || table->actual[i] != wanted) continue;
            is_used[i] = true;
            *way = (uint8_t)i;
            return true;
        }
    }
    return false;
}

bool wrapped_choose_ways(struct attach *attach, struct error *error) {
    struct wrapped *wrapped = &attach->wrapped;
    struct wrapped_table table;
    bool is_used[CAIRN_WRAP_FUNCTIONS] = {false};
    if (!wrapped->count) return true;
    if (!attach->known.wrap_ways)
        return error_set(error, "--wrap needs an x86-64 processor that has XSAVE");
    wrapped_keep(attach, &table);
    find_actual(attach);
    for (size_t i = 0; i < wrapped->count; i++)
        if (!choose_way(&table, is_used, wrapped->actual[i], &wrapped->ways[i]))
            return error_set(error,
                             "--wrap: %s: other functions of it were wrapped before, and no "
                             "more than %d can be",
                             wrapped->wishes[i].name, CAIRN_WRAP_FUNCTIONS);
    for (size_t i = 0; i < attach->entries.items.count; i++) {
        struct entry *entry = &attach->entries.items.items[i];
        if (entry->way)
            entry->way = attach->known.wrap_ways +
                         (uint64_t)wrapped->ways[entry->number] * CAIRN_WRAP_WAY_BYTES;
    }
    memcpy(attach->known.wrap_way, wrapped->ways, sizeof attach->known.wrap_way);
    return true;
}

// A heap that was led once stays so: slots of its functions that are left are to be put back.
void wrapped_lead(struct attach *attach) {
    struct wrapped *wrapped = &attach->wrapped;
    bool lacks_any[CAIRN_WRAP_HEAPS] = {false};
    find_actual(attach);
    for (size_t i = 0; i < wrapped->count; i++)
        if (!wrapped->actual[i] && !wrapped->wishes[i].may_lack)
            lacks_any[wrapped->heaps[i] % CAIRN_WRAP_HEAPS] = true;
    bool has_ways = attach->library != SESSION_NO_LIBRARY && attach->known.wrap_ways;
    for (size_t i = 0; has_ways && i < wrapped->count; i++) {
        bool *is_led = &wrapped->is_led[wrapped->heaps[i] % CAIRN_WRAP_HEAPS];
        *is_led |= !lacks_any[wrapped->heaps[i] % CAIRN_WRAP_HEAPS];
        if (*is_led && !wrapped->wishes[i].is_variable)
            attach->slots.functions.items[attach->slots.wanted_count + i].hook =
                attach->known.wrap_ways + (uint64_t)wrapped->ways[i] * CAIRN_WRAP_WAY_BYTES;
    }
}

void wrapped_tell(struct attach *attach) {
    const struct wrapped *wrapped = &attach->wrapped;
    find_actual(attach);
    for (size_t i = 0; i < wrapped->count; i++)
        if (wrapped->actual[i])
            remote_write(&attach->remote, table_at(attach, wrapped->ways[i]), &wrapped->actual[i],
                         sizeof *wrapped->actual);
}

static uint64_t count_slots(const struct attach *attach, size_t wish) {
    uint64_t count = 0;
    for (size_t i = 0; i < attach->slots.items.count; i++) {
        const struct got_slot *slot = &attach->slots.items.items[i];
        count += slot->is_taken && slot->hooked == attach->slots.wanted_count + wish;
    }
    return count;
}

// In the recording, which has an entry for each function. A fork that records has another one than
// the library was told of when it started, and counts itself (wrap.c).
void wrapped_count(const struct attach *attach) {
    const struct wrapped *wrapped = &attach->wrapped;
    struct cairn_attachment known;
    if (!wrapped->count || wrapped->is_inherited ||
        !remote_read(&attach->remote, attach->place, &known, sizeof known))
        return;
    for (size_t i = 0; i < wrapped->count; i++) {
        uint64_t at = known.wrap_scopes[i], is_there = wrapped->actual[i] != 0;
        bool is_by_jump = find_entry(attach, i) < attach->entries.items.count;
        uint64_t led =
            is_by_jump || wrapped->wishes[i].is_variable ? is_there : count_slots(attach, i);
        if (!at) continue;
        remote_write(&attach->remote, at + offsetof(struct cairn_scope, entries), &is_there,
                     sizeof is_there);
        remote_write(&attach->remote, at + offsetof(struct cairn_scope, allocations), &led,
                     sizeof led);
    }
}

const struct entry_wish *wrapped_missing(const struct attach *attach) {
    for (size_t i = 0; i < attach->wrapped.count; i++)
        if (!attach->wrapped.actual[i] && !attach->wrapped.wishes[i].may_lack)
            return &attach->wrapped.wishes[i];
    return NULL;
}
