// SPDX-License-Identifier: Apache-2.0
#include "tool/push/queue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORIES_MOST = 1000, HEAD_BYTES = 16384, NAME_DIGITS = 16 };

// The path of a file of a request. Directories that leave no room for it are refused.
static void path_of(const struct queue *queue, uint64_t number, const char *ending,
                    char path[PATH_MAX]) {
    int length = snprintf(path, PATH_MAX, "%s/%0*" PRIx64 ".%s", queue->directory, NAME_DIGITS,
                          number, ending);
    if (length >= PATH_MAX) *path = 0;
}

void queue_body_path(const struct queue *queue, size_t index, char path[PATH_MAX]) {
    path_of(queue, queue->requests.items[index].number, "body", path);
}

static bool write_file(const char *path, const void *bytes, size_t size) {
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.part", path);
    int file =
        length < PATH_MAX ? open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    size_t done = 0;
    bool is_ok = file >= 0;
    while (is_ok && done < size) {
        ssize_t written = write(file, (const char *)bytes + done, size - done);
        if (written < 0 && errno == EINTR) continue;
        is_ok = written > 0;
        if (is_ok) done += (size_t)written;
    }
    int problem = errno;
    if (file >= 0) close(file);
    if (is_ok && !rename(temporary, path)) return true;
    if (is_ok) problem = errno;
    unlink(temporary);
    errno = problem;
    return false;
}

static void remove_files(const struct queue *queue, uint64_t number) {
    char path[PATH_MAX];
    path_of(queue, number, "request", path);
    unlink(path);
    path_of(queue, number, "body", path);
    unlink(path);
}

// Of both files of a request: two numbers and the query stand in the first.
static uint64_t file_bytes(uint64_t body_bytes, const char *query) {
    enum { NUMBERS_BYTES = 2 * 20 + 3 };
    return body_bytes + strlen(query) + NUMBERS_BYTES;
}

void queue_remove(struct queue *queue, size_t index) {
    struct queue_request *request = &queue->requests.items[index];
    remove_files(queue, request->number);
    queue->bytes -= file_bytes(request->bytes, request->query);
    free(request->query);
    queue->requests.count--;
    memmove(request, request + 1, (queue->requests.count - index) * sizeof *request);
}

static bool enter(struct queue *queue, uint64_t number, uint64_t unix_ns, uint64_t bytes,
                  const char *query) {
    struct queue_request *request = array_push(&queue->requests);
    if (!request) return false;
    *request = (struct queue_request){number, unix_ns, bytes, strdup(query)};
    if (!request->query) {
        queue->requests.count--;
        return false;
    }
    queue->bytes += file_bytes(bytes, query);
    if (number > queue->last_number) queue->last_number = number;
    return true;
}

