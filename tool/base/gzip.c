// SPDX-License-Identifier: Apache-2.0
#include "tool/base/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tool/base/behind.h"

enum { CHUNK_BYTES = 65536, GZIP_WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8, FAST_LEVEL = 3 };

struct gzip {
    FILE *out;
    struct behind behind;
    z_stream stream;
    bool has_failed;  // told when all is written
    unsigned char chunk[CHUNK_BYTES];
};

static bool run(struct gzip *gzip, int mode) {
    do {
        gzip->stream.next_out = gzip->chunk;
        gzip->stream.avail_out = CHUNK_BYTES;
        if (deflate(&gzip->stream, mode) == Z_STREAM_ERROR) return false;
        size_t made = CHUNK_BYTES - gzip->stream.avail_out;
        if (fwrite(gzip->chunk, 1, made, gzip->out) != made) return false;
    } while (!gzip->stream.avail_out);
    return true;
}

static void compress_block(void *context, const void *bytes, size_t size) {
    struct gzip *gzip = context;
    gzip->stream.next_in = (unsigned char *)bytes;
    gzip->stream.avail_in = (uInt)size;
    if (!gzip->has_failed) gzip->has_failed = !run(gzip, Z_NO_FLUSH);
}

static ssize_t write_bytes(void *cookie, const char *bytes, size_t size) {
    struct gzip *gzip = cookie;
    behind_put(&gzip->behind, bytes, size);
    return (ssize_t)size;
}

static int finish(void *cookie) {
    struct gzip *gzip = cookie;
    behind_end(&gzip->behind);
    gzip->stream.next_in = NULL;
    gzip->stream.avail_in = 0;
    bool is_ok = !gzip->has_failed && run(gzip, Z_FINISH);
    deflateEnd(&gzip->stream);
    free(gzip);
    return is_ok ? 0 : EOF;
}

FILE *gzip_open(FILE *out, struct error *error) {
    const cookie_io_functions_t functions = {.write = write_bytes, .close = finish};
    struct gzip *gzip = calloc(1, sizeof *gzip);
    bool is_ready = gzip && deflateInit2(&gzip->stream, FAST_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS,
                                         MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    if (is_ready && !behind_start(&gzip->behind, compress_block, gzip)) {
        deflateEnd(&gzip->stream);
        is_ready = false;
    }
    if (is_ready) gzip->out = out;
    FILE *file = is_ready ? fopencookie(gzip, "wb", functions) : NULL;
    if (file) {
        setvbuf(file, NULL, _IOFBF, CHUNK_BYTES);
        return file;
    }
    if (is_ready) behind_end(&gzip->behind);
    if (is_ready) deflateEnd(&gzip->stream);
    free(gzip);
    error_set(error, "no memory for compression");
    return NULL;
}
