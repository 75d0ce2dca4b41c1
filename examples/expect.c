// SPDX-License-Identifier: Apache-2.0
// A unit test that says how much heap a function may use. Run by itself it passes without looking;
// under `cairn run -q` it looks. With an argument it takes more than it may, and ends by abort().
//
//     cc -Iinclude examples/expect.c -o expect && cairn run -q ./expect
#include <cairn/expect.h>
#include <string.h>

static char *volatile kept;

static void join(const char *first, const char *second) {
    char *joined = (char *)malloc(strlen(first) + strlen(second) + 1);
    strcpy(joined, first);
    strcat(joined, second);
    kept = joined;
}

int main(int argc, char **argv) {
    CAIRN_EXPECT_AT_MOST(1, 16) {
        join("one", "two");
    }
    CAIRN_EXPECT_NO_ALLOCATION {
        kept[0] = 'O';
    }
    free(kept);
    CAIRN_EXPECT_NO_GROWTH {
        join(argv[0], "again");
        if (argc == 1) free(kept);
    }
    puts(cairn_is_loaded() ? "passed" : "passed, unchecked");
    return 0;
}
