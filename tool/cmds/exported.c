// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/exported.h"

#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/render/trust.h"

enum { LINE_COLUMNS = 4000 };

// The trust line in one piece, for free(); NULL without memory.
static char *trust_text(const struct profile *profile, const struct frame_names *names) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    struct terminal terminal = {.out = out, .columns = LINE_COLUMNS};
    trust_print(&terminal, profile, names);
    if (fclose(out) || !text) {
        free(text);
        return NULL;
    }
    text[strcspn(text, "\n")] = 0;
    size_t blanks = strspn(text, " ");
    memmove(text, text + blanks, strlen(text + blanks) + 1);
    return text;
}

bool exported_prepare(struct opened *opened, struct exported *exported, struct error *error) {
    const struct profile *profile = &opened->profile;
    memset(exported, 0, sizeof *exported);
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    if (!names_resolve(opened->names, error)) return false;
    exported->names = names_frames(opened->names);
    exported->trust = trust_text(profile, &exported->names);
    if (!exported->trust) return error_set(error, "no memory for the trust line");
    program_name(profile, exported->program, sizeof exported->program);
    report_command_line(&profile->recording->header, exported->command, sizeof exported->command);
    exported->export = (struct export){.profile = profile,
                                       .names = &exported->names,
                                       .process_count = 1,
                                       .program = exported->program,
                                       .command = exported->command,
                                       .trust = exported->trust,
                                       .tool_version = CAIRN_TOOL_VERSION};
    return true;
}

void exported_free(struct exported *exported) {
    free(exported->trust);
    exported->trust = NULL;
}