static bool write_request(struct queue *queue, uint64_t number, uint64_t unix_ns, const char *query,
                          const struct byte_buffer *body) {
    char path[PATH_MAX], head[HEAD_BYTES];
    int length = snprintf(head, sizeof head, "%" PRIu64 " %zu %s\n", unix_ns, body->size, query);
    if (length >= HEAD_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    path_of(queue, number, "body", path);
    if (!write_file(path, body->bytes, body->size)) return false;
    path_of(queue, number, "request", path);
    return write_file(path, head, (size_t)length);
}

bool queue_add(struct queue *queue, size_t held, uint64_t unix_ns, const char *query,
               const struct byte_buffer *body, struct error *error) {
    const uint64_t number = queue->last_number + 1, bytes = file_bytes(body->size, query);
    while (queue->bytes + bytes > queue->bytes_most && queue->requests.count > held) {
        queue_remove(queue, held);
        queue->crowded_out++;
    }
    if (queue->bytes + bytes > queue->bytes_most)
        return error_set(error, "a request of %" PRIu64 " bytes has no room in a queue of %" PRIu64,
                         bytes, queue->bytes_most);
    bool is_written = write_request(queue, number, unix_ns, query, body);
    int problem = errno;
    if (is_written && enter(queue, number, unix_ns, body->size, query)) return true;
    remove_files(queue, number);
    return error_set(error, "%s: %s", queue->directory,
                     is_written ? "no memory for the list of requests" : strerror(problem));
}

bool queue_parse_request(char *head, size_t size, struct queue_request *request) {
    int query = 0;
    head[size] = 0;
    bool is_right = size && head[size - 1] == '\n' && strlen(head) == size &&
                    sscanf(head, "%" SCNu64 " %" SCNu64 "%n", &request->made_unix_ns,
                           &request->bytes, &query) == 2 &&
                    head[query] == ' ';
    if (!is_right) return false;
    head[size - 1] = 0;
    request->query = head + query + 1;
    for (const char *c = request->query; *c; c++)  // it becomes part of a URL
        if ((unsigned char)*c <= ' ' || strchr("\"\\", *c) || (unsigned char)*c >= 127)
            return false;
    return true;
}

// What a file of that name says: false if it is none of ours.
static bool read_request(struct queue *queue, uint64_t number) {
    char path[PATH_MAX], head[HEAD_BYTES];
    struct queue_request request;
    struct stat status;
    path_of(queue, number, "request", path);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t size = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    if (!queue_parse_request(head, size, &request)) return false;
    path_of(queue, number, "body", path);
    return !stat(path, &status) && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size == request.bytes &&
           enter(queue, number, request.made_unix_ns, request.bytes, request.query);
}

static int compare_requests(const void *a, const void *b) {
    const struct queue_request *first = a, *second = b;
    return (first->number > second->number) - (first->number < second->number);
}

// The number in the name of a file of ours; 0: it is none.
static uint64_t number_of(const char *name, const char **ending) {
    *ending = "";
    if (strspn(name, "0123456789abcdef") != NAME_DIGITS || name[NAME_DIGITS] != '.') return 0;
    *ending = name + NAME_DIGITS + 1;
    return strtoull(name, NULL, 16);
}

static bool has_number(const struct queue *queue, uint64_t number) {
    for (size_t i = 0; i < queue->requests.count; i++)
        if (queue->requests.items[i].number == number) return true;
    return false;
}

// What was being written when a cairn ended, bodies without a request among it.
static void remove_rests(const struct queue *queue) {
    DIR *entries = opendir(queue->directory);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *ending;
        uint64_t number = number_of(entry->d_name, &ending);
        bool is_whole = !strcmp(ending, "body") || !strcmp(ending, "request");
        if (number && (!is_whole || !has_number(queue, number)))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
}

static bool read_all(struct queue *queue, struct error *error) {
    DIR *entries = opendir(queue->directory);
    if (!entries) return error_set(error, "%s: %s", queue->directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *ending;
        uint64_t number = number_of(entry->d_name, &ending);
        if (number && !strcmp(ending, "request")) queue->damaged += !read_request(queue, number);
    }
    closedir(entries);
    remove_rests(queue);
    if (queue->requests.count)
        qsort(queue->requests.items, queue->requests.count, sizeof *queue->requests.items,
              compare_requests);
    while (queue->bytes > queue->bytes_most) {
        queue_remove(queue, 0);
        queue->crowded_out++;
    }
    return true;
}

// The directory and those above it that are missing.
static bool make_directories(const char *directory) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", directory);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (mkdir(path, 0700) && errno != EEXIST) return false;
        *slash = '/';
    }
    return !mkdir(path, 0700) || errno == EEXIST;
}

// -1 with errno EWOULDBLOCK: another cairn has it.
static int lock_directory(const char *directory) {
    int lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0 || !flock(lock, LOCK_EX | LOCK_NB)) return lock;
    int problem = errno;
    close(lock);
    errno = problem;
    return -1;
}

static bool open_locked(const char *directory, uint64_t bytes_most, struct queue *queue,
                        struct error *error) {
    *queue = (struct queue){.lock = -1, .bytes_most = bytes_most};
    size_t length = strlen(directory);
    if (length + sizeof "/.request.part" + NAME_DIGITS > PATH_MAX)
        return error_set(error, "%s: the path is too long", directory);
    memcpy(queue->directory, directory, length + 1);
    if (make_directories(directory)) queue->lock = lock_directory(directory);
    return queue->lock >= 0;
}

bool queue_open(const char *directory, uint64_t bytes_most, struct queue *queue,
                struct error *error) {
    errno = 0;
    if (open_locked(directory, bytes_most, queue, error)) return read_all(queue, error);
    if (errno == EWOULDBLOCK)
        return error_set(error, "%s: another cairn push has it: --queue DIR", directory);
    return errno ? error_set(error, "%s: %s", directory, strerror(errno)) : false;
}

bool queue_open_any(const char *parent, const char *name, uint64_t bytes_most, struct queue *queue,
                    struct error *error) {
    for (int i = 0; i < DIRECTORIES_MOST; i++) {
        char directory[PATH_MAX];
        errno = 0;
        if (snprintf(directory, sizeof directory, "%s/%s.%d", parent, name, i) >= PATH_MAX)
            return error_set(error, "%s: the path is too long", parent);
        if (open_locked(directory, bytes_most, queue, error)) return read_all(queue, error);
        if (errno != EWOULDBLOCK)
            return errno ? error_set(error, "%s: %s", directory, strerror(errno)) : false;
    }
    return error_set(error, "%s: %d queues are in use", parent, DIRECTORIES_MOST);
}

void queue_close(struct queue *queue, bool is_own) {
    if (queue->lock < 0) return;
    if (is_own && !queue->requests.count) rmdir(queue->directory);
    for (size_t i = 0; i < queue->requests.count; i++) free(queue->requests.items[i].query);
    array_free(&queue->requests);
    close(queue->lock);
    queue->lock = -1;
}
