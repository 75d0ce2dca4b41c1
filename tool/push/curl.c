// SPDX-License-Identifier: Apache-2.0
#include "tool/push/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/unnamed_file.h"
#include "tool/base/version.h"

#define CLIENT "curl"
#define NOT_INSTALLED "the program " CLIENT " is not installed (Debian: package curl)"

enum {
    ANSWER_BYTES = 65536,  // of one answer; engines' errors are a line
    CONNECT_SECONDS = 5,
    STATUS_NOT_FOUND = 127,
};

extern char **environ;

bool curl_find(struct error *error) {
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin:/bin"), *rest = copy;
    bool is_found = false;
    for (char *directory; !is_found && rest && (directory = strsep(&rest, ":"));) {
        char program[PATH_MAX];
        int length =
            snprintf(program, sizeof program, "%s/%s", *directory ? directory : ".", CLIENT);
        is_found = length < PATH_MAX && !access(program, X_OK);
    }
    free(copy);
    return is_found || error_set(error, NOT_INSTALLED);
}

// As a quoted value of curl's configuration.
static void put_value(FILE *out, const char *option, const char *before, const char *value) {
    fprintf(out, "%s = \"%s", option, before);
    for (; *value; value++) {
        if (strchr("\\\"", *value)) fputc('\\', out);
        fputc(*value, out);
    }
    fputs("\"\n", out);
}

