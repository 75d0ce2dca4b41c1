// SPDX-License-Identifier: Apache-2.0
#include "tool/query/name_hints.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format/languages.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/query/languages.h"
#include "tool/query/name_options.h"
#include "tool/query/unwrapped.h"
#include "tool/render/terminal.h"
#include "tool/symbol/dwp.h"
#include "tool/symbol/locate.h"
#include "tool/watch/program.h"

enum { HINTS_MAX = 3, NAME_BYTES = 256 };

// What would help, by what is known about the file.
static void remedy_text(const struct module *module, const struct symbol_report *report, char *out,
                        size_t size) {
    char package[NAME_BYTES], symbols[NAME_BYTES];
    if (report->is_gone) {
        snprintf(out, size, "the file as it was, below --debug-dir, has them");
        return;
    }
    if (!package_of(module->path, package, sizeof package)) {
        snprintf(out, size, "build it with -g, record again");
        return;
    }
    package_of_symbols(package, symbols, sizeof symbols);
    snprintf(out, size, "package %s-dbgsym", package);
}

// The line of all modules: "no names for 3 frames of libz.so.1 (package zlib1g-dbgsym), 2 of ...".
static void add_unnamed(struct parts *line, const struct module *module,
                        const struct symbol_report *report, size_t unresolved, size_t number) {
    char path[PATH_MAX], remedy[3 * NAME_BYTES], safe[3 * NAME_BYTES];
    struct unit_text count = number ? units_count((int64_t)unresolved)
                                    : units_counted((int64_t)unresolved, "frame", "frames");
    text_escape(path, sizeof path, text_base_name(module->path));
    remedy_text(module, report, remedy, sizeof remedy);
    text_escape(safe, sizeof safe, remedy);
    parts_add(line, STYLE_DIM, "%s%s of %s (%s)", number ? "" : "no names for ", count.text, path,
              safe);
}

// Why names are missing or doubtful.
static void print_note(const struct terminal *terminal, const struct module *module,
                       const char *text) {
    char path[PATH_MAX], note[PATH_MAX];
    text_escape(path, sizeof path, text_base_name(module->path));
    text_escape(note, sizeof note, text);
    terminal_print_line(terminal, STYLE_DIM, "%s: %s", path, note);
}

// Prints why names of modules are missing or doubtful, of the first few.
static void print_notes(const struct terminal *terminal, const struct opened *opened) {
    const struct module_map *modules = &opened->profile.modules;
    size_t count = 0;
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct symbol_report *report = names_report(opened->names, i);
        if (!report->note || module_is_cairn(modules->modules[i].path)) continue;
        if (count++ < HINTS_MAX) print_note(terminal, &modules->modules[i], report->note);
    }
    if (count > HINTS_MAX)
        terminal_print_line(
            terminal, STYLE_DIM, "%s, likewise: cairn info has each",
            units_counted((int64_t)(count - HINTS_MAX), "other module", "other modules").text);
}

// Another Python than the one whose frames can be read.
static void print_python(const struct terminal *terminal, const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    uint32_t version = header->python_version >> shift;
    if (!version || header->has_python_frames) return;
    terminal_print_line(terminal, STYLE_DIM, "Python %u.%u.%u: its own frames are missing, %s",
                        version >> 2 * shift, version >> shift & mask, version & mask,
                        cairn_python_is_read(header->python_version)
                            ? "this build (free-threaded?) keeps them otherwise than others"
                            : "cairn reads those of " CAIRN_PYTHON_READ);
}

// A JVM whose frames cannot be read.
static void print_java(const struct terminal *terminal, const struct cairn_header *header) {
    if (!header->java_version || header->has_java_frames) return;
    if (header->java_version == CAIRN_JAVA_UNKNOWN)
        terminal_print_line(terminal, STYLE_DIM,
                            "a JVM of unknown version: Java frames are missing, cairn reads those "
                            "of " CAIRN_JAVA_READ);
    else
        terminal_print_line(
            terminal, STYLE_DIM,
            "JDK %u: Java frames are missing, cairn reads those of " CAIRN_JAVA_READ,
            header->java_version);
}

// Go whose frames cannot be read.
static void print_go(const struct terminal *terminal, const struct cairn_header *header) {
    if (header->has_go_frames) return;
    if (header->go_version == CAIRN_GO_UNKNOWN)
        terminal_print_line(terminal, STYLE_DIM,
                            "Go of unknown version: its frames are missing, cairn reads those of "
                            "1.%u and later",
                            CAIRN_GO_FIRST);
    else if (header->go_version)
        terminal_print_line(terminal, STYLE_DIM,
                            "Go 1.%u: its frames are missing, cairn reads those of 1.%u and later",
                            header->go_version, CAIRN_GO_FIRST);
}

