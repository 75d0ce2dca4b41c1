// SPDX-License-Identifier: Apache-2.0
#include "tool/push/engine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/clock.h"
#include "tool/base/gzip.h"
#include "tool/base/json.h"
#include "tool/push/remote_write.h"

#define HOUR_NS (3600 * CLOCK_SECOND_NS)
#define MEBIBYTE ((size_t)1 << 20)

typedef bool write_profile(FILE *out, const struct export *export, struct error *error);

// Counts what goes through to a stream that compresses.
struct counted {
    FILE *out;
    size_t bytes;
};

static ssize_t count_and_write(void *cookie, const char *bytes, size_t size) {
    struct counted *counted = cookie;
    counted->bytes += size;
    return (ssize_t)fwrite(bytes, 1, size, counted->out);
}

// Writes a profile into memory, by gzip.
static bool pack(write_profile *write, const struct export *export, struct byte_buffer *packed,
                 size_t *plain_bytes, struct error *error) {
    const cookie_io_functions_t functions = {.write = count_and_write};
    struct counted counted = {0};
    char *bytes = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&bytes, &size);
    counted.out = memory ? gzip_open(memory, error) : NULL;
    FILE *out = counted.out ? fopencookie(&counted, "wb", functions) : NULL;
    bool is_ok = out && write(out, export, error);
    if (out) is_ok = !fclose(out) && is_ok;
    if (counted.out) is_ok = !fclose(counted.out) && is_ok;
    if (memory) is_ok = !fclose(memory) && is_ok;
    *packed = (struct byte_buffer){.bytes = (uint8_t *)bytes, .size = size, .capacity = size};
    *plain_bytes = counted.bytes;
    if (!out) error_set(error, "no memory for a profile");
    if (!is_ok) byte_buffer_free(packed);
    return is_ok;
}

static const char *label_value(const struct parcel *parcel, const char *name) {
    for (size_t i = 0; i < parcel->label_count; i++)
        if (!strcmp(parcel->labels[i].name, name)) return parcel->labels[i].value;
    return "";
}

// Percent signs for everything that means something in a URL. `is_set`: in the name of a series,
// where other characters mean something too.
static void put_escaped(FILE *out, const char *text, bool is_set) {
    for (; *text; text++) {
        bool is_plain = isalnum((unsigned char)*text) || strchr("-._~", *text);
        if (is_set && strchr("{},=\"", *text))
            fputc('_', out);
        else if (is_plain)
            fputc(*text, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*text);
    }
}

// ?name=APP{label=value,...}&from=...&until=...
static void write_ingest_query(const struct parcel *parcel, FILE *out) {
    bool has_members = false;
    fputs("?name=", out);
    put_escaped(out, label_value(parcel, "service_name"), true);
    fputs("%7B", out);
    for (size_t i = 0; i < parcel->label_count; i++) {
        if (!strcmp(parcel->labels[i].name, "service_name")) continue;
        if (has_members) fputs("%2C", out);
        put_escaped(out, parcel->labels[i].name, true);
        fputs("%3D", out);
        put_escaped(out, parcel->labels[i].value, true);
        has_members = true;
    }
    fprintf(out, "%%7D&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof&spyName=cairn",
            (uint64_t)(parcel->start_unix_ns / CLOCK_SECOND_NS),
            (uint64_t)(parcel->end_unix_ns / CLOCK_SECOND_NS));
}

static bool encode_ingest(const struct parcel *parcel, struct byte_buffer *body, char *query,
                          size_t query_size, size_t *plain_bytes, struct error *error) {
    FILE *out = fmemopen(query, query_size, "w");
    if (!out) return error_set(error, "no memory for a request");
    write_ingest_query(parcel, out);
    bool is_whole = !fflush(out) && !ferror(out);
    is_whole = !fclose(out) && is_whole;
    if (!is_whole) return error_set(error, "its labels are too long for a URL");
    return pack(export_pprof_plain, parcel->export, body, plain_bytes, error);
}

static void put_label(struct byte_buffer *series, struct byte_buffer *label, const char *name,
                      const char *value) {
    enum { SERIES_LABEL = 1, LABEL_NAME = 1, LABEL_VALUE = 2 };
    message_put_text(label, LABEL_NAME, name);
    message_put_text(label, LABEL_VALUE, value);
    message_put_message(series, SERIES_LABEL, label);
}

