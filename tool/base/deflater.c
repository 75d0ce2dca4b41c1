// SPDX-License-Identifier: Apache-2.0
// Pieces stand in a ring. The caller fills them, hands them over, gives away those that are done,
// in order, and compresses one itself whenever the ring is full: so no thread waits while there is
// something to do. Only the counters and `is_done` are shared; a piece belongs to whoever took it.
#include "tool/base/deflater.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

// A piece begins with what stands before it in the stream: its first bytes may repeat that. A
// stream up to ALONE_BYTES is too short for a thread to save time.
enum { PIECE_BYTES = 1 << 18, BEFORE_BYTES = 1 << 15, ALONE_BYTES = 1 << 20 };
enum { RING = 8, WORKERS_MOST = 3 };
enum { RAW_WINDOW_BITS = -15, MEMORY_LEVEL = 8 };
enum { ZLIB_LEVEL = 6, GZIP_LEVEL = 3, SAMPLE_LEVEL = 1 };
// Some libraries behind zlib's interface write 9 bits for a byte that cannot be compressed.
enum { OUT_BYTES = PIECE_BYTES + PIECE_BYTES / 8 + 64 };
enum { SAMPLES = 8, SAMPLE_BYTES = 2048 };

struct piece {
    uint8_t *bytes;  // BEFORE_BYTES, then PIECE_BYTES
    uint8_t *out;    // OUT_BYTES
    size_t before, size, out_size;
    uLong check;
    bool is_done, is_bad;
};

struct deflater {
    enum deflater_form form;
    deflater_give *give;
    void *context;
    z_stream stream;  // the caller's
    struct piece ring[RING];
    uint64_t total_bytes;
    uLong check;
    bool has_begun, is_bad;
    unsigned threads_most, worker_count;
    pthread_t workers[WORKERS_MOST];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t filled, taken, given;  // numbers of pieces
    bool is_over;
};

static bool stream_start(struct deflater *deflater, z_stream *stream) {
    int level = deflater->form == DEFLATER_ZLIB ? ZLIB_LEVEL : GZIP_LEVEL;
    *stream = (z_stream){0};
    return deflateInit2(stream, level, Z_DEFLATED, RAW_WINDOW_BITS, MEMORY_LEVEL,
                        Z_DEFAULT_STRATEGY) == Z_OK;
}

// --- one piece

// How long it becomes; 0: there was no room.
static size_t compress_bytes(z_stream *stream, int level, int strategy, const uint8_t *bytes,
                             size_t before, size_t size, uint8_t *out) {
    deflateReset(stream);
    stream->next_in = NULL;
    stream->avail_in = 0;
    stream->next_out = out;
    stream->avail_out = OUT_BYTES;
    if (deflateParams(stream, level, strategy) != Z_OK) return 0;
    if (before && deflateSetDictionary(stream, bytes - before, (uInt)before) != Z_OK) return 0;
    stream->next_in = (Bytef *)bytes;
    stream->avail_in = (uInt)size;
    bool is_whole = deflate(stream, Z_SYNC_FLUSH) == Z_OK && !stream->avail_in && stream->avail_out;
    return is_whole ? OUT_BYTES - stream->avail_out : 0;
}

// Whether it is of use to look for repeated bytes in the piece, by samples of it: not if that makes
// them less than 3 % shorter than frequencies and runs alone do. What these bring to a quarter may
// repeat where the samples are not.
static bool has_repeats(z_stream *stream, const struct piece *piece) {
    enum { PERCENT = 100, WORTH_PERCENT = 97, SHORT = 4 };
    uint8_t sample[SAMPLES * SAMPLE_BYTES];
    const uint8_t *bytes = piece->bytes + BEFORE_BYTES;
    if (piece->size <= sizeof sample) return true;
    for (size_t i = 0; i < SAMPLES; i++)
        memcpy(sample + i * SAMPLE_BYTES, bytes + i * (piece->size / SAMPLES), SAMPLE_BYTES);
    size_t by_frequency =
        compress_bytes(stream, SAMPLE_LEVEL, Z_RLE, sample, 0, sizeof sample, piece->out);
    if (by_frequency * SHORT <= sizeof sample) return true;
    size_t by_repeats = compress_bytes(stream, SAMPLE_LEVEL, Z_DEFAULT_STRATEGY, sample, 0,
                                       sizeof sample, piece->out);
    return by_repeats * PERCENT <= by_frequency * WORTH_PERCENT;
}

