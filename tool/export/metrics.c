// SPDX-License-Identifier: Apache-2.0
#include "tool/export/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/version.h"
#include "tool/render/trust.h"

void metrics_read(const struct recording *recording, struct metrics_process *process) {
    const struct cairn_header *header = &recording->header;
    process->figures = figures_of(recording);
    process->own_bytes = header->own_bytes;
    process->has_picture = picture_of(recording, CAIRN_PICTURE_LAST, &process->picture);
    for (size_t reason = 0; reason < CAIRN_LOSS_MAX; reason++)
        process->lost[reason] = recording_lost(recording, reason);
}

// A row of a family: its value; false: the process has none.
typedef bool value_of(const struct metrics_process *process, double *value);

// Integers up to 2^53 are exact, which no sum of bytes of a process exceeds by chance.
static bool is_positive(int64_t number, double *value) {
    *value = number > 0 ? (double)number : 0;
    return true;
}

static bool running(const struct metrics_process *process, double *value) {
    *value = process->is_running;
    return true;
}

static bool inuse_bytes(const struct metrics_process *process, double *value) {
    return is_positive(process->figures.exit_bytes, value);
}

static bool inuse_blocks(const struct metrics_process *process, double *value) {
    return is_positive(process->figures.exit_blocks, value);
}

static bool inuse_error(const struct metrics_process *process, double *value) {
    *value = (double)estimate_bytes_interval(&process->figures.exit_estimate);
    return process->figures.is_sampled;
}

static bool peak_bytes(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.peak_bytes;
    return true;
}

static bool peak_error(const struct metrics_process *process, double *value) {
    *value = (double)estimate_bytes_interval(&process->figures.peak_estimate);
    return process->figures.is_sampled;
}

static bool allocated_bytes(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.allocated_bytes;
    return true;
}

static bool allocations(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.allocations;
    return true;
}

static bool frees(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.frees;
    return true;
}

static bool failed(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.failed;
    return true;
}

static bool sample_interval(const struct metrics_process *process, double *value) {
    *value = process->figures.is_sampled ? (double)process->figures.rate_now_bytes : 1;
    return true;
}

static bool slowed(const struct metrics_process *process, double *value) {
    *value = (double)process->figures.slowed_count;
    return process->figures.is_sampled;
}

static bool self_memory(const struct metrics_process *process, double *value) {
    *value = (double)process->own_bytes;
    return process->own_bytes > 0;
}

static bool resident(const struct metrics_process *process, double *value) {
    *value = (double)process->rss_bytes;
    return process->rss_bytes > 0;
}

static bool heap_allocated(const struct metrics_process *process, double *value) {
    *value = (double)(process->picture.live_bytes + process->picture.slack_bytes);
    return process->has_picture;
}

static bool heap_resident(const struct metrics_process *process, double *value) {
    *value = (double)process->picture.heap_bytes;
    return process->has_picture;
}

static bool heap_retained(const struct metrics_process *process, double *value) {
    *value = (double)(process->picture.chunk_bytes + process->picture.top_bytes);
    return process->has_picture && process->picture.arena_count > 0;
}

