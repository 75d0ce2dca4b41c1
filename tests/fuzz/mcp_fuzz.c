// SPDX-License-Identifier: Apache-2.0
// Messages of an agent's client, a line each, to a server whose host keeps questions under way
// until they are cancelled or their turn comes. Whatever comes in: what goes out is a line of JSON
// that answers a request or tells of one; the command line of a question begins as it should, and
// names no file that is not below the root.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/confine.h"
#include "tool/mcp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct host {
    struct server *server;
    struct question *waiting[SERVER_QUESTIONS_MAX];
    size_t count;
};

static void check_line(void *context, char *line) {
    (void)context;
    if (!line || strchr(line, '\n')) abort();
    json_t *message = json_loads(line, 0, NULL);
    if (!message || strcmp(json_string_value(json_object_get(message, "jsonrpc")), "2.0") != 0)
        abort();
    bool is_answer = json_object_get(message, "result") || json_object_get(message, "error");
    if (is_answer == (json_object_get(message, "method") != NULL)) abort();
    if (is_answer && !json_object_get(message, "id")) abort();
    json_decref(message);
    free(line);
}

// Absolute ones are below the root; the others, which the command takes from there, do not lead
// out.
static bool is_allowed(const char *path, const char *root) {
    if (*path == '/') return confine_is_below(path, root);
    return strncmp(path, "../", 3) != 0 && strcmp(path, "..") != 0 && !strstr(path, "/../");
}

static void check_words(const struct question *question, const char *root) {
    bool is_run = question->tool->is_run, is_explain = !strcmp(question->tool->name, "explain");
    if (question->word_count < 2 || strcmp(question->words[0], "cairn") != 0) abort();
    if (is_run != !strcmp(question->words[1], "run")) abort();
    for (size_t i = 2; i < question->word_count; i++) {
        const char *word = question->words[i];
        if (!strcmp(word, "--")) break;
        bool is_file = !strncmp(word, "--baseline=", 11) || !strncmp(word, "--output=", 9);
        if (is_file && !is_allowed(strchr(word, '=') + 1, root)) abort();
        // an address may be any text
        if (*word != '-' && !(is_explain && i > 3) && !is_allowed(word, root)) abort();
    }
}

static void keep_question(void *context, struct question *question) {
    struct host *host = context;
    check_words(question, host->server->roots->paths[0]);
    if (host->count == SERVER_QUESTIONS_MAX) abort();
    host->waiting[host->count++] = question;
}

static void end_question(struct host *host, size_t index, const struct outcome *outcome) {
    struct question *question = host->waiting[index];
    host->waiting[index] = host->waiting[--host->count];
    server_question_ended(host->server, question, outcome);
}

static void drop_question(void *context, struct question *question) {
    struct host *host = context;
    for (size_t i = 0; i < host->count; i++) {
        if (host->waiting[i] != question) continue;
        end_question(host, i, NULL);
        return;
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static struct roots roots;
    if (!roots.count && !roots_add(&roots, "tests/compat", NULL)) abort();
    struct host host = {0};
    struct server server = {.host = {&host, check_line, keep_question, drop_question},
                            .roots = &roots,
                            .can_run = count & 1};
    host.server = &server;
    const char *text = (const char *)bytes;
    for (size_t at = 0; at < count;) {
        const char *end = memchr(text + at, '\n', count - at);
        size_t length = end ? (size_t)(end - (text + at)) : count - at;
        server_read(&server, text + at, length);
        if (host.count && length & 1)
            server_question_goes_on(&server, host.waiting[0], (int)length);
        if (host.count && length & 2) {
            // what a command prints is foreign as well
            struct outcome outcome = {.out = text,
                                      .out_bytes = count,
                                      .errors = text,
                                      .errors_bytes = length,
                                      .status = (int)(length & 4),
                                      .is_written = length & 8};
            end_question(&host, 0, &outcome);
        }
        at += length + 1;
    }
    server_end_streams(&server);
    server_free(&server);
    return 0;
}
