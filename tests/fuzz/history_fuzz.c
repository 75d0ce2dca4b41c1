// SPDX-License-Identifier: Apache-2.0
// Histories: any bytes are refused, or read and shown in each form.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/history/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void show(struct history *history, FILE *out) {
    const struct history_view view = {.measure = -1};
    const struct terminal terminal = {.out = out, .columns = 100};
    struct results results = {0};
    struct error error;
    history_print(history, &view, &terminal, &error);
    history_write_json(history, &view, out, &error);
    history_write_page(history, &view, out, &error);
    if (history->commits.count) history_results(history, &view, true, &results, &error);
    results_write_sarif(&results, out);
    results_free(&results);
}

// SQLite wants a name.
static char path[] = "/tmp/history-fuzz.XXXXXX";

static void remove_file(void) {
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static int file = -1;
    static FILE *out;
    struct history history;
    struct error error = {""};
    if (file < 0 && (file = mkstemp(path)) >= 0) atexit(remove_file);
    if (!out) out = fopen("/dev/null", "we");
    if (file < 0 || !out || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return 0;
    if (history_open(path, "", &history, &error)) {
        show(&history, out);
        history_close(&history);
    } else if (!*error.text) {
        abort();
    }
    return 0;
}
