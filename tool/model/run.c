// SPDX-License-Identifier: Apache-2.0
#include "tool/model/run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/model/index_table.h"
#include "tool/model/source.h"

// Which row a file belongs to.
struct builder {
    struct run *run;
    struct index_table files;
};

static uint64_t hash_name(const char *name) {
    uint64_t hash = index_table_seed();
    for (; *name; name++) hash = hash_mix(hash, (unsigned char)*name);
    return hash;
}

static bool find_row(const struct builder *builder, const char *file, uint32_t *index) {
    struct index_probe probe = index_probe_start(&builder->files, hash_name(file));
    while (index_probe_next(&builder->files, &probe, index))
        if (!strcmp(builder->run->rows.items[*index].file, file)) return true;
    return false;
}

// A later row of the same file takes the place of the earlier one.
static bool add_row(struct builder *builder, const struct run_row *row) {
    uint32_t index;
    if (*row->file && find_row(builder, row->file, &index)) {
        builder->run->rows.items[index] = *row;
        return true;
    }
    index = (uint32_t)builder->run->rows.count;
    if (index >= RUN_ROWS_MAX) {
        builder->run->bad_lines++;
        return true;
    }
    struct run_row *added = array_push(&builder->run->rows);
    if (!added) return false;
    *added = *row;
    return !*row->file || index_table_insert(&builder->files, hash_name(row->file), index);
}

// A line of `size` bytes, its end already replaced by NUL. False without memory.
static bool read_line(struct builder *builder, char *line, size_t size) {
    struct run_row row;
    if (*line == '#') return true;
    bool is_row = strlen(line) == size && run_row_parse(line, &row);
    if (!is_row) builder->run->bad_lines++;
    return !is_row || add_row(builder, &row);
}

static bool read_lines(struct builder *builder, char *text, size_t size) {
    static const char magic[] = RUN_INDEX_MAGIC ":";
    char *end = text + size;
    builder->run->has_index = size >= sizeof magic && !memcmp(text, magic, sizeof magic - 1);
    if (!builder->run->has_index) {
        builder->run->bad_lines++;
        return true;
    }
    for (char *line = text; line < end;) {
        char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (!line_end) {  // cut off while it was written
            builder->run->bad_lines++;
            return true;
        }
        *line_end = 0;
        if (!read_line(builder, line, (size_t)(line_end - line))) return false;
        line = line_end + 1;
    }
    return true;
}

static bool read_index(struct builder *builder, struct error *error) {
    const uint64_t most_bytes = (uint64_t)RUN_ROWS_MAX * 1024;
    char path[PATH_MAX];
    struct source source;
    int length = snprintf(path, sizeof path, "%s/%s", builder->run->directory, RUN_INDEX_NAME);
    if (length >= (int)sizeof path || !source_open(path, &source, NULL)) return true;
    size_t size = (size_t)(source.size < most_bytes ? source.size : most_bytes);
    char *text = malloc(size + 1);
    bool is_read = text != NULL;
    if (is_read) {
        size = source_read(&source, 0, text, size);
        text[size] = 0;
        is_read = read_lines(builder, text, size);
    }
    free(text);
    source_close(&source);
    return is_read || error_set(error, "no memory for the list of processes");
}

static bool read_recording(struct builder *builder, const char *name) {
    char path[PATH_MAX];
    struct recording recording;
    struct run_row row;
    int length = snprintf(path, sizeof path, "%s/%s", builder->run->directory, name);
    if (length >= (int)sizeof path || !recording_open(path, &recording, NULL)) {
        builder->run->bad_files++;
        return true;
    }
    run_row_of(&recording, &row);
    recording_close(&recording);
    snprintf(row.file, sizeof row.file, "%s", name);
    row.is_there = true;
    return add_row(builder, &row);
}

