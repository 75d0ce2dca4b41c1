// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/heap_look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/cmds/live.h"
#include "tool/cmds/name_options.h"
#include "tool/core/recorded.h"
#include "tool/live/survey.h"

static bool is_pid(const char *word) {
    return *word && !word[strspn(word, "0123456789")] && access(word, F_OK) != 0;
}

bool heap_look_is_possible(const char *word) {
    return word && (is_pid(word) || core_is_one(word));
}

static bool read_header(struct heap_look *look) {
    struct cairn_header *header = &look->header;
    struct source source;
    if (!source_open(look->path, &source, NULL)) return false;
    bool is_whole = source_read(&source, 0, header, sizeof *header) == sizeof *header;
    source_close(&source);
    return is_whole && !memcmp(header->magic, CAIRN_MAGIC, sizeof header->magic) &&
           header->version == CAIRN_VERSION && header->live_map;
}

static bool take_process(const char *word, struct heap_look *look, struct error *error) {
    const long most = 1 << 22;  // PID_MAX_LIMIT of the kernel
    struct live_process process;
    struct error unused;
    long pid = strtol(word, NULL, 10);
    if (pid <= 0 || pid > most) return error_set(error, "there is no process %s", word);
    if (live_choose(word, &process, &unused)) {
        memcpy(look->path, process.path, sizeof look->path);
        look->is_recorded = read_header(look);
    }
    const struct cairn_header *header = look->is_recorded ? &look->header : NULL;
    return live_image_take((pid_t)pid, header, &look->live, error) ||
           error_wrap(error, "process %s", word);
}

static bool take_core(const char *word, struct heap_look *look, struct error *error) {
    look->is_core = true;
    if (!core_open(word, &look->core, error)) return false;
    look->is_recorded = core_find_recording(&look->core, &look->header);
    if (!look->is_recorded || core_copy_recording(&look->core, &look->header, look->path, error))
        return true;
    core_close(&look->core);
    return error_wrap(error, "%s", word);
}

bool heap_look_take(const char *word, struct heap_look *look, struct error *error) {
    memset(look, 0, sizeof *look);
    if (!word)
        return error_set(error, "the views heap and pages are of a process or a core dump: give "
                                "its PID or the core");
    if (core_is_one(word)) return take_core(word, look, error);
    if (is_pid(word)) return take_process(word, look, error);
    return error_set(error,
                     access(word, F_OK)
                         ? "%s: there is no such core dump, and it is no PID"
                         : "%s: the views heap and pages are of a process (its PID) or a core dump",
                     word);
}

bool heap_look_survey(const struct heap_look *look, const struct profile *profile,
                      struct heap_state *state, struct error *error) {
    const struct core_image *core = look->is_core ? &look->core : &look->live.core;
    struct core_blocks blocks = {0};
    struct core_samples samples = {0};
    bool is_recorded = look->is_recorded && profile;
    struct survey survey = {.core = core,
                            .live = look->is_core ? NULL : &look->live,
                            .blocks = is_recorded ? &blocks : NULL,
                            .samples = is_recorded ? &samples : NULL,
                            .profile = is_recorded ? profile : NULL};
    size_t cells = is_recorded ? profile->cell_count : 0;
    bool is_ok = !is_recorded || (core_read_blocks(core, &look->header, cells, &blocks, error) &&
                                  core_read_samples(core, &look->header, cells, &samples, error));
    if (!is_recorded) survey.types = core_types_open(core, name_options_symbols());
    is_ok = is_ok && survey_build(&survey, state, error);
    core_free_blocks(&blocks);
    core_free_samples(&samples);
    core_types_close(survey.types);
    return is_ok;
}

void heap_look_close(struct heap_look *look) {
    if (look->is_core)
        core_close(&look->core);
    else
        live_image_free(&look->live);
}
