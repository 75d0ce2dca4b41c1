// SPDX-License-Identifier: Apache-2.0
// Directories are walked to some depth, and to so many entries: a root may be a home directory.
#include "tool/mcp/resources.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/array.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/run.h"

#define SCHEME "cairn://"

enum {
    DEPTH_MAX = 4,        // directories below a root
    ENTRIES_MAX = 50000,  // looked at in all
    RECORDINGS_MAX = 1000,
    PAGE_RESOURCES = 50,
    TIME_BYTES = 32,
    TEXT_BYTES = 1024,
    HEX = 16,
};

struct recording_file {
    char *path;
    int64_t time_s;
    uint64_t bytes;
    bool is_run;  // a directory
};

struct walk {
    ARRAY(struct recording_file) files;
    size_t looked_at;
    bool is_cut, is_out_of_memory;
};

static void add_file(struct walk *walk, const char *path, const struct stat *status) {
    struct recording_file file = {.path = strdup(path),
                                  .time_s = status->st_mtim.tv_sec,
                                  .bytes = (uint64_t)status->st_size,
                                  .is_run = S_ISDIR(status->st_mode)};
    if (walk->files.count == RECORDINGS_MAX) {
        walk->is_cut = true;
        free(file.path);
        return;
    }
    struct recording_file *slot = file.path ? array_push(&walk->files) : NULL;
    if (slot)
        *slot = file;
    else
        free(file.path);
    walk->is_out_of_memory |= !slot;
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it
static void walk_directory(struct walk *walk, const char *directory, int depth) {
    // a symbolic link may lead out, or around
    const char *opened = *directory ? directory : "/";
    int descriptor = open(opened, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!entries) {
        if (descriptor >= 0) close(descriptor);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[PATH_MAX];
        struct stat status;
        if (*entry->d_name == '.') continue;
        walk->is_cut |= ++walk->looked_at > ENTRIES_MAX;
        if (walk->is_cut) break;
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (length >= (int)sizeof path || lstat(path, &status)) continue;
        bool is_run = S_ISDIR(status.st_mode) && run_has_index(path);
        bool is_file = S_ISREG(status.st_mode) && run_row_is_file_name(entry->d_name);
        if (is_run || is_file) add_file(walk, path, &status);
        if (S_ISDIR(status.st_mode) && !is_run && depth < DEPTH_MAX)
            walk_directory(walk, path, depth + 1);
    }
    closedir(entries);
}

static int compare(const void *a, const void *b) {
    const struct recording_file *first = a, *second = b;
    if (first->time_s != second->time_s) return first->time_s < second->time_s ? 1 : -1;
    return strcmp(first->path, second->path);
}

static void walk_roots(struct walk *walk, const struct roots *roots) {
    *walk = (struct walk){0};
    for (size_t i = 0; i < roots->count; i++) {
        const char *root = roots->paths[i];
        walk_directory(walk, !strcmp(root, "/") ? "" : root, 0);
    }
    if (!walk->files.count) return;
    qsort(walk->files.items, walk->files.count, sizeof *walk->files.items, compare);
    // one root may lie in another
    size_t kept = 1;
    for (size_t i = 1; i < walk->files.count; i++) {
        if (strcmp(walk->files.items[i].path, walk->files.items[kept - 1].path) != 0)
            walk->files.items[kept++] = walk->files.items[i];
        else
            free(walk->files.items[i].path);
    }
    walk->files.count = kept;
}

static void walk_free(struct walk *walk) {
    for (size_t i = 0; i < walk->files.count; i++) free(walk->files.items[i].path);
    array_free(&walk->files);
}

static void put_uri(char *out, size_t size, const char *path) {
    size_t used = (size_t)snprintf(out, size, SCHEME);
    for (; *path && used + sizeof "%00" < size; path++) {
        bool is_plain = isalnum((unsigned char)*path) || strchr("/._-~", *path);
        used += (size_t)snprintf(out + used, size - used, is_plain ? "%c" : "%%%02X",
                                 (unsigned char)*path);
    }
}

static json_t *resource_json(const struct roots *roots, const struct recording_file *file) {
    char uri[3 * PATH_MAX], name[TEXT_BYTES], time[TIME_BYTES] = "";
    struct tm parts;
    time_t seconds = (time_t)file->time_s;
    put_uri(uri, sizeof uri, file->path);
    text_escape(name, sizeof name, roots_name(roots, file->path));
    if (gmtime_r(&seconds, &parts)) strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:{s:s}}", "uri", uri, "name", name, "description",
                     file->is_run ? "a run of several processes" : "a recording of cairn",
                     "mimeType", "text/plain", "size", (json_int_t)file->bytes, "annotations",
                     "lastModified", time);
}

