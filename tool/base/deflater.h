// SPDX-License-Identifier: Apache-2.0
// Compresses a stream of bytes by all processors, in the form of zlib or gzip. The stream is cut
// into pieces of PIECE_BYTES; each is compressed for itself, by whichever thread is free, and ends
// at a byte, so that one behind the other they are one stream, as any reader takes it. What comes
// out depends on what was put in alone, never on threads.
//
// A piece of a small form in which looking for repeated bytes finds next to nothing, as a sample of
// it shows, is compressed by the frequency of its bytes and their runs, in a quarter of the time.
#ifndef TOOL_BASE_DEFLATER_H
#define TOOL_BASE_DEFLATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum deflater_form {
    DEFLATER_ZLIB,  // small: pages
    DEFLATER_GZIP,  // quick: exports
};

struct deflater;

// Gets what is compressed, in order; called by the thread that puts, within deflater_put and
// deflater_close.
typedef void deflater_give(void *context, const uint8_t *bytes, size_t size);

// `threads`: at most as many, of which the caller is one; 0: as the machine has processors.
// NULL without memory.
struct deflater *deflater_open(enum deflater_form form, unsigned threads, deflater_give *give,
                               void *context);
void deflater_put(struct deflater *deflater, const void *bytes, size_t size);
// Ends the stream and frees it. False if there was no memory: what was given is not whole.
bool deflater_close(struct deflater *deflater);

#endif
