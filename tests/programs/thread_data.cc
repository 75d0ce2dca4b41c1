// SPDX-License-Identifier: Apache-2.0
// 50 threads with a thread_local object: its constructor allocates 5,000 bytes, its destructor,
// which runs while the thread ends, frees them, allocates and frees 61 bytes and leaves 71.
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

static void *volatile sink;

struct Late {
    void *data;
    __attribute__((noinline)) Late() : data(std::malloc(5000)) {}
    __attribute__((noinline)) ~Late();
};

Late::~Late() {
    std::free(data);
    void *block = std::malloc(61);
    sink = block;
    std::free(block);
    sink = std::malloc(71);
}

static thread_local Late late;

static void *body(void *) {
    sink = late.data;
    return nullptr;
}

int main() {
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, body, nullptr);
        pthread_join(thread, nullptr);
    }
    std::puts("done");
    return 0;
}
