// SPDX-License-Identifier: Apache-2.0
// A process of a made-up fleet (tests/tools/fleet.py): SERVICE REQUESTS. It is built once for each
// release; from release 3 on parse_name forgets to free what it parsed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RELEASE
#define RELEASE 1
#endif

enum { NAME_BYTES = 512, INDEX_BYTES = 40000, REPLY_BYTES = 3000 };

static void *volatile kept;

__attribute__((noinline)) static void *parse_name(int request) {
    char *name = malloc(NAME_BYTES + (size_t)request % 64);
    memset(name, request, NAME_BYTES);
    return name;
}

__attribute__((noinline)) static void *render_reply(int request) {
    return malloc(REPLY_BYTES + (size_t)request % 128);
}

__attribute__((noinline)) static void handle_request(int request) {
    void *name = parse_name(request);
    void *reply = render_reply(request);
    free(reply);
    kept = name;
    if (RELEASE < 3) free(name);
}

__attribute__((noinline)) static void load_index(const char *service) {
    for (size_t i = 0; i < strlen(service); i++) {
        char *entry = malloc(INDEX_BYTES + i * 100);
        memset(entry, (int)i, INDEX_BYTES);
        kept = entry;
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "release %d: SERVICE REQUESTS\n", RELEASE);
        return 2;
    }
    int requests = atoi(argv[2]);
    load_index(argv[1]);
    for (int i = 0; i < requests; i++) handle_request(i);
    return 0;
}
