// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "format/languages.h"
#include "format/packed.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/report_run.h"
#include "tool/model/left_out.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
#include "tool/render/frames.h"
#include "tool/render/interval.h"
#include "tool/render/trust.h"

enum { TEXT_BYTES = 4 * CAIRN_TEXT_COMMAND };

static struct unit_text size_of(const struct command_args *args, uint64_t bytes) {
    return units_size_as((int64_t)bytes, args_has(args, OPTION_BYTES));
}

enum { KEY_COLUMNS = 13, THREAD_COLUMN = 28, LINE_BYTES = 256 };

static void print_key(const char *key) {
    printf("%-*s ", KEY_COLUMNS - 1, key);
}

// Prints the rest of a line behind `used` columns of it; what does not fit stands below, at
// `indent`.
static void end_line(size_t used, size_t indent, const char *text) {
    const struct terminal terminal = terminal_of(stdout);
    terminal_print_words(&terminal, STYLE_PLAIN, used, indent, text);
    putchar('\n');
}

static void print_text(const char *key, const char *text) {
    char safe[TEXT_BYTES];
    text_escape(safe, sizeof safe, text);
    print_key(key);
    puts(*safe ? safe : "-");
}

static void print_command(const struct cairn_header *header) {
    char command[CAIRN_TEXT_COMMAND];
    memcpy(command, header->command, sizeof command);
    size_t length = sizeof command - 1;
    while (length && !command[length - 1]) length--;
    for (size_t i = 0; i < length; i++)
        if (!command[i]) command[i] = ' ';
    print_text("command", command);
}

static void print_start(const struct cairn_header *header) {
    const uint64_t ns_per_s = 1000000000u;
    time_t seconds = (time_t)(header->start_unix_ns / ns_per_s);
    struct tm parts;
    char text[64] = "-";
    // of an imported file it may not be known
    if (seconds && localtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts);
    print_text("started", text);
}

static const char *state_name(const struct opened *opened) {
    switch (opened->recording.header.state) {
    case CAIRN_STATE_NEW:
        return "not started";
    case CAIRN_STATE_RUNNING:
        return opened_is_alive(opened) ? "running" : "without an end";
    case CAIRN_STATE_ENDED:
        return "ended";
    case CAIRN_STATE_DIED:
        return "died";
    case CAIRN_STATE_STOPPED:
        return "stopped";
    default:
        return "unknown";
    }
}

static void print_allocator(struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    if (header->allocator == CAIRN_ALLOCATOR_GLIBC)
        print_text("allocator", "glibc");
    else if (header->allocator == CAIRN_ALLOCATOR_OTHER)
        print_text("allocator", recording_string(recording, header->allocator_module));
    else
        print_text("allocator", "unknown");
}

static void print_python(const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    uint32_t version = header->python_version >> shift;
    if (!version) return;
    print_key("python");
    printf("%u.%u.%u, %s\n", version >> 2 * shift, version >> shift & mask, version & mask,
           header->has_python_frames ? "stacks have its frames" : "native frames only");
}

static void print_java(const struct cairn_header *header) {
    if (!header->java_version) return;
    print_key("java");
    if (header->java_version != CAIRN_JAVA_UNKNOWN) printf("JDK %u, ", header->java_version);
    puts(header->has_java_frames ? "stacks have its frames" : "native frames only");
}

static void print_go(const struct cairn_header *header) {
    if (!header->go_version) return;
    print_key("go");
    if (header->go_version != CAIRN_GO_UNKNOWN) printf("Go 1.%u, ", header->go_version);
    puts(header->has_go_frames ? "stacks have its frames" : "native frames only");
}

static void print_js(const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (!header->js_version) return;
    print_key("javascript");
    printf("V8 %u.%u, %s\n", header->js_version >> shift, header->js_version & mask,
           header->has_js_frames ? "stacks have its frames" : "native frames only");
}

static void print_php(const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (!header->php_version) return;
    print_key("php");
    if (header->php_version != CAIRN_PHP_UNKNOWN)
        printf("%u.%u, ", header->php_version >> shift, header->php_version & mask);
    puts(header->has_php_frames ? "stacks have its frames" : "native frames only");
}

