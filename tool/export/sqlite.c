// SPDX-License-Identifier: Apache-2.0
// An SQLite database. Stacks are kept as the profile has them, nodes of one tree of places, so that
// the database stays as small as the recording's tree; views spell them out. Sums by function are
// made here, since recursion counts once a stack, which SQL does not say well.
#include "tool/export/sqlite.h"
#include "tool/model/stack_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/export/sqlite_schema.h"
#include "tool/render/trust.h"

struct sums {
    int64_t calls, allocated_bytes, peak_bytes, exit_bytes;
    struct estimate peak_estimate, exit_estimate;
};

struct function {
    const struct frame *frame;
    struct sums self, total;
    uint32_t last_stack;  // counted already for this one, plus 1
};

struct writer {
    sqlite3 *database;
    const struct export *export;
    struct error *error;
    sqlite3_stmt *statement;
    int column;  // next to be bound
    struct frame_table frames;
    ARRAY(struct function) functions;
    struct index_table function_table;
    uint32_t *function_of_frame;
};

static bool fail(struct writer *writer) {
    return error_set(writer->error, "sqlite: %s", sqlite3_errmsg(writer->database));
}

static bool execute(struct writer *writer, const char *text) {
    return sqlite3_exec(writer->database, text, NULL, NULL, NULL) == SQLITE_OK || fail(writer);
}

static bool prepare(struct writer *writer, const char *text) {
    sqlite3_finalize(writer->statement);
    writer->statement = NULL;
    writer->column = 1;
    int status = sqlite3_prepare_v2(writer->database, text, -1, &writer->statement, NULL);
    return status == SQLITE_OK || fail(writer);
}

static void put_int(struct writer *writer, int64_t value) {
    sqlite3_bind_int64(writer->statement, writer->column++, value);
}

static void put_null(struct writer *writer) {
    sqlite3_bind_null(writer->statement, writer->column++);
}

// Text of a recording: bytes that are no UTF-8 would make SQLite's functions fail.
static void put_text(struct writer *writer, const char *value) {
    char safe[FRAME_TITLE_BYTES];
    if (!value) {
        put_null(writer);
        return;
    }
    text_escape(safe, sizeof safe, value);
    sqlite3_bind_text(writer->statement, writer->column++, safe, -1, SQLITE_TRANSIENT);
}

// Half the 95 % interval of bytes (and of blocks), and the samples behind it, with those of
// blocks and the certain ones; NULL: it is exact.
static void put_estimate(struct writer *writer, const struct estimate *estimate, bool has_blocks) {
    if (!writer->export->profile->sampling.is_on) {
        for (int i = has_blocks ? 5 : 2; i > 0; i--) put_null(writer);
        return;
    }
    put_int(writer, estimate_bytes_interval(estimate));
    if (has_blocks) put_int(writer, estimate_blocks_interval(estimate));
    put_int(writer, estimate_samples(estimate));
    if (has_blocks) put_int(writer, estimate_block_samples(estimate));
    if (has_blocks) put_int(writer, estimate_certain(estimate));
}

static bool put_row(struct writer *writer) {
    int status = sqlite3_step(writer->statement);
    sqlite3_reset(writer->statement);
    writer->column = 1;
    return status == SQLITE_DONE || fail(writer);
}

static bool put_fact(struct writer *writer, const char *key, const char *text, int64_t number) {
    put_text(writer, key);
    if (text)
        put_text(writer, text);
    else
        put_int(writer, number);
    return put_row(writer);
}

