// SPDX-License-Identifier: Apache-2.0
// Writes small recordings for the fuzzers of the reader to start from, in their short form: made up
// ones with a bit of everything, and the first part of each section of real ones (compact files).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/packed.h"
#include "tests/fuzz/recording_form.h"
#include "tests/tools/make_recording.h"
#include "tool/model/reader.h"
#include "tool/model/rewrite.h"
#include "tool/model/source.h"
#include "tool/symbol/bundle.h"

// What is kept of each section of a real recording, in whole entries. Small inputs are tried often.
static const size_t kept_bytes[RECORDING_SECTION_KINDS] = {
    [CAIRN_SECTION_MODULES] = 2 * sizeof(struct cairn_module),
    [CAIRN_SECTION_STRINGS] = 192,
    [CAIRN_SECTION_THREADS] = 2 * sizeof(struct cairn_thread),
    [CAIRN_SECTION_OWNERS] = sizeof(uint16_t),
    [CAIRN_SECTION_CELLS] = CAIRN_CELL_BLOCK / 4 * sizeof(struct cairn_cell),
    [CAIRN_SECTION_CELLS_RARE] = CAIRN_CELL_BLOCK / 4 * sizeof(struct cairn_cell_rare),
    [CAIRN_SECTION_RECORDS] = 256,
    [CAIRN_SECTION_POINTS] = 4 * sizeof(struct cairn_point),
    [CAIRN_SECTION_SIZES] = sizeof(struct cairn_sizes),
    [CAIRN_SECTION_REALLOCS] = sizeof(struct cairn_reallocs),
    [CAIRN_SECTION_AGES] = sizeof(struct cairn_ages),
    [CAIRN_SECTION_SNAPSHOTS] = 4 * sizeof(struct cairn_snapshot),
    [CAIRN_SECTION_VALUES] = 16 * sizeof(struct cairn_value),
    [CAIRN_SECTION_RESIDENT] = 8 * sizeof(struct cairn_resident),
    [CAIRN_SECTION_PICTURES] = CAIRN_PICTURE_COUNT * sizeof(struct cairn_picture),
    [CAIRN_SECTION_SCOPES] = 4 * sizeof(struct cairn_scope),
    [CAIRN_SECTION_MAPPERS] = 8 * sizeof(struct cairn_mapper),
    [CAIRN_SECTION_SYMBOLS] = 1 << 10,
};

static struct making making;
static const char *directory;

static void write_form(const char *name, const uint8_t *whole, size_t whole_size) {
    char path[4096];
    size_t size;
    uint8_t *form = form_shorten(whole, whole_size, &size);
    if (!form) abort();
    snprintf(path, sizeof path, "%s/%s", directory, name);
    making_write(path, form, size);
    free(form);
}

// The recording with its sections cut and moved together, but for `slack_bytes` behind each.
static size_t cut_sections(const struct recording *recording, size_t slack_bytes, uint8_t *out) {
    struct cairn_header header = recording->header;
    size_t size = sizeof header;
    header.version = CAIRN_VERSION;
    for (uint32_t i = 0; i < header.section_count; i++) {
        struct cairn_section *entry = &header.sections[i];
        if (entry->kind >= RECORDING_SECTION_KINDS) abort();
        const struct recording_section *section = &recording->sections[entry->kind];
        size_t kept = section->size;
        if (kept > kept_bytes[entry->kind])  // a part of the names is none
            kept = entry->kind == CAIRN_SECTION_SYMBOLS ? 0 : kept_bytes[entry->kind];
        if (kept) memcpy(out + size, section->bytes, kept);
        *entry =
            (struct cairn_section){entry->kind, entry->entry_bytes, size, kept + slack_bytes, kept};
        size += kept + slack_bytes;
    }
    memcpy(out, &header, sizeof header);
    return size;
}

static void write_cut(const char *name, struct recording *recording, size_t slack_bytes) {
    uint8_t out[CAIRN_HEADER_BYTES + (1 << 15)] = {0};
    write_form(name, out, cut_sections(recording, slack_bytes, out));
    recording_close(recording);
}

