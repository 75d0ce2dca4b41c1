// SPDX-License-Identifier: Apache-2.0
// Which format a file is in, and the file read as what it holds where it is compressed.
#include <bzlib.h>
#include <ctype.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "format/format.h"
#include "tool/import/import.h"

enum { CHUNK_BYTES = 65536, GZIP_WINDOW_BITS = 15 + 16, HEAD_MAX = 64, XZ_MEMORY_BYTES = 1 << 30 };

struct unpack {
    FILE *in;
    enum { PLAIN, GZIP, BZIP2, XZ, ZSTANDARD, LZ4 } kind;
    z_stream gzip;
    bz_stream bzip2;
    lzma_stream xz;
    ZSTD_DStream *zstandard;
    LZ4F_dctx *lz4;
    unsigned char chunk[CHUNK_BYTES];
    size_t used, filled;  // of the chunk
    bool is_over;
    bool is_whole;        // the compressed data, up to here, ends where it may end
    char head[HEAD_MAX];  // handed out before the rest
    size_t head_used, head_filled;
    off64_t handed_out;
    bool *is_cut;  // becomes true if the data is not whole; NULL: nobody asks
};

static void fill(struct unpack *unpack) {
    if (unpack->used < unpack->filled) return;
    unpack->used = 0;
    unpack->filled = fread(unpack->chunk, 1, CHUNK_BYTES, unpack->in);
}

static size_t read_gzip(struct unpack *unpack, char *out, size_t size) {
    z_stream *stream = &unpack->gzip;
    stream->next_out = (unsigned char *)out;
    stream->avail_out = (uInt)size;
    while (stream->avail_out == size && !unpack->is_over) {
        fill(unpack);
        stream->next_in = unpack->chunk + unpack->used;
        stream->avail_in = (uInt)(unpack->filled - unpack->used);
        bool is_at_end = !unpack->filled;
        int status = inflate(stream, Z_NO_FLUSH);
        unpack->used = unpack->filled - stream->avail_in;
        if (status == Z_OK) unpack->is_whole = false;
        if (status == Z_STREAM_END) {  // another member may follow
            unpack->is_whole = true;
            inflateReset(stream);
        }
        unpack->is_over = is_at_end || (status != Z_OK && status != Z_STREAM_END);
        if (status != Z_OK && status != Z_STREAM_END && !is_at_end) unpack->is_whole = false;
    }
    return size - stream->avail_out;
}

static size_t read_bzip2(struct unpack *unpack, char *out, size_t size) {
    bz_stream *stream = &unpack->bzip2;
    stream->next_out = out;
    stream->avail_out = (unsigned)size;
    while (stream->avail_out == size && !unpack->is_over) {
        fill(unpack);
        bool is_at_end = !unpack->filled;
        stream->next_in = (char *)unpack->chunk + unpack->used;
        stream->avail_in = (unsigned)(unpack->filled - unpack->used);
        int status = BZ2_bzDecompress(stream);
        unpack->used = unpack->filled - stream->avail_in;
        if (status == BZ_OK) unpack->is_whole = false;
        if (status == BZ_STREAM_END) unpack->is_whole = true;
        unpack->is_over = is_at_end || status != BZ_OK;
    }
    return size - stream->avail_out;
}

static size_t read_xz(struct unpack *unpack, char *out, size_t size) {
    lzma_stream *stream = &unpack->xz;
    stream->next_out = (uint8_t *)out;
    stream->avail_out = size;
    while (stream->avail_out == size && !unpack->is_over) {
        fill(unpack);
        stream->next_in = unpack->chunk + unpack->used;
        stream->avail_in = unpack->filled - unpack->used;
        lzma_ret status = lzma_code(stream, unpack->filled ? LZMA_RUN : LZMA_FINISH);
        unpack->used = unpack->filled - stream->avail_in;
        unpack->is_whole = status == LZMA_STREAM_END;
        unpack->is_over = status != LZMA_OK;
    }
    return size - stream->avail_out;
}

static size_t read_zstandard(struct unpack *unpack, char *out, size_t size) {
    ZSTD_outBuffer output = {out, size, 0};
    while (!output.pos && !unpack->is_over) {
        fill(unpack);
        ZSTD_inBuffer input = {unpack->chunk, unpack->filled, unpack->used};
        size_t status = ZSTD_decompressStream(unpack->zstandard, &output, &input);
        unpack->used = input.pos;
        unpack->is_whole = !status || (unpack->is_whole && !unpack->filled);
        unpack->is_over = ZSTD_isError(status) || (!unpack->filled && !output.pos);
    }
    return output.pos;
}

