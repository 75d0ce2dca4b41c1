// SPDX-License-Identifier: Apache-2.0
// Loads a file whole. Planted: what describes it is not freed where its content finds no room.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct loaded {
    char *name, *bytes;
    size_t size;
};

static struct loaded *load(const char *name) {
    FILE *file = fopen(name, "rb");
    struct loaded *loaded = file ? calloc(1, sizeof *loaded) : NULL;
    if (!loaded || fseek(file, 0, SEEK_END)) goto fail;
    loaded->size = (size_t)ftell(file);
    rewind(file);
    loaded->name = strdup(name);
    if (!loaded->name) goto fail;
    loaded->bytes = malloc(loaded->size + 1);
    if (!loaded->bytes) goto fail;
    if (fread(loaded->bytes, 1, loaded->size, file) != loaded->size) goto fail;
    loaded->bytes[loaded->size] = 0;
    fclose(file);
    return loaded;
fail:
    if (file) fclose(file);
#ifdef RIGHT
    if (loaded) free(loaded->name);
#endif
    if (loaded) free(loaded->bytes);
    free(loaded);
    return NULL;
}

int main(int argc, char **argv) {
    struct loaded *loaded = argc ? load(argv[0]) : NULL;
    if (!loaded) {
        fputs("it cannot be loaded\n", stderr);
        return 1;
    }
    printf("%s is an ELF file: %d\n", strrchr(loaded->name, '/') + 1,
           !memcmp(loaded->bytes + 1, "ELF", 3));
    free(loaded->name);
    free(loaded->bytes);
    free(loaded);
    return 0;
}