// push.v1.PushRequest.
static bool encode_push(const struct parcel *parcel, struct byte_buffer *body, char *query,
                        size_t query_size, size_t *plain_bytes, struct error *error) {
    enum { REQUEST_SERIES = 1, SERIES_SAMPLE = 2, SAMPLE_PROFILE = 1 };
    struct byte_buffer profile, series = {0}, inner = {0};
    (void)query_size;
    *query = 0;
    if (!pack(export_pprof_plain, parcel->export, &profile, plain_bytes, error)) return false;
    put_label(&series, &inner, "__name__", "memory");
    put_label(&series, &inner, "__delta__", "false");  // what was allocated is of the interval
    for (size_t i = 0; i < parcel->label_count; i++)
        put_label(&series, &inner, parcel->labels[i].name, parcel->labels[i].value);
    message_put_message(&inner, SAMPLE_PROFILE, &profile);
    message_put_message(&series, SERIES_SAMPLE, &inner);
    message_put_message(body, REQUEST_SERIES, &series);
    bool is_ok = !body->has_failed && !series.has_failed && !inner.has_failed;
    byte_buffer_free(&profile);
    byte_buffer_free(&series);
    byte_buffer_free(&inner);
    return is_ok || error_set(error, "no memory for a request");
}

// Text for free(); NULL without memory.
static char *base64(const struct byte_buffer *bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { GROUP = 3, CODED = 4, BITS = 6, MASK = 63 };
    char *text = malloc((bytes->size + GROUP) / GROUP * CODED + 1), *end = text;
    for (size_t at = 0; text && at < bytes->size; at += GROUP) {
        size_t left = bytes->size - at;
        uint32_t group = (uint32_t)bytes->bytes[at] << 16;
        if (left > 1) group |= (uint32_t)bytes->bytes[at + 1] << 8;
        if (left > 2) group |= bytes->bytes[at + 2];
        for (int digit = 0; digit < CODED; digit++)
            *end++ = (size_t)digit <= left ? digits[group >> (BITS * (GROUP - digit)) & MASK] : '=';
    }
    if (text) *end = 0;
    return text;
}

static void put_json_label(struct json *json, const char *name, const char *value) {
    json_open_object(json, NULL);
    json_put_string(json, "name", name);
    json_put_string(json, "value", value);
    json_close(json);
}

// parca.profilestore.v1alpha1.WriteRawRequest, as JSON.
static void write_raw_request(const struct parcel *parcel, const char *profile, FILE *out) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_open_array(&json, "series");
    json_open_object(&json, NULL);
    json_open_object(&json, "labels");
    json_open_array(&json, "labels");
    put_json_label(&json, "__name__", "memory");
    for (size_t i = 0; i < parcel->label_count; i++)
        put_json_label(&json, parcel->labels[i].name, parcel->labels[i].value);
    json_close(&json);
    json_close(&json);
    json_open_array(&json, "samples");
    json_open_object(&json, NULL);
    json_put_string(&json, "rawProfile", profile);
    for (int open = 5; open; open--) json_close(&json);
}

static bool encode_raw(const struct parcel *parcel, struct byte_buffer *body, char *query,
                       size_t query_size, size_t *plain_bytes, struct error *error) {
    struct byte_buffer profile;
    char *text = NULL;
    size_t size = 0;
    (void)query_size;
    *query = 0;
    if (!pack(export_pprof_plain, parcel->export, &profile, plain_bytes, error)) return false;
    char *coded = base64(&profile);
    FILE *out = coded ? open_memstream(&text, &size) : NULL;
    if (out) write_raw_request(parcel, coded, out);
    bool is_ok = out && !fclose(out) && text;
    free(coded);
    byte_buffer_free(&profile);
    *body = (struct byte_buffer){.bytes = (uint8_t *)text, .size = size, .capacity = size};
    return is_ok || error_set(error, "no memory for a request");
}

static bool encode_otlp(const struct parcel *parcel, struct byte_buffer *body, char *query,
                        size_t query_size, size_t *plain_bytes, struct error *error) {
    (void)query_size;
    *query = 0;
    return pack(export_otlp, parcel->export, body, plain_bytes, error);
}

static bool encode_metrics(const struct parcel *parcel, struct byte_buffer *body, char *query,
                           size_t query_size, size_t *plain_bytes, struct error *error) {
    (void)query_size;
    *query = 0;
    struct byte_buffer plain = {0};
    bool is_ok = remote_write_encode(parcel->metrics, parcel->labels, parcel->label_count,
                                     parcel->end_unix_ns, &plain, error);
    *plain_bytes = plain.size;
    is_ok = is_ok && (snappy_pack(&plain, body) || error_set(error, "no memory for a request"));
    byte_buffer_free(&plain);
    return is_ok;
}

#define PROTOBUF "Content-Type: application/x-protobuf\n"

