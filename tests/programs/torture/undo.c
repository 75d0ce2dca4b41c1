// SPDX-License-Identifier: Apache-2.0
// An editor's lines, with a copy of each for undo. Planted: where the copy finds no room, the line
// is freed, and freed again at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char *text, *before;
};

static int change(struct line *line, const char *text) {
    char *changed = strdup(text);
    if (!changed) return 0;
    line->before = strdup(line->text);
    if (!line->before) {
        free(changed);
#ifndef RIGHT
        free(line->text);
#endif
        return 0;
    }
    free(line->text);
    line->text = changed;
    return 1;
}

int main(void) {
    struct line line = {strdup("the first text of this line, which is not short"), NULL};
    int is_ok = line.text && change(&line, "another text");
    if (is_ok) printf("%s, before: %s\n", line.text, line.before);
    free(line.before);
    free(line.text);
    return !is_ok;
}
