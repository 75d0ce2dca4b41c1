// SPDX-License-Identifier: Apache-2.0
// What the screens know about code: frames with names, got from the room that resolves them. One
// place of the profile is one or more frames, since functions are inlined into each other.
#ifndef TOOL_RENDER_FRAMES_H
#define TOOL_RENDER_FRAMES_H

#include "tool/base/array.h"
#include "tool/model/profile.h"

struct frame {
    const char *function;  // NULL: unknown
    const char *file;      // NULL: unknown
    const char *module;    // path, NULL: code that belongs to no module
    uint64_t offset;       // virtual address in the module's ELF file, else the address itself
    unsigned line;         // 0: unknown
    bool is_inlined;       // into the next frame outwards
    bool is_hidden;        // internal frames: left out unless all frames are wanted
    bool is_allocator;     // internal frames of that kind
    bool is_own;           // of the program that was recorded: no internal frames, in no library
    bool is_python;        // code in Python
    bool is_interpreter;   // a function of Python's: internal frames in a stack with code in Python
    bool is_runtime;       // of the C or C++ library, through which nearly all goes
    uint64_t function_hash;  // frame_seal's; 0: frame_hash works it out each time
};

struct frame_names {
    // Frames of a place, innermost first, at least one; valid as long as the context.
    const struct frame *(*of_place)(void *context, uint32_t place, size_t *count);
    void *context;
    size_t wanted_count;             // places that names were looked for; 0: none were
    size_t unresolved_count;         // those without a function's name
    const char *unresolved_modules;  // in which modules most of them are, safe text; NULL: none
};

// Internal frames in a stack that has code in Python, or has none.
static inline bool frame_is_hidden(const struct frame *frame, bool has_python) {
    return frame->is_hidden || (has_python && frame->is_interpreter);
}

// A stack spelled out, innermost first, inlined frames included.
struct frame_list {
    ARRAY(const struct frame *) frames;
    size_t shown_count;   // frames that are not hidden
    size_t first_hidden;  // hidden frames inside of the first shown one
    bool has_python;      // there is code in Python
    bool are_all_shown;   // set by the caller, before filling: hides nothing
};

// Spells out the stack of a node, at most `place_limit` places from the innermost (0: all). A
// stack of nothing but internal frames shows one frame. False without memory.
bool frame_list_fill(struct frame_list *list, const struct profile *profile,
                     const struct frame_names *names, uint32_t node, size_t place_limit);
void frame_list_free(struct frame_list *list);

// The next frame to be shown from `*index` on, moved behind it; NULL at the end.
const struct frame *frame_list_next(const struct frame_list *list, size_t *index);

// The frame that says who allocates: the first shown one of the program's own, else the first shown
// one. An address loses to the innermost frame with a name, unless that is the C library's.
struct frame_lead {
    const struct frame *frame;   // NULL: none is there
    const struct frame *callee;  // the frame that an own one called; NULL: none is shown
    size_t next;                 // index for frame_list_next
};
struct frame_lead frame_list_lead(const struct frame_list *list);
const struct frame *frame_list_first_own(const struct frame_list *list);  // of it the frame

// The same function at the same line; `frame_is_same_function` leaves out the line. Functions of
// one name in several files of a module, as static ones, are several.
bool frame_is_same(const struct frame *a, const struct frame *b);
bool frame_is_same_function(const struct frame *a, const struct frame *b);
uint64_t frame_hash(const struct frame *frame, bool has_line);
// Notes the hash in a frame that is complete: trees and tables ask for it once a frame of a stack.
void frame_seal(struct frame *frame);

// Names for the screen, escaped: "function" or "module+0x1234" in at most `columns` columns ...
void frame_label(const struct frame *frame, char *out, size_t size, size_t columns);
// The same with its file, where that is known: "load (b.c)".
void frame_label_in_file(const struct frame *frame, char *out, size_t size, size_t columns);
// Writes it for a sentence, in which no location follows: with the file if the language has no name
// for such code, as "<module> (app.py)".
void frame_label_alone(const struct frame *frame, char *out, size_t size, size_t columns);
// Returns true if it is what a language calls code without a name: "<module>", "{main}".
bool frame_is_nameless(const struct frame *frame);
// ... and "file.c:12", the module's name or "".
void frame_location(const struct frame *frame, char *out, size_t size);

// Stands for blocks without a stack for their size (--min-size, --max-size), or for what is further
// out than --max-depth has it ("(cut at 64)"): no code, one bucket.
bool frame_is_bucket(const struct frame *frame);
// The bucket of a cut (place.cut); NULL: it is none, and no frame.
const struct frame *frame_of_cut(uint32_t cut);

// Short and long name of enum cairn_cut ("no_cfi", "code without unwind information").
const char *cut_key(uint32_t mark);
const char *cut_sentence(uint32_t mark);

#define FRAME_TEXT_BYTES 1024
#define STACK_NOT_RECORDED "[stack not recorded]"

#endif
