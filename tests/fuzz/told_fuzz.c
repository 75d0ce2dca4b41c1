// SPDX-License-Identifier: Apache-2.0
// Any bytes as names that somebody else wrote down: after a letter that says which, the SYMBOLS
// section of a recording or a file of the cache (b), a perf map (m), a jitdump (d), one name of a
// map (n), or what views said at a look (k).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/shown.h"
#include "tool/answer/kept.h"
#include "tool/symbol/bundle.h"
#include "tool/symbol/generated.h"

static void look_at_text(const char *text) {
    require(!text || strlen(text) < SIZE_MAX / 2);
}

static void look_at_symbol(const struct bundle *bundle, const struct cairn_symbol *symbol) {
    const uint32_t most_frames = 64;
    for (uint32_t i = 0; i < symbol->frame_count && i < most_frames; i++) {
        struct symbol_frame frame = bundle_frame(bundle, symbol, i);
        look_at_text(frame.linkage);
        look_at_text(frame.file);
    }
}

static void check_bundle(const uint8_t *bytes, size_t size) {
    struct bundle bundle;
    if (!bundle_open(&bundle, bytes, size)) return;
    const uint32_t most_modules = 64, most_addresses = 256;
    for (uint32_t i = 0; i < bundle.header.module_count && i < most_modules; i++) {
        struct cairn_symbols_module entry, found;
        memcpy(&entry, bundle.modules + (size_t)i * sizeof entry, sizeof entry);
        const char *path = bundle_text(&bundle, entry.path);
        require(entry.build_id_bytes <= CAIRN_BUILD_ID_MAX);
        struct symbol_module module = {.path = path ? path : "",
                                       .build_id = entry.build_id_bytes ? entry.build_id : NULL,
                                       .build_id_bytes = entry.build_id_bytes,
                                       .code_key = entry.code_key};
        require(bundle_find_module(&bundle, &module, &found));
        look_at_text(bundle_text(&bundle, found.source_path));
        look_at_text(bundle_text(&bundle, found.note));
        for (uint64_t address = 0; address < most_addresses; address++) {
            struct cairn_symbol symbol;
            if (bundle_find(&bundle, &found, address, &symbol)) look_at_symbol(&bundle, &symbol);
        }
    }
}

typedef bool read_fn(struct generated *generated, struct bytes bytes, struct string_pool *store);

static void check_generated(read_fn *read, const uint8_t *bytes, size_t size) {
    struct generated generated = {.codes = NULL};
    struct string_pool *store = string_pool_open();
    require(store && read(&generated, (struct bytes){bytes, bytes + size, false}, store));
    generated_sort(&generated);
    for (size_t i = 0; i < generated.count; i++) {
        const struct generated_code *code = &generated.codes[i];
        require(code->start < code->end);
        require(!i || generated.codes[i - 1].start <= code->start);
        look_at_text(code->function);
        look_at_text(code->file);
        const struct generated_code *found = generated_find(&generated, code->start);
        require(!found || (found->start <= code->start && code->start < found->end));
    }
    generated_close(&generated);
    string_pool_close(store);
}

static bool read_name(struct generated *generated, struct bytes bytes, struct string_pool *store) {
    char *name = strndup((const char *)bytes.at, bytes_left(&bytes));
    struct generated_code code = {.function = NULL};
    require(name && generated_read_name(&code, name, store));
    (void)generated;
    look_at_text(code.function);
    look_at_text(code.file);
    free(name);
    return true;
}

// Answers of looks in every form: the screen and JSON are sound to whoever reads them.
static void check_kept(const uint8_t *bytes, size_t size) {
    struct kept_bytes left = {bytes, bytes + size};
    const struct view_options options = {.top = 3};
    struct kept_answer *kept;
    while ((kept = kept_answer_read(&left))) {
        struct text screen, json, markdown;
        struct answer answer;
        text_start(&screen);
        text_start(&json);
        text_start(&markdown);
        const struct terminal terminal = {.out = screen.out, .columns = 80};
        kept_answer_open(kept, &options, &answer);
        require(answer_print_text(&terminal, &answer, NULL));
        kept_answer_open(kept, &options, &answer);
        require(answer_print_json(json.out, &answer, NULL));
        kept_answer_open(kept, &options, &answer);
        require(answer_print_md(markdown.out, &answer, NULL));
        text_end(&screen, check_screen);
        text_end(&json, check_json);
        text_end(&markdown, check_screen);
        kept_answer_free(kept);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!size) return 0;
    switch (*bytes) {
    case 'b':
        check_bundle(bytes + 1, size - 1);
        break;
    case 'm':
        check_generated(generated_read_map, bytes + 1, size - 1);
        break;
    case 'd':
        check_generated(generated_read_dump, bytes + 1, size - 1);
        break;
    case 'k':
        check_kept(bytes + 1, size - 1);
        break;
    case 'n':
        check_generated(read_name, bytes + 1, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
