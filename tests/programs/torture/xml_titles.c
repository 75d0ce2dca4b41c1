// SPDX-License-Identifier: Apache-2.0
// Titles of an XML document with Expat. Planted: a title that finds no room is freed twice.
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct titles {
    char *text;
    size_t length;
    int is_inside, has_failed;
};

static void begin(void *data, const char *name, const char **attributes) {
    (void)attributes;
    ((struct titles *)data)->is_inside = !strcmp(name, "title");
}

static void end(void *data, const char *name) {
    (void)name;
    ((struct titles *)data)->is_inside = 0;
}

static void add(void *data, const char *text, int length) {
    struct titles *titles = data;
    if (!titles->is_inside || titles->has_failed) return;
    char *grown = realloc(titles->text, titles->length + (size_t)length + 200);
    if (!grown) {
        free(titles->text);
#ifdef RIGHT
        titles->text = NULL;
#endif
        titles->has_failed = 1;
        return;
    }
    titles->text = grown;
    memcpy(grown + titles->length, text, (size_t)length);
    titles->length += (size_t)length;
    grown[titles->length] = 0;
}

int main(void) {
    static const char document[] = "<books><title>One</title><title>Two</title></books>";
    struct titles titles = {0};
    XML_Parser parser = XML_ParserCreate(NULL);
    if (!parser) return 1;
    XML_SetUserData(parser, &titles);
    XML_SetElementHandler(parser, begin, end);
    XML_SetCharacterDataHandler(parser, add);
    int is_ok =
        XML_Parse(parser, document, sizeof document - 1, 1) == XML_STATUS_OK && !titles.has_failed;
    if (is_ok) puts(titles.text);
    free(titles.text);
    XML_ParserFree(parser);
    return !is_ok;
}
