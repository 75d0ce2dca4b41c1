// SPDX-License-Identifier: Apache-2.0
// One or more profiles as one page of HTML that needs nothing else: the template with the data in
// its middle. A page is written as it comes, one profile after the other, so that each may be
// closed before the next is opened.
//
// docs/reference/browser.md says what the page shows; web/src/data.ts reads what is written here.
#ifndef TOOL_WEB_WEB_H
#define TOOL_WEB_WEB_H

#include "tool/export/export.h"
#include "tool/model/heap_state.h"
#include "tool/model/run.h"
#include "tool/web/sink.h"

struct web {
    FILE *out;
    struct sink sink;
    bool is_data;  // alone, without the page around it
};

// What a profile is for the page.
enum web_role {
    WEB_ONE,      // the one that the page is about
    WEB_PROCESS,  // a process of a run
    WEB_BEFORE,   // the two sides of a comparison
    WEB_AFTER,
};

struct web_profile {
    const struct export *export;
    enum web_role role;
    const char *path;     // of the recording
    const char *ending;   // "ended with status 0 after 0.5 s": safe text
    const char *empty;    // why there is no stack in it; NULL if there are some
    const char *at_text;  // which snapshot its values then are of, safe text; NULL: it has none
};

// A run of several processes as a whole.
struct web_run {
    const struct run *run;
    uint64_t combined_low_bytes, combined_high_bytes;
    const char *facts;  // lines of safe text, as on a terminal
};

// `title` is safe text; `is_live`: the page is served and asks for newer data (tool/serve).
// web_close must follow, also after failures; both false with an error.
bool web_open(struct web *web, FILE *out, const char *title, bool is_live, struct error *error);
// The data alone, as a live page takes them.
bool web_open_data(struct web *web, FILE *out, struct error *error);
// The page without data, which asks its host for them (web/src/host.ts); false if it is damaged.
bool web_put_template(FILE *out);
bool web_close(struct web *web, struct error *error);

void web_put_run(struct web *web, const struct web_run *run);
bool web_put_profile(struct web *web, const struct web_profile *profile, struct error *error);
// Of a comparison: a number for each stack of the first profile, then of the second; those with the
// same number are the same stack.
void web_put_matching(struct web *web, const uint32_t *rows, size_t count);
// What the heap of the profile that was put last is like now, or was in its core.
bool web_put_heap(struct web *web, const struct heap_state *state, struct error *error);

#endif
