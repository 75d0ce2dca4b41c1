// SPDX-License-Identifier: Apache-2.0
// The how-to pages of docs/howto, which the tool has in it: `cairn help NAME`, where nobody has the
// documentation at hand.
#ifndef TOOL_MANUAL_PAGES_H
#define TOOL_MANUAL_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/render/terminal.h"

struct page {
    const char *name;  // of the file, without ".md"
    const char *text;  // Markdown; the first line is "# " and the title
};

extern const struct page pages[];  // ends with name NULL

enum { PAGE_TITLE_BYTES = 128 };
void page_title(const struct page *page, char title[PAGE_TITLE_BYTES]);

// Finds the page of a word: "NAME", "NAME.md", each with "#SECTION" behind it or not, and "rss"
// or "memory" for "heap". `*section` gets what is behind "#"; NULL: nothing. NULL: there is no such
// page.
const struct page *page_find(const char *word, const char **section);

// Prints the page for a terminal, or one section with those in it. False: there is none of that
// name.
bool page_print(const struct terminal *terminal, const struct page *page, const char *section);

#endif
