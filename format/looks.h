// SPDX-License-Identifier: Apache-2.0
// Looks at the heap of a recorded process (cairn run --look): the tool copied its memory while it
// stood for a moment, and keeps what its views said then. Nothing of what was in blocks is kept but
// names of types and variables.
#ifndef CAIRN_LOOKS_H
#define CAIRN_LOOKS_H

#include <stdint.h>

#define CAIRN_SECTION_LOOKS 33u         // struct cairn_look, at most CAIRN_LOOKS_MAX, by time
#define CAIRN_SECTION_LOOK_ANSWERS 34u  // bytes: answers of views, those of each look together

enum {
    CAIRN_LOOKS_MAX = 4,  // three while it runs, one at its end
    CAIRN_LOOK_REASON_BYTES = 192,
    CAIRN_LOOK_ANSWERS_VERSION = 1,
};

struct cairn_look {
    uint64_t at_ns;       // since the process' start
    uint64_t rss_bytes;   // then
    uint64_t live_bytes;  // in blocks of the recording
    uint64_t pause_ns;    // its threads were stopped so long
    uint64_t copied_bytes;
    uint64_t answers_offset, answers_bytes;  // of its part of LOOK_ANSWERS
    uint32_t answer_count;                   // 0: nothing is known
    uint32_t is_at_end;
    char reason[CAIRN_LOOK_REASON_BYTES];  // why it, or one of its views, is not known; ends in NUL
};

// An answer is a stream of numbers (seven bits a byte, the lowest first, the highest bit of a byte
// says that more follow; signed ones have their sign in the lowest bit) and texts (a number: 0 for
// no text, 1 for one that follows as its length and bytes, above that the number of an earlier text
// of the answer, counted from 2).
//
//     version                        CAIRN_LOOK_ANSWERS_VERSION
//     bytes                          of what follows
//     view, title, none              texts
//     notes                          their number, and texts
//     flags                          enum cairn_look_flags
//     whole                          signed
//     count                          rows there were; more than are kept if the list was cut
//     columns                        their number; each: key, head, unit, place, style, before,
//                                    behind
//     rows                           each: 1, level, use, text in the place of its figures, cells
//                                    (each: state, and, if that is known, text or signed value; a
//                                    real number has 8 bytes), and with frames their number and
//                                    each: function, file, module, line, offset,
//                                    enum cairn_look_frame
//     end                            0
enum cairn_look_flags { CAIRN_LOOK_HAS_LEVELS = 1, CAIRN_LOOK_HAS_FRAMES = 2 };
enum cairn_look_frame {
    CAIRN_LOOK_FRAME_INLINED = 1,
    CAIRN_LOOK_FRAME_HIDDEN = 2,
    CAIRN_LOOK_FRAME_OWN = 4,
    CAIRN_LOOK_FRAME_PYTHON = 8,
};

_Static_assert(sizeof(struct cairn_look) == 256, "layout");

#endif
