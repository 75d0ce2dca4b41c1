// SPDX-License-Identifier: Apache-2.0
#include "tool/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0666 };

static bool is_stdout(const struct output *output) {
    return !strcmp(output->path, "-");
}

static bool refuse_existing(const char *path, struct error *error) {
    return error_set(error, "%s: exists; --force writes over it", path);
}

bool output_prepare(const char *path, bool can_replace, struct output *output,
                    struct error *error) {
    *output = (struct output){.can_replace = can_replace};
    int length = snprintf(output->path, sizeof output->path, "%s", path ? path : "-");
    if (length >= (int)sizeof output->path)
        return error_set(error, "the output's path is too long");
    if (is_stdout(output)) return true;
    struct stat status;
    bool is_there = !stat(output->path, &status);
    if (is_there && S_ISDIR(status.st_mode))
        return error_set(error, "%s: is a directory", output->path);
    if (is_there && !S_ISREG(status.st_mode)) return true;
    if (is_there && !can_replace) return refuse_existing(output->path, error);
    length = snprintf(output->temporary, sizeof output->temporary, "%s.part-%d", output->path,
                      (int)getpid());
    if (length >= (int)sizeof output->temporary)
        return error_set(error, "the output's path is too long");
    unlink(output->temporary);
    return true;
}

bool output_open(const char *path, bool can_replace, struct output *output, struct error *error) {
    if (!output_prepare(path, can_replace, output, error)) return false;
    if (is_stdout(output)) {
        output->file = stdout;
        return true;
    }
    bool is_new = *output->temporary;
    const int flags = O_WRONLY | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0);
    int descriptor = open(is_new ? output->temporary : output->path, flags, MODE);
    if (descriptor < 0) return error_set(error, "%s: %s", output->path, strerror(errno));
    output->file = fdopen(descriptor, "wb");
    if (output->file) return true;
    close(descriptor);
    if (is_new) unlink(output->temporary);
    return error_set(error, "%s: %s", output->path, strerror(errno));
}

// A hard link fails where a file of that name has appeared meanwhile; rename would take its place.
static bool give_name(const struct output *output, struct error *error) {
    if (output->can_replace) {
        if (!rename(output->temporary, output->path)) return true;
        return error_set(error, "%s: %s", output->path, strerror(errno));
    }
    if (!renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->path, RENAME_NOREPLACE))
        return true;
    if (errno == EEXIST) return refuse_existing(output->path, error);
    if (!link(output->temporary, output->path)) return !unlink(output->temporary);
    if (errno == EEXIST) return refuse_existing(output->path, error);
    return error_set(error, "%s: %s", output->path, strerror(errno));
}

// False with errno set.
static bool close_file(struct output *output) {
    FILE *file = output->file;
    output->file = NULL;
    if (!file) return true;
    bool is_written = !fflush(file) && !ferror(file);
    if (file == stdout) {
        bool is_reader_gone = !is_written && errno == EPIPE;
        if (is_reader_gone) clearerr(file);
        return is_written || is_reader_gone;
    }
    int problem = errno;
    if (fclose(file)) return false;
    errno = problem;
    return is_written;
}

bool output_commit(struct output *output, struct error *error) {
    bool is_ok = close_file(output);
    if (!is_ok) error_set(error, "%s: cannot write: %s", output->path, strerror(errno));
    if (is_ok && *output->temporary) is_ok = give_name(output, error);
    if (!is_ok && *output->temporary) unlink(output->temporary);
    *output->temporary = 0;
    return is_ok;
}

void output_cancel(struct output *output) {
    if (output->file && output->file != stdout) fclose(output->file);
    output->file = NULL;
    if (*output->temporary) unlink(output->temporary);
    *output->temporary = 0;
}
