// SPDX-License-Identifier: Apache-2.0
// A language is recognized by the file that brings it, or by a function that all its calls pass.
// Frames that were asked for and could not be read are name_hints.c's.
#include "tool/query/languages.h"

#include <string.h>

#include "tool/base/text.h"

enum { FILES_MOST = 3 };

static const struct language {
    const char *name;
    const char *option;             // or variable; NULL: cairn reads no frames of it
    const char *files[FILES_MOST];  // beginnings of their names
    const char *function;           // beginning of its name; NULL: none tells
    const char *hint;               // where its objects are seen; NULL: nothing is to be said
} languages[] = {
    {"Python", "--python", {"python3", "libpython3"}, NULL, NULL},
    {"Java", "--frames=java", {"libjvm", "java"}, NULL, NULL},
    {"Go", "--frames=go", {NULL}, "runtime.asmcgocall", NULL},
    {"JavaScript", "--frames=js", {"node", "nodejs", "libnode"}, "v8::internal::", NULL},
    {"Ruby", "--frames=ruby", {"ruby", "libruby-", "libruby"}, NULL, NULL},
    {"PHP",
     "--frames=php",
     {"php", "libphp"},
     NULL,
     "malloc has the memory of scripts with USE_ZEND_ALLOC=0; else PHP maps it in chunks"},
    {".NET", "DOTNET_PerfMapEnabled=1", {"libcoreclr", "dotnet"}, NULL, NULL},
    {"Perl", NULL, {"perl", "libperl"}, NULL, NULL},
};
enum { LANGUAGES = sizeof languages / sizeof *languages };

// "python3" is "python3.11" too, and "node" no "node_exporter".
static bool is_called(const char *path, const char *beginning) {
    const char *name = text_base_name(path);
    size_t length = strlen(beginning);
    return !strncmp(name, beginning, length) &&
           (!name[length] || strchr(".0123456789", name[length]));
}

static bool is_of(const char *path, const struct language *language) {
    for (size_t file = 0; file < FILES_MOST && language->files[file]; file++)
        if (is_called(path, language->files[file])) return true;
    return false;
}

// Modules are those of recorded stacks: after an attach, few or none.
static bool has_file(const struct opened *opened, const struct language *language) {
    const struct module_map *modules = &opened->profile.modules;
    bool is_there = is_of(opened->recording.header.executable, language);
    for (uint32_t i = 0; i < modules->count && !is_there; i++)
        is_there = is_of(modules->modules[i].path, language);
    return is_there;
}

// Among the frames that names were wanted of there is a function whose name begins so.
static bool has_function(const struct opened *opened, const char *beginning) {
    struct frame_names names = names_frames(opened->names);
    for (uint32_t place = 0; place < opened->profile.places.list.count; place++) {
        size_t count;
        const struct frame *frames = names.of_place(names.context, place, &count);
        for (size_t i = 0; i < count; i++)
            if (frames[i].function && !strncmp(frames[i].function, beginning, strlen(beginning)))
                return true;
    }
    return false;
}

// Its frames are there, or were asked for.
static bool was_asked(const struct opened *opened, size_t language) {
    const struct cairn_header *header = &opened->recording.header;
    const bool asked[LANGUAGES] = {header->has_python_frames || header->python_version,
                                   header->has_java_frames || header->java_version,
                                   header->has_go_frames || header->go_version,
                                   header->has_js_frames || header->js_version,
                                   header->has_ruby_frames || header->ruby_version,
                                   header->has_php_frames || header->php_version,
                                   names_has_dotnet(opened->names)};
    return asked[language];
}

void languages_print(const struct terminal *terminal, const struct opened *opened, size_t indent) {
    if (recording_imported(opened->profile.recording)) return;
    for (size_t i = 0; i < LANGUAGES; i++) {
        const struct language *language = &languages[i];
        if (was_asked(opened, i)) continue;
        bool is_there = has_file(opened, language) ||
                        (language->function && has_function(opened, language->function));
        if (!is_there) continue;
        if (language->option)
            terminal_print_line(terminal, STYLE_DIM,
                                "%*s%s: its own frames are missing, %s records them", (int)indent,
                                "", language->name, language->option);
        else
            terminal_print_line(
                terminal, STYLE_DIM,
                "%*s%s: cairn does not read its frames, only those of the interpreter", (int)indent,
                "", language->name);
        if (!language->hint) continue;
        terminal_print_line(terminal, STYLE_DIM, "%*s%s: %s", (int)indent, "", language->name,
                            language->hint);
    }
}
