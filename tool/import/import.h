// SPDX-License-Identifier: Apache-2.0
// Files of other heap profilers as recordings, so that every view works on them. A reader fills an
// `imported`, which has what such files have in common; import_write makes a compact recording of
// it, with the names in its SYMBOLS section.
//
// The files come from anywhere: every number is checked, what does not fit is an error that names
// the place. A format is a file of this room and a row of the table.
#ifndef TOOL_IMPORT_IMPORT_H
#define TOOL_IMPORT_IMPORT_H

#include <stdio.h>

#include "format/sample.h"
#include "format/waste.h"
#include "tool/base/error.h"
#include "tool/model/strings.h"
#include "tool/model/tree.h"

#define IMPORT_NO_MODULE UINT32_MAX
#define IMPORT_TEXT_BYTES 1024

// Text is a number in `strings`, 0: unknown.
struct import_frame {
    uint32_t function, file, line;
};

// A call in the code, and the functions inlined there, innermost first.
struct import_place {
    uint32_t module;  // number in `modules`
    uint32_t first_frame, frame_count;
    uint32_t cut;  // enum cairn_cut: it is no call, but says why a stack ends there; 0
};

// A stretch of the process, where a file has addresses instead of names.
struct import_mapping {
    uint64_t start, end;
    uint64_t offset;  // in the module's file
    uint64_t bias;    // if `has_bias`: address - bias is the virtual address in the ELF file
    bool has_bias;
    bool is_segment;  // all of an executable segment and no more: it proves which file it is of
    uint32_t module;
};

struct import_address {
    uint64_t address;
    uint32_t place;
};

struct import_values {
    int64_t calls, allocated_bytes;
    int64_t peak_blocks, peak_bytes;
    int64_t exit_blocks, exit_bytes;
    int64_t temporary;  // if `has_temporary`
    int64_t slack_bytes;
};

struct import_stack {
    uint32_t node;
    struct import_values values;
};

// How old the blocks of a stack are, those that are left, by bits of the milliseconds.
struct import_ages {
    uint32_t ms[CAIRN_AGE_BUCKETS];
};

struct import_point {
    uint64_t at_ns;
    int64_t bytes;
};

struct imported {
    struct strings strings;
    ARRAY(uint32_t) modules;  // their paths
    struct index_table module_table;
    ARRAY(struct import_frame) frames;
    ARRAY(struct import_place) places;
    struct index_table text_table;           // places by text (import_place_of_text)
    ARRAY(uint32_t) place_texts;             // by place; 0: was not made of a text
    ARRAY(struct import_mapping) mappings;   // of executable code
    ARRAY(struct import_address) addresses;  // of places without names, each once
    struct index_table address_table;
    uint32_t newer_module;  // text: path of a file that was written after the profile, 0: none
    uint32_t other_module;  // the same of a file that is not the one that was profiled
    struct tree tree;       // of places
    ARRAY(struct import_stack) stacks;  // each node once
    ARRAY(uint32_t) stack_of_node;      // plus 1
    // Of samples: how they were taken, and what estimates need, by stack; calls and blocks are
    // numbers of samples then, and the totals are what was counted beside them (format/sample.h).
    struct cairn_sampling sampling;
    ARRAY(struct cairn_sample_cell) samples;
    struct import_values totals;
    ARRAY(struct import_ages) ages;  // by stack, as far as there are any
    uint64_t lost[CAIRN_LOSS_MAX];
    ARRAY(struct import_point) points;  // ascending times
    char command[IMPORT_TEXT_BYTES];
    bool is_sum;                    // the command is the name of many processes, and no words
    char lacks[IMPORT_TEXT_BYTES];  // what the source does not say, a sentence; "": nothing
    bool has_temporary;             // it says which blocks were freed before the next allocation
    bool has_waste;                 // `waste` is known
    struct cairn_waste waste;
    bool is_partial;  // the numbers are not those of every event
    bool is_cut;      // the file ends before its own end: what follows is unknown
    uint32_t pid;
    uint32_t max_depth;   // of the marks of stacks that were cut (--max-depth); 0: there are none
    bool has_no_calls;    // what was allocated is not known but for what was live
    bool has_no_blocks;   // in how many blocks is not known: a stack counts as one
    bool has_no_frees;    // what was live, the peak and what is left are not known of anything
    uint32_t wanted_pid;  // of several processes, as the user says; 0: there is to be one
    const char *program;  // path of the one that wrote the file, as the user says; NULL: not said
    uint64_t start_unix_ns, duration_ns, peak_ns, rss_peak_bytes;
};

struct import_format {
    const char *name;
    const char *help;
    bool (*is_one)(const char *head, size_t size);  // by its first bytes
    bool (*read)(FILE *in, struct imported *imported, struct error *error);
};

// Compares the beginning of JSON with `start`, which has no white space; white space of the file
// counts for nothing.
bool import_begins_json(const char *head, size_t size, const char *start);

extern const struct import_format import_formats[];  // ends with name NULL
#define IMPORT_HEAD_BYTES 64

const struct import_format *import_format_find(const char *name);