static void print_ruby(const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (!header->ruby_version) return;
    print_key("ruby");
    if (header->ruby_version != CAIRN_RUBY_UNKNOWN)
        printf("%u.%u, ", header->ruby_version >> shift, header->ruby_version & mask);
    puts(header->has_ruby_frames ? "stacks have its frames" : "native frames only");
}

// Of kernels of aarch64; others need no line.
static void print_pages(const struct command_args *args, const struct cairn_header *header) {
    if (header->page_bytes == CAIRN_PAGE_LEAST) return;
    print_key("page size");
    puts(size_of(args, header->page_bytes).text);
}

static void print_process(const struct opened *opened) {
    const struct cairn_header *header = &opened->recording.header;
    print_key("process");
    printf("%" PRIu32 ", parent %" PRIu32 ", user %" PRIu32, header->pid, header->ppid,
           header->uid);
    if (header->forked_from) printf(", a fork of %" PRIu32, header->forked_from);
    putchar('\n');
    print_command(header);
    print_text("program", header->executable);
    print_text("directory", header->directory);
    print_start(header);
    print_key("state");
    fputs(state_name(opened), stdout);
    if (header->end_ns) printf(" after %s", units_duration(header->end_ns).text);
    putchar('\n');
}

// What cairn itself took from the process.
static void print_own(const struct command_args *args, const struct profile *profile) {
    const struct cairn_header *header = &profile->recording->header;
    print_key("own memory");
    puts(size_of(args, header->own_bytes).text);
    print_key("RSS peak");
    if (header->rss_peak_bytes)
        printf("%s%s\n", size_of(args, header->rss_peak_bytes).text,
               header->is_rss_sampled ? ", as seen now and then" : "");
    else
        puts("unknown");
}

static void print_contents(const struct command_args *args, const struct opened *opened) {
    const struct profile *profile = &opened->profile;
    const struct cairn_header *header = &opened->recording.header;
    print_own(args, profile);
    print_key("contents");
    printf("stacks %s, cells %s, addresses %s, threads %s, modules %s\n",
           units_count((int64_t)profile->stack_count).text,
           units_count((int64_t)recording_count(&opened->recording, CAIRN_SECTION_CELLS)).text,
           units_count((int64_t)profile->places.list.count).text,
           units_count((int64_t)profile->thread_count).text,
           units_count((int64_t)profile->modules.count).text);
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    print_key("peak");
    if (!profile_has_frees(profile)) {
        puts("unknown: the imported file does not say what was freed");
        return;
    }
    char text[LINE_BYTES];
    snprintf(text, sizeof text, "counted %s, stacks add up to %s%s%s",
             size_of(args, header->totals.peak_bytes).text,
             size_of(args, (uint64_t)measured_shown(peak)).text,
             interval_amount(peak, true, args_has(args, OPTION_BYTES)).text,
             interval_samples(peak).text);
    end_line(KEY_COLUMNS, KEY_COLUMNS, text);
}

// Looks for the names of all frames.
static bool print_names(struct opened *opened, struct error *error) {
    for (size_t i = 0; i < opened->profile.stack_count; i++)
        names_want_stack(opened->names, opened->profile.stacks[i].node, 0);
    if (!names_resolve(opened->names, error)) return false;
    struct frame_names names = names_frames(opened->names);
    print_key("frames");
    printf("%s, %s without a name", units_count((int64_t)names.wanted_count).text,
           units_count((int64_t)names.unresolved_count).text);
    if (names.unresolved_modules) printf(" (%s)", names.unresolved_modules);
    putchar('\n');
    return true;
}

static void print_incomplete(const struct profile *profile) {
    print_key("cut stacks");
    bool has_any = false;
    for (uint32_t cut = 1; cut < CAIRN_CUT_LIMIT; cut++) {
        if (!profile->incomplete[cut]) continue;
        if (has_any) print_key("");
        printf("%s %s\n", units_count((int64_t)profile->incomplete[cut]).text, cut_sentence(cut));
        has_any = true;
    }
    if (!has_any) puts("none");
}

static void print_exactness(const struct command_args *args, const struct profile *profile) {
    print_key("counts");
    fputs(profile_is_exact(profile) ? "exact" : "not exact, see below", stdout);
    if (profile->peak.error_bytes)
        printf(", the peak within %s", size_of(args, profile->peak.error_bytes).text);
    putchar('\n');
}

