// SPDX-License-Identifier: Apache-2.0
// The places are those of gdb and of Debian: the global directory by build-id first (a match
// there needs no further proof), then the name in .gnu_debuglink beside the module, in .debug
// below it, and below the global directory. A module that was replaced on disk since the
// recording can still be named if the debug file of the old one is there.
#include "tool/symbol/locate.h"

#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tool/symbol/minidebug.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define CRC_CHUNK_BYTES ((size_t)1 << 30)  // crc32() takes an unsigned int

// Printf into a path; false if it does not fit.
static bool __attribute__((format(printf, 2, 3)))
path_print(char path[PATH_MAX], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, PATH_MAX, format, arguments);
    va_end(arguments);
    return length > 0 && length < PATH_MAX;
}

static bool build_id_path(char path[PATH_MAX], const uint8_t *build_id, size_t bytes) {
    if (bytes < 2 || bytes > IMAGE_BUILD_ID_MAX) return false;
    char hex[2 * IMAGE_BUILD_ID_MAX + 1];
    for (size_t i = 0; i < bytes; i++) snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
    return path_print(path, DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static bool open_by_build_id(struct image *image, char path[PATH_MAX], const uint8_t *build_id,
                             size_t bytes) {
    if (!build_id_path(path, build_id, bytes) || image_open(image, path) != IMAGE_OK) return false;
    if (image_has_build_id(image, build_id, bytes)) return true;
    image_close(image);
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

static bool open_by_link(struct image *debug, char path[PATH_MAX], const struct image *module,
                         const char *module_path) {
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(module->elf, &crc);
    char directory[PATH_MAX];
    if (!name || !name[0] || strchr(name, '/') || !realpath(module_path, directory)) return false;
    *strrchr(directory, '/') = '\0';
    static const struct {
        const char *before, *after;
    } places[] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_ROOT, "/"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!path_print(path, "%s%s%s%s", places[i].before, directory, places[i].after, name))
            continue;
        if (image_open(debug, path) != IMAGE_OK) continue;
        if (is_debug_of(debug, module, crc)) return true;
        image_close(debug);
    }
    return false;
}

static const char *missing_note(const char *path, enum image_result result) {
    if (path[0] != '/') return "not a file on disk";
    if (result == IMAGE_NOT_ELF) return "the file is not an ELF file";
    if (result == IMAGE_NOT_A_FILE) return "the path is not a file";
    return "the file is missing or may not be read";
}

// Opens the module's own file if it is the one that was recorded; returns why not, or a doubt.
static const char *open_module(struct image *image, const struct symbol_module *module) {
    const char *path = module->path ? module->path : "";
    // Names such as "[vdso]" must not be looked up in the current directory.
    enum image_result result = path[0] == '/' ? image_open(image, path) : IMAGE_MISSING;
    if (result != IMAGE_OK) return missing_note(path, result);
    if (!module->build_id_bytes)
        return image->build_id_bytes ? "the recording has no build-id to check the file" : NULL;
    if (image_has_build_id(image, module->build_id, module->build_id_bytes)) return NULL;
    image_close(image);
    return "the file on disk is not the one that was recorded (build-id differs)";
}

bool locate_open(struct located *located, const struct symbol_module *module, struct store *store,
                 struct error *error) {
    *located = (struct located){IMAGE_CLOSED, IMAGE_CLOSED, IMAGE_CLOSED, NULL, NULL, NULL};
    located->note = open_module(&located->module, module);
    bool has_module = located->module.elf;
    if (has_module && image_has_dwarf(&located->module)) goto paths;
    const uint8_t *build_id = module->build_id;
    size_t build_id_bytes = module->build_id ? module->build_id_bytes : 0;
    if (!build_id_bytes && has_module) {
        build_id = located->module.build_id;
        build_id_bytes = located->module.build_id_bytes;
    }
    char path[PATH_MAX];
    if (open_by_build_id(&located->debug, path, build_id, build_id_bytes) ||
        (has_module && open_by_link(&located->debug, path, &located->module, module->path))) {
        located->debug_path = store_intern(store, path, strlen(path));
        if (!located->debug_path) goto fail;
    } else if (has_module) {
        minidebug_open(&located->packed, &located->module);
    }
paths:
    if (!has_module) return true;
    located->module_path = store_intern(store, module->path, strlen(module->path));
    if (located->module_path) return true;
fail:
    locate_close(located);
    return error_set(error, "no memory for the symbols of %s", module->path ? module->path : "?");
}

void locate_close(struct located *located) {
    image_close(&located->module);
    image_close(&located->debug);
    image_close(&located->packed);
}

void locate_alternate(struct image *alternate, const char *from_path, const char *name,
                      const uint8_t *build_id, size_t build_id_bytes) {
    *alternate = (struct image)IMAGE_CLOSED;
    char path[PATH_MAX];
    if (open_by_build_id(alternate, path, build_id, build_id_bytes)) return;
    char real[PATH_MAX];
    const char *slash = realpath(from_path, real) ? strrchr(real, '/') : NULL;
    if (name[0] != '/' && !slash) return;
    int length = name[0] == '/' ? 0 : (int)(slash + 1 - real);
    if (!path_print(path, "%.*s%s", length, real, name)) return;
    if (image_open(alternate, path) != IMAGE_OK) return;
    if (!image_has_build_id(alternate, build_id, build_id_bytes)) image_close(alternate);
}
