// SPDX-License-Identifier: Apache-2.0
// The module's own file first; unless that has debug information, the directories of debug files
// by build-id (a match there needs no further proof), then the name in .gnu_debuglink, then a
// server if the user wants that. A module that was replaced on disk since the recording can still
// be named if the debug file of the old one is there.
//
// The client is a program of its own (debuginfod-find) and not a library: it brings the cache, the
// protocol and the user's settings with it, it can be cancelled without us, and a tool that never
// downloads does not load what downloading needs.
#include "tool/symbol/locate.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "tool/symbol/candidates.h"
#include "tool/symbol/image.h"

#define CLIENT "debuginfod-find"
#define STATUS_NOT_FOUND 127

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *problem;  // under the lock; set: no further download is tried

// The environment of this process and the wish for progress; NULL without memory.
static char **client_environment(void) {
    static char progress[] = "DEBUGINFOD_PROGRESS=1";
    size_t count = 0;
    while (environ[count]) count++;
    char **variables = calloc(count + 2, sizeof *variables);
    if (!variables) return NULL;
    memcpy(variables, environ, count * sizeof *variables);
    if (!getenv("DEBUGINFOD_PROGRESS") && isatty(STDERR_FILENO)) variables[count] = progress;
    return variables;
}

static bool start_client(const char *hex, int output, pid_t *child) {
    char *words[] = {CLIENT, "debuginfo", (char *)(uintptr_t)hex, NULL};
    char **variables = client_environment();
    if (!variables) return false;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!isatty(STDERR_FILENO))
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool is_started = !posix_spawnp(child, CLIENT, &actions, &attributes, words, variables);
    free(variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return is_started;
}

