# SPDX-License-Identifier: Apache-2.0
server_here PROGRAM && cat >words.c <<'END' && gcc -g -O0 -o words words.c
#include <stdlib.h>
#include <string.h>

static char *copy_word(const char *word) {
    /* 23 letters and the zero need 24 bytes;
     * the count of letters is one too small
     * for a word with a mark at its end,
     * and so the zero is written behind the
     * block.
     */
    char *copy = malloc(24);
    strcpy(copy, word);
    return copy;
}

static void forget_word(char *word) {
    free(word);
}

int main(void) {
    char *word = copy_word("electroencephalographic!");
    forget_word(word);
    return 0;
}
END