const struct engine engines[] = {
    {"pyroscope", "Pyroscope, by /ingest", "/ingest", 4040,
     "Content-Type: application/octet-stream\n", false, 16000, 4 * MEBIBYTE, HOUR_NS,
     encode_ingest},
    {"pyroscope-push", "Pyroscope, by its connect API", "/push.v1.PusherService/Push", 0,
     "Content-Type: application/proto\n", false, 16000, 4 * MEBIBYTE, HOUR_NS, encode_push},
    {"parca", "Parca, by writeraw", "/api/profiles/writeraw", 7070,
     "Content-Type: application/json\n", false, 16000, 4 * MEBIBYTE, HOUR_NS, encode_raw},
    {"otlp", "an OpenTelemetry Collector, profiles over HTTP", "/v1development/profiles", 4318,
     PROTOBUF "Content-Encoding: gzip\n", false, 16000, 4 * MEBIBYTE, HOUR_NS, encode_otlp},
    {"prometheus", "Prometheus, VictoriaMetrics, ...: metrics by remote write", "/api/v1/write",
     9090, PROTOBUF "Content-Encoding: snappy\nX-Prometheus-Remote-Write-Version: 0.1.0\n", true, 0,
     0, HOUR_NS, encode_metrics},
    {0},
};

static const struct engine *engine_of_name(const char *name) {
    for (const struct engine *engine = engines; engine->name; engine++)
        if (!strcmp(engine->name, name)) return engine;
    return NULL;
}

static const struct engine *engine_of_path(const char *path, size_t length) {
    for (const struct engine *engine = engines; engine->name; engine++) {
        size_t wanted = strlen(engine->path);
        if (length >= wanted && !strncmp(path + length - wanted, engine->path, wanted))
            return engine;
    }
    return NULL;
}

// VictoriaMetrics has a port of its own.
static const struct engine *engine_of_port(unsigned port) {
    enum { VICTORIA_PORT = 8428 };
    if (port == VICTORIA_PORT) return engine_of_name("prometheus");
    for (const struct engine *engine = engines; port && engine->name; engine++)
        if (engine->port == port) return engine;
    return NULL;
}

static bool tell_engines(const char *problem, struct error *error) {
    char known[256] = "";
    size_t used = 0;
    for (const struct engine *engine = engines; engine->name; engine++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 engine->name);
    return error_set(error, "%s; --format is one of %s", problem, known);
}

// scheme://[user@]host[:port][/path]; false: it is no such URL.
struct url_parts {
    const char *host;  // behind user and password
    const char *path;  // from its first '/' on, or ""
    unsigned port;     // 0: none is given
};

static bool cut_url(const char *url, struct url_parts *parts) {
    const char *rest = !strncmp(url, "http://", 7)    ? url + 7
                       : !strncmp(url, "https://", 8) ? url + 8
                                                      : NULL;
    if (!rest || strpbrk(url, " \t\r\n\"\\#?{}") || strlen(url) >= DESTINATION_URL_BYTES / 2)
        return false;
    size_t authority = strcspn(rest, "/");
    const char *at = memrchr(rest, '@', authority);
    parts->host = at ? at + 1 : rest;
    parts->path = rest + authority;
    const char *bracket = memchr(parts->host, ']', (size_t)(parts->path - parts->host));
    const char *name_end = bracket ? bracket : parts->host;
    const char *colon = memchr(name_end, ':', (size_t)(parts->path - name_end));
    parts->port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127) return false;
    return parts->host < parts->path && *parts->host != ':';
}

bool destination_read(const char *url, const char *name, struct destination *destination,
                      struct error *error) {
    struct url_parts parts;
    if (!cut_url(url, &parts))
        return error_set(error, "\"%s\" is no URL such as http://localhost:4040", url);
    size_t length = strlen(parts.path);
    while (length && parts.path[length - 1] == '/') length--;
    const struct engine *by_path = engine_of_path(parts.path, length);
    destination->engine = name      ? engine_of_name(name)
                          : by_path ? by_path
                                    : engine_of_port(parts.port);
    if (!destination->engine && name) {
        char problem[128];
        snprintf(problem, sizeof problem, "there is no engine \"%.64s\"", name);
        return tell_engines(problem, error);
    }
    if (!destination->engine)
        return tell_engines("the URL does not say which engine it is of", error);
    const char *added = by_path == destination->engine ? "" : destination->engine->path;
    int whole = (int)(parts.path - url + (ptrdiff_t)length);
    int scheme = (int)(strstr(url, "://") + 3 - url);
    snprintf(destination->url, sizeof destination->url, "%.*s%s", whole, url, added);
    snprintf(destination->name, sizeof destination->name, "%.*s%.*s%s", scheme, url,
             (int)(parts.path - parts.host + (ptrdiff_t)length), parts.host, added);
    return true;
}