static size_t read_lz4(struct unpack *unpack, char *out, size_t size) {
    size_t done = 0;
    while (!done && !unpack->is_over) {
        fill(unpack);
        size_t used = unpack->filled - unpack->used;
        done = size;
        size_t status =
            LZ4F_decompress(unpack->lz4, out, &done, unpack->chunk + unpack->used, &used, NULL);
        unpack->used += used;
        unpack->is_whole = !status || (unpack->is_whole && !unpack->filled);
        unpack->is_over = LZ4F_isError(status) || (!unpack->filled && !done);
    }
    return done;
}

static size_t read_plain(struct unpack *unpack, char *out, size_t size) {
    fill(unpack);
    size_t there = unpack->filled - unpack->used;
    if (there > size) there = size;
    memcpy(out, unpack->chunk + unpack->used, there);
    unpack->used += there;
    return there;
}

static size_t read_any(struct unpack *unpack, char *out, size_t size) {
    if (unpack->kind == GZIP) return read_gzip(unpack, out, size);
    if (unpack->kind == BZIP2) return read_bzip2(unpack, out, size);
    if (unpack->kind == XZ) return read_xz(unpack, out, size);
    if (unpack->kind == ZSTANDARD) return read_zstandard(unpack, out, size);
    if (unpack->kind == LZ4) return read_lz4(unpack, out, size);
    return read_plain(unpack, out, size);
}

static ssize_t read_bytes(void *cookie, char *out, size_t size) {
    struct unpack *unpack = cookie;
    size_t left = unpack->head_filled - unpack->head_used;
    if (left > size) left = size;
    memcpy(out, unpack->head + unpack->head_used, left);
    unpack->head_used += left;
    size_t count = left ? left : read_any(unpack, out, size);
    unpack->handed_out += (off64_t)count;
    return (ssize_t)count;
}

// Only says where the reader is, for errors.
static int tell(void *cookie, off64_t *offset, int whence) {
    if (whence != SEEK_CUR || *offset) return -1;
    *offset = ((struct unpack *)cookie)->handed_out;
    return 0;
}

// Reads on to the end, as a reader may stop before it. True: all of the data was there.
static bool is_whole(struct unpack *unpack) {
    char rest[CHUNK_BYTES / 16];
    while (unpack->kind != PLAIN && !unpack->is_over)
        if (!read_any(unpack, rest, sizeof rest)) break;
    return unpack->kind == PLAIN || unpack->is_whole;
}

static int finish(void *cookie) {
    struct unpack *unpack = cookie;
    if (unpack->is_cut) *unpack->is_cut |= !is_whole(unpack);
    if (unpack->kind == GZIP) inflateEnd(&unpack->gzip);
    if (unpack->kind == BZIP2) BZ2_bzDecompressEnd(&unpack->bzip2);
    if (unpack->kind == XZ) lzma_end(&unpack->xz);
    ZSTD_freeDStream(unpack->zstandard);
    LZ4F_freeDecompressionContext(unpack->lz4);
    free(unpack);
    return 0;
}

static bool start_xz(struct unpack *unpack) {
    unpack->kind = XZ;
    unpack->xz = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_stream_decoder(&unpack->xz, (uint64_t)XZ_MEMORY_BYTES, LZMA_CONCATENATED) ==
           LZMA_OK;
}

static bool start_bzip2(struct unpack *unpack) {
    unpack->kind = BZIP2;
    return BZ2_bzDecompressInit(&unpack->bzip2, 0, 0) == BZ_OK;
}

static bool begins(const struct unpack *unpack, uint32_t magic, size_t size) {
    return unpack->filled >= size && !memcmp(unpack->chunk, &magic, size);
}

static bool start(struct unpack *unpack) {
    const uint32_t gzip_magic = 0x8b1f, zstandard_magic = 0xfd2fb528, lz4_magic = 0x184d2204;
    const uint32_t xz_magic = 0x587a37fd, bzip2_magic = 0x685a42;
    enum { BZIP2_MAGIC_BYTES = 3 };
    fill(unpack);
    if (begins(unpack, xz_magic, sizeof xz_magic)) return start_xz(unpack);
    if (begins(unpack, bzip2_magic, BZIP2_MAGIC_BYTES)) return start_bzip2(unpack);
    if (begins(unpack, gzip_magic, sizeof(uint16_t))) {
        if (inflateInit2(&unpack->gzip, GZIP_WINDOW_BITS) != Z_OK) return false;
        unpack->kind = GZIP;
    } else if (begins(unpack, zstandard_magic, sizeof zstandard_magic)) {
        unpack->zstandard = ZSTD_createDStream();
        unpack->kind = ZSTANDARD;
        return unpack->zstandard != NULL;
    } else if (begins(unpack, lz4_magic, sizeof lz4_magic)) {
        unpack->kind = LZ4;
        return !LZ4F_isError(LZ4F_createDecompressionContext(&unpack->lz4, LZ4F_VERSION));
    }
    return true;
}