// V8 whose frames cannot be read.
static void print_js(const struct terminal *terminal, const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (header->has_js_frames) return;
    if (header->js_version)
        terminal_print_line(terminal, STYLE_DIM,
                            "V8 %u.%u: JavaScript frames are missing, cairn reads those of V8 %s",
                            header->js_version >> shift, header->js_version & mask, CAIRN_JS_READ);
}

// PHP whose frames cannot be read.
static void print_php(const struct terminal *terminal, const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (header->has_php_frames || !header->php_version) return;
    if (header->php_version == CAIRN_PHP_UNKNOWN)
        terminal_print_line(terminal, STYLE_DIM,
                            "PHP built for threads, or of unknown version: its frames are missing, "
                            "cairn reads those of PHP " CAIRN_PHP_READ " without threads");
    else
        terminal_print_line(
            terminal, STYLE_DIM,
            "PHP %u.%u: its frames are missing, cairn reads those of " CAIRN_PHP_READ,
            header->php_version >> shift, header->php_version & mask);
}

// Ruby whose frames cannot be read.
static void print_ruby(const struct terminal *terminal, const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    if (header->has_ruby_frames || !header->ruby_version) return;
    if (header->ruby_version == CAIRN_RUBY_UNKNOWN)
        terminal_print_line(
            terminal, STYLE_DIM,
            "Ruby of unknown version or layout: its frames are missing, cairn reads "
            "those of " CAIRN_RUBY_READ " (MRI)");
    else
        terminal_print_line(
            terminal, STYLE_DIM,
            "Ruby %u.%u: its frames are missing, cairn reads those of " CAIRN_RUBY_READ " (MRI)",
            header->ruby_version >> shift, header->ruby_version & mask);
}

// A recording that came without names: what was looked up is in the cache, by which it is read from
// now on.
static void print_first_read(const struct terminal *terminal, const struct opened *opened) {
    const struct module_map *modules = &opened->profile.modules;
    if (!names_is_first_read(opened->names)) return;
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct symbol_report *report = names_report(opened->names, i);
        bool is_new = report->origin == SYMBOL_ORIGIN_FILE && report->resolved_count;
        if (!is_new || !module_is_own(modules->modules[i].path)) continue;
        terminal_print(terminal, STYLE_DIM,
                       "the recording has no names: they were looked up now and are in the cache,\n"
                       "  cairn symbolize keeps them in the recording\n");
        return;
    }
}

bool name_hints_lost(const struct opened *opened, char *out, size_t size) {
    const struct module_map *modules = &opened->profile.modules;
    const struct symbol_report *report = NULL;
    size_t most = 0, index = 0;
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct symbol_report *found = names_report(opened->names, i);
        size_t unresolved = names_unresolved(opened->names, i);
        bool is_lost = found->is_gone || found->source <= SYMBOL_SOURCE_DYNSYM;
        if (!is_lost || unresolved <= most || !module_is_own(modules->modules[i].path)) continue;
        most = unresolved;
        report = found;
        index = i;
    }
    if (!most) return false;
    char name[NAME_BYTES], note[PATH_MAX] = "it has no symbols";
    text_escape(name, sizeof name, text_base_name(modules->modules[index].path));
    if (report->note) text_escape(note, sizeof note, report->note);
    snprintf(out, size, "%s of %s %s no name: %s; %s",
             units_counted((int64_t)most, "frame", "frames").text, name, most == 1 ? "has" : "have",
             note,
             report->is_gone ? "the file as it was, below --debug-dir, names them"
                             : "build it with -g");
    return true;
}

void name_hints_print(FILE *out, const struct opened *opened, bool is_summed_up) {
    struct terminal terminal = terminal_of(out);
    const struct cairn_header *header = &opened->recording.header;
    const struct module_map *modules = &opened->profile.modules;
    struct parts line = {.terminal = &terminal};
    size_t hints = 0;
    if (!is_summed_up) languages_print(&terminal, opened, 0);
    print_python(&terminal, header);
    print_java(&terminal, header);
    print_go(&terminal, header);
    print_js(&terminal, header);
    print_php(&terminal, header);
    print_ruby(&terminal, header);
    unwrapped_print_of(&terminal, opened->profile.recording, 0);
    print_first_read(&terminal, opened);
    print_notes(&terminal, opened);
    for (uint32_t i = 0; i < modules->count && hints < HINTS_MAX; i++) {
        const struct symbol_report *report = names_report(opened->names, i);
        size_t unresolved = names_unresolved(opened->names, i);
        bool is_file = strchr(modules->modules[i].path, '/');
        if (is_file && unresolved && report->source < SYMBOL_SOURCE_DWARF)
            add_unnamed(&line, &modules->modules[i], report, unresolved, hints++);
    }
    parts_end(&line);
    const char *problem = download_problem();
    if (problem) terminal_print_line(&terminal, STYLE_DIM, "debuginfod: %s", problem);
}
