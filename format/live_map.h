// SPDX-License-Identifier: Apache-2.0
// How the live map lies in the memory of a recorded process: which blocks exist, and the cell that
// each belongs to. The runtime keeps it (runtime/live/live.h explains the slots); a reader of core
// dumps finds it by cairn_header.live_map, the address of the tops.
//
//   tops    pointers to mids, LIVE_TOP_COUNT of them, one each 64 GiB of address space; with
//           wide slots twice as many, the second half for blocks at odd multiples of 8. 0: no block
//           was ever there; of earlier cairns a pointer to a mid that stays empty
//   mid     a word each 4 MiB: 0, or where its slots would begin if they began at address 0
//   slots   narrow (4 bytes) or wide (8 bytes), as cairn_header.slot_bytes says
//   births  behind the slots, 8 bytes for each, if cairn_header.has_births: the upper half is when
//           the block of that slot was allocated, in milliseconds of CLOCK_MONOTONIC
#ifndef CAIRN_LIVE_MAP_H
#define CAIRN_LIVE_MAP_H

#include <stdint.h>

// Programs on aarch64 have 48 bits of addresses, those on x86-64 have 47. Readers of a file go by
// cairn_header.machine.
enum { LIVE_ADDRESS_BITS_X86_64 = 47, LIVE_ADDRESS_BITS_AARCH64 = 48 };
#if defined(__aarch64__)
enum { LIVE_ADDRESS_BITS = LIVE_ADDRESS_BITS_AARCH64 };
#else
enum { LIVE_ADDRESS_BITS = LIVE_ADDRESS_BITS_X86_64 };
#endif
enum { LIVE_LEAF_SHIFT = 22, LIVE_MID_SHIFT = 36 };
enum { LIVE_TOP_COUNT = 1 << (LIVE_ADDRESS_BITS - LIVE_MID_SHIFT) };
enum { LIVE_MID_COUNT = 1 << (LIVE_MID_SHIFT - LIVE_LEAF_SHIFT) };
enum { LIVE_NARROW_SHIFT = 5, LIVE_WIDE_SHIFT = 4 };  // log2 of the granule
enum { LIVE_ID_SHIFT = 7, LIVE_HALF_SHIFT = 6, LIVE_SLACK_ESCAPE = 63, LIVE_SLACK_BASE = 62 };
#define LIVE_SIZE_ESCAPE 0xffffffffu

#endif
