// SPDX-License-Identifier: Apache-2.0
// Makes a small core dump of a recorded process that holds two blocks, for tests and as what a
// fuzzer starts from. Its segments share bytes of the file where one needs zeros that another has,
// so that all that means something lies in the first MAKE_CORE_BYTES; zeros follow.
#ifndef TESTS_TOOLS_MAKE_CORE_H
#define TESTS_TOOLS_MAKE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAKE_CORE_BYTES 4096u
#define MAKE_CORE_FILE_BYTES (3u << 20)  // with the zeros
#define MAKE_CORE_PID 4242u

// The two blocks: the second one with more slack than its own slot can say.
#define MAKE_CORE_FIRST 0x1000000010u
#define MAKE_CORE_FIRST_SIZE 100u
#define MAKE_CORE_FIRST_CELL 5u
#define MAKE_CORE_SECOND 0x1000000100u
#define MAKE_CORE_SECOND_SIZE 10u
#define MAKE_CORE_SECOND_CELL 6u

// `is_wide`: the slots of an allocator other than glibc's.
void make_core(uint8_t bytes[MAKE_CORE_BYTES], bool is_wide);

// Sets the number of bytes that the file has of segment `index` (0: notes, 1: recording, 2: tops,
// 3: mid, 4: slots, 5: heap).
void make_core_set_file_bytes(uint8_t bytes[MAKE_CORE_BYTES], size_t index, uint64_t size);

// Sets the word before the first block, by which glibc knows its chunk.
void make_core_set_chunk(uint8_t bytes[MAKE_CORE_BYTES], uint64_t word);

#endif