// The stream, for fclose, which leaves `in` open; NULL without memory. `head` gets its first bytes,
// which are read again. Data that is damaged or cut off ends early, and is_cut becomes true at the
// end.
static FILE *unpack_open(FILE *in, char *head, size_t size, size_t *head_size, bool *is_cut,
                         struct error *error) {
    const cookie_io_functions_t functions = {.read = read_bytes, .seek = tell, .close = finish};
    struct unpack *unpack = calloc(1, sizeof *unpack);
    if (unpack) *unpack = (struct unpack){.in = in, .is_whole = true};
    bool is_ready = unpack && start(unpack);
    if (size > HEAD_MAX) size = HEAD_MAX;
    while (is_ready && unpack->head_filled < size) {
        size_t count =
            read_any(unpack, unpack->head + unpack->head_filled, size - unpack->head_filled);
        if (!count) break;
        unpack->head_filled += count;
    }
    bool has_any = is_ready && (unpack->kind == PLAIN || unpack->head_filled);
    FILE *out = has_any ? fopencookie(unpack, "rb", functions) : NULL;
    if (!out) {
        if (unpack) finish(unpack);
        error_set(error, is_ready && !has_any
                             ? "is compressed, and cut off or damaged from its start"
                             : "no memory to unpack it");
        return NULL;
    }
    *head_size = unpack->head_filled;
    unpack->is_cut = is_cut;
    memcpy(head, unpack->head, unpack->head_filled);
    setvbuf(out, NULL, _IOFBF, CHUNK_BYTES);
    return out;
}

const struct import_format import_formats[] = {
    {"heaptrack", "heaptrack's data, as heaptrack wrote it", import_is_heaptrack, import_heaptrack},
    {"massif", "valgrind --tool=massif", import_is_massif, import_massif},
    {"dhat", "valgrind --tool=dhat", import_is_dhat, import_dhat},
    {"pprof", "heap profiles of Go, gperftools, jemalloc, ...", import_is_pprof, import_pprof},
    {"perf", "perf script, of probes on malloc and free", import_is_perf, import_perf},
    {"bpftrace", "bpftrace's output of examples/malloc.bt", import_is_bpftrace, import_bpftrace},
    {"jemalloc", "jemalloc's heap_v2 dumps", import_is_jemalloc, import_jemalloc},
    {"gperftools", "heap profiles as text of gperftools, tcmalloc and Go (debug=1)",
     import_is_gperftools, import_gperftools},
    {"v8", "V8's .heapprofile: node --heap-prof, Chrome", import_is_v8, import_v8},
    {"memray", "memray's capture files", import_is_memray, import_memray},
    {"perfetto", "heap profiles of Perfetto's heapprofd", import_is_perfetto, import_perfetto},
    {"bytehound", "bytehound's data files", import_is_bytehound, import_bytehound},
    {"xray", "LLVM XRay's logs, basic and FDR, of functions that log their argument",
     import_is_xray, import_xray},
    {0},
};

const struct import_format *import_format_find(const char *name) {
    for (const struct import_format *format = import_formats; format->name; format++)
        if (!strcmp(format->name, name)) return format;
    return NULL;
}

bool import_begins_json(const char *head, size_t size, const char *start) {
    size_t at = 0;
    for (; *start; start++, at++) {
        while (at < size && isspace((unsigned char)head[at])) at++;
        if (at == size || head[at] != *start) return false;
    }
    return true;
}

// Marks a file that ends too early: more had happened than it says.
static void say_cut(struct imported *imported) {
    static const char words[] = "the end (the file is cut off)";
    size_t used = strlen(imported->lacks);
    imported->is_partial = true;
    if (strstr(imported->lacks, words)) return;
    snprintf(imported->lacks + used, sizeof imported->lacks - used, "%s%s", used ? ", " : "",
             words);
}

bool import_read(FILE *in, const struct import_format **format, struct imported *imported,
                 struct error *error) {
    char head[IMPORT_HEAD_BYTES];
    size_t size;
    FILE *unpacked = unpack_open(in, head, sizeof head, &size, &imported->is_cut, error);
    if (!unpacked) return false;
    const struct import_format *row = *format ? *format : import_formats;
    while (!*format && row->name && !row->is_one(head, size)) row++;
    bool is_own = size >= CAIRN_MAGIC_BYTES && !memcmp(head, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    bool is_ok = row->name ? row->read(unpacked, imported, error)
                           : error_set(error, is_own ? "is a recording of cairn already: "
                                                       "cairn report shows it"
                                                     : "is of no known format");
    *format = row->name ? row : NULL;
    fclose(unpacked);
    if (is_ok && imported->is_cut) say_cut(imported);
    if (is_ok && imported->strings.has_failed) is_ok = import_no_memory(error);
    return is_ok;
}
