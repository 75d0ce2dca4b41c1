// SPDX-License-Identifier: Apache-2.0
// Kept names are only as good as the files were when they were kept. Those with lines cannot become
// better and are taken as they are; others in the cache are taken while the files that would be
// read now are the same (their stamp), others in the recording where files do not know better.
// Addresses that were never asked before are looked up and added to the cache.
#include "tool/symbol/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/fnv.h"
#include "tool/base/text.h"
#include "tool/model/modules.h"
#include "tool/symbol/budget.h"
#include "tool/symbol/cache.h"
#include "tool/symbol/generated.h"
#include "tool/symbol/job.h"
#include "tool/symbol/name.h"
#include "tool/symbol/options.h"
#include "tool/symbol/rename.h"
#include "tool/symbol/resolve.h"
#include "tool/symbol/string_pool.h"

// --- how names are shown

// Readable or whole, closures by their place, the user's own rules last.

#define NAME_LENGTH_MAX 8192

static const char *keep(struct string_pool *store, char *name) {
    const char *kept = name ? string_pool_intern(store, name, strlen(name)) : NULL;
    free(name);
    return kept;
}

// Behind the braces of a closure that a function's name ends with; NULL if it does not.
static const char *closure_end(const char *closure) {
    const char *end = strchr(closure, '}');
    if (!end) return NULL;
    while (*end == '}') end++;
    return !*end || *end == '<' ? end : NULL;
}

// "main::{lambda#1}" becomes "main::{lambda draw.cc:12}", where it begins.
static const char *place_closure(struct string_pool *store, const char *name,
                                 const struct symbol_frame *frame) {
    char placed[NAME_LENGTH_MAX];
    const char *closure = frame->file && frame->declared_line ? name_last_closure(name) : NULL;
    const char *end = closure ? closure_end(closure) : NULL;
    if (!end) return name;
    int word = (int)strcspn(closure, "#}");
    int length =
        snprintf(placed, sizeof placed, "%.*s%.*s %s:%u%s", (int)(closure - name), name, word,
                 closure, text_base_name(frame->file), frame->declared_line, strchr(closure, '}'));
    if (length <= 0 || (size_t)length >= sizeof placed) return name;
    return string_pool_intern(store, placed, (size_t)length);
}

// Sets the frame's `function` and `plain` from its other fields; false without memory.
static bool naming_apply(struct symbol_frame *frame, const struct symbol_options *options,
                         struct string_pool *store) {
    frame->function = frame->plain = NULL;
    if (!frame->linkage) return true;
    const char *name = frame->plain = string_pool_readable(store, frame->linkage);
    if (name && options->has_full_names)
        name = keep(store, name_full(frame->linkage));
    else if (name)
        name = place_closure(store, name, frame);
    if (name && options->renames) name = keep(store, rename_apply(options->renames, name));
    frame->function = name;
    return name;
}

// The recording will hold the names: the cache is for modules that take long to read.
#define CACHED_RAW_FROM_BYTES ((uint64_t)1 << 20)
#define QUICK_BYTES_MAX ((uint64_t)48 << 20)  // about half a second to read

static const char *keep_text(struct string_pool *store, const char *text) {
    return text ? string_pool_intern(store, text, strlen(text)) : NULL;
}

// Copies a symbol's frames out of a bundle; false without memory.
static bool take_symbol(const struct bundle *bundle, const struct cairn_symbol *symbol,
                        struct string_pool *store, struct symbol_query *query) {
    query->is_known = true;
    if (!symbol->frame_count) return true;
    struct symbol_frame *frames = string_pool_alloc(store, symbol->frame_count * sizeof *frames);
    if (!frames) return false;
    for (uint32_t i = 0; i < symbol->frame_count; i++) {
        frames[i] = bundle_frame(bundle, symbol, i);
        frames[i].linkage = keep_text(store, frames[i].linkage);
        frames[i].file = keep_text(store, frames[i].file);
    }
    query->frames = frames;
    query->frame_count = symbol->frame_count;
    return true;
}

// Answers what the bundle knows; false only without memory.
static bool take_known(const struct answerer *answerer, const struct bundle *bundle,
                       const struct cairn_symbols_module *module, enum symbol_origin origin,
                       struct symbol_job *job) {
    size_t taken = 0;
    for (size_t i = 0; i < job->count; i++) {
        struct symbol_query *query = &job->queries[i];
        struct cairn_symbol symbol;
        if (query->is_known || !bundle_find(bundle, module, query->address, &symbol)) continue;
        if (!take_symbol(bundle, &symbol, answerer->names, query)) return false;
        taken++;
    }
    atomic_fetch_add(answerer->done, taken);
    if (!taken) return true;
    job->report = (struct symbol_report){
        .source = module->source <= SYMBOL_SOURCE_GENERATED ? module->source : SYMBOL_SOURCE_NONE,
        .origin = origin,
        .path = keep_text(answerer->names, bundle_text(bundle, module->source_path)),
        .note = keep_text(answerer->names, bundle_text(bundle, module->note)),
        .stamp = module->stamp};
    return true;
}