// A cursor is the number of the first resource of the page.
static bool read_cursor(const char *cursor, size_t *first) {
    char *end;
    *first = 0;
    if (!cursor) return true;
    unsigned long value = strtoul(cursor, &end, 10);
    *first = value;
    return isdigit((unsigned char)*cursor) && !*end && value <= RECORDINGS_MAX;
}

json_t *resources_json(const struct roots *roots, const char *cursor, bool *is_cursor_bad) {
    size_t first, end;
    char next[16];
    struct walk walk;
    *is_cursor_bad = !read_cursor(cursor, &first);
    if (*is_cursor_bad) return NULL;
    walk_roots(&walk, roots);
    json_t *list = json_array();
    end = first + PAGE_RESOURCES < walk.files.count ? first + PAGE_RESOURCES : walk.files.count;
    for (size_t i = first; i < end; i++)
        json_array_append_new(list, resource_json(roots, &walk.files.items[i]));
    json_t *result = json_pack("{s:o}", "resources", list);
    snprintf(next, sizeof next, "%zu", end);
    if (result && end < walk.files.count)
        json_object_set_new(result, "nextCursor", json_string(next));
    walk_free(&walk);
    return result;
}

json_t *resource_templates_json(void) {
    return json_pack("{s:[{s:s,s:s,s:s,s:s}]}", "resourceTemplates", "uriTemplate",
                     SCHEME "{+path}", "name", "recording", "description",
                     "the summary of the recording at an absolute path below the roots", "mimeType",
                     "text/plain");
}

bool resources_print(FILE *out, const struct roots *roots) {
    struct walk walk;
    walk_roots(&walk, roots);
    fprintf(out, "%s below",
            walk.files.count
                ? units_counted((int64_t)walk.files.count, "recording", "recordings").text
                : "no recording (*.cairn)");
    for (size_t i = 0; i < roots->count; i++) {
        char root[TEXT_BYTES];
        text_escape(root, sizeof root, roots->paths[i]);
        fprintf(out, "%s %s", i ? "," : "", root);
    }
    fputs(walk.files.count ? ", the newest first\n" : "\n", out);
    for (size_t i = 0; i < walk.files.count; i++) {
        const struct recording_file *file = &walk.files.items[i];
        char name[TEXT_BYTES];
        text_escape(name, sizeof name, roots_name(roots, file->path));
        fprintf(out, "%s (%s)\n", name,
                file->is_run ? "a run of several processes"
                             : units_size((int64_t)file->bytes).text);
    }
    if (walk.is_cut) fputs("there are more: give a narrower --root\n", out);
    bool is_ok = !walk.is_out_of_memory;
    walk_free(&walk);
    return is_ok;
}

static int hex_value(char digit) {
    const char *digits = "0123456789abcdef";
    const char *found = digit ? strchr(digits, tolower((unsigned char)digit)) : NULL;
    return found ? (int)(found - digits) : -1;
}

bool resource_path(const char *uri, char path[PATH_MAX], struct error *error) {
    size_t used = 0;
    if (strncmp(uri, SCHEME "/", sizeof SCHEME) != 0)
        return error_set(error, "%.200s: a resource is called " SCHEME "/PATH", uri);
    for (const char *in = uri + strlen(SCHEME); *in; in++) {
        int letter = (unsigned char)*in;
        if (*in == '%') {
            int high = hex_value(in[1]), low = high < 0 ? -1 : hex_value(in[2]);
            letter = low < 0 ? 0 : high * HEX + low;
            in += 2;
        }
        if (!letter || used + 1 >= PATH_MAX)
            return error_set(error, "%.200s: not the path of a file", uri);
        path[used++] = (char)letter;
    }
    path[used] = 0;
    return true;
}
