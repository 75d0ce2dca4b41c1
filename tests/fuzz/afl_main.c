// SPDX-License-Identifier: Apache-2.0
// Lets AFL++ drive a target that is written for libFuzzer. Built by afl-clang-fast it takes inputs
// one after another in the same process; built by any other compiler it reads each file that it is
// given, or standard input: that is how a finding is shown again.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INPUT_BYTES_MAX (1u << 20)
#define INPUTS_PER_PROCESS 10000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#ifdef __AFL_FUZZ_TESTCASE_LEN
__AFL_FUZZ_INIT();

int main(void) {
    __AFL_INIT();
    const unsigned char *shared = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(INPUTS_PER_PROCESS)) {
        size_t size = (size_t)__AFL_FUZZ_TESTCASE_LEN;
        // A copy of just this size, so that a read behind it is seen.
        uint8_t *bytes = malloc(size ? size : 1);
        if (!bytes) return 1;
        for (size_t i = 0; i < size; i++) bytes[i] = shared[i];
        LLVMFuzzerTestOneInput(bytes, size);
        free(bytes);
    }
    return 0;
}
#else
static void read_one(FILE *in) {
    uint8_t *bytes = malloc(INPUT_BYTES_MAX);
    if (!bytes) abort();
    size_t size = fread(bytes, 1, INPUT_BYTES_MAX, in);
    uint8_t *exact = realloc(bytes, size ? size : 1);
    if (!exact) abort();
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv) {
    if (argc < 2) read_one(stdin);
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in) {
            perror(argv[i]);
            return 1;
        }
        read_one(in);
        fclose(in);
    }
    return 0;
}
#endif
