// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/question.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/mcp/resources.h"

enum {
    SECONDS_USUAL = 120,   // for a question
    SECONDS_RECORD = 600,  // for a command, unless the client says more
    SECONDS_MAX = 24 * 60 * 60,
    NAME_MAX_BYTES = 100,
    NAMES_TRIED = 10000,
    PID_DIGITS = 10,
};

// What the arguments of one question are read with.
struct reading {
    struct question *question;
    const struct roots *roots;
    bool can_run;
    const struct mcp_parameter *parameter;
    json_t *value;
    struct error *error;
};

static bool refuse(const struct reading *reading, const char *problem) {
    return error_set(reading->error, "\"%s\": %s", reading->parameter->name, problem);
}

static bool __attribute__((format(printf, 2, 3)))
add_word(const struct reading *reading, const char *format, ...) {
    struct question *question = reading->question;
    va_list list;
    char *word;
    if (question->word_count == QUESTION_WORDS_MAX)
        return error_set(reading->error, "more than %d words", QUESTION_WORDS_MAX);
    va_start(list, format);
    int length = vasprintf(&word, format, list);
    va_end(list);
    if (length < 0) return error_set(reading->error, "no memory for the question");
    question->words[question->word_count++] = word;
    return true;
}

static bool add_words(const struct reading *reading, const char *words) {
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (!add_word(reading, "%.*s", (int)length, words)) return false;
    }
    return true;
}

// "--top=5", or a word of its own, which does not begin an option.
static bool add_value(const struct reading *reading, const char *text) {
    const char *option = reading->parameter->option;
    if (option) return add_word(reading, "%s=%s", option, text);
    if (*text == '-') return refuse(reading, "may not begin with a dash");
    return add_word(reading, "%s", text);
}

static const char *text_of(const struct reading *reading) {
    const char *text = json_string_value(reading->value);
    if (!text || !*text) refuse(reading, "is to be a text that is not empty");
    if (text && strlen(text) >= QUESTION_WORD_BYTES) {
        refuse(reading, "is too long");
        return NULL;
    }
    return text && *text ? text : NULL;
}

static bool read_text(const struct reading *reading) {
    const char *text = text_of(reading);
    return text && add_value(reading, text);
}

static bool read_number(const struct reading *reading) {
    if (!json_is_integer(reading->value) || json_integer_value(reading->value) < 0)
        return refuse(reading, "is to be a whole number, 0 or more");
    return add_word(reading, "%s=%lld", reading->parameter->option,
                    (long long)json_integer_value(reading->value));
}

static bool read_switch(const struct reading *reading) {
    if (!json_is_boolean(reading->value)) return refuse(reading, "is to be true or false");
    return !json_is_true(reading->value) || add_word(reading, "%s", reading->parameter->option);
}

static bool read_choice(const struct reading *reading) {
    const char *text = text_of(reading);
    const char *words = reading->parameter->choices;
    for (size_t length; text && *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (strlen(text) == length && !strncmp(text, words, length))
            return add_value(reading, text);
    }
    return text && error_set(reading->error, "\"%s\": one of %s, not \"%.100s\"",
                             reading->parameter->name, reading->parameter->choices, text);
}

static bool read_file(const struct reading *reading) {
    char path[PATH_MAX];
    const char *text = text_of(reading);
    if (!text || !roots_find(reading->roots, text, path, reading->error)) return false;
    // commands run in the first root: answers name files as the client would
    const char *name = roots_name(reading->roots, path);
    if (reading->parameter->option)
        return add_word(reading, "%s=%s", reading->parameter->option, name);
    return add_word(reading, "%s%s", *name == '-' ? "./" : "", name);
}

static bool is_pid(const char *text) {
    size_t length = strspn(text, "0123456789");
    return length && length <= PID_DIGITS && !text[length];
}

static bool read_process(const struct reading *reading) {
    char digits[PID_DIGITS * 2 + 1];
    const char *text = json_string_value(reading->value);
    if (json_is_integer(reading->value)) {
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(reading->value));
        text = digits;
    }
    if (!text || !is_pid(text)) return read_file(reading);
    if (reading->can_run) return add_word(reading, "%s", text);
    return refuse(reading, "running processes are looked into only if the server was started with "
                           "--allow-run");
}