static void put_headers(FILE *out, const char *lines) {
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        fprintf(out, "header = \"%.*s\"\n", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

static void put_request(FILE *out, const struct curl *curl, const struct queue *queue,
                        size_t index) {
    char url[PATH_MAX + sizeof queue->directory], body[PATH_MAX];
    const struct queue_request *request = &queue->requests.items[index];
    snprintf(url, sizeof url, "%s%s", curl->url, request->query);
    queue_body_path(queue, index, body);
    if (index) fputs("next\n", out);
    fputs("globoff\nsilent\n", out);
    put_value(out, "url", "", url);
    put_value(out, "data-binary", "@", body);
    put_headers(out, curl->headers);
    if (curl->headers_path) put_value(out, "header", "@", curl->headers_path);
    put_value(out, "user-agent", "cairn/", CAIRN_TOOL_VERSION);
    fprintf(out, "header = \"Expect:\"\nmax-time = %u\nconnect-timeout = %d\nmax-filesize = %d\n",
            curl->seconds_most, (int)CONNECT_SECONDS, (int)ANSWER_BYTES);
    fprintf(out,
            "write-out = \"\\n%s%%{http_code} [%%header{retry-after}] [%%{content_type}] "
            "%%{exitcode} %%{errormsg}\\n\"\n",
            curl->mark);
}

// A file that curl reads what to do from, at its beginning; -1 on failure.
static int write_order(const struct curl *curl, const struct queue *queue, size_t count) {
    int file = unnamed_file_make("push");
    FILE *out = file >= 0 ? fdopen(dup(file), "we") : NULL;
    if (out)
        for (size_t i = 0; i < count; i++) put_request(out, curl, queue, i);
    bool is_ok = out && !fflush(out) && !ferror(out);
    if (out) fclose(out);
    if (is_ok && lseek(file, 0, SEEK_SET) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

static int spawn(struct curl *curl, int input, int output) {
    char *words[] = {CLIENT, "--config", "-", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    // a Ctrl-C is for cairn, which ends it if need be
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int problem = posix_spawnp(&curl->child, CLIENT, &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (problem) curl->child = 0;
    return problem;
}

// Nobody can answer with it who does not know it.
static bool make_mark(struct curl *curl) {
    uint64_t numbers[2];
    if (getrandom(numbers, sizeof numbers, 0) != sizeof numbers) return false;
    snprintf(curl->mark, sizeof curl->mark, "%016" PRIx64 "%016" PRIx64 " ", numbers[0],
             numbers[1]);
    return true;
}

static bool begin(void *context, const struct queue *queue, size_t count, struct error *error) {
    struct curl *curl = context;
    int ends[2];
    curl->size = 0;
    if (!make_mark(curl) || pipe2(ends, O_CLOEXEC))
        return error_set(error, "cannot run %s: %s", CLIENT, strerror(errno));
    int order = write_order(curl, queue, count);
    int problem = order >= 0 ? spawn(curl, order, ends[1]) : EIO;
    if (order >= 0) close(order);
    close(ends[1]);
    curl->output = ends[0];
    if (!problem && !fcntl(ends[0], F_SETFL, O_NONBLOCK)) return true;
    if (!problem) problem = errno;
    curl_close(curl);
    if (problem == ENOENT) return error_set(error, NOT_INSTALLED);
    return error_set(error, "cannot run %s: %s", CLIENT, strerror(problem));
}

// What it has printed so far. False: that is all, or too much.
static bool read_more(struct curl *curl) {
    const size_t most = (size_t)ANSWER_BYTES * (DELIVERY_BATCH + 1);
    for (;;) {
        if (curl->size >= most) return false;
        char *grown = realloc(curl->text, curl->size + ANSWER_BYTES + 1);
        if (!grown) return false;
        curl->text = grown;
        ssize_t got = read(curl->output, curl->text + curl->size, ANSWER_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return true;
        if (got <= 0) return false;
        curl->size += (size_t)got;
    }
}

// "[value]" at `text`; behind it.
static const char *bracketed(const char *text, char *out, size_t size) {
    const char *start = strchr(text, '['), *end = start ? strchr(start, ']') : NULL;
    *out = 0;
    if (!end) return text;
    snprintf(out, size, "%.*s", (int)(end - start - 1), start + 1);
    return end + 1;
}

// `report`: what follows the mark.
static void read_report(const char *report, const char *answer, struct outcome *outcome) {
    char value[64], *end;
    unsigned exit_code = 0;
    outcome->status = (unsigned)strtoul(report, &end, 10);
    const char *rest = bracketed(end, value, sizeof value);
    outcome->retry_after_s = strtoull(value, NULL, 10);  // 0 of a date, which few servers send
    rest = bracketed(rest, value, sizeof value);
    outcome->is_page = !strncasecmp(value, "text/html", sizeof "text/html" - 1);
    exit_code = (unsigned)strtoul(rest, &end, 10);
    if (exit_code) outcome->status = 0;  // whatever came was not all of it
    snprintf(outcome->text, sizeof outcome->text, "%s",
             exit_code ? end + strspn(end, " ") : answer);
    outcome->text[strcspn(outcome->text, "\r\n")] = 0;
    if (exit_code && !*outcome->text)
        snprintf(outcome->text, sizeof outcome->text, "curl fails with status %u", exit_code);
}

void curl_read_outcomes(char *text, size_t size, const char *secret, struct outcome *outcomes,
                        size_t count) {
    for (size_t i = 0; i < count; i++)
        outcomes[i] = (struct outcome){.text = "curl did not come to an end with it"};
    for (char *byte = text; byte < text + size; byte++)
        if (!*byte) *byte = '?';
    for (size_t i = 0; i < count; i++) {
        char *mark = strstr(text, secret);
        if (!mark) return;
        char *report = mark + strlen(secret), *end = report + strcspn(report, "\n");
        if (*end != '\n') return;
        *end = 0;
        if (mark > text) mark[-1] = 0;
        *mark = 0;
        read_report(report, text, &outcomes[i]);
        text = end + 1;
    }
}

static int wait_for_child(struct curl *curl) {
    int status = 0;
    kill(-curl->child, SIGKILL);  // it has closed its output: nothing is left to be done
    kill(curl->child, SIGKILL);
    while (waitpid(curl->child, &status, 0) < 0 && errno == EINTR) continue;
    curl->child = 0;
    return status;
}

void curl_close(struct curl *curl) {
    if (curl->output >= 0) close(curl->output);
    curl->output = -1;
    if (curl->child) wait_for_child(curl);
    free(curl->text);
    curl->text = NULL;
    curl->size = 0;
}

static bool poll_curl(void *context, struct outcome *outcomes, size_t count) {
    struct curl *curl = context;
    if (curl->output >= 0 && read_more(curl)) return false;
    char nothing[] = "";
    if (curl->text) curl->text[curl->size] = 0;
    curl_read_outcomes(curl->text ? curl->text : nothing, curl->size, curl->mark, outcomes, count);
    int status = 0;
    close(curl->output);
    curl->output = -1;
    if (curl->child) status = wait_for_child(curl);
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND && count)
        snprintf(outcomes[0].text, sizeof outcomes[0].text, NOT_INSTALLED);
    curl_close(curl);
    return true;
}

struct sender curl_sender(struct curl *curl) {
    return (struct sender){begin, poll_curl, curl};
}
