// SPDX-License-Identifier: Apache-2.0
// Where in their pages the structures begin that every event reads and writes.
//
// A load waits for an older store whose address has the same low 12 bits, since that is all that
// the processor compares at first (AMD 25112, 5.5; Intel calls it 4K aliasing). Whatever has pages
// of its own would begin at 0, and in a program of one thread each structure is the first of its
// kind. So they begin at different places:
//
//   0x000  the thread's entry in THREADS, and the control line    (format.h)
//   0x080  totals                                                 (format.h)
//   0x100  struct thread
//   0x800  cairn_cell of the first stacks                         (intern.c)
//   0xa00  the words that decide the last stack, outermost first
//   0xfc0  the gate's stamp
//
// tests/promises/colours.py looks at the addresses of a process.
#ifndef RUNTIME_SYS_COLOUR_H
#define RUNTIME_SYS_COLOUR_H

enum { COLOUR_THREADS = 0x100, COLOUR_CELLS = 0x800, COLOUR_CHECKS = 0xa00, COLOUR_STAMP = 0xfc0 };

#endif