// Added to the word before it, which is of the file.
static bool read_at(const struct reading *reading) {
    struct question *question = reading->question;
    const char *text = text_of(reading);
    char *file, **word = &question->words[question->word_count - 1];
    if (!text) return false;
    // FILE@SNAPSHOT could be a file of its own, and lead elsewhere
    if (strchr(text, '/')) return refuse(reading, "is to be a time or a label, without a slash");
    if (asprintf(&file, "%s@%s", *word, text) < 0)
        return error_set(reading->error, "no memory for the question");
    free(*word);
    *word = file;
    return true;
}

static bool read_directory(const struct reading *reading) {
    const char *text = text_of(reading);
    return text && roots_find(reading->roots, text, reading->question->directory, reading->error);
}

static bool is_plain_name(const char *text) {
    for (const char *letter = text; *letter; letter++)
        if (!isalnum((unsigned char)*letter) && !strchr("._-", *letter)) return false;
    return strlen(text) < NAME_MAX_BYTES && *text != '.' && *text != '-';
}

static bool read_name(const struct reading *reading) {
    const char *text = text_of(reading);
    if (!text) return false;
    if (!is_plain_name(text))
        return refuse(reading, "is to be a name of letters, digits, dots, dashes");
    snprintf(reading->question->output, sizeof reading->question->output, "%s", text);
    return true;
}

static bool read_seconds(const struct reading *reading) {
    json_int_t seconds = json_integer_value(reading->value);
    if (!json_is_integer(reading->value) || seconds < 1 || seconds > SECONDS_MAX)
        return refuse(reading, "is to be a number of seconds, at most a day");
    reading->question->seconds = (int)seconds;
    return true;
}

static bool is_command(const struct reading *reading) {
    size_t count = json_array_size(reading->value);
    if (!count || count > QUESTION_WORDS_MAX / 2)
        return refuse(reading, "is to be a list of 1 to 128 words");
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(reading->value, i);
        if (!json_is_string(word) || json_string_length(word) >= QUESTION_WORD_BYTES)
            return refuse(reading, "is to be a list of texts");
    }
    return *json_string_value(json_array_get(reading->value, 0)) ||
           refuse(reading, "the first word is empty");
}

static bool read_parameter(struct reading *reading) {
    switch (reading->parameter->kind) {
    case MCP_TEXT:
        return read_text(reading);
    case MCP_NUMBER:
        return read_number(reading);
    case MCP_SWITCH:
        return read_switch(reading);
    case MCP_CHOICE:
        return read_choice(reading);
    case MCP_FILE:
        return read_file(reading);
    case MCP_PROCESS:
        return read_process(reading);
    case MCP_AT:
        return read_at(reading);
    case MCP_DIRECTORY:
        return read_directory(reading);
    case MCP_NAME:
        return read_name(reading);
    case MCP_SECONDS:
        return read_seconds(reading);
    case MCP_COMMAND:  // stands at the end of the command line
        return is_command(reading);
    case MCP_WORD:
        break;
    }
    return true;
}

static bool read_row(struct reading *reading, json_t *arguments) {
    const struct mcp_parameter *parameter = reading->parameter;
    if (parameter->kind == MCP_WORD) return add_word(reading, "%s", parameter->option);
    reading->value = json_object_get(arguments, parameter->name);
    if (reading->value && !json_is_null(reading->value)) return read_parameter(reading);
    if (parameter->is_required) return refuse(reading, "is missing");
    if (!parameter->has_default) return true;
    size_t length = strcspn(parameter->choices, " ");
    return add_word(reading, "%s=%.*s", parameter->option, (int)length, parameter->choices);
}

