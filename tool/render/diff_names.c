// SPDX-License-Identifier: Apache-2.0
// Threads and regions side by side: they have names, and need none of the code's.
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/scopes.h"
#include "tool/render/diff.h"
#include "tool/render/groups_screen.h"

enum { NAME_BYTES = 1024 };

bool diff_add_threads(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error) {
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        char raw[sizeof thread->name + 1] = {0}, name[NAME_BYTES];
        memcpy(raw, thread->name, sizeof thread->name);
        // the first thread is called as the program, which may have another name now
        bool is_main = thread->tid == profile->recording->header.pid;
        text_escape(name, sizeof name, is_main ? "main thread" : *raw ? raw : "(no name)");
        const struct measured measured = {.value = thread_value(thread, by)};
        if (!diff_add(diff, recording, name, "", measured))
            return error_set(error, "no memory for the comparison");
    }
    return true;
}

bool diff_add_regions(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error) {
    struct scopes scopes;
    if (!scopes_read(&scopes, profile->recording))
        return error_set(error, "no memory for the regions");
    struct stack *values = calloc(scopes.count + 1, sizeof *values);
    bool is_ok = values != NULL;
    if (is_ok) scopes_sum(&scopes, profile, true, values);
    for (size_t i = 0; is_ok && i < scopes.count; i++) {
        char name[NAME_BYTES];
        if (scopes.list[i].kind != CAIRN_SCOPE_REGION) continue;
        text_escape(name, sizeof name, scopes.list[i].path);
        is_ok = diff_add(diff, recording, name, "", measure_stack(by, &values[i]));
    }
    free(values);
    scopes_free(&scopes);
    return is_ok || error_set(error, "no memory for the comparison");
}
