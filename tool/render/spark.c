// SPDX-License-Identifier: Apache-2.0
#include "tool/render/spark.h"

enum { STEPS = 8 };

static const char *block_of(double share) {
    static const char *const blocks[] = {" ",
                                         "\xe2\x96\x81",
                                         "\xe2\x96\x82",
                                         "\xe2\x96\x83",
                                         "\xe2\x96\x84",
                                         "\xe2\x96\x85",
                                         "\xe2\x96\x86",
                                         "\xe2\x96\x87",
                                         "\xe2\x96\x88"};
    int step = share > 0 ? (int)(share * STEPS + 0.5) : 0;
    if (share > 0 && step < 1) step = 1;
    return blocks[step < STEPS ? step : STEPS];
}

static int64_t highest(const int64_t *values, size_t from, size_t to) {
    int64_t most = values[from];
    for (size_t i = from; i < to; i++)
        if (values[i] > most) most = values[i];
    return most;
}

void spark_print(const struct terminal *terminal, const int64_t *values, size_t count,
                 size_t columns) {
    if (!count) return;
    if (columns > count) columns = count;
    int64_t most = highest(values, 0, count);
    for (size_t i = 0; i < columns; i++) {
        int64_t value = highest(values, i * count / columns, (i + 1) * count / columns);
        double share = most > 0 ? (double)value / (double)most : 0;
        terminal_print(terminal, STYLE_NAME, "%s", block_of(share));
    }
}

void spark_print_histogram(const struct terminal *terminal, const uint64_t *values, size_t count) {
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        if (values[i] > most) most = values[i];
    for (size_t i = 0; i < count; i++)
        if (values[i])
            terminal_print(terminal, STYLE_NAME, "%s", block_of((double)values[i] / (double)most));
        else
            terminal_print(terminal, STYLE_DIM, ".");
}
