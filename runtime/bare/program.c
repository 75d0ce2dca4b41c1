// SPDX-License-Identifier: Apache-2.0
// The program around the library as the tool describes it (format/bare.h): what others ask the
// dynamic linker and libc for.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "format/bare.h"
#include "runtime/bare/bare.h"
#include "runtime/sys/sys.h"

extern struct cairn_bare cairn_bare;

// Initialized, so that the compiler takes nothing for known.
__attribute__((visibility("default"), used)) struct cairn_bare cairn_bare = {.bias = 1};

char **environ = (char **)cairn_bare.variables;
extern char **__environ __attribute__((alias("environ")));

// The program's own is saved and restored by what it has to do with nothing here.
int *__errno_location(void) {
    static __thread int value;
    return &value;
}

unsigned long getauxval(unsigned long type) {
    for (size_t i = 0; i < CAIRN_BARE_AUXILIARY && cairn_bare.auxiliary[i][0]; i++)
        if (cairn_bare.auxiliary[i][0] == type) return cairn_bare.auxiliary[i][1];
    return 0;
}

void *bare_find(const char *name) {
    for (size_t i = 0; i < CAIRN_BARE_FUNCTIONS && cairn_bare.functions[i].name[0]; i++)
        if (sys_is_text_equal(cairn_bare.functions[i].name, name))
            return (void *)cairn_bare.functions[i].moved;
    return NULL;
}

void bare_keep_mapping(const void *start, size_t bytes) {
    size_t i = 0;
    while (i < CAIRN_BARE_MAPPINGS - 1 && cairn_bare.mappings[i][0]) i++;
    cairn_bare.mappings[i][0] = (uintptr_t)start;
    cairn_bare.mappings[i][1] = bytes;
}

void *dlsym(void *handle, const char *name) {
    (void)handle, (void)name;
    return NULL;
}

typedef int module_visitor(struct dl_phdr_info *info, size_t size, void *data);

// Visits an image that begins with its ELF header.
static int visit_image(module_visitor *visit, void *data, uintptr_t start) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)start;
    struct dl_phdr_info info = {.dlpi_addr = start,
                                .dlpi_name = "cairn",
                                .dlpi_phdr = (const Elf64_Phdr *)(start + header->e_phoff),
                                .dlpi_phnum = header->e_phnum};
    return visit(&info, sizeof info, data);
}

extern HIDDEN const char __ehdr_start[];

// The executable, the kernel's own code, this library.
int dl_iterate_phdr(module_visitor *visit, void *data) {
    struct dl_phdr_info program = {.dlpi_addr = cairn_bare.bias,
                                   .dlpi_name = "",
                                   .dlpi_phdr = (const Elf64_Phdr *)cairn_bare.segments,
                                   .dlpi_phnum = (Elf64_Half)cairn_bare.segment_count};
    uintptr_t kernel = getauxval(AT_SYSINFO_EHDR);
    int result = visit(&program, sizeof program, data);
    if (!result && kernel) result = visit_image(visit, data, kernel);
    return result ? result : visit_image(visit, data, (uintptr_t)__ehdr_start);
}
