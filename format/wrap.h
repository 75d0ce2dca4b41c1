// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap), as the tool tells the library in CAIRN_WRAP: a line for
// each heap, its name and then its functions, each as
// "ROLE[?],NAME,SIZE,COUNT,POINTER,OUT,POOL,PARENT,LABEL" with numbers of arguments from 1 on, 0:
// none. Fields of a line are separated by '|'.
#ifndef CAIRN_WRAP_H
#define CAIRN_WRAP_H

enum {
    CAIRN_WRAP_HEAPS = 16,      // most rows
    CAIRN_WRAP_FUNCTIONS = 64,  // of all rows
    CAIRN_WRAP_ARGUMENTS = 6,   // that are read: those in registers
    CAIRN_WRAP_NAME_BYTES = 64,
    CAIRN_WRAP_WAY_BYTES = 16,
};

// Allocates, the same by count and size, reallocates, frees. Of heaps whose blocks lie in arenas:
// makes one, clears it, destroys it, gives it a name, another parent; and the variable that says
// which is the present one, where a function is not told.
#define CAIRN_WRAP_ROLES "acrfmxdlpv"
// Added to a role: some versions of the library lack the function, and the heap is led without it.
#define CAIRN_WRAP_MAY_LACK '?'

#endif
