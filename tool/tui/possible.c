// SPDX-License-Identifier: Apache-2.0
// On its own, since term.h defines words such as `columns` and `lines` as macros.
#include <stdlib.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "tool/base/one_file.h"

bool browser_is_possible(void);

// A system without descriptions of terminals, as small images of containers are, gets ours, by a
// variable that ncurses reads.
static bool is_known(const char *kind) {
    int status;
    if (setupterm(kind, STDOUT_FILENO, &status) == OK) return true;
    const char *carried = one_file_terminal(kind);
    return carried && setenv("TERMINFO", carried, 1) == 0 &&
           setupterm(kind, STDOUT_FILENO, &status) == OK;
}

bool browser_is_possible(void) {
    const char *kind = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !kind) return false;
    if (!is_known(kind)) return false;
    bool can_move = cursor_address && clear_screen;
    del_curterm(cur_term);
    return can_move;
}