static const struct family {
    const char *name;  // of a counter without its ending "_total"
    const char *type, *unit, *help;
    value_of *value;  // NULL: a row a reason of loss
} families[] = {
    {"cairn_process_running", "gauge", "", "1 while the recorded process runs.", running},
    {"cairn_inuse_bytes", "gauge", "bytes", "Live heap, as the program asked for it.", inuse_bytes},
    {"cairn_inuse_blocks", "gauge", "", "Live blocks of the heap.", inuse_blocks},
    {"cairn_inuse_error_bytes", "gauge", "bytes",
     "Half of the 95 % interval of cairn_inuse_bytes, where it is an estimate from samples.",
     inuse_error},
    {"cairn_peak_inuse_bytes", "gauge", "bytes", "Largest live heap since the recording began.",
     peak_bytes},
    {"cairn_peak_inuse_error_bytes", "gauge", "bytes",
     "Half of the 95 % interval of cairn_peak_inuse_bytes, where it is an estimate from samples.",
     peak_error},
    {"cairn_allocated_bytes", "counter", "bytes", "Bytes asked for since the recording began.",
     allocated_bytes},
    {"cairn_allocations", "counter", "", "Calls that allocated.", allocations},
    {"cairn_frees", "counter", "", "Blocks that were freed.", frees},
    {"cairn_failed_allocations", "counter", "", "Calls that were refused memory.", failed},
    {"cairn_sample_interval_bytes", "gauge", "bytes",
     "One sample in so many bytes on average now, 1 where every block is recorded.",
     sample_interval},
    {"cairn_sample_slowdowns", "counter", "",
     "Times that the interval doubled to keep within the processor budget.", slowed},
    {"cairn_samples_dropped", "counter", "", "Events recorded without their stack, or not at all.",
     NULL},
    {"cairn_self_memory_bytes", "gauge", "bytes", "Memory that cairn takes in the process.",
     self_memory},
    {"cairn_allocator_allocated_bytes", "gauge", "bytes",
     "What live blocks take of the allocator, rounding included, when it was looked at last.",
     heap_allocated},
    {"cairn_allocator_resident_bytes", "gauge", "bytes",
     "Resident memory of the heap when it was looked at last.", heap_resident},
    {"cairn_allocator_retained_bytes", "gauge", "bytes",
     "Free memory that the allocator keeps, resident or not, when it was looked at last.",
     heap_retained},
    {"process_resident_memory_bytes", "gauge", "bytes", "Resident memory of the process.",
     resident},
};
enum { FAMILIES = sizeof families / sizeof *families };

// Families of a cgroup: its value; false: it has none.
typedef bool value_of_cgroup(const struct metrics_cgroup *cgroup, double *value);

static bool cgroup_used(const struct metrics_cgroup *cgroup, double *value) {
    *value = (double)cgroup->used_bytes;
    return true;
}

static bool cgroup_limit(const struct metrics_cgroup *cgroup, double *value) {
    *value = (double)cgroup->limit_bytes;
    return cgroup->limit_bytes != UINT64_MAX;
}

static bool cgroup_swap(const struct metrics_cgroup *cgroup, double *value) {
    *value = (double)cgroup->swap_bytes;
    return cgroup->has_swap;
}

static bool cgroup_kills(const struct metrics_cgroup *cgroup, double *value) {
    *value = (double)cgroup->kills;
    return true;
}

static const struct cgroup_family {
    struct family about;
    value_of_cgroup *value;  // NULL: a row a part
} cgroup_families[] = {
    {{"cairn_cgroup_used_bytes", "gauge", "bytes", "Memory that the cgroup uses.", NULL},
     cgroup_used},
    {{"cairn_cgroup_limit_bytes", "gauge", "bytes",
      "Its limit, the least of its own and those above.", NULL},
     cgroup_limit},
    {{"cairn_cgroup_swap_bytes", "gauge", "bytes", "What of it is swapped out.", NULL},
     cgroup_swap},
    {{"cairn_cgroup_oom_kills", "counter", "", "Processes killed for want of memory.", NULL},
     cgroup_kills},
    {{"cairn_cgroup_memory_bytes", "gauge", "bytes",
      "The same by part; the parts add up to it, or to more while the kernel counts late.", NULL},
     NULL},
};
enum { CGROUP_FAMILIES = sizeof cgroup_families / sizeof *cgroup_families };

// The server itself.
static const struct family build = {"cairn_build_info", "gauge", "",
                                    "1, with the version and commit of cairn as labels.", NULL};

const char *metrics_family(size_t index, const char **type, const char **help) {
    if (index > FAMILIES + CGROUP_FAMILIES) return NULL;
    const struct family *family = &build;
    if (index < FAMILIES) family = &families[index];
    if (index >= FAMILIES && index < FAMILIES + CGROUP_FAMILIES)
        family = &cgroup_families[index - FAMILIES].about;
    *type = family->type;
    *help = family->help;
    return family->name;
}

