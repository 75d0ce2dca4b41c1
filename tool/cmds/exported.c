// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/exported.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/commands.h"
#include "tool/cmds/subject.h"
#include "tool/model/run.h"
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

static bool prepare(const struct profile *profile, struct names *names, struct exported *exported,
                    struct error *error) {
    memset(exported, 0, sizeof *exported);
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(names, profile->stacks[i].node, 0);
    if (!names_resolve(names, error)) return false;
    exported->names = names_frames(names);
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

bool exported_prepare(struct opened *opened, struct exported *exported, struct error *error) {
    return prepare(&opened->profile, opened->names, exported, error);
}

bool exported_prepare_merged(struct merged *merged, struct exported *exported,
                             struct error *error) {
    if (!prepare(&merged->merge.profile, merged->names, exported, error)) return false;
    char *alone = exported->trust;
    size_t count = merged->merge.process_count;
    int length =
        asprintf(&exported->trust, "%zu processes, each at its own peak \xc2\xb7 %s", count, alone);
    free(alone);
    if (length < 0) exported->trust = NULL;
    if (length < 0) return error_set(error, "no memory for the trust line");
    exported->export.trust = exported->trust;
    exported->export.process_count = count;
    return true;
}

static bool add_file(struct merge *merge, const char *path, struct error *error) {
    struct recording recording;
    struct profile profile;
    if (!recording_open(path, &recording, error)) return false;
    bool has_names = recording.sections[CAIRN_SECTION_SYMBOLS].size != 0;
    bool is_ok = !has_names || error_set(error,
                                         "%s: has names of its own, and cannot be added to others; "
                                         "export it alone",
                                         path);
    is_ok = is_ok && (profile_build(&recording, &profile, error) || error_wrap(error, "%s", path));
    if (is_ok) {
        is_ok = merge_add(merge, &profile) || error_set(error, "%s: no memory to add it", path);
        profile_free(&profile);
    }
    recording_close(&recording);
    return is_ok;
}

static bool add_run(struct merge *merge, const char *directory, struct error *error) {
    struct run run;
    char path[PATH_MAX];
    bool is_ok = run_open(directory, &run, error);
    for (size_t i = 0; is_ok && i < run.rows.count; i++) {
        const struct run_row *row = &run.rows.items[i];
        int length = snprintf(path, sizeof path, "%s/%s", directory, row->file);
        if (*row->file && length < (int)sizeof path) is_ok = add_file(merge, path, error);
    }
    run_close(&run);
    return is_ok;
}

bool merged_open(char **words, int count, struct merged *merged, struct error *error) {
    memset(merged, 0, sizeof *merged);
    bool is_ok = merge_start(&merged->merge) || error_set(error, "no memory to add recordings");
    for (int i = 0; is_ok && i < (count ? count : 1); i++) {
        struct subject subject;
        is_ok = subject_find(count ? words[i] : NULL, &subject, error) &&
                (subject.is_run ? add_run(&merged->merge, subject.path, error)
                                : add_file(&merged->merge, subject.path, error));
    }
    if (is_ok && !merged->merge.process_count)
        is_ok = error_set(error, "there is no recording of a process in it");
    if (is_ok) merge_finish(&merged->merge);
    if (is_ok && names_open(&merged->merge.profile, &merged->names, error)) return true;
    merged_close(merged);
    return false;
}

void merged_close(struct merged *merged) {
    names_close(merged->names);
    merged->names = NULL;
    merge_free(&merged->merge);
}

void exported_free(struct exported *exported) {
    free(exported->trust);
    exported->trust = NULL;
}