bool import_start(struct imported *imported, struct error *error);
void import_free(struct imported *imported);

// Reads a stream (compressed or not) in the format, or in the one its first bytes are of if that is
// NULL; `format` becomes the one that was read.
bool import_read(FILE *in, const struct import_format **format, struct imported *imported,
                 struct error *error);

struct symbol_options;

// Where names of addresses come from.
struct import_names {
    const struct symbol_options *options;
    uint64_t written_unix_s;  // when the profile was; 0: not known
};

// Looks up the names of what has only an address, to be done before the recording is written.
bool import_name_addresses(struct imported *imported, const struct import_names *names,
                           struct error *error);

// Writes the recording. `source` names the format.
bool import_write(FILE *out, const struct imported *imported, const char *source,
                  struct error *error);

// For readers. All are false, or give IMPORT_NONE, without memory or beyond 2^24 of anything.
#define IMPORT_NONE UINT32_MAX
uint32_t import_module(struct imported *imported, const char *path);  // "" or NULL: none
// A new place; its frames are added to it before the next place is made.
uint32_t import_place(struct imported *imported, uint32_t module);
bool import_frame(struct imported *imported, const char *function, const char *file, uint32_t line);
// The same for a place that has no frame yet, or got its last one just now; the name is said
// already as cairn says it.
bool import_frame_of(struct imported *imported, uint32_t place, const char *function,
                     const char *file, uint32_t line);
// The place of an address inside the code of a call (a return address - 1), each once. Its name is
// looked up later (import_name_addresses), unless frames are added to it before.
uint32_t import_address(struct imported *imported, uint64_t address);
bool import_mapping(struct imported *imported, const struct import_mapping *mapping);
// The same from a line of /proc/PID/maps; what is no executable file is left out.
bool import_map_line(struct imported *imported, const char *line);
// The place that says why a stack ends there; the outermost one of a stack.
uint32_t import_cut(struct imported *imported, uint32_t cut);
// The name of a function as cairn says it, for free(): without parameters and return type, and
// qualified if it is the bare name of a member of the C++ library, as valgrind has it of what was
// inlined. `file` may be NULL.
char *import_name(const char *function, const char *file);
// The library that a function of such a file is of, where a file does not say so; NULL: not known.
const char *import_library_of(const char *function, const char *file);
// The place of a line of valgrind: "0x401136: main (prog.c:12)", "0x1234: ??? (in /lib/libc.so)".
uint32_t import_place_of_text(struct imported *imported, const char *text);
// Adds to the stack of these places, innermost first; `node` becomes its node of the tree.
bool import_stack(struct imported *imported, const uint32_t *places, size_t count,
                  const struct import_values *values);
bool import_stack_of(struct imported *imported, const uint32_t *places, size_t count,
                     const struct import_values *values, uint32_t *node);
// The same for a node of the tree.
bool import_node(struct imported *imported, uint32_t node, const struct import_values *values);
// And what the samples behind them add; of a node that has values.
bool import_samples(struct imported *imported, uint32_t node,
                    const struct cairn_sample_cell *added);

// And how old so many of its blocks are; the same.
bool import_age(struct imported *imported, uint32_t node, uint32_t bits, uint64_t blocks);

bool import_no_memory(struct error *error);

// False with an error if a sum over all stacks is more than a number can hold: those of one stack
// are within bounds, but a damaged file may have many such stacks.
bool import_check_sums(const struct imported *imported, struct error *error);

bool import_is_heaptrack(const char *head, size_t size);
bool import_heaptrack(FILE *in, struct imported *imported, struct error *error);
bool import_is_massif(const char *head, size_t size);
bool import_massif(FILE *in, struct imported *imported, struct error *error);
bool import_is_dhat(const char *head, size_t size);
bool import_dhat(FILE *in, struct imported *imported, struct error *error);
bool import_is_perf(const char *head, size_t size);
bool import_perf(FILE *in, struct imported *imported, struct error *error);
bool import_is_bpftrace(const char *head, size_t size);
bool import_bpftrace(FILE *in, struct imported *imported, struct error *error);
bool import_is_pprof(const char *head, size_t size);
bool import_pprof(FILE *in, struct imported *imported, struct error *error);
bool import_is_jemalloc(const char *head, size_t size);
bool import_jemalloc(FILE *in, struct imported *imported, struct error *error);
bool import_is_gperftools(const char *head, size_t size);
bool import_gperftools(FILE *in, struct imported *imported, struct error *error);
bool import_is_v8(const char *head, size_t size);
bool import_v8(FILE *in, struct imported *imported, struct error *error);
bool import_is_bytehound(const char *head, size_t size);
bool import_bytehound(FILE *in, struct imported *imported, struct error *error);
bool import_is_perfetto(const char *head, size_t size);
bool import_perfetto(FILE *in, struct imported *imported, struct error *error);
bool import_is_memray(const char *head, size_t size);
bool import_memray(FILE *in, struct imported *imported, struct error *error);
bool import_is_xray(const char *head, size_t size);
bool import_xray(FILE *in, struct imported *imported, struct error *error);

#endif
