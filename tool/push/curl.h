// SPDX-License-Identifier: Apache-2.0
// Sends requests by running the system's curl, as debuginfod-find is run for debug files: it brings
// TLS, proxies, and the user's settings (~/.curlrc, its variables) with it, and a cairn that never
// sends does not load what sending needs.
//
// One curl sends several requests, one after the other over one connection. What it is to do goes
// to its standard input, so that no other user sees a password in the list of processes. Of each
// answer the first bytes are kept, and an answer that does not end is cut off.
#ifndef TOOL_PUSH_CURL_H
#define TOOL_PUSH_CURL_H

#include <sys/types.h>

#include "tool/push/delivery.h"

struct curl {
    const char *url;           // without what follows its path
    const char *headers;       // lines
    const char *headers_path;  // a file with more; NULL: none
    unsigned seconds_most;     // of one request
    pid_t child;               // 0: none runs
    int output;                // what it prints; -1: closed
    char mark[48];             // what begins its report of each request
    char *text;                // what it has printed
    size_t size;
};

// Whether there is a curl. False with an error that says how to get it.
bool curl_find(struct error *error);

struct sender curl_sender(struct curl *curl);

// What curl printed: of each request the answer, a line end, the mark and a report, in one line.
// What has no report failed. `text` ends with a 0 behind its `size` bytes, and is changed.
void curl_read_outcomes(char *text, size_t size, const char *mark, struct outcome *outcomes,
                        size_t count);

// Ends a curl that runs.
void curl_close(struct curl *curl);

#endif
