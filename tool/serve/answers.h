// SPDX-License-Identifier: Apache-2.0
// The answers that need all of a recording (tool/serve/jobs.h): each is written by a child.
#ifndef TOOL_SERVE_ANSWERS_H
#define TOOL_SERVE_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/base/error.h"

#define ANSWER_ADDRESSES_MAX 10000

struct answer_request {
    const char *title;  // of the page: any bytes
    uint32_t pid;       // where its files are looked for too; 0: not known
    unsigned seconds;   // profile of so much time; 0: since the recording's start
    bool is_allocated;  // what was allocated is what is looked at first
    const char *text;   // addresses to look up, "0x1234+0x5678"
    size_t text_size;
};

// Each has the form of job_make. `request` is an answer_request.
bool answer_profile(const char *path, const void *request, FILE *out, struct error *error);
bool answer_symbols(const char *path, const void *request, FILE *out, struct error *error);
bool answer_recording(const char *path, const void *request, FILE *out, struct error *error);
bool answer_page(const char *path, const void *request, FILE *out, struct error *error);
bool answer_page_data(const char *path, const void *request, FILE *out, struct error *error);

#endif
