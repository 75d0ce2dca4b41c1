// SPDX-License-Identifier: Apache-2.0
// Code in the process by which a borrowed thread gets back to the program on its own, if the tool
// is killed in the middle of a call.
//
// The thread makes system calls at this code, and functions return to it. Under the tool it stops
// there. Without one it goes on: it closes the file that was made, gives errno, vector registers,
// priority and signal mask their values, unmaps the stack of the calls, and jumps to where the
// program was, with all registers as they were. A system call that was interrupted begins again.
//
// Code and values lie behind the code of a module that stays, in the rest of its last page, which
// nobody uses: no memory has to be mapped before the first call, and none stays behind. They are
// only read there; the tool writes them, and puts back what was there before.
//
// x86-64 only. No other processor can load all its registers and jump without one of them.
#ifndef TOOL_ATTACH_STUB_H
#define TOOL_ATTACH_STUB_H

#include "tool/proc/registers.h"
#include "tool/proc/remote.h"
#include "tool/proc/threads.h"

// A place for a stub in the process, by the start of a module's ELF header. False: it has none.
bool stub_find(uint64_t *place, const struct remote *remote, uint64_t module_start);

// Finds one in the code that the kernel maps into each process, of which a page that is written to
// becomes the process' own: for processes that have no other.
bool stub_find_last(uint64_t *place, const struct remote *remote);

// Tells if a thread is still in a call that a tool began which is gone: its stub is needed. All
// threads are stopped.
bool stub_is_busy(uint64_t place, const struct remote *remote, const struct threads *threads);

struct stub {
    const struct remote *remote;
    uint64_t place;         // 0: there is none
    uint8_t before[1024];   // what was there
    struct registers back;  // those with which the thread stands where it leaves the stub
};

// Writes the stub for a thread with these registers and this signal mask. False: without one.
bool stub_write(struct stub *stub, uint64_t place, const struct remote *remote,
                const struct registers *registers, uint64_t signal_mask);
void stub_erase(struct stub *stub);

// Entries of it: instructions that make a system call, those for mmap, munmap, calls that open a
// file and close, and where functions return to. The stub is told afterwards of memory that was
// mapped or unmapped, and of files.
enum stub_entry { STUB_SYSTEM_CALL, STUB_MAP, STUB_UNMAP, STUB_OPEN, STUB_CLOSE, STUB_RETURN };
uint64_t stub_entry(const struct stub *stub, enum stub_entry entry);

// Tells if a thread that has returned stands where it stops: by the signal that it sends itself, or
// without one at a system call. The function's result.
bool stub_is_returned(const struct stub *stub, const struct registers *now, bool by_signal);
uint64_t stub_result(const struct registers *now);

// Things that the thread does on its way back, as far as that is known now; 0 or -1: nothing.
void stub_set_signal(const struct stub *stub, int signal);
void stub_set_stack(const struct stub *stub, uint64_t start, uint64_t bytes);
void stub_set_room(const struct stub *stub, uint64_t start, uint64_t bytes);
void stub_set_vectors(const struct stub *stub, uint64_t at, int kind);
void stub_set_errno(const struct stub *stub, uint64_t at, int value);
void stub_set_file(const struct stub *stub, int64_t file);
void stub_set_scheduling(const struct stub *stub, const struct scheduling *usual);

#endif
