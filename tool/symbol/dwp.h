// SPDX-License-Identifier: Apache-2.0
// Debug information that was split off and packed into one file beside the program (PROGRAM.dwp),
// of DWARF 5 and of GNU's form for DWARF 4. libdw does not know it, but for a single unit: so one
// unit at a time is shown to it as the .dwo file that it was.
//
// That file is made without copying: a stretch of memory begins with the headers of an ELF file,
// whose sections lie in the package, mapped behind them; then come the tables of addresses and
// ranges of the program, which units refer to.
#ifndef TOOL_SYMBOL_DWP_H
#define TOOL_SYMBOL_DWP_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

#include "tool/symbol/bytes.h"
#include "tool/symbol/image.h"

struct dwp;

// Opens a package for the units of a program whose debug information is in `dwarf_image`. NULL: it
// is not there, is none, or there is no memory.
struct dwp *dwp_open(const char *path, const struct image *dwarf_image);
// The same of an object file that has its split unit inside (clang -gsplit-dwarf=single), which
// libdw does not find either.
struct dwp *dwp_open_object(const char *path, const struct image *dwarf_image);
void dwp_close(struct dwp *dwp);

// One unit, while it is open.
struct dwp_unit {
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_Die die;
    struct bytes addresses, ranges;  // tables from the unit's part on
    uint64_t low;                    // address that ranges count from
    uint8_t version;                 // of DWARF
};

// The unit that belongs to a skeleton; at most one is open, and its DIEs are gone with it, though
// no other of the package ever has their addresses. False: the package does not have it.
bool dwp_unit_open(struct dwp *dwp, Dwarf_Die *skeleton, struct dwp_unit *unit);
void dwp_unit_close(struct dwp_unit *unit);

// Where the ranges of a DIE were read to.
struct dwp_ranges {
    struct bytes list;
    uint64_t base;
    bool is_open;
};

// The next range of a DIE that has DW_AT_ranges; `ranges` is zero at first. False: no more.
bool dwp_ranges_next(const struct dwp_unit *unit, Dwarf_Die *die, struct dwp_ranges *ranges,
                     uint64_t *start, uint64_t *end);

// Which package of this machine a file belongs to.

// Debian's package (without the architecture) that installed the file; false: none is known.
bool package_of(const char *path, char *name, size_t size);

// Name of the package with its debug symbols, where Debian has one made by hand (PACKAGE-dbgsym are
// those made automatically).
void package_of_symbols(const char *package, char *name, size_t size);

#endif
