// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/object.h"
#include "runtime/sys/linker.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime/sys/sys.h"

// The result of glibc's _dl_find_object, as its manual gives it; declared here since headers before
// 2.35 lack it.
struct found_object {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

static int (*find_object)(void *, struct found_object *);

void object_init(void) {
    *(void **)&find_object = linker_find("_dl_find_object");
}

static void object_set_segments(struct object *object, const Elf64_Ehdr *header) {
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > SYS_PAGE_LEAST) return;
    object->segments = (const Elf64_Phdr *)((const uint8_t *)header + header->e_phoff);
    object->segment_count = header->e_phnum;
}

// The program headers tell the whole mapping, and where unwind information is.
static void object_span(struct object *object) {
    object->start = UINTPTR_MAX;
    object->end = 0;
    for (uint32_t i = 0; i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        uintptr_t start = object->bias + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME) object->eh_frame_hdr = (const uint8_t *)start;
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t page = start & ~(uintptr_t)(sys_page_bytes() - 1);
        if (page < object->start) object->start = page;
        if (start + segment->p_memsz > object->end) object->end = start + segment->p_memsz;
    }
}

// Of an object with a hole between its segments the linker tells the one that holds the address.
// Its unwind information lies in another one.
static COLD void object_complete(struct object *object, const struct link_map *map) {
    const uint8_t *first = (const uint8_t *)map->l_addr;  // of a library, where its header lies
    uintptr_t pc = object->start;
    struct object whole = *object;
    if (!map->l_name[0]) {
        whole.segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
        whole.segment_count = (uint32_t)getauxval(AT_PHNUM);
    } else if (sys_is_readable(first)) {
        object_set_segments(&whole, (const Elf64_Ehdr *)first);
    }
    if (!whole.segments) return;
    object_span(&whole);
    if (pc >= whole.start && pc < whole.end) *object = whole;
}

static bool object_find_lockless(uintptr_t pc, struct object *object) {
    struct found_object found;
    if (find_object((void *)pc, &found) != 0) return false;
    *object = (struct object){
        .start = (uintptr_t)found.map_start,
        .end = (uintptr_t)found.map_end,
        .bias = found.link_map->l_addr,
        .eh_frame_hdr = found.eh_frame,
        .path = found.link_map->l_name,
    };
    object_set_segments(object, found.map_start);
    if (unlikely(!object->segments)) object_complete(object, found.link_map);
    return true;
}

struct search {
    uintptr_t pc;
    struct object *object;
};

// Turns musl's name of a static executable into that of others.
static const char *path_of(const char *name) {
    return sys_is_text_equal(name, "/proc/self/exe") ? "" : name;
}

static int object_visit(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *search = data;
    struct object object = {.bias = info->dlpi_addr,
                            .path = path_of(info->dlpi_name),
                            .segments = info->dlpi_phdr,
                            .segment_count = info->dlpi_phnum};
    (void)size;
    object_span(&object);
    if (search->pc < object.start || search->pc >= object.end) return 0;
    *search->object = object;
    return 1;
}

bool object_find(uintptr_t pc, struct object *object) {
    if (find_object) return object_find_lockless(pc, object);
    struct search search = {pc, object};
    return dl_iterate_phdr(object_visit, &search) == 1;
}
