// SPDX-License-Identifier: Apache-2.0
// The assembler reads the pages in; the Makefile makes this file's objects depend on them.
#include "tool/manual/pages.h"

#include <stdio.h>
#include <string.h>

#define PAGE(symbol, name)                                                                         \
    extern const char page_##symbol[];                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".globl page_" #symbol "\n"                                                            \
            "page_" #symbol ":\n"                                                                  \
            ".incbin \"docs/howto/" name ".md\"\n"                                                 \
            ".byte 0\n"                                                                            \
            ".popsection\n");
#include "tool/manual/pages.def"
#undef PAGE

#define PAGE(symbol, name) {name, page_##symbol},
const struct page pages[] = {
#include "tool/manual/pages.def"
    {NULL, NULL},
};

void page_title(const struct page *page, char title[PAGE_TITLE_BYTES]) {
    const char *start = page->text + strspn(page->text, "# ");
    snprintf(title, PAGE_TITLE_BYTES, "%.*s", (int)strcspn(start, "\n"), start);
}

const struct page *page_find(const char *word, const char **section) {
    static const char suffix[] = ".md";
    static const struct {
        const char *word, *name;
    } others[] = {{"rss", "heap"}, {"memory", "heap"}};
    enum { SUFFIX = sizeof suffix - 1, OTHERS = sizeof others / sizeof *others };
    const char *mark = strchr(word, '#');
    size_t size = mark ? (size_t)(mark - word) : strlen(word);
    *section = mark && mark[1] ? mark + 1 : NULL;
    if (size > SUFFIX && !memcmp(word + size - SUFFIX, suffix, SUFFIX)) size -= SUFFIX;
    for (size_t i = 0; i < OTHERS; i++) {
        if (strlen(others[i].word) != size || memcmp(word, others[i].word, size) != 0) continue;
        word = others[i].name;
        size = strlen(word);
        break;
    }
    for (const struct page *page = pages; page->name; page++)
        if (strlen(page->name) == size && !memcmp(page->name, word, size)) return page;
    return NULL;
}
