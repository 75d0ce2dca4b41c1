// SPDX-License-Identifier: Apache-2.0
// The text of /metrics: rows, labels whose text would break out, both forms, and the families that
// docs/howto/serve.md lists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/base/version.h"
#include "tool/export/metrics.h"

static char *print(const struct metrics_process *processes, size_t count, bool has_labels,
                   enum metrics_form form) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    metrics_print(out, processes, count, has_labels, NULL, form);
    assert_int_equal(fclose(out), 0);
    return text;
}

static struct metrics_process sample(void) {
    struct metrics_process one = {.name = "a\"b\\c\nd", .pid = 12, .is_running = true};
    one.figures.exit_bytes = 4096;
    one.figures.allocations = UINT64_C(1) << 40;
    one.lost[CAIRN_LOST_NESTED] = 3;
    return one;
}

static void has(const char *text, const char *line) {
    if (!strstr(text, line)) fail_msg("no %s in %s", line, text);
}

static void rows(void **state) {
    (void)state;
    const struct metrics_process one = sample();
    char *text = print(&one, 1, false, METRICS_PROMETHEUS);
    has(text, "\n# TYPE cairn_allocations_total counter\ncairn_allocations_total 1099511627776\n");
    has(text, "\ncairn_inuse_bytes 4096\n");
    has(text, "\ncairn_samples_dropped_total{reason=\"nested\"} 3\n");
    has(text, "\ncairn_samples_dropped_total{reason=\"no_memory\"} 0\n");
    has(text, "\ncairn_sample_interval_bytes 1\n");
    assert_null(strstr(text, "\ncairn_peak_inuse_error_bytes "));
    assert_null(strstr(text, "\ncairn_sample_slowdowns_total "));
    assert_null(strstr(text, "\nprocess_resident_memory_bytes "));
    assert_null(strstr(text, "# EOF"));
    free(text);
}

// The interval is the one in force, and each estimate has its error.
static void samples(void **state) {
    (void)state;
    struct metrics_process one = sample();
    one.figures.is_sampled = true;
    one.figures.rate_bytes = 512 << 10;
    one.figures.rate_now_bytes = 64 << 20;
    one.figures.slowed_count = 7;
    one.figures.peak_bytes = 134 << 20;
    one.figures.peak_estimate = estimate_of_interval(200 << 20, 2);
    char *text = print(&one, 1, false, METRICS_PROMETHEUS);
    has(text, "\ncairn_sample_interval_bytes 67108864\n");
    has(text, "\ncairn_sample_slowdowns_total 7\n");
    has(text, "\ncairn_peak_inuse_error_bytes 2097152");
    free(text);
}

static void labels(void **state) {
    (void)state;
    const struct metrics_process both[] = {sample(), sample()};
    char *text = print(both, 2, true, METRICS_OPEN_METRICS);
    has(text, "\n# TYPE cairn_allocations "
              "counter\ncairn_allocations_total{name=\"a\\\"b\\\\c\\\\x0ad\",pid=\"12\"} ");
    has(text, "{name=\"a\\\"b\\\\c\\\\x0ad\",pid=\"12\",reason=\"nested\"} 3\n");
    has(text, "\n# UNIT cairn_inuse_bytes bytes\n");
    free(text);
    struct metrics_process placed = sample();
    placed.cgroup = "/kubepods/a\"b";
    placed.container_id = "1f";
    placed.pod_uid = "";
    text = print(&placed, 1, true, METRICS_OPEN_METRICS);
    has(text, ",pid=\"12\",cgroup=\"/kubepods/a\\\"b\",container_id=\"1f\"} ");
    has(text, ",container_id=\"1f\",reason=\"nested\"} 3\n");
    assert_string_equal(text + strlen(text) - strlen("# EOF\n"), "# EOF\n");
    free(text);
}

// The version of cairn stands before all processes.
static void build(void **state) {
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    metrics_print_build(out, METRICS_OPEN_METRICS);
    assert_int_equal(fclose(out), 0);
    has(text, "# TYPE cairn_build_info gauge\ncairn_build_info{version=\"" CAIRN_TOOL_VERSION
              "\",commit=\"");
    has(text, "\"} 1\n");
    free(text);
}

static void none(void **state) {
    (void)state;
    char *text = print(NULL, 0, true, METRICS_PROMETHEUS);
    assert_null(strstr(text, "\ncairn_"));
    free(text);
}

// Rows of a cgroup, with a name that would break out; without a limit there is no row of it.
static void cgroup(void **state) {
    (void)state;
    struct metrics_cgroup group = {.path = "/a\"b",
                                   .used_bytes = 300,
                                   .limit_bytes = UINT64_MAX,
                                   .kills = 2,
                                   .parts = {{"anonymous", 200}, {"files", 100}},
                                   .part_count = 2};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    metrics_print(out, NULL, 0, true, &group, METRICS_OPEN_METRICS);
    assert_int_equal(fclose(out), 0);
    has(text, "\ncairn_cgroup_used_bytes{cgroup=\"/a\\\"b\"} 300\n");
    has(text, "\ncairn_cgroup_oom_kills_total{cgroup=\"/a\\\"b\"} 2\n");
    has(text, "\ncairn_cgroup_memory_bytes{cgroup=\"/a\\\"b\",part=\"files\"} 100\n");
    assert_null(strstr(text, "\ncairn_cgroup_limit_bytes{"));
    assert_null(strstr(text, "\ncairn_cgroup_swap_bytes{"));
    assert_string_equal(text + strlen(text) - strlen("# EOF\n"), "# EOF\n");
    free(text);
}

static void forms(void **state) {
    (void)state;
    assert_int_equal(metrics_form_wanted(NULL), METRICS_PROMETHEUS);
    assert_int_equal(metrics_form_wanted("text/plain;version=0.0.4"), METRICS_PROMETHEUS);
    assert_int_equal(metrics_form_wanted("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
                     METRICS_OPEN_METRICS);
}

static void documented(void **state) {
    (void)state;
    enum { PAGE_BYTES = 1 << 20 };
    char *page = calloc(1, PAGE_BYTES);
    FILE *file = fopen("docs/howto/serve.md", "re");
    assert_true(page && file && fread(page, 1, PAGE_BYTES - 1, file) > 0);
    fclose(file);
    const char *type, *help, *name;
    for (size_t i = 0; (name = metrics_family(i, &type, &help)); i++) {
        char text[128];
        const char *ending = strcmp(type, "counter") ? "" : "_total";
        snprintf(text, sizeof text, "%s%s", name, ending);
        has(page, text);
    }
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),   cmocka_unit_test(samples),
                                       cmocka_unit_test(labels), cmocka_unit_test(build),
                                       cmocka_unit_test(none),   cmocka_unit_test(cgroup),
                                       cmocka_unit_test(forms),  cmocka_unit_test(documented)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
