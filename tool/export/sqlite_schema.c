// SPDX-License-Identifier: Apache-2.0
#include "tool/export/sqlite_schema.h"

#include "tool/model/stack_fields.h"

// What a function holds.
#define SUMS(kind)                                                                                 \
    kind "_calls INTEGER, " kind "_allocated_bytes INTEGER, " kind "_peak_bytes INTEGER, " kind    \
         "_at_exit_bytes INTEGER, " kind "_peak_interval_bytes INTEGER, " kind                     \
         "_peak_samples INTEGER, " kind "_at_exit_interval_bytes INTEGER, " kind                   \
         "_at_exit_samples INTEGER"

const char sqlite_tables[] =
    "CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE losses(reason TEXT, count INTEGER);"
    "CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT, start INTEGER, "
    "  end INTEGER, bias INTEGER);"
    "CREATE TABLE locations(id INTEGER PRIMARY KEY, module INTEGER REFERENCES modules, "
    "  offset INTEGER);"
    "CREATE TABLE frames(location INTEGER REFERENCES locations, position INTEGER, name TEXT, "
    "  function TEXT, file TEXT, line INTEGER, inlined INTEGER, internal INTEGER, "
    "  allocator INTEGER, PRIMARY KEY(location, position)) WITHOUT ROWID;"
    "CREATE TABLE nodes(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes, "
    "  location INTEGER REFERENCES locations, depth INTEGER);"
    "CREATE TABLE stacks(id INTEGER PRIMARY KEY, hash TEXT, node INTEGER REFERENCES nodes, "
    "  incomplete TEXT" STACK_FIELD_NAMES(SQL) STACK_ESTIMATE_NAMES(
        SQL) ");"
             "CREATE TABLE functions(id INTEGER PRIMARY KEY, function TEXT, module TEXT, internal "
             "INTEGER, "
             "  " SUMS("self") ", " SUMS(
                 "total") ");"
                          "CREATE TABLE threads(tid INTEGER, name TEXT, start_ns INTEGER, end_ns "
                          "INTEGER, "
                          "  allocations INTEGER, allocated_bytes INTEGER, at_exit_bytes INTEGER, "
                          "  at_exit_interval_bytes INTEGER, at_exit_samples INTEGER);"
                          "CREATE TABLE points(start_ns INTEGER, min_bytes INTEGER, max_bytes "
                          "INTEGER, "
                          "  last_bytes INTEGER, last_blocks INTEGER, allocated_bytes INTEGER, "
                          "allocations "
                          "INTEGER);";

// Spells out the stacks of a list: "inner <- outer", internal frames left out; of a stack of
// nothing else, the first frame that is no allocator, as screens do.
#define SPELLED(list)                                                                              \
    "WITH RECURSIVE chosen AS (" list "), "                                                        \
    "walk(stack, node, level) AS (SELECT id, node, 0 FROM chosen UNION ALL "                       \
    "  SELECT stack, parent, level + 1 FROM walk JOIN nodes ON nodes.id = walk.node "              \
    "  WHERE parent IS NOT NULL), "                                                                \
    "spelled AS (SELECT stack, name, internal, row_number() OVER (PARTITION BY stack "             \
    "  ORDER BY internal, allocator, level, position) AS rank FROM walk "                          \
    "  JOIN nodes ON nodes.id = walk.node JOIN frames ON frames.location = nodes.location), "      \
    "texts AS (SELECT stack, group_concat(name, ' <- ') AS frames FROM "                           \
    "  (SELECT * FROM spelled WHERE NOT internal OR rank = 1 ORDER BY stack, rank) "               \
    "  GROUP BY stack) "                                                                           \
    "SELECT chosen.*, frames FROM chosen LEFT JOIN texts ON texts.stack = chosen.id ORDER BY 2 "   \
    "DESC"

#define SQUARES(column) "cairn_root(sum(1.0 * " column " * " column "))"

const char sqlite_module_sums[] =
    "CREATE TABLE module_sums AS SELECT module, sum(self_calls) AS calls, "
    "  sum(self_allocated_bytes) AS allocated_bytes, sum(self_peak_bytes) AS peak_bytes, "
    "  sum(self_at_exit_bytes) AS at_exit_bytes, "
    "  " SQUARES(
        "self_peak_interval_bytes") " AS peak_interval_bytes, "
                                    "  sum(self_peak_samples) AS peak_samples, "
                                    "  " SQUARES(
                                        "self_at_exit_interval_bytes") " AS "
                                                                       "at_exit_interval_bytes, "
                                                                       "  "
                                                                       "sum(self_at_exit_samples) "
                                                                       "AS at_exit_samples FROM "
                                                                       "functions GROUP BY module;";

// clang-format off
const char sqlite_views[] =
    "CREATE INDEX stacks_by_peak ON stacks(peak_bytes);"
    "CREATE INDEX stacks_by_exit ON stacks(at_exit_bytes);"
    "CREATE VIEW summary AS SELECT count(*) AS stacks, sum(allocations) AS allocations, "
    "  sum(frees) AS frees, sum(allocated_bytes) AS allocated_bytes, "
    "  sum(freed_bytes) AS freed_bytes, sum(peak_blocks) AS peak_blocks, "
    "  sum(peak_bytes) AS peak_bytes, sum(at_exit_blocks) AS at_exit_blocks, "
    "  sum(at_exit_bytes) AS at_exit_bytes, "
    "  (SELECT value FROM info WHERE key = 'peak_interval_bytes') AS peak_interval_bytes, "
    "  sum(peak_samples) AS peak_samples, "
    "  (SELECT value FROM info WHERE key = 'at_exit_interval_bytes') AS at_exit_interval_bytes, "
    "  sum(at_exit_samples) AS at_exit_samples FROM stacks;"
    "CREATE VIEW top AS " SPELLED(
        "SELECT id, peak_bytes, peak_blocks, peak_interval_bytes, peak_samples, hash, node "
        "FROM stacks WHERE peak_bytes > 0 ORDER BY peak_bytes DESC LIMIT 100") ";"
    "CREATE VIEW leaks AS " SPELLED(
        "SELECT id, at_exit_bytes, at_exit_blocks, at_exit_interval_bytes, at_exit_samples, node "
        "FROM stacks WHERE at_exit_blocks > 0 OR at_exit_bytes > 0 ORDER BY at_exit_bytes DESC LIMIT 100") ";"
    "CREATE VIEW by_module AS SELECT * FROM module_sums ORDER BY peak_bytes DESC;"
    "CREATE VIEW timeline AS SELECT start_ns / 1e9 AS seconds, max_bytes, last_blocks, allocations "
    "  FROM points ORDER BY start_ns;";
// clang-format on
