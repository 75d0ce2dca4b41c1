// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording (recording_form.h) on the page of `cairn open`, with names of functions
// that are no better: the page is written whole, and what a recording says is nowhere but in the
// compressed data.
#include "tests/fuzz/shown.h"
#include "tool/web/web.h"

static void check_page(const struct text *text) {
    static const char end[] = "</html>\n";
    require(text->size > strlen(end));
    require(!memcmp(text->bytes + text->size - strlen(end), end, strlen(end)));
    require(!memmem(text->bytes, text->size, "{{", 2));
}

static void show(const struct profile *profile) {
    struct frame_names names = {.of_place = badly_named, .context = (void *)profile};
    const struct export export = export_of(profile, &names);
    const struct web_profile about = {
        .export = &export, .role = WEB_ONE, .path = "x.cairn", .ending = "x", .at_text = "x"};
    struct text text;
    struct web web;
    struct error error = {""};
    text_start(&text);
    require(web_open(&web, text.out, "x", false, &error));
    require(web_put_profile(&web, &about, &error) || *error.text);
    require(web_close(&web, &error));
    text_end(&text, check_page);
}

int LLVMFuzzerTestOneInput(const uint8_t *form, size_t form_size) {
    show_form(form, form_size, show);
    return 0;
}