// Programs that the process started and that were not recorded.
static void print_left_out(const struct recording *recording) {
    struct cairn_left_out list = {0};
    char name[CAIRN_LEFT_OUT_NAME * 4];
    bool has_any = false;
    left_out_add_recording(&list, recording);
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) {
        const struct cairn_left_out_program *program = &list.programs[i];
        if (!program->count) continue;
        text_escape(name, sizeof name, program->name);
        print_key(has_any ? "" : "not recorded");
        printf("%s, %s: %s\n", name, units_counted(program->count, "time", "times").text,
               left_out_clause(program->reason));
        has_any = true;
    }
    uint64_t unnamed = left_out_unnamed(&list);
    if (unnamed) print_key(has_any ? "" : "not recorded");
    if (unnamed) printf("%s more\n", units_count((int64_t)unnamed).text);
}

static void print_losses(const struct profile *profile) {
    const struct recording *recording = profile->recording;
    bool has_any = false;
    print_key("lost");
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        uint64_t count = recording_lost(recording, kind);
        if (!count) continue;
        if (has_any) print_key("");
        printf("%s %s\n", units_count((int64_t)count).text, loss_sentence(kind, count));
        has_any = true;
    }
    if (recording_is_checkpoint(recording)) {
        if (has_any) print_key("");
        printf("what came after the checkpoint at %s\n",
               units_duration(recording->header.checkpoint_ns).text);
    } else if (!recording_has_begun(recording))
        puts("everything: no room for the recording, in memory or on its disk");
    else if (!has_any)
        puts("nothing");
    uint64_t earlier = recording_earlier_frees(recording);
    if (earlier) {
        print_key("expected");
        printf("%s %s\n", units_count((int64_t)earlier).text, earlier_frees_sentence(earlier));
    }
    const struct damage *damage = &recording->damage;
    if (!damage_is_any(damage)) return;
    print_key("damage");
    printf("%s missing, %s, %s, %s, %s unreadable\n",
           units_size((int64_t)damage->missing_bytes).text,
           units_counted(damage->bad_stacks, "stack", "stacks").text,
           units_counted(damage->bad_modules, "module", "modules").text,
           units_counted(damage->bad_strings, "text", "texts").text,
           units_counted(damage->bad_sections, "section", "sections").text);
}

static void print_build_id(const struct module *module) {
    if (!module->build_id_bytes) printf("%-40s", "no build-id");
    for (uint32_t i = 0; i < module->build_id_bytes; i++) printf("%02x", module->build_id[i]);
}

// Where the names of a module came from, if any were needed.
static void print_source(const struct symbol_report *report) {
    static const char *const sources[] = {
        [SYMBOL_SOURCE_NONE] = "no names",
        [SYMBOL_SOURCE_DYNSYM] = "exported functions",
        [SYMBOL_SOURCE_SYMTAB] = "functions without lines",
        [SYMBOL_SOURCE_DWARF] = "functions and lines",
        [SYMBOL_SOURCE_GENERATED] = "functions as the program named them",
    };
    static const char *const origins[] = {[SYMBOL_ORIGIN_FILE] = "",
                                          [SYMBOL_ORIGIN_CACHE] = ", from the cache",
                                          [SYMBOL_ORIGIN_RECORDING] = ", from the recording"};
    char text[TEXT_BYTES];
    if (!report || (!report->resolved_count && !report->note)) return;
    printf("    %s", sources[report->source]);
    if (report->path) {
        text_escape(text, sizeof text, report->path);
        printf(" of %s", text);
    }
    fputs(origins[report->origin], stdout);
    if (report->note) {
        text_escape(text, sizeof text, report->note);
        printf("; %s", text);
    }
    putchar('\n');
}

static void print_modules(const struct profile *profile, const struct names *names) {
    printf("\nmodules\n");
    for (size_t i = 0; i < profile->modules.count; i++) {
        const struct module *module = &profile->modules.modules[i];
        if (!module->is_valid) continue;
        char path[TEXT_BYTES];
        text_escape(path, sizeof path, module->path);
        printf("  %012" PRIx64 "-%012" PRIx64 "  ", module->start, module->end);
        print_build_id(module);
        printf("  %s", path);
        if (module->unloaded_ns) printf("  (until %s)", units_duration(module->unloaded_ns).text);
        putchar('\n');
        print_source(names_report(names, (uint32_t)i));
    }
}

