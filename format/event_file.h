// SPDX-License-Identifier: Apache-2.0
// The event log as a file, which the tool writes while the program runs: a header, then frames, at
// last an end. A frame is a chunk of one thread slot (format/events.h), its events in columns:
//
//     KINDS      kind and flags of each event
//     ADDRESSES  of each that has one
//     CELLS      of allocations and mappings
//     SIZES      of allocations, mappings and what is unmapped
//     OTHERS     turns, alignments, taken addresses, times: in the order of their events
//
// All are numbers of 7 bits a byte, the lowest first, the eighth set where more follows; most are
// coded as a guess that was right (0) or what it takes to put that right: docs/reference/events.md.
// First, second and further bytes of a column's numbers lie apart, in planes: each has numbers of
// its own likeness, and is compressed by Zstandard if that makes it smaller.
//
// A file that ends without its end was cut: what is there of whole frames is good.
//
// Of a log that keeps only its last part (ring_bytes) the frames lie in a ring: the oldest from
// ring_first up to ring_high, newer ones from behind the header up to ring_low, and the end at
// ring_high. The header says so before a frame is overwritten, and after one was written.
#ifndef CAIRN_EVENT_FILE_H
#define CAIRN_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#define CAIRN_EVENT_FILE_MAGIC "cairnlog"  // 8 bytes, no terminator
#define CAIRN_EVENT_FILE_VERSION 2u
#define CAIRN_EVENT_FILE_VERSION_PLAIN 1u  // a column is one plane, with fewer guesses
#define CAIRN_EVENT_FILE_NAME 256u
#define CAIRN_EVENT_FILE_DIRECTORY 4096u

struct cairn_event_file {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;  // of this, as far as it is there
    uint32_t pid;
    uint32_t page_bytes;
    uint32_t machine;        // ELF e_machine
    uint32_t granule_shift;  // log2 of a granule's bytes: blocks of one have turns in common
    uint64_t start_unix_ns, start_clock_ns;  // those of the recording
    uint64_t begin_ms;                       // the log began so long after the process
    uint32_t flags;                          // CAIRN_EVENT_FILE_…
    uint32_t turn_bits;                      // of a granule's number that count for turns; 0: all
    int64_t live_blocks, live_bytes;         // when it began, by the recording's counters
    // Names of the recording's file: in the directory of this one, and in that of the run.
    char recording[CAIRN_EVENT_FILE_NAME];
    char recording_in_run[CAIRN_EVENT_FILE_NAME];
    // What follows is missing in older files.
    uint64_t ring_bytes;  // for frames; 0: all are kept
    uint64_t ring_first, ring_high, ring_low;
    uint64_t left_frames, left_events;  // overwritten
    uint64_t left_end_ms;               // time of the last event in these
    // The recording's directory, absolute, where the log was not made in it. Of this there is in a
    // file what header_bytes says.
    char directory[CAIRN_EVENT_FILE_DIRECTORY];
};

#define CAIRN_EVENT_FILE_BYTES 648u  // of a header without `directory`

#define CAIRN_EVENT_FILE_LEAST 592u  // bytes of a header

#define CAIRN_EVENT_FILE_LATE 1u  // it began while the process ran: blocks were there before
#define CAIRN_EVENT_FILE_LIVE 2u  // and these are its first events (THERE)

enum cairn_event_column {
    CAIRN_COLUMN_KINDS,
    CAIRN_COLUMN_ADDRESSES,
    CAIRN_COLUMN_CELLS,
    CAIRN_COLUMN_SIZES,
    CAIRN_COLUMN_OTHERS,
    CAIRN_COLUMNS,
};

#define CAIRN_EVENT_FRAME_MAGIC 0x6d617266u  // "fram"
#define CAIRN_EVENT_END_MAGIC 0x2e646e65u    // "end."
#define CAIRN_EVENT_COLUMN_MOST (1u << 18)   // bytes of a plane, not compressed
#define CAIRN_EVENT_PLANES 3u                // of a column

struct cairn_event_plane {
    uint32_t plain_bytes;
    uint32_t stored_bytes;  // equal: not compressed
};

struct cairn_event_frame {
    uint32_t magic;
    uint32_t checksum;              // CRC-32 of the frame behind this word, with its columns
    uint32_t slot, thread, number;  // as in struct cairn_events_chunk
    uint32_t event_count;
    uint64_t start_ms, end_ms;  // times of its first and last event
    struct cairn_event_plane planes[CAIRN_COLUMNS][CAIRN_EVENT_PLANES];
};
#define CAIRN_EVENT_FRAME_PLAIN_BYTES 80u  // of version 1: with one plane of each column

struct cairn_event_end {
    uint32_t magic;
    uint32_t checksum;  // of the end behind this word
    uint64_t frame_count, event_count;
    uint64_t lost_chunks, lost_events;  // as in struct cairn_events
    uint64_t lost_frames;  // that the tool could not write, as the disk was full, or could not read
    uint64_t left_frames;  // written and taken away again: only the last were to be kept
    uint64_t waited_ns;
    uint64_t left_events;  // in left_frames
    uint64_t reserved[3];
};

_Static_assert(offsetof(struct cairn_event_file, directory) == CAIRN_EVENT_FILE_BYTES, "layout");
_Static_assert(sizeof(struct cairn_event_frame) == 160, "layout");
_Static_assert(sizeof(struct cairn_event_end) == 96, "layout");

#endif
