// SPDX-License-Identifier: Apache-2.0
// dpkg's own lists are read: asking dpkg-query would be another program, and takes as long.
#include "tool/symbol/package.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTS "/var/lib/dpkg/info"
#define STATUS "/var/lib/dpkg/status"

// The names under which a list may know a file: as it is, and without /usr, where /lib and /bin are
// links to what is below it.
struct names {
    const char *whole, *without_usr;
};

static bool has_line(FILE *list, const struct names *names) {
    char line[PATH_MAX];
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, names->whole)) return true;
        if (names->without_usr && !strcmp(line, names->without_usr)) return true;
    }
    return false;
}

static bool is_in_list(const char *file_name, const struct names *names) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, LISTS "/%s", file_name) >= (int)sizeof path) return false;
    FILE *list = fopen(path, "re");
    bool is_in = list && has_line(list, names);
    if (list) fclose(list);
    return is_in;
}

bool package_of(const char *path, char *name, size_t size) {
    static const char usr[] = "/usr", suffix[] = ".list";
    char real[PATH_MAX];
    DIR *lists = realpath(path, real) ? opendir(LISTS) : NULL;
    if (!lists) return false;
    const struct names names = {real, strncmp(real, usr, strlen(usr)) ? NULL : real + strlen(usr)};
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(lists));) {
        size_t length = strlen(entry->d_name);
        if (length <= strlen(suffix) ||
            strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
            continue;
        is_found = is_in_list(entry->d_name, &names);
        if (is_found) snprintf(name, size, "%.*s", (int)strcspn(entry->d_name, ":"), entry->d_name);
    }
    closedir(lists);
    char *dot = is_found ? strstr(name, suffix) : NULL;
    if (dot && !dot[strlen(suffix)]) *dot = 0;
    return is_found;
}

// Debian's packages of debug symbols that are made by hand go by the package, or by the source of
// several packages that begin with its name (python3.11-dbg for python3.11-minimal).
void package_of_symbols(const char *package, char *name, size_t size) {
    static const char package_key[] = "Package: ", source_key[] = "Source: ";
    char line[PATH_MAX];
    size_t length = strlen(package);
    FILE *status = fopen(STATUS, "re");
    bool is_here = false;
    while (status && fgets(line, sizeof line, status)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, package_key, strlen(package_key)))
            is_here = !strcmp(line + strlen(package_key), package);
        if (!is_here || strncmp(line, source_key, strlen(source_key)) != 0) continue;
        const char *source = line + strlen(source_key);
        size_t source_length = strcspn(source, " ");
        bool is_stem = source_length < length && !strncmp(package, source, source_length) &&
                       package[source_length] == '-';
        if (is_stem) length = source_length;
        break;
    }
    if (status) fclose(status);
    snprintf(name, size, "%.*s-dbg", (int)length, package);
}
