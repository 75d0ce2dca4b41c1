// SPDX-License-Identifier: Apache-2.0
#include "tool/base/gzip.h"

#include <stdlib.h>

#include "tool/base/deflater.h"

enum { BUFFER_BYTES = 65536 };

struct gzip {
    FILE *out;
    struct deflater *deflater;
    bool has_failed;  // told when all is written
};

static void write_compressed(void *context, const uint8_t *bytes, size_t size) {
    struct gzip *gzip = context;
    gzip->has_failed |= fwrite(bytes, 1, size, gzip->out) != size;
}

static ssize_t write_bytes(void *cookie, const char *bytes, size_t size) {
    struct gzip *gzip = cookie;
    deflater_put(gzip->deflater, bytes, size);
    return (ssize_t)size;
}

static int finish(void *cookie) {
    struct gzip *gzip = cookie;
    bool is_ok = gzip->deflater && deflater_close(gzip->deflater) && !gzip->has_failed;
    free(gzip);
    return is_ok ? 0 : EOF;
}

FILE *gzip_open(FILE *out, struct error *error) {
    const cookie_io_functions_t functions = {.write = write_bytes, .close = finish};
    struct gzip *gzip = calloc(1, sizeof *gzip);
    FILE *file = gzip ? fopencookie(gzip, "wb", functions) : NULL;
    if (file) {
        gzip->out = out;
        gzip->deflater = deflater_open(DEFLATER_GZIP, 0, write_compressed, gzip);
        if (gzip->deflater) {
            setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
            return file;
        }
        fclose(file);
    } else {
        free(gzip);
    }
    error_set(error, "no memory for compression");
    return NULL;
}