// What is kept cannot become better: files have nothing to add.
static bool is_final(const struct cairn_symbols_module *module) {
    return module->source >= SYMBOL_SOURCE_DWARF && !module->note &&
           !(module->flags & CAIRN_SYMBOLS_PARTIAL);
}

static bool is_all_known(const struct symbol_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (!job->queries[i].is_known) return false;
    return true;
}

static bool is_all_named(const struct symbol_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (!job->queries[i].frame_count) return false;
    return true;
}

static uint64_t stamp_add(uint64_t stamp, const char *path) {
    struct stat status;
    if (!path || stat(path, &status)) return fnv_add(stamp, "", 1);
    const uint64_t numbers[] = {(uint64_t)status.st_size, (uint64_t)status.st_mtim.tv_sec,
                                (uint64_t)status.st_mtim.tv_nsec};
    return fnv_add(fnv_add(stamp, path, strlen(path)), numbers, sizeof numbers);
}

static uint64_t stamp_of(const struct located *files) {
    return stamp_add(stamp_add(FNV_START, files->module_path), files->debug_path) | 1;
}

// Bytes of debug information and symbol tables that would be read.
static uint64_t bytes_to_read(const struct located *files) {
    return image_symbol_bytes(&files->module) + image_symbol_bytes(&files->debug) +
           image_symbol_bytes(&files->packed);
}

uint64_t answer_bytes(const struct symbol_options *options, const struct symbol_module *module,
                      struct string_pool *scratch) {
    struct located files;
    locate_open(&files, module, options, scratch);
    uint64_t bytes = bytes_to_read(&files);
    locate_close(&files);
    return bytes < (uint64_t)INT64_MAX ? bytes : (uint64_t)INT64_MAX;
}