static bool fill_sampling(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    const struct estimate *peak = &profile->estimates[ESTIMATED_PEAK];
    const struct estimate *left = &profile->estimates[ESTIMATED_EXIT];
    const struct {
        const char *key;
        int64_t number;
    } facts[] = {
        {"sample_rate_bytes", (int64_t)profile->sampling.rate_bytes},
        {"peak_interval_bytes", estimate_bytes_interval(peak)},
        {"peak_interval_blocks", estimate_blocks_interval(peak)},
        {"peak_samples", estimate_samples(peak)},
        {"peak_block_samples", estimate_block_samples(peak)},
        {"peak_certain_samples", estimate_certain(peak)},
        {"at_exit_interval_bytes", estimate_bytes_interval(left)},
        {"at_exit_interval_blocks", estimate_blocks_interval(left)},
        {"at_exit_samples", estimate_samples(left)},
        {"at_exit_block_samples", estimate_block_samples(left)},
        {"at_exit_certain_samples", estimate_certain(left)},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (!put_fact(writer, facts[i].key, NULL, facts[i].number)) return false;
    return true;
}

static bool fill_info(struct writer *writer) {
    const struct export *export = writer->export;
    const struct profile *profile = export->profile;
    const struct cairn_header *header = &profile->recording->header;
    const struct {
        const char *key, *text;
        int64_t number;
    } facts[] = {
        {"tool", "cairn", 0},
        {"tool_version", export->tool_version, 0},
        {"trust", export->trust, 0},
        {"exact", NULL, profile_is_exact(profile)},
        {"command", export->command, 0},
        {"program", export->program, 0},
        {"processes", NULL, (int64_t) export->process_count},
        {"pid", NULL, header->pid},
        {"start_unix_ns", NULL, (int64_t)header->start_unix_ns},
        {"duration_ns", NULL, (int64_t)header->end_ns},
        {"peak_bytes", NULL, profile->peak.bytes},
        {"peak_blocks", NULL, profile->peak.blocks},
        {"peak_at_ns", NULL, (int64_t)profile->peak.at_ns},
        {"peak_error_bytes", NULL, (int64_t)profile->peak.error_bytes},
        {"failed", NULL, (int64_t)profile->totals.failed},
        {"rss_peak_bytes", NULL, (int64_t)header->rss_peak_bytes},
    };
    if (!prepare(writer, "INSERT INTO info VALUES(?,?)")) return false;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!strcmp(facts[i].key, "peak_blocks") && !profile_has_blocks(profile)) continue;
        if (!put_fact(writer, facts[i].key, facts[i].text, facts[i].number)) return false;
    }
    if (profile->sampling.is_on && !fill_sampling(writer)) return false;
    if (!prepare(writer, "INSERT INTO losses VALUES(?,?)")) return false;
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        const char *key = loss_key(kind) ? loss_key(kind) : "unknown";
        int64_t lost = (int64_t)recording_lost(profile->recording, kind);
        if (lost && !put_fact(writer, key, NULL, lost)) return false;
    }
    return true;
}

static bool fill_modules(struct writer *writer) {
    const struct module_map *map = &writer->export->profile->modules;
    if (!prepare(writer, "INSERT INTO modules VALUES(?,?,?,?,?,?)")) return false;
    for (size_t i = 0; i < map->count; i++) {
        const struct module *module = &map->modules[i];
        char build_id[MODULE_BUILD_ID_TEXT];
        module_build_id_text(module, build_id);
        put_int(writer, (int64_t)i);
        put_text(writer, module->path);
        put_text(writer, *build_id ? build_id : NULL);
        put_int(writer, (int64_t)module->start);
        put_int(writer, (int64_t)module->end);
        put_int(writer, (int64_t)module->bias);
        if (!put_row(writer)) return false;
    }
    return true;
}

static bool fill_places(struct writer *writer) {
    const struct places *places = &writer->export->profile->places;
    if (!prepare(writer, "INSERT INTO locations VALUES(?,?,?)")) return false;
    for (size_t i = 0; i < places->list.count; i++) {
        const struct place *place = &places->list.items[i];
        put_int(writer, (int64_t)i);
        if (place->module == MODULE_NONE)
            put_null(writer);
        else
            put_int(writer, place->module);
        put_int(writer, (int64_t)place->address);
        if (!put_row(writer)) return false;
    }
    return true;
}

static bool fill_frames_of(struct writer *writer, uint32_t place) {
    const struct frame_names *names = writer->export->names;
    char title[FRAME_TITLE_BYTES];
    size_t count;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        frame_title(&frames[i], title, sizeof title);
        put_int(writer, place);
        put_int(writer, (int64_t)i);
        put_text(writer, title);
        put_text(writer, frames[i].function);
        put_text(writer, frames[i].file);
        if (frames[i].line)
            put_int(writer, frames[i].line);
        else
            put_null(writer);
        put_int(writer, frames[i].is_inlined);
        put_int(writer, frames[i].is_hidden);
        put_int(writer, frames[i].is_allocator);
        if (!put_row(writer)) return false;
    }
    return true;
}

static bool fill_frames(struct writer *writer) {
    const struct places *places = &writer->export->profile->places;
    if (!prepare(writer, "INSERT INTO frames VALUES(?,?,?,?,?,?,?,?,?)")) return false;
    for (uint32_t i = 0; i < places->list.count; i++)
        if (!places->list.items[i].cut && !fill_frames_of(writer, i)) return false;
    return true;
}

