// SPDX-License-Identifier: Apache-2.0
#include "tool/query/merged.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/aligned.h"
#include "tool/base/units.h"
#include "tool/events/pool_find.h"
#include "tool/model/source.h"
#include "tool/model/strings.h"
#include "tool/query/depth.h"
#include "tool/query/progress.h"
#include "tool/query/recordings.h"

// What counts the allocations may all be cut off or damaged: then nothing is left to be shown.
static bool is_usable(const struct opened *opened, struct error *error) {
    const struct damage *damage = &opened->recording.damage;
    if (!profile_is_empty(&opened->profile) || !damage_is_any(damage)) return true;
    if (damage->missing_bytes)
        return error_set(error,
                         "is cut off: %s are missing, and what counts its allocations is "
                         "among them",
                         units_size((int64_t)damage->missing_bytes).text);
    return error_set(error, "is damaged: what counts its allocations cannot be read");
}

bool opened_open(const char *path, struct opened *opened, struct error *error) {
    memset(opened, 0, sizeof *opened);
    opened->process_count = 1;
    snprintf(opened->path, sizeof opened->path, "%s", path);
    if (!recording_open(path, &opened->recording, error)) return false;
    if (profile_build(&opened->recording, &opened->profile, error) && is_usable(opened, error) &&
        names_open(&opened->profile, &opened->names, error))
        return true;
    opened_close(opened);
    return error_wrap(error, "%s", path);
}

bool opened_open_memory(const void *bytes, size_t size, bool is_for_names,
                        void (*settle)(void *context, struct cairn_header *header), void *context,
                        struct opened *opened, struct error *error) {
    memset(opened, 0, sizeof *opened);
    opened->process_count = 1;
    if (!recording_open_memory(bytes, size, &opened->recording, error)) return false;
    settle(context, &opened->recording.header);
    if ((is_for_names ? profile_build_places : profile_build)(&opened->recording, &opened->profile,
                                                              error) &&
        (is_for_names || is_usable(opened, error)) &&
        names_open(&opened->profile, &opened->names, error))
        return true;
    opened_close(opened);
    return false;
}

bool opened_moved(struct opened *opened, const char *path, struct error *error) {
    struct recording recording = {0};
    struct source source;
    const uint32_t pid = opened->recording.header.pid;
    const uint64_t start_ns = opened->recording.header.start_unix_ns;
    if (!source_open(path, &source, error)) return false;
    bool is_read = recording_load_header(&recording, &source, error);
    uint64_t bytes = source.size;
    source_close(&source);
    if (!is_read) return false;
    if (recording.header.pid != pid || recording.header.start_unix_ns != start_ns)
        return error_set(error, "is of another process");
    opened->recording.header = recording.header;
    opened->recording.file_bytes = bytes;
    snprintf(opened->path, sizeof opened->path, "%s", path);
    return true;
}

void opened_close(struct opened *opened) {
    names_close(opened->names);
    opened->names = NULL;
    pool_candidates_free(&opened->pools);
    profile_free(&opened->profile);
    if (opened->merge)
        merge_free(opened->merge);
    else
        recording_close(&opened->recording);
    free(opened->merge);
    opened->merge = NULL;
    if (opened->texts) strings_free(opened->texts);
    free(opened->texts);
    opened->texts = NULL;
}

// Says whether the tool that attached has gone before it could end its file: nobody goes on with
// it.
static bool is_left_behind(const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    pid_t tool = (pid_t)header->control.tool_pid;
    return header->is_attached && recording_is_checkpoint(recording) && tool > 0 && kill(tool, 0) &&
           errno == ESRCH;
}

bool opened_is_alive(const struct opened *opened) {
    const struct cairn_header *header = &opened->recording.header;
    if (opened->merge || header->state != CAIRN_STATE_RUNNING) return false;
    if (is_left_behind(&opened->recording)) return false;
    char link[64], program[CAIRN_TEXT_PATH];
    snprintf(link, sizeof link, "/proc/%u/exe", header->pid);
    ssize_t length = readlink(link, program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = 0;
    return !strcmp(program, header->executable);
}

// Frames of a place of the sum that a recording brought the names for.
struct given {
    uint32_t place;
    struct frame *frames;
    size_t count;
};

struct adder {
    const struct opening *opening;
    struct merge *merge;
    ARRAY(struct given) given;
    ARRAY(uint32_t) given_of_place;  // of the sum, plus 1; 0: none
    struct strings *texts;           // of given frames; belongs to what is opened
    size_t bad_files, left_out;      // of runs and lists, that could not be read
};

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; text && *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash_mix(hash, text != NULL);
}

