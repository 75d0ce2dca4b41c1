// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/run_mark.h"

#include <string.h>

#include "format/run_mark.h"
#include "format/settings.h"
#include "runtime/sink/tool_link.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

enum { VARIABLES_BYTES = 8192 };
static APART char variables[VARIABLES_BYTES];

static bool is_set(const char *name) {
    const char *value = environment_get(name);
    return value && value[0];
}

// The mark of our entry in LD_PRELOAD.
static enum cairn_mark mark_of_preload(uint64_t *number) {
    size_t length;
    const char *list = environment_get("LD_PRELOAD");
    const char *entry = list ? cairn_own_entry(list, &length) : NULL;
    return entry ? cairn_mark_read(entry, length, number) : CAIRN_MARK_NONE;
}

static COLD bool ask_tool(uint64_t number) {
    char name[CAIRN_MARK_SOCKET_BYTES];
    cairn_mark_socket(name, number);
    if (!tool_link_ask_variables(name, variables, sizeof variables)) return false;
    environment_supplement(variables);
    return true;
}

bool run_mark_complete(void) {
    uint64_t number;
    bool has_place = is_set(CAIRN_VARIABLE(OUTPUT));
    if (has_place && is_set(CAIRN_VARIABLE(SOCKET))) return true;
    switch (mark_of_preload(&number)) {
    case CAIRN_MARK_NONE:
        return true;
    case CAIRN_MARK_ALONE:
        return has_place;
    case CAIRN_MARK_RUN:
        return ask_tool(number) || has_place;
    }
    return true;
}
