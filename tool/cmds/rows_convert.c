// SPDX-License-Identifier: Apache-2.0
// Commands that read logs of events, and those that make another file of recordings.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

// clang-format off
// How a log is performed (tool/cmds/replay_options.c).
#define OPTION_ROWS_REPLAY                                                                         \
    {OPTION_ENV, "env", 'e', "NAME=VALUE", "a variable for the allocator (may be given repeatedly)"}, \
    {OPTION_THREADS, "threads", 0, "WHICH", "as-recorded (default), or 1: all calls in one"},      \
    {OPTION_TOUCH, "touch", 0, "WHICH", "recorded: as the program did; all: every page; none"}, \
    {OPTION_PARTIAL, "partial", 0, NULL, "also a log that is not complete"}

const struct command command_events = {
    .name = "events",
    .arguments = "[--] LOG",
    .help = "what a log of cairn run --events holds, event by event",
    .description =
        "LOG is NAME.PID.events, which lies beside the recording that has its stacks. Events\n"
        "of all threads come in an order in which they happened. With --address, the life of\n"
        "an address: each block that covered it, who allocated it and when it was freed.\n",
    .run = cmd_events,
    .words_max = 1,
    .options = {
        {OPTION_ADDRESS, "address", 'a', "ADDRESS", "events of blocks that cover it"},
        {OPTION_FOCUS, "focus", 'f', "REGEX", "blocks allocated through this function or file"},
        {OPTION_IGNORE, "ignore", 0, "REGEX", "blocks not allocated through it"},
        {OPTION_MODULE, "module", 'm', "REGEX", "blocks allocated through this library or program file"},
        {OPTION_THREAD, "thread", 't', "ID|REGEX", "events in these threads"},
        {OPTION_MIN_SIZE, "min-size", 0, "SIZE", "blocks of at least this size"},
        {OPTION_MAX_SIZE, "max-size", 0, "SIZE", "blocks of at most this size"},
        {OPTION_FROM, "from", 0, "TIME", "events from this time on, as 1.5s"},
        {OPTION_TO, "to", 0, "TIME", "events up to this time"},
        {OPTION_TOP, "top", 'n', "N", "text: so many events (20), 0 for all"},
        {OPTION_FORMAT, "format", 0, "FORMAT", "text (default), csv, parquet, heaptrack"},
        {OPTION_OUTPUT, "output", 'o', "FILE", "write there instead of to standard output"},
        {OPTION_FORCE, "force", 0, NULL, "replace the file if it exists"},
        OPTION_ROW_COLOR,
        SYMBOL_OPTIONS,
    },
};

const struct command command_replay = {
    .name = "replay",
    .arguments = "[--] LOG",
    .help = "the calls of a log on this or another allocator: memory, time, faults",
    .description =
        "LOG is what cairn run --events wrote. A small program makes the same calls, in as\n"
        "many threads and in an order in which they happened, and measures what they take.\n"
        "ALLOCATOR is glibc, jemalloc, tcmalloc, mimalloc, or the path of a library.\n",
    .run = cmd_replay,
    .words_max = 1,
    .options = {
        {OPTION_ALLOCATOR, "allocator", 'a', "ALLOCATOR", "which one (glibc)"},
        OPTION_ROWS_REPLAY,
        {OPTION_SPEED, "speed", 0, "SPEED", "max (default), or recorded: as long as the program took"},
        OPTION_ROW_BYTES,
        OPTION_ROW_COLOR,
    },
};

const struct command command_whatif = {
    .name = "whatif",
    .arguments = "[--] LOG",
    .help = "a log on every allocator found, and settings worth trying: one table",
    .description =
        "Replays LOG (cairn run --events) on each allocator that is installed, with the\n"
        "settings that change much, and says for each what it holds at the peak, what stays\n"
        "resident when 95 % of the last blocks are freed, and the time that calls take.\n",
    .run = cmd_whatif,
    .words_max = 1,
    .options = {
        {OPTION_ROUNDS, "rounds", 0, "N", "runs of each row, for the spread (5)"},
        OPTION_ROWS_REPLAY,
        {OPTION_OUTPUT, "output", 'o', "FILE", "also a page with a chart (HTML)"},
        {OPTION_FORCE, "force", 0, NULL, "replace the file if it exists"},
        OPTION_ROW_BYTES,
        OPTION_ROW_COLOR,
    },
};