static bool fill_nodes(struct writer *writer) {
    const struct tree *tree = &writer->export->profile->tree;
    if (!prepare(writer, "INSERT INTO nodes VALUES(?,?,?,?)")) return false;
    for (size_t i = 0; i < tree->nodes.count; i++) {
        const struct tree_node *node = &tree->nodes.items[i];
        put_int(writer, (int64_t)i);
        if (i == TREE_ROOT) {
            put_null(writer);
            put_null(writer);
        } else {
            put_int(writer, node->parent);
            put_int(writer, node->place);
        }
        put_int(writer, node->depth);
        if (!put_row(writer)) return false;
    }
    return true;
}

#define FIELD_PLACE(key, member) ",?"
#define ESTIMATE_PLACES(key, kind, noun, samples) ",?,?,?,?,?"

static bool fill_stacks(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    char hash[2 * sizeof(uint64_t) + 1];
    if (!prepare(writer, "INSERT INTO stacks VALUES(?,?,?,?" STACK_FIELDS(FIELD_PLACE)
                             STACK_ESTIMATES(ESTIMATE_PLACES) ")"))
        return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        snprintf(hash, sizeof hash, "%016" PRIx64, stack->id);
        put_int(writer, (int64_t)i);
        put_text(writer, hash);
        put_int(writer, stack->node);
        put_text(writer, stack->cut ? cut_key(stack->cut) : NULL);
        for (const struct stack_field *field = stack_fields; field->key; field++)
            if (stack_field_is_known(field, profile))
                put_int(writer, stack_field_value(field, stack));
            else
                put_null(writer);
        for (int kind = 0; kind < ESTIMATED_AT; kind++)
            put_estimate(writer, &stack_more(stack)->estimates[kind], true);
        if (!put_row(writer)) return false;
    }
    return true;
}

static uint32_t function_of(struct writer *writer, const struct frame *frame) {
    uint64_t hash = frame_hash(frame, false);
    struct index_probe probe = index_probe_start(&writer->function_table, hash);
    for (uint32_t index; index_probe_next(&writer->function_table, &probe, &index);)
        if (frame_is_same_function(frame, writer->functions.items[index].frame)) return index;
    uint32_t added = (uint32_t)writer->functions.count;
    struct function *function = array_push(&writer->functions);
    if (!function || !index_table_insert(&writer->function_table, hash, added)) return UINT32_MAX;
    *function = (struct function){.frame = frame};
    return added;
}

static void sums_add(struct sums *sums, const struct stack *stack) {
    sums->calls = figures_add(sums->calls, (int64_t)stack->allocations);
    sums->allocated_bytes = figures_add(sums->allocated_bytes, (int64_t)stack->allocated_bytes);
    sums->peak_bytes = figures_add(sums->peak_bytes, stack->peak_bytes);
    sums->exit_bytes = figures_add(sums->exit_bytes, stack->exit_bytes);
    estimate_add(&sums->peak_estimate, &stack_more(stack)->estimates[ESTIMATED_PEAK]);
    estimate_add(&sums->exit_estimate, &stack_more(stack)->estimates[ESTIMATED_EXIT]);
}

// Self is the first frame that is no internal frames, as on the screens; of a stack of nothing
// else, the first frame that is no allocator.
static void add_stack(struct writer *writer, uint32_t index) {
    const struct stack *stack = &writer->export->profile->stacks[index];
    const uint32_t *numbers = writer->frames.stack.items;
    size_t count = writer->frames.stack.count, self = 0, first = 0;
    while (self + 1 < count && writer->frames.frames.items[numbers[self]]->is_hidden) self++;
    while (first + 1 < count && writer->frames.frames.items[numbers[first]]->is_allocator) first++;
    if (count && writer->frames.frames.items[numbers[self]]->is_hidden) self = first;
    for (size_t i = 0; i < count; i++) {
        struct function *function = &writer->functions.items[writer->function_of_frame[numbers[i]]];
        if (i == self) sums_add(&function->self, stack);
        if (function->last_stack == index + 1) continue;
        function->last_stack = index + 1;
        sums_add(&function->total, stack);
    }
}

static void put_sums(struct writer *writer, const struct sums *sums) {
    put_int(writer, sums->calls);
    put_int(writer, sums->allocated_bytes);
    put_int(writer, sums->peak_bytes);
    put_int(writer, sums->exit_bytes);
    put_estimate(writer, &sums->peak_estimate, false);
    put_estimate(writer, &sums->exit_estimate, false);
}

static bool put_functions(struct writer *writer) {
    char title[FRAME_TITLE_BYTES];
    if (!prepare(writer, "INSERT INTO functions VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"))
        return false;
    for (size_t i = 0; i < writer->functions.count; i++) {
        const struct function *function = &writer->functions.items[i];
        frame_title(function->frame, title, sizeof title);
        put_int(writer, (int64_t)i);
        put_text(writer, title);
        put_text(writer, function->frame->module);
        put_int(writer, function->frame->is_hidden);
        put_sums(writer, &function->self);
        put_sums(writer, &function->total);
        if (!put_row(writer)) return false;
    }
    return true;
}

