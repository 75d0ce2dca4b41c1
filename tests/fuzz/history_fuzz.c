// SPDX-License-Identifier: Apache-2.0
// Histories: any bytes are refused, or read and shown.
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/history/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void show_results(struct history *history, const struct history_view *view, FILE *out) {
    struct results results = {0};
    struct error error;
    if (history->commits.count) history_results(history, view, true, &results, &error);
    results_write_sarif(&results, out);
    results_free(&results);
}

// In one form, which the input's last byte chooses: each reads all of it.
static void show(struct history *history, uint8_t form, FILE *out) {
    const struct history_view view = {.measure = -1};
    const struct terminal terminal = {.out = out, .columns = 100};
    struct error error;
    store_execute(&history->store, "BEGIN", &error);  // fewer system calls
    switch (form % 4) {
    case 0:
        history_print(history, &view, &terminal, &error);
        break;
    case 1:
        history_write_json(history, &view, out, &error);
        break;
    case 2:
        history_write_page(history, &view, out, &error);
        break;
    default:
        show_results(history, &view, out);
    }
}

// SQLite wants a name; in memory, several times as many runs.
static char path[] = "/dev/shm/history-fuzz.XXXXXX";

static void remove_file(void) {
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static int file = -1;
    static FILE *out;
    struct history history;
    struct error error = {""};
    if (file < 0) {
        file = mkstemp(path);
        atexit(remove_file);
        sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        sqlite3_vfs_register(sqlite3_vfs_find("unix-none"), true);  // without locks
    }
    if (!out) out = fopen("/dev/null", "we");
    if (file < 0 || !out || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return 0;
    if (history_open(path, "", &history, &error)) {
        show(&history, count ? bytes[count - 1] : 0, out);
        history_close(&history);
    } else if (!*error.text) {
        abort();
    }
    return 0;
}