// What is no parameter is a mistake of the agent that it should hear of.
static bool check_names(const struct mcp_tool *tool, json_t *arguments, struct error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(arguments, name, value) {
        const struct mcp_parameter *parameter = tool->parameters;
        bool is_known = !strcmp(name, "page");
        for (; !is_known && !mcp_parameter_is_last(parameter); parameter++)
            is_known = parameter->name && !strcmp(parameter->name, name);
        if (!is_known)
            return error_set(error, "%s has no argument \"%.100s\"; tools/list has them",
                             tool->name, name);
    }
    return true;
}

static bool read_page(struct question *question, json_t *arguments, struct error *error) {
    json_t *page = json_object_get(arguments, "page");
    question->page = 1;
    if (!page || json_is_null(page)) return true;
    if (!json_is_integer(page) || json_integer_value(page) < 1)
        return error_set(error, "\"page\": is to be a whole number, 1 or more");
    question->page = (size_t)json_integer_value(page);
    return true;
}

// A name that is free: NAME.cairn, NAME-2.cairn, ...
static bool choose_output(struct question *question, const char *program, struct error *error) {
    char name[NAME_MAX_BYTES] = "", path[PATH_MAX];
    snprintf(name, sizeof name, "%s", *question->output ? question->output : program);
    for (char *letter = name; *letter; letter++)
        if (!isalnum((unsigned char)*letter) && !strchr("._-", *letter)) *letter = '_';
    if (!is_plain_name(name) || !*name) snprintf(name, sizeof name, "recording");
    for (int i = 1; i < NAMES_TRIED; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        int length =
            snprintf(path, sizeof path, "%s/%s%s.cairn", question->directory, name, number);
        if (length >= (int)sizeof path) break;
        if (!access(path, F_OK)) continue;
        memcpy(question->output, path, sizeof path);
        return true;
    }
    return error_set(error, "%s: no name is free for a recording", question->directory);
}

static bool add_command(struct reading *reading, json_t *command) {
    struct question *question = reading->question;
    const char *program = text_base_name(json_string_value(json_array_get(command, 0)));
    if (!choose_output(question, program, reading->error) ||
        !add_word(reading, "--output=%s", question->output) ||
        !add_word(reading, "--summary=/proc/self/fd/%d", QUESTION_SUMMARY_FD) ||
        !add_word(reading, "--"))
        return false;
    for (size_t i = 0; i < json_array_size(command); i++)
        if (!add_word(reading, "%s", json_string_value(json_array_get(command, i)))) return false;
    return true;
}

bool question_make(struct question *question, const struct roots *roots, bool can_run,
                   const struct mcp_tool *tool, json_t *arguments, struct error *error) {
    struct reading reading = {
        .question = question, .roots = roots, .can_run = can_run, .error = error};
    question->tool = tool;
    question->arguments = json_incref(arguments);
    question->seconds = tool->is_run ? SECONDS_RECORD : SECONDS_USUAL;
    snprintf(question->directory, sizeof question->directory, "%s", roots->paths[0]);
    if (!check_names(tool, arguments, error) || !read_page(question, arguments, error))
        return false;
    if (tool->is_list) return true;
    if (!add_word(&reading, "cairn") || !add_words(&reading, tool->command)) return false;
    reading.parameter = tool->parameters;
    for (; !mcp_parameter_is_last(reading.parameter); reading.parameter++)
        if (!read_row(&reading, arguments)) return false;
    return !tool->is_run || add_command(&reading, json_object_get(arguments, "command"));
}

bool question_make_resource(struct question *question, const struct roots *roots, const char *uri,
                            struct error *error) {
    char path[PATH_MAX];
    if (!resource_path(uri, path, error)) return false;
    json_t *arguments = json_pack("{s:s}", "recording", path);
    question->is_resource = true;
    snprintf(question->uri, sizeof question->uri, "%s", uri);
    bool is_ok = arguments &&
                 question_make(question, roots, false, mcp_tool_find("summary"), arguments, error);
    json_decref(arguments);
    return is_ok;
}

void question_free(struct question *question) {
    for (size_t i = 0; i < question->word_count; i++) free(question->words[i]);
    json_decref(question->id);
    json_decref(question->token);
    json_decref(question->arguments);
    *question = (struct question){0};
}
