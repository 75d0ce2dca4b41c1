// SPDX-License-Identifier: Apache-2.0
// The event log (--events): every allocation and free, in order. First as the process writes it
// into chunks of its recording's section EVENTS, then as the tool writes it into a file; both in
// docs/reference/events.md.
//
//     process, per thread          tool                         file
//     chunk: words, event by  ──▶  takes full chunks, writes ──▶ header · frames · end
//     event, in a bitmap FULL      each as a frame, gives the
//                                  chunk back, zeroed: FREE
//
// Order. Events of one thread slot are in the order in which they happened. Between slots it
// follows from the blocks: each granule of the heap has a turn, which every event of a block that
// begins there moves by one, and a slot whose event follows another slot's says which turn it had.
// Frees are written before the real call and allocations after it, so an event whose turn has come
// happened after the one before.
#ifndef CAIRN_EVENTS_H
#define CAIRN_EVENTS_H

#include <stdint.h>

#define CAIRN_SECTION_EVENTS 29u  // struct cairn_events and its chunks; not part of files

// log2 of a granule's bytes: blocks that begin in the same one have turns in common.
#define CAIRN_EVENTS_NARROW_SHIFT 5u
#define CAIRN_EVENTS_WIDE_SHIFT 3u

// A chunk: struct cairn_events_chunk, then words up to its end or the first that is 0.
#define CAIRN_EVENTS_CHUNK_BYTES 65536u
#define CAIRN_EVENTS_CHUNKS 2048u
#define CAIRN_EVENTS_WORD_BITS 64u
#define CAIRN_EVENTS_BITMAP_WORDS (CAIRN_EVENTS_CHUNKS / CAIRN_EVENTS_WORD_BITS)

// The first word of an event: its kind and CAIRN_EVENT_… in the low 16 bits, above them the
// address (of TIME: milliseconds since the start). It is written last.
enum cairn_event_kind {
    CAIRN_EVENT_NONE = 0,
    CAIRN_EVENT_ALLOC = 1,  // next: cell, and low 32 bits of the size << 32
    CAIRN_EVENT_FREE = 2,   // of a block that was allocated before
    CAIRN_EVENT_TIME = 3,   // from here on it is so late
    CAIRN_EVENT_TAKE = 4,   // realloc gets the block: an ALLOC, GONE or BACK of the thread says
                            // what became of it
    CAIRN_EVENT_GONE = 5,   // realloc freed a block that it took
    CAIRN_EVENT_BACK = 6,   // realloc failed: the block that it took stays as it was
    CAIRN_EVENT_MAP = 7,    // the program mapped memory itself; next: bytes, then cell
    CAIRN_EVENT_UNMAP = 8,  // next: bytes
    // The tool's, no call: what of a cell's blocks of a page and more is resident. In place of the
    // address: their bytes; next: bytes on resident pages, then cell.
    CAIRN_EVENT_RESIDENT = 9,  // in older logs
    // The tool's, no call: of the whole pages of the block at the address so many are resident;
    // next: how many, then cell.
    CAIRN_EVENT_TOUCHED = 10,
    CAIRN_EVENT_KINDS = 11,
};
#define CAIRN_EVENT_KIND_MASK 0xfu
// Each adds words, in this order behind those of the kind.
#define CAIRN_EVENT_TURN 0x10u     // one: the turn before this event
#define CAIRN_EVENT_LARGE 0x20u    // one: the size, of 64 bits
#define CAIRN_EVENT_ALIGNED 0x40u  // one: the alignment that was asked for
#define CAIRN_EVENT_MOVED 0x80u    // one: the address of the block that realloc took for it
// These add none.
#define CAIRN_EVENT_CLEARED 0x100u  // by calloc
#define CAIRN_EVENT_THERE 0x200u    // no call: it was there when the recording or log began
#define CAIRN_EVENT_UNSEEN 0x400u   // no call: its free was not seen, and its place is in use again
#define CAIRN_EVENT_FLAGS 0x7f0u
#define CAIRN_EVENT_ADDRESS_SHIFT 16u
// Most words that one event takes, with a TIME before it.
#define CAIRN_EVENT_WORDS_MOST 8u

struct cairn_events_chunk {
    uint32_t slot;    // of the thread; CAIRN_SLOT_SHARED: blocks that were there before all threads
    uint32_t thread;  // index in THREADS
    uint32_t number;  // of the chunk among those of its slot, dropped ones included, from 0
    uint32_t is_wide;   // a granule has 8 bytes, not 32
    uint64_t start_ms;  // TIME at its first event
    uint64_t log;       // which log it belongs to (cairn_control.events_state)
    uint64_t order;     // among all chunks of the process, as they were given to the tool
    uint64_t reserved[3];
};

// The end of the section: turns of a log that began late, where blocks have none of their own. An
// entry is the number of events so far, above it, from bit 32 on, the last one's slot, and from bit
// 48 on the log's number, as entries of older logs count as 0. Granules share entries, which puts
// more events in order than need be.
#define CAIRN_EVENTS_TURNS_MOST (UINT64_C(1) << 19)
#define CAIRN_EVENTS_TURNS_SHARE 32u  // of the section, at most

// The beginning of the section, a page of its own. Bits of chunks: neither FREE nor FULL: a thread
// writes it.
struct cairn_events {
    uint32_t chunk_count;  // (atomic) chunks that were ever in use: the bitmaps tell of these
    uint32_t is_waiting;   // threads wait for a free chunk; else they drop what they have written
    uint64_t lost_chunks;  // (atomic) dropped, as none was free
    uint64_t lost_events;  // (atomic) in these, or where a thread had no chunk at all
    uint64_t waited_ns;    // (atomic) threads waited so long, all together
    uint64_t turn_bits;    // a log that began late: turns are those of the table behind the chunks,
                           // which has so many bits of a granule's number; 0: each granule's own
    uint64_t begin_ms;     // of that log
    uint64_t given_count;  // (atomic) chunks that were given to the tool
    uint64_t reserved[1];
    uint64_t free[CAIRN_EVENTS_BITMAP_WORDS];  // (atomic) taken by threads, given by the tool
    uint64_t full[CAIRN_EVENTS_BITMAP_WORDS];  // (atomic) the other way
};

#define CAIRN_EVENTS_HEADER_BYTES 4096u  // of the section; on larger pages chunks begin there too
#define CAIRN_EVENTS_BYTES                                                                         \
    (CAIRN_EVENTS_HEADER_BYTES + (uint64_t)CAIRN_EVENTS_CHUNKS * CAIRN_EVENTS_CHUNK_BYTES +        \
     CAIRN_EVENTS_TURNS_MOST * sizeof(uint64_t))

_Static_assert(sizeof(struct cairn_events_chunk) == 64, "layout");
_Static_assert(sizeof(struct cairn_events) <= CAIRN_EVENTS_HEADER_BYTES, "layout");

#endif