const struct command command_export = {
    .name = "export",
    .arguments = "[SUBJECT...]",
    .help = "the recording in the format of another tool: pprof, flame graphs, ...",
    .description =
        "FORMAT is one of\n"
        COMMAND_FORMATS
        "Without --format the ending of FILE says it. Without -o it goes to stdout.\n"
        "The processes of a run, and several subjects, are added up; parquet keeps them apart.\n"
        "SUBJECT may be the pid of a program that is being recorded, a directory of\n"
        "recordings, or @FILE: a list of subjects, one a line. Filters are those of report.\n",
    .run = cmd_export,
    .words_max = SIZE_MAX,
    .first = "format output force by focus thread process",
    .has_no_usual_limits = true,
    .options = {
        {OPTION_FORMAT, "format", 'f', "FORMAT", "which format"},
        {OPTION_OUTPUT, "output", 'o', "FILE", "where to; - is stdout"},
        {OPTION_FORCE, "force", 0, NULL, "write over FILE if it exists"},
        {OPTION_LABEL, "label", 0, "KEY=VALUE", "parquet: a column of that value (several times)"},
        {OPTION_SNAPSHOTS, "snapshots", 0, NULL, "parquet: what stacks held at snapshots too"},
        OPTION_ROWS_FILTER_AS(0, RANKED_BY_PEAK),
        OPTION_ROW_LINES,
        OPTION_ROW_ALL_FRAMES,
        SYMBOL_OPTIONS,
    },
};

const struct command command_merge = {
    .name = "merge",
    .arguments = "SUBJECT... -o FILE",
    .help = "many recordings added up to one, by the names of functions",
    .description =
        "SUBJECT is a recording, a run, a directory of either, or @LIST: a file with a subject\n"
        "a line (@-: stdin). Stacks are the same if their functions are, in whatever build, on\n"
        "whatever host; each process was at its peak at a time of its own.\n",
    .run = cmd_merge,
    .words_max = SIZE_MAX,
    .options = {
        {OPTION_OUTPUT, "output", 'o', "FILE", "where to"},
        {OPTION_FORCE, "force", 0, NULL, "write over FILE if it exists"},
        {OPTION_LINES, "lines", 0, NULL, "tell the lines of a function apart: for one build"},
        SYMBOL_OPTIONS,
    },
};

const struct command command_import = {
    .name = "import",
    .arguments = "FILE",
    .help = "another profiler's file as a recording: heaptrack, jemalloc, memray, pprof and others",
    .description =
        "The recording is FILE.cairn in the current directory. FILE may be compressed (gzip,\n"
        "bzip2, xz, Zstandard, LZ4); its format is found by content, or --format: heaptrack, massif,\n"
        "dhat, pprof, jemalloc, gperftools, v8, memray, perfetto, bytehound, xray, perf\n"
        "(what perf script prints of probes on malloc and free) or bpftrace (the same of\n"
        "bpftrace); see docs/explain/tracing.md. What such a file does not say is said here and\n"
        "in every report.\n",
    .run = cmd_import,
    .words_max = 1,
    .options = {
        {OPTION_FORMAT, "format", 'f', "FORMAT", "which format it is of"},
        {OPTION_OUTPUT, "output", 'o', "PATH", "name of the recording"},
        {OPTION_FORCE, "force", 0, NULL, "write over it if it exists"},
        {OPTION_PROCESS, "process", 'p', "PID", "perfetto, xray: of several processes"},
        {OPTION_PROGRAM, "program", 0, "FILE", "xray: what wrote the log, for its functions' names"},
        OPTION_ROWS_SYMBOL_FILES,
    },
};
// clang-format on