static bool fill_functions(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    if (!frame_table_build(&writer->frames, writer->export, FRAMES_MARKED, writer->error))
        return false;
    size_t count = writer->frames.frames.count;
    writer->function_of_frame = calloc(count + 1, sizeof *writer->function_of_frame);
    bool is_ok = writer->function_of_frame != NULL;
    for (size_t i = 0; i < count && is_ok; i++) {
        writer->function_of_frame[i] = function_of(writer, writer->frames.frames.items[i]);
        is_ok = writer->function_of_frame[i] != UINT32_MAX;
    }
    for (uint32_t i = 0; i < profile->stack_count && is_ok; i++) {
        is_ok = frame_table_stack(&writer->frames, profile->stacks[i].node);
        if (is_ok) add_stack(writer, i);
    }
    if (!is_ok) return error_set(writer->error, "no memory for the sums by function");
    return put_functions(writer);
}

static bool fill_threads(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    if (!prepare(writer, "INSERT INTO threads VALUES(?,?,?,?,?,?,?,?,?)")) return false;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        put_int(writer, thread->tid);
        put_text(writer, thread->name);
        put_int(writer, (int64_t)thread->start_ns);
        if (thread->end_ns)
            put_int(writer, (int64_t)thread->end_ns);
        else
            put_null(writer);
        put_int(writer, (int64_t)thread->allocations);
        put_int(writer, (int64_t)thread->allocated_bytes);
        if (thread->is_shared) {  // only what those that share held together is known
            put_null(writer);
            put_null(writer);
            put_null(writer);
        } else {
            put_int(writer, thread->exit_bytes);
            put_estimate(writer, &thread->exit_estimate, false);
        }
        if (!put_row(writer)) return false;
    }
    return true;
}

static bool fill_points(struct writer *writer) {
    const struct recording *recording = writer->export->profile->recording;
    struct cairn_point point;
    if (!prepare(writer, "INSERT INTO points VALUES(?,?,?,?,?,?,?)")) return false;
    for (size_t i = 0; recording_point(recording, i, &point); i++) {
        if (!point.is_used) continue;
        put_int(writer, (int64_t)(recording->header.totals.point_ns * (uint64_t)i));
        put_int(writer, point.min_bytes);
        put_int(writer, point.max_bytes);
        put_int(writer, point.last_bytes);
        put_int(writer, point.last_blocks);
        put_int(writer, (int64_t)point.allocated_bytes);
        put_int(writer, (int64_t)point.allocations);
        if (!put_row(writer)) return false;
    }
    return true;
}

// Intervals add up as the root of the sum of their squares, for which SQL has no function that
// every reader of the file would have.
static void root(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, (sqlite3_int64)sqrt(sqlite3_value_double(values[0])));
}

static bool fill_module_sums(struct writer *writer) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int status =
        sqlite3_create_function(writer->database, "cairn_root", 1, flags, NULL, root, NULL, NULL);
    return status == SQLITE_OK ? execute(writer, sqlite_module_sums) : fail(writer);
}

bool export_sqlite_fill(sqlite3 *database, const struct export *export, struct error *error) {
    struct writer writer = {.database = database, .export = export, .error = error};
    bool is_ok = execute(&writer, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;") &&
                 execute(&writer, sqlite_tables) && fill_info(&writer) && fill_modules(&writer) &&
                 fill_places(&writer) && fill_frames(&writer) && fill_nodes(&writer) &&
                 fill_stacks(&writer) && fill_functions(&writer) && fill_module_sums(&writer) &&
                 fill_threads(&writer) && fill_points(&writer) && execute(&writer, sqlite_views) &&
                 execute(&writer, "COMMIT;");
    sqlite3_finalize(writer.statement);
    frame_table_free(&writer.frames);
    array_free(&writer.functions);
    index_table_free(&writer.function_table);
    free(writer.function_of_frame);
    return is_ok;
}

bool export_sqlite(const char *path, const struct export *export, struct error *error) {
    sqlite3 *database = NULL;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    bool is_open = sqlite3_open_v2(path, &database, flags, NULL) == SQLITE_OK;
    if (!is_open)
        error_set(error, "%s: %s", path, database ? sqlite3_errmsg(database) : "no memory");
    bool is_ok = is_open && export_sqlite_fill(database, export, error);
    return sqlite3_close(database) == SQLITE_OK && is_ok;
}