static int by_address(const void *left, const void *right) {
    const struct symbol_query *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

// Everything that is known of the module now: the answers, and what the cache had besides.
static bool gather(const struct answerer *answerer, const struct cached *cached,
                   const struct symbol_job *job, struct symbol_query **list, size_t *count) {
    size_t older = cached ? cached->module.symbol_count : 0, used = 0;
    *list = calloc(older + job->count + 1, sizeof **list);
    if (!*list) return false;
    memcpy(*list, job->queries, job->count * sizeof **list);
    used = job->count;
    for (size_t i = 0; i < older; i++) {
        struct cairn_symbol symbol;
        const size_t at = (cached->module.first_symbol + i) * sizeof symbol;
        memcpy(&symbol, cached->bundle.symbols + at, sizeof symbol);
        (*list)[used].address = symbol.address;
        if (!take_symbol(&cached->bundle, &symbol, answerer->names, &(*list)[used++])) return false;
    }
    qsort(*list, used, sizeof **list, by_address);
    *count = 0;
    for (size_t i = 0; i < used; i++)
        if (!i || (*list)[i].address != (*list)[i - 1].address) (*list)[(*count)++] = (*list)[i];
    return true;
}

static void save(const struct answerer *answerer, const struct cached *cached,
                 const struct symbol_job *job) {
    struct symbol_query *list = NULL;
    size_t count;
    if (gather(answerer, cached, job, &list, &count)) {
        const struct bundle_part part = {.module = job->module,
                                         .source = job->report.source,
                                         .source_path = job->report.path,
                                         .note = job->report.note,
                                         .stamp = job->report.stamp,
                                         .is_partial = job->report.is_partial,
                                         .queries = list,
                                         .count = count};
        cache_save(answerer->options->cache_dir, &part, CACHE_BYTES_MAX);
    }
    free(list);
}

// Reads the files; `cached` (NULL: nothing) is used if they are those that it was made of.
static bool answer_from_files(const struct answerer *answerer, const struct cached *cached,
                              struct symbol_job *job) {
    const struct symbol_options *options = answerer->options;
    struct located files;
    job->report.is_late = resolve_is_late(options);
    if (job->report.is_late) return true;
    locate_open(&files, &job->module, options, answerer->names);
    uint64_t stamp = stamp_of(&files), bytes = bytes_to_read(&files);
    if (cached && cached->module.stamp != stamp && cached->module.source != SYMBOL_SOURCE_DWARF)
        cached = NULL;
    bool is_done =
        !cached || take_known(answerer, &cached->bundle, &cached->module, SYMBOL_ORIGIN_CACHE, job);
    bool is_too_large = (options->is_quick && bytes > QUICK_BYTES_MAX) ||
                        (answerer->is_foreign_short && !module_is_own(job->module.path));
    struct resolver resolver = {options, answerer->names, answerer->done, is_too_large};
    if (is_done && !is_all_known(job)) {
        budget_take(bytes);
        is_done = resolve_from_files(&resolver, &files, job);
        budget_give(bytes);
        job->report.stamp = stamp;
        bool is_worth = !options->is_raw || bytes >= CACHED_RAW_FROM_BYTES;
        if (is_done && is_worth && !job->report.is_partial && job->report.source)
            save(answerer, cached, job);
    }
    locate_close(&files);
    return is_done;
}

// The cache's answers, and those of the files for the rest.
static bool answer_from_cache(const struct answerer *answerer, struct symbol_job *job) {
    const struct symbol_options *options = answerer->options;
    struct cached cached;
    if (options->is_closed) return true;
    if (options->is_anew || !cache_load(options->cache_dir, &job->module, &cached))
        return answer_from_files(answerer, NULL, job);
    bool is_done = !is_final(&cached.module) ||
                   take_known(answerer, &cached.bundle, &cached.module, SYMBOL_ORIGIN_CACHE, job);
    if (is_done && !is_all_known(job)) is_done = answer_from_files(answerer, &cached, job);
    cache_release(&cached);
    return is_done;
}

// Code that the program generated, by what it says about it.
static bool answer_from_program(const struct answerer *answerer, struct symbol_job *job) {
    struct generated generated;
    bool is_done = generated_open(&generated, answerer->options, answerer->names);
    job->report.note = "not a file on disk, and the program kept no names of it";
    for (size_t i = 0; i < job->count && is_done; i++) {
        struct symbol_query *query = &job->queries[i];
        const struct generated_code *code = generated_find(&generated, query->address);
        if (query->is_known || !code) continue;
        query->frames = string_pool_alloc(answerer->names, sizeof *query->frames);
        is_done = query->frames != NULL;
        if (!is_done) break;
        *query->frames = (struct symbol_frame){
            .linkage = code->function, .file = code->file, .line = code->line};
        query->frame_count = 1;
        query->is_known = true;
        job->report = (struct symbol_report){.source = SYMBOL_SOURCE_GENERATED,
                                             .origin = SYMBOL_ORIGIN_FILE,
                                             .path = generated.path};
    }
    generated_close(&generated);
    return is_done;
}

static bool is_generated(const struct symbol_module *module) {
    return !module->build_id_bytes && module->path && !*module->path;
}

static bool name_frames(const struct answerer *answerer, struct symbol_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        struct symbol_query *query = &job->queries[i];
        job->report.resolved_count += query->frame_count != 0;
        for (size_t at = 0; at < query->frame_count && !answerer->options->is_raw; at++)
            if (!naming_apply(&query->frames[at], answerer->options, answerer->names)) return false;
    }
    return true;
}

static bool answer_from_elsewhere(const struct answerer *answerer, struct symbol_job *job) {
    return is_generated(&job->module) ? answer_from_program(answerer, job)
                                      : answer_from_cache(answerer, job);
}

// Kept names that files may better: what they do not know any more, or know less well, is kept.
static bool answer_at_best(const struct answerer *answerer,
                           const struct cairn_symbols_module *module, struct symbol_job *job) {
    if (!answer_from_elsewhere(answerer, job)) return false;
    const struct symbol_report found = job->report;
    bool is_worse = found.source < module->source;
    size_t left = 0;
    for (size_t i = 0; i < job->count; i++) {
        struct symbol_query *query = &job->queries[i];
        if (is_worse || !query->frame_count) query->is_known = false;
        left += !query->is_known;
    }
    if (left && !take_known(answerer, answerer->kept, module, SYMBOL_ORIGIN_RECORDING, job))
        return false;
    if (!is_worse && found.source) job->report = found;
    if (is_worse && !is_all_named(job)) {
        job->report.note = found.note;
        job->report.is_gone = found.is_gone;
    }
    return true;
}

bool answer(const struct answerer *answerer, struct symbol_job *job) {
    const struct symbol_options *options = answerer->options;
    const struct bundle *kept = options->is_anew ? NULL : answerer->kept;
    struct cairn_symbols_module module;
    bool is_done, has_kept = kept && job->count && bundle_find_module(kept, &job->module, &module);
    if (!has_kept) {
        is_done = answer_from_elsewhere(answerer, job);
    } else if (options->is_closed || is_final(&module)) {
        is_done = take_known(answerer, kept, &module, SYMBOL_ORIGIN_RECORDING, job);
        if (is_done && !is_all_known(job)) is_done = answer_from_elsewhere(answerer, job);
    } else {
        is_done = answer_at_best(answerer, &module, job);
    }
    return is_done && name_frames(answerer, job);
}
