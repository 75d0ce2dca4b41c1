// SPDX-License-Identifier: Apache-2.0
// Any bytes as another profiler's file. The first byte is the number of the format (or one that
// none has: it is to be told from the content); what is read must become a recording that opens, is
// whole, and says the same.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tool/import/import.h"
#include "tool/model/profile.h"
#include "tool/symbol/options.h"

static void require(bool is_true) {
    if (!is_true) abort();
}

// The recording that is written; a larger one than there is room for is not looked at.
static struct {
    uint8_t bytes[16u << 20];
    size_t size;
} written;

static ssize_t write_bytes(void *unused, const char *bytes, size_t size) {
    (void)unused;
    if (size > sizeof written.bytes - written.size) return 0;
    memcpy(written.bytes + written.size, bytes, size);
    written.size += size;
    return (ssize_t)size;
}

static void check_recording(const struct imported *imported) {
    struct recording recording;
    struct profile profile;
    written.size = 0;
    FILE *out = fopencookie(NULL, "wb", (cookie_io_functions_t){.write = write_bytes});
    require(out != NULL);
    bool is_written = import_write(out, imported, "fuzz", NULL);
    is_written = !fclose(out) && is_written;
    if (is_written) {
        require(recording_open_memory(written.bytes, written.size, &recording, NULL));
        require(profile_build(&recording, &profile, NULL));
        require(!damage_is_any(&recording.damage));
        int64_t exit_bytes = 0;
        for (size_t i = 0; i < imported->stacks.count; i++)
            exit_bytes = figures_add(exit_bytes, imported->stacks.items[i].values.exit_bytes);
        require(profile.exit_bytes == exit_bytes);
        profile_free(&profile);
        recording_close(&recording);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const struct symbol_options no_files = {.is_closed = true};
    const struct import_names names = {.options = &no_files};
    struct imported imported;
    if (size < 2) return 0;
    const struct import_format *format = import_formats;
    for (unsigned i = 0; i < bytes[0] && format->name; i++) format++;
    if (!format->name) format = NULL;
    FILE *in = fmemopen((void *)(bytes + 1), size - 1, "rb");
    require(in && import_start(&imported, NULL));
    if (import_read(in, &format, &imported, NULL)) {
        require(import_name_addresses(&imported, &names, NULL));
        check_recording(&imported);
    }
    import_free(&imported);
    fclose(in);
    return 0;
}