// The same with its sections packed.
static void write_packed(const struct recording *recording) {
    struct cairn_header header = recording->header;
    FILE *file = tmpfile();
    struct packer *packer = file ? packer_new(fileno(file), sizeof header) : NULL;
    if (!packer) abort();
    header.version = CAIRN_VERSION_PACKED;
    for (uint32_t i = 0; i < header.section_count; i++) {
        struct cairn_section *entry = &header.sections[i];
        const struct recording_section *section = &recording->sections[entry->kind];
        if (!packer_add(packer, entry, section->bytes, section->size, NULL)) abort();
    }
    size_t size = (size_t)packer_end(packer);
    uint8_t *whole = calloc(1, size);
    if (!whole || pread(fileno(file), whole, size, 0) < 0) abort();
    memcpy(whole, &header, sizeof header);
    write_form("packed", whole, size);
    packer_free(packer);
    free(whole);
    fclose(file);
}

static void write_seed(const char *name, bool is_compact) {
    const size_t slack_bytes = 32;
    struct recording recording;
    size_t size;
    uint8_t *bytes = making_finish(&making, is_compact, &size);
    if (!recording_open_memory(bytes, size, &recording, NULL)) abort();
    if (!strcmp(name, "compact")) write_packed(&recording);
    write_cut(name, &recording, is_compact ? 0 : slack_bytes);
    free(bytes);
}

// Two functions at one address, of which the outer one has no name.
static void write_named(void) {
    static const char path[] = "named.save";
    const uint64_t address = 0x1233;  // of /usr/bin/sample (make_recording.c)
    uint8_t build_id[20];
    struct symbol_frame frames[] = {{.linkage = "inner", .file = "inner.h", .is_inlined = true},
                                    {.file = "sample.c"}};
    struct symbol_query query = {
        .address = address, .frames = frames, .frame_count = 2, .is_known = true};
    memset(build_id, 0x11, sizeof build_id);
    const struct bundle_part part = {.module = {.path = "/usr/bin/sample",
                                                .build_id = build_id,
                                                .build_id_bytes = sizeof build_id},
                                     .source = SYMBOL_SOURCE_DWARF,
                                     .queries = &query,
                                     .count = 1};
    struct recording recording;
    size_t size, names_size;
    void *names;
    making_sample(&making);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(path, bytes, size);
    if (!bundle_make(&part, 1, &names, &names_size) ||
        !recording_set_section(path, CAIRN_SECTION_SYMBOLS, 1, names, names_size, NULL) ||
        !recording_open(path, &recording, NULL))
        abort();
    write_cut("named", &recording, 0);
    unlink(path);
    free(names);
    free(bytes);
}

static void write_made_up(void) {
    write_named();
    making_start(&making);
    write_seed("empty", true);
    making_sample(&making);
    write_seed("compact", true);
    making_sample(&making);
    making.header.state = CAIRN_STATE_RUNNING;
    making.header.has_exit = 0;
    making.header.end_ns = 0;
    making.header.lost[CAIRN_LOST_NESTED] = 1;
    write_seed("raw", false);
    making_sample(&making);
    making.header.totals.point_ns = 1 << 14;
    for (uint32_t i = 0; i < 20; i += 3) making_point(&making, i, 100 * i, 200 * i, 150 * i);
    write_seed("points", true);
    making_sample(&making);
    making.has_use = true;
    uint32_t cell = CAIRN_CELL_BLOCK;
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "start", 1);
    making_book(&making, cell, 1, 10, 1, 10);
    making_snapshot(&making, CAIRN_SNAPSHOT_CHURN, "", 2);
    making_book(&making, cell, 40, 800, 1, 20);
    making_sizes(&making, cell)->counts[0] = 3;
    making_reallocs(&making, cell)->calls = 2;
    making_ages(&making, cell)->ms[3] = 1;
    write_seed("snapshots", true);
}

static bool write_real(const char *path) {
    struct recording recording;
    struct error error;
    if (!recording_open(path, &recording, &error)) {
        fprintf(stderr, "reader_seeds: %s\n", error.text);
        return false;
    }
    const char *slash = strrchr(path, '/');
    write_cut(slash ? slash + 1 : path, &recording, 0);
    return true;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: reader_seeds DIRECTORY [RECORDING...]\n");
        return 2;
    }
    directory = argv[1];
    write_made_up();
    for (int i = 2; i < argc; i++)
        if (!write_real(argv[i])) return 1;
    return 0;
}
