// SPDX-License-Identifier: Apache-2.0
#include "tool/base/toml.h"

#include <ctype.h>
#include <string.h>

#include "tool/base/text.h"

enum { LINE_BYTES = 4096 };

// A line that is being read.
struct cursor {
    const char *at;
    const char *name;  // of the file
    unsigned line;
    struct error *error;
};

static bool refuse(const struct cursor *cursor, const char *what) {
    return error_set(cursor->error, "%s:%u: %s", cursor->name, cursor->line, what);
}

static void skip_blanks(struct cursor *cursor) {
    cursor->at += strspn(cursor->at, " \t");
}

static bool is_bare(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || byte == '-';
}

static bool at_end(const struct cursor *cursor) {
    return !*cursor->at || *cursor->at == '#';
}

static bool put(struct cursor *cursor, char text[TOML_TEXT_BYTES], size_t *used, char byte) {
    if (*used + 1 >= TOML_TEXT_BYTES) return refuse(cursor, "a text is too long");
    text[(*used)++] = byte;
    text[*used] = 0;
    return true;
}

static bool take_escape(struct cursor *cursor, char *byte) {
    static const char names[] = "\"\\ntr", meanings[] = "\"\\\n\t\r";
    const char *known = *cursor->at ? strchr(names, *cursor->at) : NULL;
    if (!known) return refuse(cursor, "an escape that is none of \\\" \\\\ \\n \\t \\r");
    *byte = meanings[known - names];
    cursor->at++;
    return true;
}

static bool take_quoted(struct cursor *cursor, char text[TOML_TEXT_BYTES]) {
    char quote = *cursor->at++;
    size_t used = 0;
    *text = 0;
    if (cursor->at[0] == quote && cursor->at[1] == quote)
        return refuse(cursor, "texts of several lines are not taken");
    while (*cursor->at && *cursor->at != quote) {
        char byte = *cursor->at++;
        if ((unsigned char)byte < ' ' && byte != '\t')
            return refuse(cursor, "a control character in a text");
        if (byte == '\\' && quote == '"' && !take_escape(cursor, &byte)) return false;
        if (!put(cursor, text, &used, byte)) return false;
    }
    if (!*cursor->at) return refuse(cursor, "the text has no end");
    cursor->at++;
    return true;
}

static bool take_name(struct cursor *cursor, char text[TOML_TEXT_BYTES]) {
    size_t used = 0;
    *text = 0;
    if (*cursor->at == '"' || *cursor->at == '\'') return take_quoted(cursor, text);
    while (is_bare(*cursor->at))
        if (!put(cursor, text, &used, *cursor->at++)) return false;
    if (!used) return refuse(cursor, "a name is missing; unusual ones are quoted");
    if (*cursor->at == '.') return refuse(cursor, "names with dots are quoted: \"a.b\"");
    return true;
}

// Digits with single underscores between them, as TOML has them; false: there is no digit.
static bool take_digits(struct cursor *cursor, struct toml_entry *entry, size_t *used) {
    size_t before = *used;
    while (isdigit((unsigned char)*cursor->at)) {
        if (!put(cursor, entry->text, used, *cursor->at++)) return false;
        if (cursor->at[0] == '_' && isdigit((unsigned char)cursor->at[1])) cursor->at++;
    }
    return *used > before || refuse(cursor, "a value is a text in quotes or a number");
}

static bool take_number(struct cursor *cursor, struct toml_entry *entry) {
    size_t used = 0;
    const char *start;
    *entry->text = 0;
    if (strchr("+-", *cursor->at) && *cursor->at)
        if (!put(cursor, entry->text, &used, *cursor->at++)) return false;
    start = cursor->at;
    if (!take_digits(cursor, entry, &used)) return false;
    bool is_integer = *cursor->at != '.' && *cursor->at != 'e' && *cursor->at != 'E';
    if (start[0] == '0' && isdigit((unsigned char)start[1]))
        return refuse(cursor, "a number does not start with 0");
    if (*cursor->at == '.' &&
        (!put(cursor, entry->text, &used, *cursor->at++) || !take_digits(cursor, entry, &used)))
        return false;
    if (!is_integer && (*cursor->at == 'e' || *cursor->at == 'E')) {
        if (!put(cursor, entry->text, &used, *cursor->at++)) return false;
        if ((*cursor->at == '+' || *cursor->at == '-') &&
            !put(cursor, entry->text, &used, *cursor->at++))
            return false;
        if (!take_digits(cursor, entry, &used)) return false;
    }
    entry->number = strtod(entry->text, NULL);
    return true;
}

static bool read_value(struct cursor *cursor, struct toml_entry *entry) {
    skip_blanks(cursor);
    if (*cursor->at++ != '=') return refuse(cursor, "behind a key comes \"=\"");
    skip_blanks(cursor);
    entry->is_text = *cursor->at == '"' || *cursor->at == '\'';
    return entry->is_text ? take_quoted(cursor, entry->text) : take_number(cursor, entry);
}

static bool read_table(struct cursor *cursor, struct toml_entry *entry) {
    cursor->at++;
    if (*cursor->at == '[') return refuse(cursor, "arrays of tables are not taken");
    skip_blanks(cursor);
    if (!take_name(cursor, entry->table)) return false;
    skip_blanks(cursor);
    return *cursor->at++ == ']' || refuse(cursor, "behind a table's name comes \"]\"");
}

static bool is_twice(const struct toml *toml, const struct toml_entry *entry) {
    for (size_t i = 0; i < toml->entries.count; i++)
        if (!strcmp(toml->entries.items[i].table, entry->table) &&
            !strcmp(toml->entries.items[i].key, entry->key))
            return true;
    return false;
}

static bool read_line(struct cursor *cursor, struct toml *toml) {
    struct toml_entry entry = {.line = cursor->line};
    size_t count = toml->entries.count;
    skip_blanks(cursor);
    if (at_end(cursor)) return true;
    if (count) memcpy(entry.table, toml->entries.items[count - 1].table, sizeof entry.table);
    bool is_table = *cursor->at == '[';
    bool is_read = is_table ? read_table(cursor, &entry)
                            : take_name(cursor, entry.key) && read_value(cursor, &entry);
    if (!is_read) return false;
    if (!is_table && !*entry.key) return refuse(cursor, "a key is empty");
    skip_blanks(cursor);
    if (!at_end(cursor)) return refuse(cursor, "something is behind the end of the value");
    if (is_twice(toml, &entry))
        return refuse(cursor, is_table ? "the table is there twice" : "the key is there twice");
    struct toml_entry *slot = array_push(&toml->entries);
    if (!slot) return refuse(cursor, "no memory");
    *slot = entry;
    return true;
}

bool toml_read(FILE *file, const char *name, struct toml *toml, struct error *error) {
    char line[LINE_BYTES];
    struct cursor cursor = {.name = name, .error = error};
    *toml = (struct toml){0};
    while (fgets(line, sizeof line, file)) {
        size_t length = strlen(line);
        bool is_whole = length && line[length - 1] == '\n';
        cursor.line++;
        cursor.at = line;
        if (!is_whole && !feof(file))
            return refuse(&cursor,
                          length + 1 < sizeof line ? "a zero byte" : "the line is too long");
        while (length && strchr("\r\n", line[length - 1])) line[--length] = 0;
        if (!read_line(&cursor, toml)) return false;
    }
    return !ferror(file) || refuse(&cursor, "cannot be read");
}

void toml_free(struct toml *toml) {
    array_free(&toml->entries);
}
