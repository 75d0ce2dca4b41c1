# SPDX-License-Identifier: Apache-2.0
cat >pools.c <<'END' && cat >program.c <<'END2' && gcc -shared -fPIC -o libpools.so pools.c && gcc -o program program.c -L. -lpools -Wl,-rpath,.
#include <stdlib.h>
void *my_alloc(size_t bytes) { return malloc(bytes); }
void *my_calloc(size_t count, size_t bytes) { return my_alloc(count * bytes); }
void *my_realloc(void *block, size_t bytes) { return realloc(block, bytes); }
void my_free(void *block) { free(block); }
int cudaMalloc(void **block, size_t bytes) { static char device[1 << 20], *next = device; *block = next; next += bytes; return 0; }
int cudaFree(void *block) { return !block; }
END
#include <stddef.h>
void *my_alloc(size_t), *my_calloc(size_t, size_t), *my_realloc(void *, size_t);
void my_free(void *);
int cudaMalloc(void **, size_t), cudaFree(void *);
int main(void) {
    void *device, *first = my_alloc(1000), *second = my_calloc(10, 50);
    first = my_realloc(first, 3000);
    my_free(second);
    cudaMalloc(&device, 5000);
    cudaMalloc(&device, 7000);
    return cudaFree(device);
}
END2
