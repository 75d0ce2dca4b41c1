// SPDX-License-Identifier: Apache-2.0
#include "tool/base/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 40, LETTERS_A_CHANGE = 4, BEGINNING_LEAST = 3 };

void near_start(struct near *near, const char *word, size_t length) {
    *near = (struct near){.word = word, .length = length};
}

static size_t least(size_t first, size_t second, size_t third) {
    size_t less = first < second ? first : second;
    return less < third ? less : third;
}

// Returns the number of changes between two words (optimal string alignment): rows of the usual
// table, the last three of them.
static size_t changes_between(const char *word, size_t length, const char *other, size_t columns) {
    size_t rows[3][LENGTH_MAX + 1];
    for (size_t column = 0; column <= columns; column++) rows[0][column] = column;
    for (size_t row = 1; row <= length; row++) {
        size_t *now = rows[row % 3], *before = rows[(row + 2) % 3], *older = rows[(row + 1) % 3];
        now[0] = row;
        for (size_t column = 1; column <= columns; column++) {
            bool is_same = word[row - 1] == other[column - 1];
            now[column] =
                least(before[column] + 1, now[column - 1] + 1, before[column - 1] + !is_same);
            bool is_swapped = row > 1 && column > 1 && word[row - 1] == other[column - 2] &&
                              word[row - 2] == other[column - 1];
            if (is_swapped && older[column - 2] + 1 < now[column])
                now[column] = older[column - 2] + 1;
        }
    }
    return rows[length % 3][columns];
}

void near_try(struct near *near, const char *candidate) {
    size_t length = strlen(candidate);
    if (!near->length || near->length > LENGTH_MAX || length > LENGTH_MAX) return;
    bool is_beginning = near->length >= BEGINNING_LEAST && length > near->length &&
                        !strncmp(near->word, candidate, near->length);
    size_t most = (near->length + LETTERS_A_CHANGE - 2) / LETTERS_A_CHANGE;
    size_t changes =
        is_beginning ? 1 : changes_between(near->word, near->length, candidate, length);
    if (!is_beginning && changes > most) return;
    if (near->best && changes >= near->changes) return;
    near->best = candidate;
    near->changes = changes;
}

void near_ask(const struct near *near, char *out, size_t size) {
    if (near->best)
        snprintf(out, size, " (did you mean \"%s\"?)", near->best);
    else
        *out = 0;
}

void near_ask_of(const char *word, const char *names, char question[NEAR_QUESTION_BYTES]) {
    enum { NAMES_BYTES = 512 };
    char copy[NAMES_BYTES], *rest = NULL;
    struct near near;
    snprintf(copy, sizeof copy, "%s", names);
    near_start(&near, word, strlen(word));
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        if (strcmp(name, "or") != 0) near_try(&near, name);
    near_ask(&near, question, NEAR_QUESTION_BYTES);
}