const char *metrics_content_type(enum metrics_form form) {
    return form == METRICS_OPEN_METRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

enum metrics_form metrics_form_wanted(const char *accept) {
    return accept && strstr(accept, "application/openmetrics-text") ? METRICS_OPEN_METRICS
                                                                    : METRICS_PROMETHEUS;
}

static bool is_counter(const struct family *family) {
    return *family->type == 'c';
}

static void print_head(FILE *out, const struct family *family, enum metrics_form form) {
    const char *ending = is_counter(family) && form == METRICS_PROMETHEUS ? "_total" : "";
    fprintf(out, "# HELP %s%s %s\n", family->name, ending, family->help);
    fprintf(out, "# TYPE %s%s %s\n", family->name, ending, family->type);
    if (*family->unit && form == METRICS_OPEN_METRICS)
        fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
}

// Safe text as the value of a label.
static void print_label(FILE *out, const char *key, const char *text) {
    fprintf(out, "%s=\"", key);
    for (; *text; text++) {
        if (strchr("\\\"", *text)) fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

// A row is known by them as long as its process is where it was.
static void print_place(FILE *out, const struct metrics_process *process) {
    enum { PLACE_BYTES = 1024 };
    const char *const labels[][2] = {{",cgroup", process->cgroup},
                                     {",container_id", process->container_id},
                                     {",pod_uid", process->pod_uid}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[PLACE_BYTES];
        if (!labels[i][1] || !*labels[i][1]) continue;
        text_escape(text, sizeof text, labels[i][1]);
        print_label(out, labels[i][0], text);
    }
}

static void print_row(FILE *out, const struct family *family, const struct metrics_process *process,
                      bool has_labels, const char *reason, double value) {
    char name[NAME_MAX];
    fprintf(out, "%s%s", family->name, is_counter(family) ? "_total" : "");
    if (has_labels || reason) fputc('{', out);
    if (has_labels) {
        text_escape(name, sizeof name, process->name);
        print_label(out, "name", name);
        fprintf(out, ",pid=\"%d\"", (int)process->pid);
        print_place(out, process);
        if (reason) fputc(',', out);
    }
    if (reason) print_label(out, "reason", reason);
    if (has_labels || reason) fputc('}', out);
    fprintf(out, " %.17g\n", value);
}

// Each reason has a row from the start, so that a rate sees the first loss.
static void print_losses(FILE *out, const struct family *family,
                         const struct metrics_process *process, bool has_labels) {
    for (size_t reason = 0; reason < CAIRN_LOSS_MAX; reason++)
        if (loss_key(reason))
            print_row(out, family, process, has_labels, loss_key(reason),
                      (double)process->lost[reason]);
}

static void print_cgroup_row(FILE *out, const struct family *family,
                             const struct metrics_cgroup *cgroup, const char *part, double value) {
    enum { PLACE_BYTES = 1024 };
    char text[PLACE_BYTES];
    text_escape(text, sizeof text, cgroup->path);
    fprintf(out, "%s%s{", family->name, is_counter(family) ? "_total" : "");
    print_label(out, "cgroup", text);
    if (part) print_label(out, ",part", part);
    fprintf(out, "} %.17g\n", value);
}

static void print_cgroup(FILE *out, const struct metrics_cgroup *cgroup, enum metrics_form form) {
    for (size_t i = 0; i < CGROUP_FAMILIES; i++) {
        const struct cgroup_family *family = &cgroup_families[i];
        double value;
        print_head(out, &family->about, form);
        if (family->value && family->value(cgroup, &value))
            print_cgroup_row(out, &family->about, cgroup, NULL, value);
        for (size_t part = 0; !family->value && part < cgroup->part_count; part++)
            print_cgroup_row(out, &family->about, cgroup, cgroup->parts[part].name,
                             (double)cgroup->parts[part].bytes);
    }
}

void metrics_print_build(FILE *out, enum metrics_form form) {
    print_head(out, &build, form);
    fprintf(out, "%s{", build.name);
    print_label(out, "version", CAIRN_TOOL_VERSION);
    print_label(out, ",commit", version_commit());
    fputs("} 1\n", out);
}

void metrics_print(FILE *out, const struct metrics_process *processes, size_t count,
                   bool has_labels, const struct metrics_cgroup *cgroup, enum metrics_form form) {
    for (const struct family *family = families; family < families + FAMILIES; family++) {
        print_head(out, family, form);
        for (size_t i = 0; i < count; i++) {
            double value;
            if (!family->value)
                print_losses(out, family, &processes[i], has_labels);
            else if (family->value(&processes[i], &value))
                print_row(out, family, &processes[i], has_labels, NULL, value);
        }
    }
    if (cgroup) print_cgroup(out, cgroup, form);
    if (form == METRICS_OPEN_METRICS) fputs("# EOF\n", out);
}
