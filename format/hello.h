// SPDX-License-Identifier: Apache-2.0
// What a process and the tool beside it say to each other on the tool's socket, and why programs
// are not recorded.
#ifndef FORMAT_HELLO_H
#define FORMAT_HELLO_H

#include <stdint.h>

// Why a program was not recorded; format/sanitizers.def names what is linked to what. Those from
// ENVIRONMENT on were started as their starter said, but for MACHINE: without the library.
enum cairn_unrecorded {
    CAIRN_UNRECORDED_NONE = 0,
    CAIRN_UNRECORDED_ASAN = 1,
    CAIRN_UNRECORDED_HWASAN = 2,
    CAIRN_UNRECORDED_TSAN = 3,
    CAIRN_UNRECORDED_MSAN = 4,
    CAIRN_UNRECORDED_LSAN = 5,
    CAIRN_UNRECORDED_VALGRIND = 6,
    CAIRN_UNRECORDED_LIBRARY = 7,      // it could not open the library
    CAIRN_UNRECORDED_LIMIT = 8,        // without room for a recording
    CAIRN_UNRECORDED_ENVIRONMENT = 9,  // its LD_PRELOAD does not have the library
    CAIRN_UNRECORDED_STATIC = 10,      // statically linked
    CAIRN_UNRECORDED_PRIVILEGES = 11,  // more than its starter has: LD_PRELOAD is ignored
    CAIRN_UNRECORDED_MACHINE = 12,     // for 32 bits or another processor
    CAIRN_UNRECORDED_KINDS = 13,
    CAIRN_UNRECORDED_ITSELF = 14,  // it is static and records itself: never said
};

// The message a process sends on the tool's socket; the answer is one byte with the memfd attached
// (SCM_RIGHTS) and, for who takes it, the tool's executable; or one byte without: do not record.
// With `unrecorded` it does not ask, but says that a program is being started unrecorded; the
// answer is then one byte. A tool that can put a library into a static program stops the thread
// that starts one before it answers. With VARIABLES it asks for the variables of the run, whose
// text is the answer. With END it says that it ends, has said so in its header, and is still
// mapped; the answer is one byte when the tool has looked.
#define CAIRN_HELLO_MAGIC 0x63616972u
#define CAIRN_HELLO_END_MAGIC 0x63616965u
#define CAIRN_HELLO_VARIABLES_MAGIC 0x63616976u
#define CAIRN_HELLO_PROGRAM 64u
struct cairn_hello {
    uint32_t magic;
    uint32_t version;
    uint32_t forked_from;               // pid, or 0 for the start of a program
    uint32_t unrecorded;                // enum cairn_unrecorded
    char program[CAIRN_HELLO_PROGRAM];  // name of the unrecorded program, ends in NUL; cut
    uint64_t attachment;                // address of its cairn_attachment (attachment.h); 0: none.
                                        // With `unrecorded`: tid of the thread that starts it
    uint32_t is_in_place;               // the process itself becomes the unrecorded program; of one
                                        // that asks: it takes the executable too
    uint32_t is_withdrawn;              // the unrecorded program could not be started after all
};

#endif
