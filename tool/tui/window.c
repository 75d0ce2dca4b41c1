// SPDX-License-Identifier: Apache-2.0
#include "tool/tui/window.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "tool/base/text.h"

enum { LINE_BYTES = 4096, ESCAPE = 27, KEY_BACKSPACE_ASCII = 127 };
enum { PAIR_NAME = 1, PAIR_WARNING = 2 };

static bool is_ascii;

// A locale that somebody chose is believed; where there is none, terminals know UTF-8 nevertheless.
static bool has_chosen_locale(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return true;
    }
    return false;
}

void window_start(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        is_ascii = has_chosen_locale() || !setlocale(LC_CTYPE, "C.UTF-8");
    initscr();
    cbreak();
    noecho();
    keypad(stdscr, true);
    set_escdelay(25);
    curs_set(0);
    if (!has_colors()) return;
    start_color();
    use_default_colors();
    init_pair(PAIR_NAME, COLOR_CYAN, -1);
    init_pair(PAIR_WARNING, COLOR_RED, -1);
}

static int color(int pair) {
    const char *no_color = getenv("NO_COLOR");
    return has_colors() && !(no_color && *no_color) ? COLOR_PAIR(pair) : A_BOLD;
}

int window_accent(void) {
    return color(PAIR_NAME);
}

int window_warning(void) {
    return color(PAIR_WARNING);
}

// One character of ASCII for one of UTF-8.
static char ascii_of(const char *character) {
    static const struct {
        const char *character;
        char ascii;
    } known[] = {
        {"\xe2\x86\x90", '<'}, {"\xe2\x80\xa6", '~'}, {"\xc2\xb7", '-'},     {"\xc2\xb1", '+'},
        {"\xe2\x96\xb8", '>'}, {"\xe2\x96\xbe", 'v'}, {"\xe2\x96\x81", '_'}, {"\xe2\x96\x82", '.'},
        {"\xe2\x96\x83", ':'}, {"\xe2\x96\x84", '-'}, {"\xe2\x96\x85", '='}, {"\xe2\x96\x86", '+'},
        {"\xe2\x96\x87", '*'}, {"\xe2\x96\x88", '#'},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(character, known[i].character, strlen(known[i].character)))
            return known[i].ascii;
    return '?';
}

void window_to_ascii(char *text) {
    const unsigned char continued = 0x80, lead = 0xc0;
    char *out = text;
    for (const char *at = text; *at; at++) {
        if (((unsigned char)*at & lead) == continued) continue;
        *out++ = (unsigned char)*at < continued ? *at : ascii_of(at);
    }
    *out = 0;
}

size_t window_put(int attribute, const char *text, size_t columns) {
    char cut[LINE_BYTES];
    if (!columns) return 0;
    snprintf(cut, sizeof cut, "%s", text);
    text_cut(cut, columns);
    size_t used = text_columns(cut);
    if (is_ascii) window_to_ascii(cut);
    attron(attribute);
    addstr(cut);
    attroff(attribute);
    return used;
}

// The attribute of a sequence "\033[2m" as terminal_print writes them.
static int attribute_of(const char *sequence) {
    switch (sequence[2]) {
    case '1':
        return A_BOLD;
    case '2':
        return A_DIM;
    case '3':
        return sequence[3] == '6' ? window_accent() : window_warning();
    default:
        return A_NORMAL;
    }
}

void window_put_styled(int attribute, const char *text, size_t columns) {
    int style = A_NORMAL;
    size_t used = 0;
    while (*text && used < columns) {
        char part[LINE_BYTES];
        size_t length = strcspn(text, "\033");
        if (length) {
            snprintf(part, sizeof part, "%.*s", (int)length, text);
            // dim or coloured text cannot be read where everything is reversed
            int shown = attribute & A_REVERSE ? attribute : attribute | style;
            used += window_put(shown, part, columns - used);
        }
        text += length;
        if (*text != ESCAPE) continue;
        style = attribute_of(text);
        text += strcspn(text, "m");
        text += *text == 'm';
    }
    if (attribute & A_REVERSE)
        for (; used < columns; used++) window_put(attribute, " ", 1);
}

bool window_input(const char *prompt, char *input, size_t size) {
    size_t used = 0;
    *input = 0;
    for (;;) {
        move(LINES - 2, 0);
        clrtoeol();
        window_put(A_BOLD, prompt, (size_t)COLS);
        window_put(A_NORMAL, input, (size_t)COLS / 2);
        refresh();
        int key = getch();
        if (key == '\n' || key == KEY_ENTER) return used > 0;
        if (key == ESCAPE || key == ERR) return false;
        if ((key == KEY_BACKSPACE || key == KEY_BACKSPACE_ASCII || key == '\b') && used)
            input[--used] = 0;
        else if (key >= ' ' && key < KEY_BACKSPACE_ASCII && used + 1 < size)
            input[used++] = (char)key, input[used] = 0;
    }
}