// What the client prints: the path and a line end.
static void read_path(int input, char path[PATH_MAX]) {
    size_t used = 0;
    while (used < PATH_MAX - 1) {
        ssize_t got = read(input, path + used, PATH_MAX - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    path[used] = 0;
    path[strcspn(path, "\n")] = 0;
}

// Runs the client to its end; Ctrl-C is for it alone meanwhile.
static bool run_client(const char *hex, char path[PATH_MAX]) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int ends[2], status = 0;
    pid_t child;
    if (pipe2(ends, O_CLOEXEC)) return false;
    sigaction(SIGINT, &ignore, &before);
    bool is_started = start_client(hex, ends[1], &child);
    close(ends[1]);
    if (is_started) {
        read_path(ends[0], path);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    }
    close(ends[0]);
    sigaction(SIGINT, &before, NULL);
    if (!is_started || (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND))
        problem = "the program " CLIENT " is not installed (Debian: package debuginfod)";
    else if (WIFSIGNALED(status))
        problem = "downloading was cancelled";
    return is_started && WIFEXITED(status) && !WEXITSTATUS(status) && path[0] == '/';
}

// Asks the client program of debuginfod for the debug file of a build-id; true: `path` is the file
// in the client's cache. The client shows its progress on a terminal; Ctrl-C ends the download and
// all further ones of this command. Safe to call from several threads: one downloads at a time.
static bool download_debug_file(const uint8_t *build_id, size_t bytes, char path[PATH_MAX]) {
    char hex[2 * IMAGE_BUILD_ID_MAX + 1] = "";
    if (!bytes || bytes > IMAGE_BUILD_ID_MAX) return false;
    for (size_t i = 0; i < bytes; i++) snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
    pthread_mutex_lock(&lock);
    bool is_there = !problem && run_client(hex, path);
    pthread_mutex_unlock(&lock);
    return is_there;
}

const char *download_problem(void) {
    pthread_mutex_lock(&lock);
    const char *text = problem;
    pthread_mutex_unlock(&lock);
    return text;
}

// --- .gnu_debugdata

// The symbol table of local functions that some distributions leave in stripped
// files, as an ELF file compressed with xz.

// Symbol tables of the largest known libraries unpack to some 10 MiB; more is an attack.
#define UNPACKED_BYTES_MAX ((size_t)128 << 20)
#define FIRST_BYTES ((size_t)1 << 20)
#define DECODER_MEMORY_MAX ((uint64_t)256 << 20)

// Returns malloc memory with the decoded stream, NULL if it is broken or too large.
static uint8_t *unpack(const uint8_t *from, size_t from_bytes, size_t *bytes) {
    for (size_t size = FIRST_BYTES; size <= UNPACKED_BYTES_MAX; size *= 2) {
        uint8_t *to = malloc(size);
        uint64_t memory = DECODER_MEMORY_MAX;
        size_t from_used = 0, to_used = 0;
        if (!to) return NULL;
        lzma_ret result = lzma_stream_buffer_decode(&memory, 0, NULL, from, &from_used, from_bytes,
                                                    to, &to_used, size);
        *bytes = to_used;
        if (result == LZMA_OK) return to;
        free(to);
        if (result != LZMA_BUF_ERROR) return NULL;
    }
    return NULL;
}

// `packed` stays closed if the module has none, or a broken one.
static void minidebug_open(struct image *packed, const struct image *module) {
    *packed = (struct image)IMAGE_CLOSED;
    GElf_Shdr header;
    Elf_Scn *section = image_section(module, ".gnu_debugdata", &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    if (!data || !data->d_buf) return;
    size_t bytes;
    uint8_t *content = unpack(data->d_buf, data->d_size, &bytes);
    if (content) image_open_memory(packed, content, bytes);
}

#define CRC_CHUNK_BYTES ((size_t)1 << 30)  // crc32() takes an unsigned int

// What a search needs besides the place for what it finds.
struct search {
    const struct symbol_options *options;
    struct string_pool *store;
    const uint8_t *build_id;  // recorded, or the module's own
    size_t build_id_bytes;
};

static bool open_if_same(struct image *image, const char *path, const uint8_t *build_id,
                         size_t bytes) {
    if (image_open(image, path) != IMAGE_OK) return false;
    if (image_has_build_id(image, build_id, bytes)) return true;
    image_close(image);
    return false;
}

static bool open_by_build_id(struct image *image, const char **path, const struct search *search) {
    struct candidates list = {.count = 0};
    candidates_by_build_id(&list, search->options, search->build_id, search->build_id_bytes,
                           search->store);
    for (size_t i = 0; i < list.count; i++) {
        *path = list.paths[i];
        if (open_if_same(image, *path, search->build_id, search->build_id_bytes)) return true;
    }
    return false;
}

static bool has_crc(const struct image *image, uint32_t expected) {
    size_t bytes;
    const char *content = elf_rawfile(image->elf, &bytes);
    if (!content) return false;
    uLong crc = crc32(0, NULL, 0);
    for (size_t done = 0; done < bytes;) {
        size_t chunk = bytes - done < CRC_CHUNK_BYTES ? bytes - done : CRC_CHUNK_BYTES;
        crc = crc32(crc, (const Bytef *)content + done, (uInt)chunk);
        done += chunk;
    }
    return crc == expected;
}

// A build-id on both sides decides; the checksum costs reading the whole file.
static bool is_debug_of(const struct image *debug, const struct image *module, uint32_t crc) {
    if (!image_has_dwarf(debug)) return false;
    if (debug->build_id_bytes && module->build_id_bytes)
        return image_has_build_id(debug, module->build_id, module->build_id_bytes);
    return has_crc(debug, crc);
}

static bool open_by_link(struct image *debug, const char **path, const struct image *module,
                         const char *module_path, const struct search *search) {
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(module->elf, &crc);
    char directory[PATH_MAX];
    if (!name || !name[0] || strchr(name, '/') || !realpath(module_path, directory)) return false;
    *strrchr(directory, '/') = '\0';
    struct candidates list = {.count = 0};
    candidates_by_link(&list, search->options, directory, name, search->store);
    for (size_t i = 0; i < list.count; i++) {
        *path = list.paths[i];
        if (image_open(debug, *path) != IMAGE_OK) continue;
        if (is_debug_of(debug, module, crc)) return true;
        image_close(debug);
    }
    return false;
}

static bool open_download(struct image *image, const char **path, const struct search *search) {
    char found[PATH_MAX];
    if (!search->options->has_debuginfod) return false;
    if (!download_debug_file(search->build_id, search->build_id_bytes, found)) return false;
    *path = string_pool_intern(search->store, found, strlen(found));
    return *path && open_if_same(image, *path, search->build_id, search->build_id_bytes);
}

static const char note_not_elf[] = "the file is not an ELF file";

static const char *missing_note(enum image_result result) {
    if (result == IMAGE_NOT_ELF) return note_not_elf;
    if (result == IMAGE_NOT_A_FILE) return "the path is not a file";
    return "the file is missing or may not be read";
}

enum sameness { IS_SAME, IS_OTHER, IS_DOUBTFUL };

// Whether a file that has the module's path, or one that the user named, is the one that was
// recorded, where no build-id tells.
static enum sameness compare_code(const struct image *image, const char *path,
                                  const struct symbol_module *module) {
    struct code_file now;
    bool is_named = strcmp(path, module->path) != 0 && !candidates_is_held(path);
    if (!module->code_key) return IS_DOUBTFUL;
    if (code_file_of(image->fd, &now) && code_file_is_same(&now, &module->file)) return IS_SAME;
    if (module->code_hash <= CAIRN_CODE_OTHER) return is_named ? IS_DOUBTFUL : IS_OTHER;
    uint64_t hash = code_file_hash(image->fd, module->segments, module->segment_count);
    return hash == module->code_hash ? IS_SAME : IS_OTHER;
}

// Names such as "[vdso]" must not be looked up; a path that is not absolute is one in the directory
// in which the program was started.
static bool is_file_name(const struct symbol_module *module, const struct symbol_options *options) {
    if (!module->path || *module->path == '[') return false;
    return *module->path == '/' || (options->directory && strchr(module->path, '/'));
}

// Opens the module's own file if it is the one that was recorded; returns why not, or a doubt.
static const char *open_module(struct image *image, const char **path,
                               const struct symbol_module *module, const struct search *search) {
    if (!is_file_name(module, search->options)) return "not a file on disk";
    const char *note = NULL;
    struct candidates list = {.count = 0};
    candidates_of_module(&list, search->options, module->path, module->build_id_bytes,
                         search->store);
    for (size_t i = 0; i < list.count; i++) {
        *path = list.paths[i];
        enum image_result result = image_open(image, *path);
        if (result != IMAGE_OK) {
            if (!note) note = missing_note(result);
            continue;
        }
        bool has_build_id = module->build_id_bytes;
        bool is_held = candidates_is_held(*path);
        enum sameness sameness = has_build_id ? IS_OTHER : compare_code(image, *path, module);
        if (has_build_id && image_has_build_id(image, module->build_id, module->build_id_bytes))
            sameness = IS_SAME;
        if (is_held) *path = module->path;  // what it was called
        if (sameness != IS_OTHER)
            return sameness == IS_SAME ? NULL
                                       : "no build-id: nothing tells whether this file is the one "
                                         "that was recorded";
        image_close(image);
        if (i == 0 && has_build_id)
            note = "the file on disk is not the one that was recorded (build-id differs)";
        else if (i == 0)
            note = module->code_hash > CAIRN_CODE_OTHER
                       ? "the file on disk is not the one that was recorded (its code differs)"
                       : "the file was written since it was recorded, and has no build-id";
    }
    return note;
}

static void find_debug_file(struct located *located, const struct search *search) {
    bool has_module = located->module.elf;
    const char **path = &located->debug_path;
    if (open_by_build_id(&located->debug, path, search)) return;
    if (has_module &&
        open_by_link(&located->debug, path, &located->module, located->module_path, search))
        return;
    if (open_download(&located->debug, path, search)) return;
    *path = NULL;
    if (has_module) minidebug_open(&located->packed, &located->module);
}

void locate_open(struct located *located, const struct symbol_module *module,
                 const struct symbol_options *options, struct string_pool *store) {
    *located =
        (struct located){.module = IMAGE_CLOSED, .debug = IMAGE_CLOSED, .packed = IMAGE_CLOSED};
    struct search search = {options, store, module->build_id,
                            module->build_id ? module->build_id_bytes : 0};
    located->note = open_module(&located->module, &located->module_path, module, &search);
    if (!located->module.elf) located->module_path = NULL;
    located->is_data = located->note == note_not_elf;
    located->is_gone = !located->module.elf && is_file_name(module, options);
    if (located->module.elf && image_has_dwarf(&located->module)) return;
    if (!search.build_id_bytes && located->module.elf) {
        search.build_id = located->module.build_id;
        search.build_id_bytes = located->module.build_id_bytes;
    }
    find_debug_file(located, &search);
    // its debug file says everything that the missing one could
    if (located->debug.elf && !located->module.elf) located->note = NULL;
}

void locate_close(struct located *located) {
    image_close(&located->module);
    image_close(&located->debug);
    image_close(&located->packed);
}

void locate_alternate(struct image *alternate, const char *from_path, const char *name,
                      const uint8_t *build_id, size_t build_id_bytes,
                      const struct symbol_options *options, struct string_pool *store) {
    *alternate = (struct image)IMAGE_CLOSED;
    const struct search search = {options, store, build_id, build_id_bytes};
    const char *found;
    char real[PATH_MAX], path[PATH_MAX];
    if (open_by_build_id(alternate, &found, &search)) return;
    const char *slash = realpath(from_path, real) ? strrchr(real, '/') : NULL;
    bool is_absolute = name[0] == '/';
    if (is_absolute || slash) {
        int directory = is_absolute ? 0 : (int)(slash + 1 - real);
        int length = snprintf(path, sizeof path, "%.*s%s", directory, real, name);
        if (length < PATH_MAX && open_if_same(alternate, path, build_id, build_id_bytes)) return;
    }
    open_download(alternate, &found, &search);
}