// Writes what is left of its blocks, or of those of all that share its account.
static void left_text(const struct profile_thread *thread, bool is_plain, char *out, size_t size) {
    int64_t bytes = thread->is_shared ? thread->account_exit_bytes : thread->exit_bytes;
    const struct measured left = measured_bytes(bytes, &thread->exit_estimate);
    const bool is_shared = thread->is_shared;
    snprintf(out, size, ", %s%s left%s%s%s%s", units_size_as(measured_shown(left), is_plain).text,
             interval_amount(left, true, is_plain).text, interval_samples(left).text,
             is_shared ? " of the " : "", is_shared ? units_count(thread->sharing_count).text : "",
             is_shared ? " threads that share its account" : "");
}

static void print_threads(const struct command_args *args, const struct profile *profile) {
    printf("\nthreads\n");
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        char name[4 * sizeof thread->name];
        text_escape(name, sizeof name, thread->name);
        bool is_plain = args_has(args, OPTION_BYTES);
        char left[LINE_BYTES] = "", folded[LINE_BYTES] = "", text[3 * LINE_BYTES];
        const int used = printf("  %7" PRIu32 "  %-15s  allocated %10s", thread->tid, name,
                                size_of(args, thread->allocated_bytes).text);
        if (profile_has_frees(profile)) left_text(thread, is_plain, left, sizeof left);
        if (thread->folded_count)
            snprintf(
                folded, sizeof folded, ", with %s",
                units_counted((int64_t)thread->folded_count, "more thread", "more threads").text);
        snprintf(text, sizeof text, " in %s%s%s",
                 units_counted((int64_t)thread->allocations, "call", "calls").text, left, folded);
        end_line((size_t)used, THREAD_COLUMN, text);
    }
}

static const char *form_of(const struct cairn_header *header) {
    if (cairn_is_packed(header->version)) return "packed";
    return header->is_compact ? "compact" : "raw";
}

static bool info_recording(const struct command_args *args, const struct subject *subject,
                           struct error *error) {
    struct opened opened;
    if (!opened_open(subject->path, &opened, error)) return false;
    const struct cairn_header *header = &opened.recording.header;
    print_text("recording", subject->name);
    print_key("format");
    printf("version %" PRIu32 ", %s, %s\n", header->version, form_of(header),
           size_of(args, opened.recording.file_bytes).text);
    print_process(&opened);
    print_allocator(&opened.recording);
    print_python(header);
    print_java(header);
    print_go(header);
    print_js(header);
    print_php(header);
    print_ruby(header);
    print_pages(args, header);
    print_contents(args, &opened);
    bool is_ok = print_names(&opened, error);
    print_exactness(args, &opened.profile);
    print_incomplete(&opened.profile);
    print_losses(&opened.profile);
    print_left_out(&opened.recording);
    print_threads(args, &opened.profile);
    print_modules(&opened.profile, opened.names);
    opened_close(&opened);
    return is_ok;
}

static bool info_run(const struct command_args *args, const char *path, struct error *error) {
    const struct view_options view = {.is_plain_number = args_has(args, OPTION_BYTES)};
    struct run run;
    if (!run_open(path, &run, error)) return false;
    struct run_sums sums = run_sum(&run);
    print_text("run", path);
    print_key("contents");
    printf("processes %s, recordings %s (%s)%s\n", units_count((int64_t)run.rows.count).text,
           units_count((int64_t)sums.file_count).text, size_of(args, sums.bytes_of_files).text,
           run.has_index ? "" : ", no index");
    bool is_ok = !run.rows.count || report_run_table(stdout, &run, &view, error);
    run_close(&run);
    return is_ok;
}

int cmd_info(const struct command_args *args) {
    struct subject subject;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (!subject_find(args->words[0], &subject, &error) ||
        (process && !subject_enter(&subject, process, &error)))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = subject.is_run ? info_run(args, subject.path, &error)
                                : info_recording(args, &subject, &error);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
