// SPDX-License-Identifier: Apache-2.0
// brief MIB MS: holds MIB MiB for a while, says "RSS KIB" by its own smaps_rollup, and ends.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, US_PER_MS = 1000 };

int main(int count, char **words) {
    char text[4096], said[64];
    if (count != 3) return 2;
    size_t bytes = (size_t)atoi(words[1]) * MIB;
    static char *block;
    block = malloc(bytes);
    if (!block) return 1;
    memset(block, 1, bytes);
    usleep((useconds_t)atoi(words[2]) * US_PER_MS);
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (length <= 0) return 1;
    text[length] = 0;
    const char *rss = strstr(text, "Rss:");
    int used = snprintf(said, sizeof said, "RSS %ld\n", rss ? strtol(rss + 4, NULL, 10) : 0);
    return write(STDOUT_FILENO, said, (size_t)used) == used ? 0 : 1;
}