// The function of a frame; of the outermost one "libc.so.6+0x1234" if it has no name: in a sum by
// names nothing else tells it. `label` is room for that.
static const char *function_of(const struct frame *frames, size_t i, size_t count,
                               char label[FRAME_TEXT_BYTES]) {
    if (frames[i].function || i + 1 < count) return frames[i].function;
    frame_label(&frames[i], label, FRAME_TEXT_BYTES, FRAME_TEXT_BYTES);
    return label;
}

static uint64_t hash_frames(const struct frame *frames, size_t count, bool has_lines) {
    uint64_t hash = 1;
    char label[FRAME_TEXT_BYTES];
    for (size_t i = 0; i < count; i++) {
        hash = hash_text(hash, function_of(frames, i, count, label));
        if (has_lines) hash = hash_mix(hash_text(hash, frames[i].file), frames[i].line);
    }
    return hash;
}

// A sum by names has all of them; another one those that say which function the code is of.
static bool is_to_be_named(const struct opening *opening, const struct frame *frames,
                           size_t count) {
    return count && (opening->is_by_names || frames[count - 1].function);
}

// What stands for a place that only its names tell: the same in every run. 0: its address does.
static uint64_t key_of(const struct opening *opening, bool is_imported, const struct place *place,
                       const struct frame *frames, size_t count) {
    bool is_by_name = opening->is_by_names || is_imported || place->module == MODULE_NONE;
    if (!is_by_name || !is_to_be_named(opening, frames, count)) return 0;
    uint64_t hash = hash_frames(frames, count, opening->has_lines || !opening->is_by_names);
    return (hash | 1) & ~PLACE_PYTHON;
}

static uint64_t *make_keys(const struct opening *opening, const struct profile *profile,
                           const struct frame_names *names) {
    size_t place_count = profile->places.list.count;
    uint64_t *keys = calloc(place_count + 1, sizeof *keys);
    for (uint32_t i = 0; keys && i < place_count; i++) {
        const struct place *place = &profile->places.list.items[i];
        size_t count;
        if (place->cut) continue;
        const struct frame *frames = names->of_place(names->context, i, &count);
        keys[i] = key_of(opening, recording_imported(profile->recording), place, frames, count);
    }
    return keys;
}

static const char *text_of(struct adder *adder, const char *text) {
    if (!text) return NULL;
    uint32_t number = strings_number(adder->texts, text);
    return adder->texts->list.items[number];
}

// Builds may have a call at different lines: then none is told.
static void forget_other_lines(struct given *given, const struct frame *frames, size_t count) {
    for (size_t i = 0; i < count && i < given->count; i++)
        if (frames[i].line != given->frames[i].line) given->frames[i].line = 0;
}

static bool give(struct adder *adder, uint32_t place, const struct frame *frames, size_t count) {
    while (adder->given_of_place.count <= place) {
        uint32_t *slot = array_push(&adder->given_of_place);
        if (!slot) return false;
        *slot = 0;
    }
    uint32_t *number = &adder->given_of_place.items[place];
    if (*number) {
        forget_other_lines(&adder->given.items[*number - 1], frames, count);
        return true;
    }
    struct given *given = array_push(&adder->given);
    if (!given) return false;
    *given = (struct given){place, calloc(count, sizeof *given->frames), count};
    for (size_t i = 0; given->frames && i < count; i++) {
        char label[FRAME_TEXT_BYTES];
        given->frames[i] = frames[i];
        given->frames[i].function = text_of(adder, function_of(frames, i, count, label));
        if (!frames[i].function) frame_seal(&given->frames[i]);
        given->frames[i].file = text_of(adder, frames[i].file);
        given->frames[i].module = text_of(adder, frames[i].module);
    }
    *number = (uint32_t)adder->given.count;
    return given->frames && !adder->texts->has_failed;
}

// Takes over the names of the profile that was added last.
static bool keep_names(struct adder *adder, const struct profile *profile,
                       const struct frame_names *names) {
    for (uint32_t i = 0; i < profile->places.list.count; i++) {
        size_t count;
        if (profile->places.list.items[i].cut) continue;
        const struct frame *frames = names->of_place(names->context, i, &count);
        if (is_to_be_named(adder->opening, frames, count) &&
            !give(adder, adder->merge->placed[i], frames, count))
            return false;
    }
    return true;
}

