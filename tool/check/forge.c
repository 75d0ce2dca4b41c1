// SPDX-License-Identifier: Apache-2.0
// Results for what looks at code: SARIF 2.1.0, as code scanning and editors read it, and the lines
// that annotate a pull request of GitHub.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/version.h"
#include "tool/check/results.h"

enum { RULE_BYTES = 64, MESSAGE_BYTES = 1024 };

// "src/parser.c" and 120; the line is 0 if there is none.
struct code_line {
    char *path;  // for free()
    unsigned line;
};

static struct code_line place_of(const struct result *result) {
    struct code_line place = {result->place ? strdup(result->place) : NULL, 0};
    char *colon = place.path ? strrchr(place.path, ':') : NULL;
    if (colon) {
        place.line = (unsigned)strtoul(colon + 1, NULL, 10);
        *colon = 0;
    }
    return place;
}

static bool is_reported(const struct result *result) {
    return result->is_note || !result->holds;
}

// "parser peak: 14.2 MiB, more than 12.0 MiB".
static void message_of(const struct result *result, char message[MESSAGE_BYTES]) {
    snprintf(message, MESSAGE_BYTES, "%s %s: %s", result->subject, result->budget, result->text);
}

static void put_text(struct json *json, const char *key, const char *text) {
    json_open_object(json, key);
    json_put_string(json, "text", text);
    json_close(json);
}

static bool is_first_of_rule(const struct results *results, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (!strcmp(results->list.items[i].budget, results->list.items[index].budget)) return false;
    return true;
}

static void put_rules(struct json *json, const struct results *results) {
    json_open_array(json, "rules");
    for (size_t i = 0; i < results->list.count; i++) {
        char id[RULE_BYTES], text[RULE_BYTES];
        const char *budget = results->list.items[i].budget;
        if (!is_first_of_rule(results, i)) continue;
        snprintf(id, sizeof id, "memory/%s", budget);
        snprintf(text, sizeof text, "Heap memory: %s", budget);
        json_open_object(json, NULL);
        json_put_string(json, "id", id);
        put_text(json, "shortDescription", text);
        json_close(json);
    }
    json_close(json);
}

// A path as a reference to a file: what has a meaning in URIs is spelled.
static void put_uri(struct json *json, const char *path) {
    enum { SPELLED = 3 };
    bool is_absolute = *path == '/';
    char *uri = malloc(strlen(path) * SPELLED + sizeof "file://"), *at = uri;
    if (!uri) return;
    if (is_absolute) at += sprintf(at, "file://");
    for (; *path; path++) {
        unsigned char byte = (unsigned char)*path;
        if (isalnum(byte) || strchr("/._-~+", byte))
            *at++ = (char)byte;
        else
            at += sprintf(at, "%%%02X", byte);
    }
    *at = 0;
    json_put_string(json, "uri", uri);
    if (!is_absolute) json_put_string(json, "uriBaseId", "%SRCROOT%");
    free(uri);
}

static void put_location(struct json *json, const struct result *result) {
    struct code_line place = place_of(result);
    if (!place.path) return;
    json_open_array(json, "locations");
    json_open_object(json, NULL);
    json_open_object(json, "physicalLocation");
    json_open_object(json, "artifactLocation");
    put_uri(json, place.path);
    json_close(json);
    if (place.line) {
        json_open_object(json, "region");
        json_put_uint(json, "startLine", place.line);
        json_close(json);
    }
    json_close(json);
    json_close(json);
    json_close(json);
    free(place.path);
}

static char *whole_message(const struct result *result) {
    char message[MESSAGE_BYTES], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    message_of(result, message);
    fputs(message, out);
    if (result->offenders) fprintf(out, "\n%s", result->offenders);
    fclose(out);
    return text;
}

static void put_result(struct json *json, const struct result *result) {
    char rule[RULE_BYTES], print[MESSAGE_BYTES];
    char *message = whole_message(result);
    snprintf(rule, sizeof rule, "memory/%s", result->budget);
    snprintf(print, sizeof print, "%s/%s", result->subject, result->budget);
    json_open_object(json, NULL);
    json_put_string(json, "ruleId", rule);
    json_put_string(json, "level", result->holds ? "note" : "error");
    put_text(json, "message", message ? message : result->text);
    put_location(json, result);
    json_open_object(json, "partialFingerprints");
    json_put_string(json, "memory/v1", print);
    json_close(json);
    json_close(json);
    free(message);
}

void results_write_sarif(const struct results *results, FILE *out) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_put_string(&json, "version", "2.1.0");
    json_open_array(&json, "runs");
    json_open_object(&json, NULL);
    json_open_object(&json, "tool");
    json_open_object(&json, "driver");
    json_put_string(&json, "name", "cairn");
    json_put_string(&json, "version", CAIRN_TOOL_VERSION);
    put_rules(&json, results);
    json_close(&json);
    json_close(&json);
    json_open_array(&json, "results");
    for (size_t i = 0; i < results->list.count; i++)
        if (is_reported(&results->list.items[i])) put_result(&json, &results->list.items[i]);
    json_close(&json);
    json_close(&json);
    json_close(&json);
    json_close(&json);
    fputc('\n', out);
}

// What the runner takes for the end of a line or of a property is spelled.
static void put_escaped(FILE *out, const char *text, const char *special) {
    for (; text && *text; text++) {
        if (strchr(special, *text))
            fprintf(out, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, out);
    }
}

void results_print_annotations(const struct results *results, FILE *out) {
    static const char in_text[] = "%\r\n", in_property[] = "%\r\n:,";
    for (size_t i = 0; i < results->list.count; i++) {
        const struct result *result = &results->list.items[i];
        char *message = whole_message(result);
        if (is_reported(result)) {
            struct code_line place = place_of(result);
            fprintf(out, "::%s ", result->holds ? "notice" : "error");
            if (place.path) {
                fputs("file=", out);
                put_escaped(out, place.path, in_property);
                if (place.line) fprintf(out, ",line=%u", place.line);
                fputc(',', out);
            }
            fprintf(out, "title=cairn%%3A memory %s::", result->budget);
            put_escaped(out, message, in_text);
            fputc('\n', out);
            free(place.path);
        }
        free(message);
    }
}
