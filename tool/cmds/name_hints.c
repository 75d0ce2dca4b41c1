// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/name_hints.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/name_options.h"
#include "tool/render/terminal.h"
#include "tool/symbol/download.h"
#include "tool/symbol/package.h"
#include "tool/watch/python.h"

enum { HINTS_MAX = 3, NAME_BYTES = 256, BUILD_ID_SHOWN = 4, COLUMNS = 80 };

static void print_build_id(const struct terminal *terminal, const struct module *module) {
    uint32_t shown =
        module->build_id_bytes < BUILD_ID_SHOWN ? module->build_id_bytes : BUILD_ID_SHOWN;
    if (!shown) return;
    terminal_print(terminal, STYLE_DIM, " (build-id ");
    for (uint32_t i = 0; i < shown; i++)
        terminal_print(terminal, STYLE_DIM, "%02x", module->build_id[i]);
    terminal_print(terminal, STYLE_DIM, "\xe2\x80\xa6)");
}

// What would help, by what is known about the file; in two lines where one is too long.
static void print_remedy(const struct terminal *terminal, const struct module *module) {
    char package[NAME_BYTES], symbols[NAME_BYTES], text[3 * NAME_BYTES], safe[3 * NAME_BYTES];
    const char *others = name_options_symbols()->has_debuginfod ? "--debug-dir names them"
                                                                : "--debug-dir or --debuginfod "
                                                                  "names them";
    if (package_of(module->path, package, sizeof package)) {
        package_of_symbols(package, symbols, sizeof symbols);
        snprintf(text, sizeof text, "package %s-dbgsym or %s", package, symbols);
    } else {
        snprintf(text, sizeof text, "building it with -g");
    }
    text_escape(safe, sizeof safe, text);
    bool is_long = strlen(safe) + strlen(others) + strlen("  , ") > COLUMNS;
    terminal_print(terminal, STYLE_DIM, "  %s,%s%s\n", safe, is_long ? "\n  " : " ", others);
}

static void print_hint(const struct terminal *terminal, const struct module *module,
                       const struct symbol_report *report, size_t unresolved) {
    char path[PATH_MAX], note[PATH_MAX];
    text_escape(path, sizeof path, text_base_name(module->path));
    terminal_print(terminal, STYLE_DIM, "%s", path);
    print_build_id(terminal, module);
    if (report->note) {
        text_escape(note, sizeof note, report->note);
        terminal_print(terminal, STYLE_DIM, ": %s", note);
    }
    if (!unresolved) {
        fputc('\n', terminal->out);
        return;
    }
    terminal_print(terminal, STYLE_DIM, ": %s %s without a name\n",
                   units_count((int64_t)unresolved).text, unresolved == 1 ? "frame" : "frames");
    print_remedy(terminal, module);
}

// Another Python than the one whose frames can be read.
static void print_python(const struct terminal *terminal, const struct cairn_header *header) {
    const unsigned shift = 8, mask = 0xff;
    uint32_t version = header->python_version >> shift;
    if (!version || header->has_python_frames) return;
    terminal_print(
        terminal, STYLE_DIM,
        "Python %u.%u.%u: its own frames are missing, cairn reads those of " PYTHON_READ_TEXT "\n",
        version >> 2 * shift, version >> shift & mask, version & mask);
}

void name_hints_print(FILE *out, const struct opened *opened) {
    struct terminal terminal = terminal_of(out);
    const struct module_map *modules = &opened->profile.modules;
    size_t hints = 0;
    print_python(&terminal, &opened->recording.header);
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct symbol_report *report = names_report(opened->names, i);
        size_t unresolved = names_unresolved(opened->names, i);
        bool is_file = modules->modules[i].path[0] == '/';
        bool needs_hint = is_file && unresolved && report->source < SYMBOL_SOURCE_DWARF;
        if (needs_hint && hints++ >= HINTS_MAX) continue;
        if (needs_hint || report->note)
            print_hint(&terminal, &modules->modules[i], report, needs_hint ? unresolved : 0);
    }
    const char *problem = download_problem();
    if (problem) terminal_print(&terminal, STYLE_DIM, "debuginfod: %s\n", problem);
}
