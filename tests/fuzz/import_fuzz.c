// SPDX-License-Identifier: Apache-2.0
// Any bytes as another profiler's file. The first byte is the number of the format (or one that
// none has: it is to be told from the content); what is read must become a recording that opens, is
// whole, and says the same.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/import/import.h"
#include "tool/model/profile.h"
#include "tool/symbol/options.h"

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_recording(const struct imported *imported) {
    char *bytes;
    size_t size;
    struct recording recording;
    struct profile profile;
    FILE *out = open_memstream(&bytes, &size);
    require(out != NULL);
    bool is_written = import_write(out, imported, "fuzz", NULL);
    require(!fclose(out));
    if (is_written) {
        require(recording_open_memory(bytes, size, &recording, NULL));
        require(profile_build(&recording, &profile, NULL));
        require(!damage_is_any(&recording.damage));
        int64_t exit_bytes = 0;
        for (size_t i = 0; i < imported->stacks.count; i++)
            exit_bytes = figures_add(exit_bytes, imported->stacks.items[i].values.exit_bytes);
        require(profile.exit_bytes == exit_bytes);
        profile_free(&profile);
        recording_close(&recording);
    }
    free(bytes);
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
