// SPDX-License-Identifier: Apache-2.0
#include "tool/history/store_stacks.h"

#include <stdlib.h>
#include <string.h>

void stack_numbers_free(struct stack_numbers *numbers) {
    free(numbers->functions);
    array_free(&numbers->nodes);
    index_table_free(&numbers->table);
    *numbers = (struct stack_numbers){0};
}

void stack_numbers_forget_texts(struct stack_numbers *numbers) {
    free(numbers->functions);
    numbers->functions = NULL;
}

static bool number_function(struct store *store, struct stack_numbers *numbers,
                            const struct diff *diff, uint32_t text, int64_t *number,
                            struct error *error) {
    if (!numbers->functions)
        numbers->functions = calloc(diff->texts.list.count + 1, sizeof *numbers->functions);
    if (!numbers->functions) return error_set(error, "no memory for the stacks");
    int64_t *known = &numbers->functions[text];
    if (!*known && !store_number(store, "INSERT INTO functions(name) VALUES(?)",
                                 "SELECT id FROM functions WHERE name = ?",
                                 diff->texts.list.items[text], known, error))
        return false;
    *number = *known;
    return true;
}

static bool ask_node(struct store *store, const char *text, int64_t caller, int64_t function) {
    return store_query(store, text, NULL) && store_bind_int(store, caller) &&
           store_bind_int(store, function);
}

static bool number_node(struct store *store, struct stack_numbers *numbers, int64_t caller,
                        int64_t function, int64_t *number, struct error *error) {
    uint64_t hash = hash_mix(hash_mix(index_table_seed(), (uint64_t)caller), (uint64_t)function);
    struct index_probe probe = index_probe_start(&numbers->table, hash);
    for (uint32_t index; index_probe_next(&numbers->table, &probe, &index);) {
        const struct stack_node *node = &numbers->nodes.items[index];
        if (node->caller != caller || node->function != function) continue;
        *number = node->number;
        return true;
    }
    if (!ask_node(store, "SELECT id FROM nodes WHERE caller = ? AND function = ?", caller,
                  function))
        return store_fail(store, error);
    if (!store_ask(store, 0, number, error)) return false;
    if (!*number) {
        if (!ask_node(store, "INSERT INTO nodes(caller, function) VALUES(?,?)", caller, function))
            return store_fail(store, error);
        if (!store_run(store, error)) return false;
        *number = sqlite3_last_insert_rowid(store->database);
    }
    struct stack_node *node = array_push(&numbers->nodes);
    if (!node || !index_table_insert(&numbers->table, hash, (uint32_t)numbers->nodes.count - 1))
        return error_set(error, "no memory for the stacks");
    *node = (struct stack_node){caller, function, *number};
    return true;
}

bool stack_number(struct store *store, struct stack_numbers *numbers, const struct diff *diff,
                  size_t row, int64_t *number, struct error *error) {
    const struct diff_row *key = &diff->rows.items[row];
    *number = 0;
    for (uint32_t i = key->count; i-- > 0;) {
        int64_t function = 0, caller = *number;
        if (!number_function(store, numbers, diff, key->names[i], &function, error) ||
            !number_node(store, numbers, caller, function, number, error))
            return false;
    }
    return true;
}

char *stack_spell(struct store *store, int64_t number, struct error *error) {
    bool is_ok;
    char *text = NULL;
    size_t size, lines = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        error_set(error, "no memory for a stack");
        return NULL;
    }
    // what leads in a circle, or very far, ends somewhere
    is_ok = store_query(store,
                        "WITH RECURSIVE up(node, level) AS (VALUES(?, 0) UNION ALL "
                        "  SELECT caller, level + 1 FROM up JOIN nodes ON nodes.id = up.node "
                        "  WHERE caller AND level < 1000) "
                        "SELECT name FROM up JOIN nodes ON nodes.id = up.node "
                        "JOIN functions ON functions.id = nodes.function ORDER BY level",
                        error) &&
            store_bind_int(store, number);
    while (is_ok && store_next(store, &is_ok, error)) {
        char *name = store_text(store, 0);
        fprintf(out, "%s%s", lines++ ? "\n" : "", name ? name : "");
        free(name);
    }
    fclose(out);
    if (is_ok) return text;
    free(text);
    return NULL;
}