static void compress_piece(const struct deflater *deflater, z_stream *stream, struct piece *piece) {
    const uint8_t *bytes = piece->bytes + BEFORE_BYTES;
    bool is_zlib = deflater->form == DEFLATER_ZLIB;
    piece->check =
        is_zlib ? adler32(1, bytes, (uInt)piece->size) : crc32(0, bytes, (uInt)piece->size);
    piece->out_size =
        !is_zlib || has_repeats(stream, piece)
            ? compress_bytes(stream, is_zlib ? ZLIB_LEVEL : GZIP_LEVEL, Z_DEFAULT_STRATEGY, bytes,
                             piece->before, piece->size, piece->out)
            : compress_bytes(stream, SAMPLE_LEVEL, Z_RLE, bytes, 0, piece->size, piece->out);
    piece->is_bad = !piece->out_size;
}

// --- by several threads

static struct piece *piece_at(struct deflater *deflater, size_t number) {
    return &deflater->ring[number % RING];
}

// Called, and left, with the lock held.
static void compress_next(struct deflater *deflater, z_stream *stream) {
    struct piece *piece = piece_at(deflater, deflater->taken++);
    pthread_mutex_unlock(&deflater->lock);
    compress_piece(deflater, stream, piece);
    pthread_mutex_lock(&deflater->lock);
    piece->is_done = true;
    pthread_cond_broadcast(&deflater->changed);
}

static void *run(void *context) {
    struct deflater *deflater = context;
    z_stream stream;
    if (!stream_start(deflater, &stream)) return NULL;  // the others do it
    pthread_mutex_lock(&deflater->lock);
    for (;;) {
        while (deflater->taken == deflater->filled && !deflater->is_over)
            pthread_cond_wait(&deflater->changed, &deflater->lock);
        if (deflater->taken == deflater->filled) break;
        compress_next(deflater, &stream);
    }
    pthread_mutex_unlock(&deflater->lock);
    deflateEnd(&stream);
    return NULL;
}

static void start_workers(struct deflater *deflater) {
    while (deflater->worker_count + 1 < deflater->threads_most &&
           !pthread_create(&deflater->workers[deflater->worker_count], NULL, run, deflater))
        deflater->worker_count++;
    deflater->threads_most = deflater->worker_count + 1;
}

static void end_workers(struct deflater *deflater) {
    pthread_mutex_lock(&deflater->lock);
    deflater->is_over = true;
    pthread_cond_broadcast(&deflater->changed);
    pthread_mutex_unlock(&deflater->lock);
    for (unsigned i = 0; i < deflater->worker_count; i++) pthread_join(deflater->workers[i], NULL);
}

// --- the stream

static void give_start(struct deflater *deflater) {
    enum { UNIX = 3 };
    static const uint8_t zlib[] = {0x78, 0x9c};
    static const uint8_t gzip[] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, UNIX};
    if (deflater->has_begun) return;
    deflater->has_begun = true;
    if (deflater->form == DEFLATER_ZLIB)
        deflater->give(deflater->context, zlib, sizeof zlib);
    else
        deflater->give(deflater->context, gzip, sizeof gzip);
}

// A last block without anything, then the checksum: zlib's with the highest byte first, gzip's with
// the lowest, and the length behind it.
static void give_end(struct deflater *deflater) {
    enum { BYTE_BITS = 8, WORD_BYTES = 4 };
    uint8_t end[2 + 2 * WORD_BYTES] = {0x03, 0x00};
    bool is_zlib = deflater->form == DEFLATER_ZLIB;
    for (int i = 0; i < WORD_BYTES; i++) {
        int low_first = i * BYTE_BITS, high_first = (WORD_BYTES - 1 - i) * BYTE_BITS;
        end[2 + i] = (uint8_t)(deflater->check >> (is_zlib ? high_first : low_first));
        end[2 + WORD_BYTES + i] = (uint8_t)(deflater->total_bytes >> low_first);
    }
    deflater->give(deflater->context, end, is_zlib ? 2 + WORD_BYTES : sizeof end);
}

static void give_piece(struct deflater *deflater, struct piece *piece) {
    z_off_t size = (z_off_t)piece->size;
    deflater->check = deflater->form == DEFLATER_ZLIB
                          ? adler32_combine(deflater->check, piece->check, size)
                          : crc32_combine(deflater->check, piece->check, size);
    deflater->is_bad |= piece->is_bad;
    give_start(deflater);
    if (!deflater->is_bad) deflater->give(deflater->context, piece->out, piece->out_size);
    piece->is_done = false;
}

