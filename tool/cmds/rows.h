// SPDX-License-Identifier: Apache-2.0
// The rows of the table of commands, a variable each, and the rows of options that commands of
// several files have.
#ifndef TOOL_CMDS_ROWS_H
#define TOOL_CMDS_ROWS_H

#include "tool/query/arguments.h"

// rows_record.c
extern const struct command command_run;
extern const struct command command_attach;
extern const struct command command_ctl;
extern const struct command command_top;
extern const struct command command_push;
extern const struct command command_env;
// rows_read.c
extern const struct command command_report;
extern const struct command command_leaks;
extern const struct command command_open;
extern const struct command command_serve;
extern const struct command command_diff;
extern const struct command command_info;
extern const struct command command_core;
extern const struct command command_sql;
extern const struct command command_symbolize;
extern const struct command command_mcp;
extern const struct command command_gdb_script;
extern const struct command command_help;
// rows_convert.c
extern const struct command command_events;
extern const struct command command_replay;
extern const struct command command_whatif;
extern const struct command command_export;
extern const struct command command_merge;
extern const struct command command_import;
// rows_test.c
extern const struct command command_check;
extern const struct command command_torture;
extern const struct command command_history;

// clang-format off
#define OPTION_ROW_ALL_FRAMES {OPTION_ALL_FRAMES, "all-frames", 0, NULL, "show the frames of allocators and runtimes too"}
#define OPTION_ROW_LINES \
    {OPTION_LINES, "lines", 0, NULL, "tree, flame graph: tell the lines of a function apart"}
#define OPTION_ROW_BYTES {OPTION_BYTES, "bytes", 0, NULL, "sizes as plain numbers of bytes"}
#define OPTION_ROW_COLOR {OPTION_COLOR, "color", 0, "WHEN", "auto (default): on a terminal; always, never"}
#define OPTION_ROW_TOP {OPTION_TOP, "top", 'n', "N", "length of the list, 0 for all of it"}
#define OPTION_ROW_OUTPUT {OPTION_OUTPUT, "output", 'o', "PATH", "name of the recording, or a directory for it"}
#define OPTION_ROW_PID {OPTION_PID, "pid", 'p', "PID", "the process: the same as the word PID"}
#define OPTION_ROW_PROCESS {OPTION_PROCESS, "process", 'p', "PID|NAME", "of a run of several processes: this one"}
#define OPTION_ROWS_SYMBOL_FILES                                                                   \
    {OPTION_DEBUG_DIR, "debug-dir", 0, "DIR", "more debug files (may be given several times)"},    \
    {OPTION_SYSROOT, "sysroot", 0, "DIR", "recorded paths lie below this directory too"},          \
    {OPTION_DEBUGINFOD, "debuginfod", 0, NULL, "download debug files ($DEBUGINFOD_URLS)"}
#define SYMBOL_OPTIONS                                                                             \
    OPTION_ROWS_SYMBOL_FILES,                                                                      \
    {OPTION_SOURCE_MAP, "source-map", 0, "OLD=NEW", "sources below OLD are shown below NEW"},      \
    {OPTION_FULL_NAMES, "full-names", 0, NULL, "names with parameters and all arguments"},         \
    {OPTION_RENAME, "rename", 0, "RULES", "s/REGEX/TEXT/ on names, or a file of such rules"},      \
    {OPTION_INTERNAL_FRAMES, "internal-frames", 0, "FILE", "rules for internal frames, before cairn's own"}

// What to look at: the same words for every view (tool/query/request.c reads them).
// `focus` is the letter of --focus, which export has for its format.
#define RANKED_BY_PEAK "rank by peak (default), exit, allocated or calls"
#define OPTION_ROWS_FILTER_AS(focus, ranked)                                                       \
    {OPTION_BY, "by", 'b', "MEASURE", ranked},                                                     \
    {OPTION_BLOCKS, "blocks", 0, NULL, "count blocks instead of bytes"},                           \
    OPTION_ROW_TOP,                                                                                \
    {OPTION_DEPTH, "depth", 'd', "N", "frames of a stack or levels of the tree, 0 for all"},       \
    {OPTION_THRESHOLD, "threshold", 0, "SHARE", "leave out what is below, as 0.2%"},               \
    {OPTION_MIN_BYTES, "min-bytes", 0, "SIZE", "leave out what is below, as 64K"},                 \
    {OPTION_FOCUS, "focus", focus, "REGEX", "stacks through this function or file"},               \
    {OPTION_IGNORE, "ignore", 0, "REGEX", "stacks that do not go through it"},                     \
    {OPTION_HIDE, "hide", 0, "REGEX", "leave such frames out of the stacks"},                      \
    {OPTION_MODULE, "module", 'm', "REGEX", "stacks through this library or program file"},        \
    {OPTION_THREAD, "thread", 't', "ID|REGEX", "what these threads allocated"},                    \
    {OPTION_REGION, "region", 0, "REGEX", "what was allocated in these regions of the program"},   \
    {OPTION_CONTEXT, "context", 0, "LABEL", "what has this label of the program's: tenant=7"},     \
    {OPTION_HEAP, "heap", 0, "NAME", "an allocator by name (--wrap) in place of malloc's heap"},   \
    OPTION_ROW_PROCESS,                                                                            \
    {OPTION_LIFESPAN, "lifespan", 0, "WHICH", "blocks that are living, gone, or short:TIME (--ages)"}
#define OPTION_ROWS_SUPPRESSIONS                                                                   \
    {OPTION_SUPPRESSIONS, "suppressions", 0, "FILE", "leaks left out, in LeakSanitizer's syntax"}, \
    {OPTION_NO_SUPPRESSIONS, "no-suppressions", 0, NULL,                                           \
     "show what common libraries keep on purpose as well"}
// clang-format on

#endif
