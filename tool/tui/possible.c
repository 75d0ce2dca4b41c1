// SPDX-License-Identifier: Apache-2.0
// On its own, since term.h defines words such as `columns` and `lines` as macros.
#include <stdlib.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

bool browser_is_possible(void);

bool browser_is_possible(void) {
    const char *kind = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !kind) return false;
    int status;
    bool is_known = setupterm(kind, STDOUT_FILENO, &status) == OK;
    bool can_move = is_known && cursor_address && clear_screen;
    if (is_known) del_curterm(cur_term);
    return can_move;
}