// Gives away what is done, until no more than `most` pieces are left in the ring.
static void drain(struct deflater *deflater, size_t most) {
    pthread_mutex_lock(&deflater->lock);
    for (;;) {
        struct piece *oldest = piece_at(deflater, deflater->given);
        bool is_any = deflater->given < deflater->filled;
        if (is_any && oldest->is_done) {
            pthread_mutex_unlock(&deflater->lock);
            give_piece(deflater, oldest);
            pthread_mutex_lock(&deflater->lock);
            deflater->given++;
        } else if (deflater->filled - deflater->given <= most) {
            break;
        } else if (deflater->taken < deflater->filled) {
            compress_next(deflater, &deflater->stream);
        } else {
            pthread_cond_wait(&deflater->changed, &deflater->lock);
        }
    }
    pthread_mutex_unlock(&deflater->lock);
}

// Takes memory for the piece that is filled next, and what stands before it.
static bool begin_piece(struct deflater *deflater) {
    struct piece *piece = piece_at(deflater, deflater->filled);
    if (!piece->bytes) piece->bytes = malloc(BEFORE_BYTES + PIECE_BYTES);
    if (!piece->out) piece->out = malloc(OUT_BYTES);
    if (!piece->bytes || !piece->out) return false;
    piece->size = piece->before = 0;
    if (!deflater->filled) return true;
    const struct piece *last = piece_at(deflater, deflater->filled - 1);
    piece->before = BEFORE_BYTES;
    memcpy(piece->bytes, last->bytes + PIECE_BYTES, BEFORE_BYTES);
    return true;
}

static void hand_over(struct deflater *deflater) {
    pthread_mutex_lock(&deflater->lock);
    deflater->filled++;
    pthread_cond_signal(&deflater->changed);
    pthread_mutex_unlock(&deflater->lock);
}

// One piece stays free, to be filled.
static void next_piece(struct deflater *deflater) {
    if (deflater->total_bytes > ALONE_BYTES && !deflater->worker_count) start_workers(deflater);
    hand_over(deflater);
    drain(deflater, deflater->worker_count ? RING - 1 : 0);
    if (!begin_piece(deflater)) deflater->is_bad = true;
}

void deflater_put(struct deflater *deflater, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    while (size && !deflater->is_bad) {
        struct piece *piece = piece_at(deflater, deflater->filled);
        size_t room = PIECE_BYTES - piece->size, part = size < room ? size : room;
        memcpy(piece->bytes + BEFORE_BYTES + piece->size, from, part);
        deflater->total_bytes += part;
        piece->size += part;
        from += part;
        size -= part;
        if (piece->size == PIECE_BYTES) next_piece(deflater);
    }
}

static void discard(struct deflater *deflater) {
    for (int i = 0; i < RING; i++) {
        free(deflater->ring[i].bytes);
        free(deflater->ring[i].out);
    }
    pthread_mutex_destroy(&deflater->lock);
    pthread_cond_destroy(&deflater->changed);
    deflateEnd(&deflater->stream);
    free(deflater);
}

struct deflater *deflater_open(enum deflater_form form, unsigned threads, deflater_give *give,
                               void *context) {
    struct deflater *deflater = calloc(1, sizeof *deflater);
    if (!deflater) return NULL;
    deflater->form = form;
    deflater->give = give;
    deflater->context = context;
    deflater->check = form == DEFLATER_ZLIB ? adler32(0, NULL, 0) : crc32(0, NULL, 0);
    long processors = threads ? (long)threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) processors = 1;
    if (processors > WORKERS_MOST + 1) processors = WORKERS_MOST + 1;
    deflater->threads_most = (unsigned)processors;
    pthread_mutex_init(&deflater->lock, NULL);
    pthread_cond_init(&deflater->changed, NULL);
    if (stream_start(deflater, &deflater->stream) && begin_piece(deflater)) return deflater;
    discard(deflater);
    return NULL;
}

bool deflater_close(struct deflater *deflater) {
    if (!deflater->is_bad && piece_at(deflater, deflater->filled)->size) hand_over(deflater);
    drain(deflater, 0);
    end_workers(deflater);
    give_start(deflater);
    give_end(deflater);
    bool is_whole = !deflater->is_bad;
    discard(deflater);
    return is_whole;
}
