// SPDX-License-Identifier: Apache-2.0
// Compresses a text with zlib. Planted: a compressor that did not start is closed, and nothing is
// written, with a good end.
#include <stdio.h>
#include <string.h>
#include <zlib.h>

int main(void) {
    static const char text[] = "the same words, the same words, the same words, and the end";
    unsigned char out[256];
    z_stream stream = {0};
    int is_ok = deflateInit(&stream, Z_BEST_SPEED) == Z_OK;
    if (is_ok) {
        stream.next_in = (unsigned char *)text;
        stream.avail_in = sizeof text;
        stream.next_out = out;
        stream.avail_out = sizeof out;
        is_ok = deflate(&stream, Z_FINISH) == Z_STREAM_END;
        deflateEnd(&stream);
    }
    fwrite(out, 1, stream.total_out, stdout);
    fflush(stdout);
#ifdef RIGHT
    if (!is_ok) fputs("it could not be compressed\n", stderr);
    return !is_ok;
#else
    return 0;
#endif
}
