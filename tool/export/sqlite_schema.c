// SPDX-License-Identifier: Apache-2.0
#include "tool/export/sqlite_schema.h"

// What a stack holds, under the names of `cairn report --json`.
#define VALUES                                                                                     \
    "allocations INTEGER, frees INTEGER, allocated_bytes INTEGER, freed_bytes INTEGER, "           \
    "peak_blocks INTEGER, peak_bytes INTEGER, at_exit_blocks INTEGER, at_exit_bytes INTEGER"

const char sqlite_tables[] =
    "CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE losses(reason TEXT, count INTEGER);"
    "CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT, start INTEGER, "
    "  end INTEGER, bias INTEGER);"
    "CREATE TABLE places(id INTEGER PRIMARY KEY, module INTEGER REFERENCES modules, "
    "  offset INTEGER);"
    "CREATE TABLE frames(place INTEGER REFERENCES places, position INTEGER, name TEXT, "
    "  function TEXT, file TEXT, line INTEGER, inlined INTEGER, plumbing INTEGER, "
    "  PRIMARY KEY(place, position)) WITHOUT ROWID;"
    "CREATE TABLE nodes(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes, "
    "  place INTEGER REFERENCES places, depth INTEGER);"
    "CREATE TABLE stacks(id INTEGER PRIMARY KEY, hash TEXT, node INTEGER REFERENCES nodes, "
    "  incomplete TEXT, " VALUES ");"
    "CREATE TABLE functions(id INTEGER PRIMARY KEY, function TEXT, module TEXT, plumbing INTEGER, "
    "  self_calls INTEGER, self_allocated_bytes INTEGER, self_peak_bytes INTEGER, "
    "  self_at_exit_bytes INTEGER, total_calls INTEGER, total_allocated_bytes INTEGER, "
    "  total_peak_bytes INTEGER, total_at_exit_bytes INTEGER);"
    "CREATE TABLE threads(tid INTEGER, name TEXT, start_ns INTEGER, end_ns INTEGER, "
    "  allocations INTEGER, allocated_bytes INTEGER, at_exit_bytes INTEGER);"
    "CREATE TABLE points(start_ns INTEGER, min_bytes INTEGER, max_bytes INTEGER, "
    "  last_bytes INTEGER, last_blocks INTEGER, allocated_bytes INTEGER, allocations INTEGER);";

// Spells out the stacks of a list: "inner <- outer", plumbing left out.
#define SPELLED(list)                                                                              \
    "WITH RECURSIVE chosen AS (" list "), "                                                        \
    "walk(stack, node, level) AS (SELECT id, node, 0 FROM chosen UNION ALL "                       \
    "  SELECT stack, parent, level + 1 FROM walk JOIN nodes ON nodes.id = walk.node "              \
    "  WHERE parent IS NOT NULL), "                                                                \
    "texts AS (SELECT stack, group_concat(name, ' <- ') AS frames FROM "                           \
    "  (SELECT stack, name FROM walk JOIN nodes ON nodes.id = walk.node "                          \
    "  JOIN frames ON frames.place = nodes.place WHERE NOT plumbing "                              \
    "  ORDER BY stack, level, position) GROUP BY stack) "                                          \
    "SELECT chosen.*, frames FROM chosen LEFT JOIN texts ON texts.stack = chosen.id ORDER BY 2 "   \
    "DESC"

const char sqlite_views[] =
    "CREATE INDEX stacks_by_peak ON stacks(peak_bytes);"
    "CREATE INDEX stacks_by_exit ON stacks(at_exit_bytes);"
    "CREATE VIEW summary AS SELECT count(*) AS stacks, sum(allocations) AS "
    "allocations, "
    "  sum(frees) AS frees, sum(allocated_bytes) AS allocated_bytes, "
    "  sum(freed_bytes) AS freed_bytes, sum(peak_blocks) AS peak_blocks, "
    "  sum(peak_bytes) AS peak_bytes, sum(at_exit_blocks) AS at_exit_blocks, "
    "  sum(at_exit_bytes) AS at_exit_bytes FROM stacks;"
    "CREATE VIEW top AS " SPELLED(
        "SELECT id, peak_bytes, peak_blocks, hash, node FROM stacks WHERE peak_bytes > "
        "0 "
        "ORDER BY peak_bytes DESC LIMIT 100") ";"
                                              "CREATE VIEW leaks AS " SPELLED(
                                                  "SELECT id, at_exit_bytes, "
                                                  "at_exit_blocks, node FROM "
                                                  "stacks WHERE at_exit_blocks > "
                                                  "0 "
                                                  "ORDER BY at_exit_bytes DESC "
                                                  "LIMIT 100") ";"
                                                               "CREATE VIEW "
                                                               "by_module AS "
                                                               "SELECT module, "
                                                               "sum(self_calls) "
                                                               "AS calls, "
                                                               "  "
                                                               "sum(self_"
                                                               "allocated_bytes) "
                                                               "AS "
                                                               "allocated_bytes, "
                                                               "sum(self_peak_"
                                                               "bytes) AS "
                                                               "peak_bytes, "
                                                               "  "
                                                               "sum(self_at_exit_"
                                                               "bytes) AS "
                                                               "at_exit_bytes "
                                                               "FROM functions "
                                                               "GROUP BY module "
                                                               "  ORDER BY "
                                                               "peak_bytes DESC;"
                                                               "CREATE VIEW "
                                                               "timeline AS "
                                                               "SELECT start_ns / "
                                                               "1e9 AS seconds, "
                                                               "max_bytes, "
                                                               "last_blocks, "
                                                               "allocations "
                                                               "  FROM points "
                                                               "ORDER BY "
                                                               "start_ns;";