static bool add_named(struct adder *adder, const struct profile *profile, struct error *error) {
    struct names *names;
    if (!names_open(profile, &names, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(names, profile->stacks[i].node, 0);
    bool is_ok = names_resolve(names, error);
    if (is_ok) {
        struct frame_names found = names_frames(names);
        uint64_t *keys = make_keys(adder->opening, profile, &found);
        is_ok =
            keys && merge_add(adder->merge, profile, keys) && keep_names(adder, profile, &found);
        free(keys);
        if (!is_ok) error_set(error, "no memory to add it");
    }
    names_close(names);
    return is_ok;
}

static bool add_profile(struct adder *adder, struct profile *profile, struct error *error) {
    const struct opening *opening = adder->opening;
    if (opening->narrow && !opening->narrow(opening->context, profile, error)) return false;
    bool is_by_names = opening->is_by_names;
    if (is_by_names || profile->recording->sections[CAIRN_SECTION_SYMBOLS].size)
        return add_named(adder, profile, error);
    return merge_add(adder->merge, profile, NULL) || error_set(error, "no memory to add it");
}

static bool add_recording(struct adder *adder, struct recording *recording, struct error *error) {
    struct profile profile;
    if (!profile_build(recording, &profile, error)) return false;
    bool is_ok = add_profile(adder, &profile, error);
    profile_free(&profile);
    return is_ok;
}

// What a run lost of its processes is printed; it is no reason to show nothing.
static bool add_listed(struct adder *adder, struct recordings *recordings,
                       const struct listed_recording *listed, struct error *error) {
    struct recording recording;
    if (!recording_open(listed->path, &recording, error)) {
        if (listed->is_of_list)
            recordings_leave_out(recordings, error);
        else
            recordings->bad_files++;
        return listed->is_of_list || listed->is_of_run;
    }
    bool is_ok = add_recording(adder, &recording, error);
    recording_close(&recording);
    return is_ok || error_wrap(error, "%s", listed->path);
}

static bool add_all(struct adder *adder, struct error *error) {
    const struct opening *opening = adder->opening;
    struct recordings recordings = {0};
    struct progress progress;
    const struct symbol_progress shown = progress_start(&progress, "adding up recordings");
    struct depth depth = {0};
    bool is_ok = recordings_find_all(&recordings, opening->words, opening->count, error);
    for (size_t i = 0; is_ok && i < recordings.list.count; i++)
        depth_add_path(&depth, recordings.list.items[i].path);
    depth_use(&depth);
    for (size_t i = 0; is_ok && i < recordings.list.count; i++) {
        is_ok = add_listed(adder, &recordings, &recordings.list.items[i], error);
        shown.show(shown.context, i + 1, recordings.list.count);
    }
    progress_end(&progress);
    adder->bad_files = recordings.bad_files;
    adder->left_out = recordings.left_out;
    recordings_free(&recordings);
    return is_ok && (adder->merge->process_count ||
                     error_set(error, "there is no recording of a process in it"));
}

// The frames that were brought become those of the sum.
static void hand_over(struct adder *adder, struct names *names) {
    for (size_t i = 0; i < adder->given.count; i++) {
        struct given *given = &adder->given.items[i];
        names_give(names, given->place, given->frames, given->count);
        given->frames = NULL;
    }
}

bool merged_open(const struct opening *opening, struct opened *opened, struct error *error) {
    struct adder adder = {.opening = opening};
    memset(opened, 0, sizeof *opened);
    opened->merge = adder.merge = aligned_zeros(_Alignof(struct merge), sizeof *opened->merge);
    opened->texts = adder.texts = calloc(1, sizeof *opened->texts);
    if (!adder.merge || !adder.texts || !merge_start(adder.merge)) {
        opened_close(opened);
        return error_set(error, "no memory to add recordings");
    }
    strings_start(adder.texts);
    adder.merge->is_by_names = opening->is_by_names;
    bool is_ok = add_all(&adder, error);
    if (is_ok) {
        opened->process_count = adder.merge->process_count;
        opened->bad_files = adder.bad_files;
        opened->left_out = adder.left_out;
        merge_finish(adder.merge, &opened->recording, &opened->profile);
        is_ok = names_open(&opened->profile, &opened->names, error);
    }
    if (is_ok) hand_over(&adder, opened->names);
    for (size_t i = 0; i < adder.given.count; i++) free(adder.given.items[i].frames);
    array_free(&adder.given);
    array_free(&adder.given_of_place);
    if (!is_ok) opened_close(opened);
    return is_ok;
}

// Several subjects were given, or a run of which no process is chosen.
static bool opening_is_sum(const struct opening *opening, const struct subject *first) {
    return opening->count > 1 || (first->is_run && !opening->process);
}

bool opening_open(const struct opening *opening, struct opened *opened, struct error *error) {
    struct subject subject;
    if (opening->count && recordings_is_list(opening->words[0]))
        return merged_open(opening, opened, error);
    if (!subject_find(opening->count ? opening->words[0] : NULL, &subject, error) ||
        (opening->process && !subject_enter(&subject, opening->process, error)))
        return false;
    if (opening_is_sum(opening, &subject)) return merged_open(opening, opened, error);
    if (!opened_open(subject.path, opened, error)) return false;
    if (!opening->narrow || opening->narrow(opening->context, &opened->profile, error)) return true;
    opened_close(opened);
    return false;
}