// Several runs went into this directory.
static bool note_inner(struct run *run, const char *name) {
    char path[PATH_MAX];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s/%s", run->directory, name);
    if (length >= (int)sizeof path || stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return false;
    run->inner_count++;
    if (strcmp(name, run->inner) > 0) snprintf(run->inner, sizeof run->inner, "%s", name);
    return true;
}

// A file without a row, or one whose process went on after its row was written, speaks for itself.
static bool add_file(struct builder *builder, const char *name) {
    uint32_t index;
    if (note_inner(builder->run, name)) return true;
    if (!find_row(builder, name, &index)) return read_recording(builder, name);
    struct run_row *row = &builder->run->rows.items[index];
    row->is_there = true;
    if (row->state != CAIRN_STATE_RUNNING) return true;
    struct run_row older = *row;  // a recording that could not be written then is there by now
    if (!read_recording(builder, name)) return false;
    row = &builder->run->rows.items[index];
    snprintf(row->parent, sizeof row->parent, "%s", older.parent);
    if (row->state == CAIRN_STATE_RUNNING) memcpy(row->problem, older.problem, sizeof row->problem);
    return true;
}

static bool read_files(struct builder *builder, struct error *error) {
    const char *directory = builder->run->directory;
    DIR *entries = opendir(directory);
    if (!entries) return error_set(error, "%s: %s", directory, strerror(errno));
    bool is_ok = true;
    for (struct dirent *entry; is_ok && (entry = readdir(entries));)
        if (run_row_is_file_name(entry->d_name)) is_ok = add_file(builder, entry->d_name);
    closedir(entries);
    for (size_t i = 0; i < builder->run->rows.count; i++) {
        struct run_row *row = &builder->run->rows.items[i];
        if (!row->is_there) *row->file = 0;
        builder->run->lost_files += *row->problem != 0;
    }
    return is_ok || error_set(error, "no memory for the list of processes");
}

static int compare(const void *a, const void *b) {
    const struct run_row *first = a, *second = b;
    uint64_t x = first->figures.peak_bytes, y = second->figures.peak_bytes;
    if (x != y) return x < y ? 1 : -1;
    if (first->start_clock_ns != second->start_clock_ns)
        return first->start_clock_ns < second->start_clock_ns ? -1 : 1;
    return strcmp(first->file, second->file);
}

static int compare_pids(const void *a, const void *b) {
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

// The earliest process whose parent is none of the others, and then the last image of its pid.
static bool find_first(struct run *run) {
    size_t count = run->rows.count;
    const struct run_row *rows = run->rows.items;
    uint32_t *pids = calloc(count + 1, sizeof *pids);
    if (!pids) return false;
    for (size_t i = 0; i < count; i++) pids[i] = rows[i].pid;
    qsort(pids, count, sizeof *pids, compare_pids);
    for (size_t i = 0; i < count; i++) {
        if (bsearch(&rows[i].ppid, pids, count, sizeof *pids, compare_pids)) continue;
        bool is_earlier = rows[i].start_clock_ns < rows[run->first].start_clock_ns;
        if (!run->root_count++ || is_earlier) run->first = i;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].pid == rows[run->first].pid &&
            rows[i].start_clock_ns > rows[run->first].start_clock_ns)
            run->first = i;
    free(pids);
    return true;
}

bool run_open(const char *directory, struct run *run, struct error *error) {
    *run = (struct run){0};
    struct builder builder = {.run = run};
    snprintf(run->directory, sizeof run->directory, "%s", directory);
    bool is_open = read_index(&builder, error) && read_files(&builder, error);
    index_table_free(&builder.files);
    if (!is_open) {
        run_close(run);
        return false;
    }
    if (run->rows.count) qsort(run->rows.items, run->rows.count, sizeof *run->rows.items, compare);
    if (find_first(run)) return true;
    run_close(run);
    return error_set(error, "no memory for the list of processes");
}

void run_close(struct run *run) {
    array_free(&run->rows);
}

static uint64_t file_bytes(const struct run *run, const struct run_row *row) {
    const uint64_t block_bytes = 512;
    char path[PATH_MAX];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s/%s", run->directory, row->file);
    if (length >= (int)sizeof path || stat(path, &status) != 0) return 0;
    uint64_t taken = (uint64_t)status.st_blocks * block_bytes;
    return taken < (uint64_t)status.st_size ? taken : (uint64_t)status.st_size;
}

struct run_sums run_sum(const struct run *run) {
    struct run_sums sums = {0};
    bool has_forks = false;  // from the first of them on
    for (size_t i = 0; i < run->rows.count; i++) {
        const struct run_row *row = &run->rows.items[i];
        const struct figures *figures = &row->figures;
        sums.allocations += figures->allocations;
        sums.allocated_bytes += figures->allocated_bytes;
        sums.lost += figures->lost;
        sums.exit_blocks = figures_add(sums.exit_blocks, figures->exit_blocks);
        sums.exit_bytes = figures_add(sums.exit_bytes, figures->exit_bytes);
        has_forks |= figures->inherited_blocks != 0;
        struct estimate left = figures->exit_estimate;
        estimate_forget_limits(&left);
        (has_forks ? estimate_add_related : estimate_add)(&sums.exit_estimate, &left);
        if (*row->file) {
            sums.file_count++;
            sums.bytes_of_files += file_bytes(run, row);
        }
        if (!figures_is_small(figures)) continue;
        sums.small_count++;
        if (figures->peak_bytes > sums.small_peak_bytes)
            sums.small_peak_bytes = figures->peak_bytes;
    }
    return sums;
}

static bool is_named(const struct run_row *row, const char *word) {
    char pid[16];
    snprintf(pid, sizeof pid, "%" PRIu32, row->pid);
    if (!strcmp(word, pid) || !strcmp(word, row->name)) return true;
    size_t length = strlen(word);
    return *row->file && length && !strncmp(row->file, word, length) &&
           (!row->file[length] || !strcmp(row->file + length, ".cairn"));
}

// "sh 12, cc1 15 (cc1.15-1.cairn), …": those that are named so, or the largest of all.
static void list_some(const struct run *run, const char *word, char *out, size_t size) {
    enum { LISTED_MAX = 8 };
    size_t listed = 0, used = 0;
    *out = 0;
    for (size_t i = 0; i < run->rows.count && used < size; i++) {
        const struct run_row *row = &run->rows.items[i];
        if (word && !is_named(row, word)) continue;
        if (listed++ == LISTED_MAX) {
            snprintf(out + used, size - used, ", …");
            return;
        }
        int added = snprintf(out + used, size - used, "%s%s %" PRIu32 "%s%s%s", used ? ", " : "",
                             row->name, row->pid, word && *row->file ? " (" : "",
                             word ? row->file : "", word && *row->file ? ")" : "");
        used += (size_t)added;
    }
}

bool run_find(const struct run *run, const char *word, size_t *index, struct error *error) {
    enum { LIST_BYTES = 400 };
    char list[LIST_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < run->rows.count; i++) {
        if (!is_named(&run->rows.items[i], word)) continue;
        if (!count++) *index = i;
    }
    if (count == 1) return true;
    list_some(run, count ? word : NULL, list, sizeof list);
    if (count)
        return error_set(error, "%s: %zu processes are called \"%s\": %s", run->directory, count,
                         word, list);
    return error_set(error, "%s: there is no process \"%s\", but %s", run->directory, word,
                     run->rows.count ? list : "none at all");
}

bool run_has_index(const char *directory) {
    char path[PATH_MAX];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s/%s", directory, RUN_INDEX_NAME);
    return length < (int)sizeof path && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}
