// SPDX-License-Identifier: Apache-2.0
// cairn gdb-script: commands for gdb in a process that is recorded, or its core. The script is
// gdb_script.py beside this file, with the places of the fields in front, so that they cannot
// differ from format.h.
#include <stddef.h>
#include <stdio.h>

#include "format/format.h"
#include "tool/cmds/commands.h"

__asm__(".section .rodata\n"
        ".global gdb_script_text, gdb_script_end\n"
        "gdb_script_text: .incbin \"tool/cmds/gdb_script.py\"\n"
        "gdb_script_end: .byte 0\n"
        ".previous\n");
extern const char gdb_script_text[], gdb_script_end[];

static const struct {
    const char *name;
    size_t offset, bytes;
    bool is_signed;
} fields[] = {
#define FIELD(structure, field, is_signed)                                                         \
    {#structure "." #field, offsetof(struct structure, field),                                     \
     sizeof(((struct structure *)0)->field), is_signed},
    FIELD(cairn_header, section_count, false) FIELD(cairn_header, sections, false)
        FIELD(cairn_header, slot_bytes, false) FIELD(cairn_header, live_map, false)
            FIELD(cairn_header, windows, false) FIELD(cairn_section, kind, false)
                FIELD(cairn_section, offset, false) FIELD(cairn_section, capacity_bytes, false)
                    FIELD(cairn_section, used_bytes, false) FIELD(cairn_totals, peak_bytes, false)
                        FIELD(cairn_module, start, false) FIELD(cairn_thread, name, false)
                            FIELD(cairn_thread, tid, false) FIELD(cairn_thread, allocations, false)
                                FIELD(cairn_thread, allocated_bytes, false)
                                    FIELD(cairn_thread, frees, false)
                                        FIELD(cairn_thread, net_bytes, true)
                                            FIELD(cairn_thread, is_sampled, false)
                                                FIELD(cairn_thread, estimated_blocks, true)
                                                    FIELD(cairn_cell, allocated_bytes, false)
                                                        FIELD(cairn_cell, freed_bytes, false)
                                                            FIELD(cairn_cell, record, false)
#undef FIELD
};

static const struct {
    const char *name;
    size_t value;
} numbers[] = {
    {"totals", offsetof(struct cairn_header, totals)},
    {"cairn_section", sizeof(struct cairn_section)},
    {"cairn_module", sizeof(struct cairn_module)},
    {"cairn_thread", sizeof(struct cairn_thread)},
    {"cairn_cell", sizeof(struct cairn_cell)},
    {"MODULES", CAIRN_SECTION_MODULES},
    {"THREADS", CAIRN_SECTION_THREADS},
    {"CELLS", CAIRN_SECTION_CELLS},
    {"RECORDS", CAIRN_SECTION_RECORDS},
};

int cmd_gdb_script(const struct command_args *args) {
    (void)args;
    puts("python\nFORMAT = {");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        printf("    \"%s\": (%zu, %zu, %s),\n", fields[i].name, fields[i].offset, fields[i].bytes,
               fields[i].is_signed ? "True" : "False");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        printf("    \"%s\": %zu,\n", numbers[i].name, numbers[i].value);
    puts("}");
    fwrite(gdb_script_text, 1, (size_t)(gdb_script_end - gdb_script_text), stdout);
    puts("end");
    return STATUS_OK;
}
