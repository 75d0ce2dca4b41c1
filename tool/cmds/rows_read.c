// SPDX-License-Identifier: Apache-2.0
// Commands that show what a recording or a process holds, and those by which others ask it.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

// Lists the forms for help, behind FORMS_BEFORE bytes.
enum { FORMS_BEFORE = sizeof ", " - 1 };
static const char forms_help[] =
#define FORM(name, is_for_people, is_of_calls, help) ", " #name help
#include "tool/answer/forms.def"
    ;

// clang-format off
#define RANKED_BY_EXIT "rank by exit (default), peak, allocated or calls"
#define OPTION_ROWS_FILTER OPTION_ROWS_FILTER_AS('f', RANKED_BY_PEAK)
#define REPORT_OPTIONS(ranked)                                                                     \
    {OPTION_VIEW, "view", 'v', "VIEW", "one of the views below"},                                  \
    OPTION_ROWS_FILTER_AS('f', ranked),                                                            \
    {OPTION_AT, "at", 0, "SNAPSHOT", "what stacks held then: 10s, -1m, 14:30, peak, a label"},       \
    {OPTION_BETWEEN, "between", 0, "A,B", "what they held more at snapshot B than at A"},            \
    {OPTION_SINCE, "since", 0, "MARK", "what was allocated since a mark and still lives"},         \
    {OPTION_GROUP, "group", 0, NULL, "threads: those of one name as one"},                         \
    {OPTION_SHORT, "short", 0, "TIME", "ages: how many lived less than this, as 10ms"},            \
    {OPTION_INVERTED, "inverted", 'i', NULL, "tree: from allocating functions to their callers"},  \
    OPTION_ROW_LINES,                                                                              \
    {OPTION_PRINT, "print", 0, NULL, "tree: print it, even on a terminal"},                        \
    {OPTION_SOURCE, "source", 0, "FILE", "annotate: this file, or the end of its path"},           \
    OPTION_ROWS_LEAKS,                                                                             \
    {OPTION_SUMMARY, "summary", 0, NULL, "the whole summary above the view"},                      \
    OPTION_ROW_ALL_FRAMES,                                                                         \
    OPTION_ROW_BYTES,                                                                              \
    OPTION_ROW_COLOR,                                                                              \
    {OPTION_JSON, "json", 'j', NULL, "the view as JSON; without --view, everything"},              \
    {OPTION_FORMAT, "format", 0, "FORM", forms_help + FORMS_BEFORE}, \
    SYMBOL_OPTIONS
#define OPTION_ROWS_LEAKS                                                                          \
    OPTION_ROWS_SUPPRESSIONS,                                                                      \
    {OPTION_BASELINE, "baseline", 0, "OLD", "leaks: only those that OLD does not have"},           \
    {OPTION_ERROR_EXITCODE, "error-exitcode", 0, "N", "leaks: end with this status if any is left"}

const struct command command_report = {
    .name = "report",
    .arguments = "[SUBJECT] | --cgroup PATH",
    .help = "why it is so big, on one screen; views: ranked stacks, call tree, ...; JSON",
    .description =
        "SUBJECT is a recording, the directory of a run with several processes, or the pid or\n"
        "name of a program that is being recorded; without it, the newest recording in the current\n"
        "directory. Without a view it is one screen; stacks follow if --top, --depth, --by,\n"
        "--threshold, --min-bytes or --all-frames is given. Of a run, the largest processes are\n"
        "listed, and views are of all of them added up; --process goes into one. The PID or NAME\n"
        "of a process that is not recorded, or a core without a recording, gives what its memory\n"
        "is, its largest types, owners and waste; the process is stopped meanwhile, mostly for\n"
        "milliseconds, as for the views heap, pages, owners, types, containers and waste; the\n"
        "screen says how long.\n"
        "--by peak,exit,calls,temporary prints one ranking after the other.\n"
        "--cgroup is of a container: parts that add up to what it uses, and its processes.\n"
        "REGEX is a Perl regular expression, found anywhere in a name: '^main$', '(?i)tree'.\n",
    .run = cmd_report,
    .words_max = 1,
    .first = "view by top focus thread at since process all-frames cgroup json",
    .has_views = true,
    .options = {REPORT_OPTIONS(RANKED_BY_PEAK),
                {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                 "owners and the like: copy more than 128 MiB of a process"},
                {OPTION_NO_STOP, "no-stop", 0, NULL, "of a PID: look while it goes on, less exactly"},
                {OPTION_CGROUP, "cgroup", 0, "PATH", "in place of SUBJECT: the memory of a cgroup, by part"},
                {OPTION_WASTE_SEED, "seed", 0, "N", "waste of a larger one: draw the same part again"}},
};

const struct command command_leaks = {
    .name = "leaks",
    .arguments = "[SUBJECT]",
    .help = "what was never freed: stacks, or any view of it",
    .description =
        "All that is left at the end, reachable or not, in the view leaks or another one:\n"
        "--view tree, --view functions. What libc, ld.so, libstdc++, glib, fontconfig and\n"
        "openssl allocate once and keep is left out and counted. With --unreachable, of a\n"
        "running process or a core dump, only what nothing leads to any more.\n",
    .run = cmd_report,
    .words_max = 1,
    .first = "view top focus thread baseline unreachable suppressions error-exitcode process json",
    .has_views = true,
    .view = "leaks",
    .options = {REPORT_OPTIONS(RANKED_BY_EXIT),
                {OPTION_UNREACHABLE, "unreachable", 0, NULL,
                 "of a PID or core: blocks that nothing leads to"},
                {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                 "with it: copy more than 128 MiB of a process"}},
};

const struct command command_open = {
    .name = "open",
    .arguments = "[SUBJECT] | BEFORE AFTER",
    .help = "look at it in a browser: timeline, flame graph, tables; one file, offline",
    .description =
        "Writes one page of HTML that needs nothing else, no network either, and shows it in a\n"
        "browser ($BROWSER, else the desktop's). With -o it is only written: to keep, to send,\n"
        "to put it beside a test's results. PID or NAME of a program that is being recorded is\n"
        "served and followed, until Ctrl-C (cairn serve). Of a run, the page has its larger\n"
        "processes; with two subjects it shows what changed. SUBJECT@SNAPSHOT is what was live\n"
        "then: @10s, @peak, @exit, @LABEL of a mark; two snapshots are compared likewise.\n"
        "--owners PID|NAME|CORE: a tree map of what variables and threads keep.\n",
    .run = cmd_open,
    .words_max = 2,
    .options = {
        {OPTION_OUTPUT, "output", 'o', "FILE", "write the page there, do not show it"},
        {OPTION_FORCE, "force", 0, NULL, "write over FILE if it exists"},
        {OPTION_OWNERS, "owners", 0, NULL, "of a process or core: who keeps its blocks"},
        {OPTION_CONTENTS, "contents", 0, NULL, "owners: what text blocks begin with, too"},
        {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
         "owners: copy more than 128 MiB of a process that stands"},
        OPTION_ROW_PROCESS,
        SYMBOL_OPTIONS,
    },
};

const struct command command_serve = {
    .name = "serve",
    .arguments = "PID|NAME|RECORDING | --all | --cgroup PATH",
    .help = "over HTTP: go tool pprof, Prometheus, the live page in a browser",
    .description =
        "/debug/pprof/heap and /allocs (?seconds=N: what changed in so long), /metrics for\n"
        "Prometheus, /profile.cairn, and / is the page of cairn open, which follows the program.\n"
        "The program is not stopped and does nothing for it. --all and --cgroup serve whatever is\n"
        "recorded, as it comes and goes, below /pid/PID/. Only this machine can ask unless another\n"
        "address is given, which needs a token (docs/howto/serve.md). Ctrl-C ends it.\n",
    .run = cmd_serve,
    .words_max = 1,
    .options = {
        {OPTION_LISTEN, "listen", 0, "ADDRESS", "HOST:PORT or unix:/PATH (127.0.0.1:6060)"},
        {OPTION_TOKEN, "token", 0, "FILE", "answer only those who have what its first line says"},
        {OPTION_ALL, "all", 'a', NULL, "every recorded process of this machine"},
        {OPTION_CGROUP, "cgroup", 0, "PATH", "every recorded process of a cgroup and those below"},
        SYMBOL_OPTIONS,
    },
};

const struct command command_diff = {
    .name = "diff",
    .arguments = "BEFORE[@SNAPSHOT][,BEFORE...] AFTER[@SNAPSHOT][,AFTER...]",
    .help = "what changed between recordings of a program",
    .description =
        "Stacks are matched by the names of their functions, so that the program may have been\n"
        "built anew in between. With several recordings a side, only what lies outside of\n"
        "their spread is a change. Of runs, all processes added up are compared, or --process.\n"
        "SNAPSHOT is as for report --at: one recording can be compared with itself.\n",
    .run = cmd_diff,
    .words_max = 2,
    .first = "view by top focus thread process inverted all-frames json",
    .has_views = true,
    .options = {
        {OPTION_VIEW, "view", 'v', "VIEW", "one of the views below; stacks is usual"},
        OPTION_ROWS_FILTER,
        {OPTION_INVERTED, "inverted", 'i', NULL, "tree: from allocating functions outwards"},
        {OPTION_SOURCE, "source", 0, "FILE", "annotate: this file, or the end of its path"},
        OPTION_ROW_ALL_FRAMES,
        OPTION_ROW_BYTES,
        OPTION_ROW_COLOR,
        {OPTION_JSON, "json", 'j', NULL, "the comparison as one JSON object"},
        SYMBOL_OPTIONS,
    },
};

const struct command command_info = {
    .name = "info",
    .arguments = "[SUBJECT]",
    .help = "what a recording holds: process, modules, losses",
    .run = cmd_info,
    .words_max = 1,
    .options = {OPTION_ROW_PROCESS, OPTION_ROW_BYTES, SYMBOL_OPTIONS},
};

const struct command command_core = {
    .name = "core",
    .arguments = "CORE|PID|NAME [count|list|enumerate|summarize|describe|explain SET [TYPE] | "
                 "describe|explain ADDRESS | summarize [MODULE [FUNCTION]] | save FILE]",
    .help = "the blocks of a process in its core dump, or as it runs",
    .description =
        "The recording is part of the core, so that nothing else is needed: each block that\n"
        "was in use with its size as requested, thread and stack. Cores of the kernel and of\n"
        "gcore will do. Every other command takes the core as SUBJECT too: cairn report CORE.\n"
        "Not recorded: the blocks of glibc's malloc, jemalloc 5.2 and 5.3, mimalloc 2.0.9\n"
        "or tcmalloc (gperftools 2.8 to 2.18).\n"
        "A running process, recorded or not, is stopped while what the answer needs of its\n"
        "memory is copied; for how long is said. Unasked that are up to 128 MiB.\n"
        "SET: used, free, allocations (both); leaked: nothing reachable refers to them,\n"
        "unreferenced: no leaked one either, anchored: the others; incoming ADDRESS: who\n"
        "refers to that block, outgoing ADDRESS, allocation ADDRESS. TYPE: a class, by the\n"
        "first word of blocks; - for those without one. explain: the way from a root.\n"
        "save: who keeps which blocks, without contents, as a recording: to look at with\n"
        "report, open and export, and to compare two snapshots or builds with diff.\n",
    .run = cmd_core,
    .words_max = 5,
    .options = {OPTION_ROW_PID,
                {OPTION_RECORDING, "recording", 0, "FILE",
                 "what the process recorded into a file of its own"},
                {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                 "copy more than 128 MiB of a process that stands"},
                {OPTION_FORCE, "force", 0, NULL, "save: write over FILE if it exists"},
                {OPTION_CONTENTS, "contents", 0, NULL,
                 "save: what text blocks begin with, too (48 bytes)"},
                SYMBOL_OPTIONS},
};

const struct command command_sql = {
    .name = "sql",
    .arguments = "[SUBJECT] STATEMENT",
    .help = "query a recording with SQL: cairn sql 'select * from top'",
    .description =
        "The tables are those of cairn export --format sqlite: info, losses, modules,\n"
        "locations, frames, nodes, stacks, functions, threads, points; the views summary,\n"
        "top, leaks, by_module, timeline. Columns are lined up on a terminal, else\n"
        "separated by tabs.\n",
    .run = cmd_sql,
    .words_max = 2,
    .options = {OPTION_ROW_PROCESS, SYMBOL_OPTIONS},
};

const struct command command_symbolize = {
    .name = "symbolize",
    .arguments = "[SUBJECT]",
    .help = "keep all names in a recording, to read it elsewhere",
    .description =
        "Names are looked up in files again, where they may be better by now (--debug-dir,\n"
        "--debuginfod); names that the recording has and no file knows stay.\n",
    .run = cmd_symbolize,
    .words_max = 1,
    .options = {SYMBOL_OPTIONS},
};

const struct command command_mcp = {
    .name = "mcp",
    .arguments = "",
    .help = "answer an agent's questions (Model Context Protocol)",
    .description =
        "A server on standard input and output, started by an agent's client: some questions\n"
        "with short answers, each with those that show more (docs/howto/agents.md). It reads\n"
        "recordings, cores and sources below the roots only. With --allow-run it starts commands,\n"
        "which may do all that you may, and looks into running processes.\n",
    .run = cmd_mcp,
    .words_max = 0,
    .options = {
        {OPTION_ROOT, "root", 0, "DIR", "what may be read (.); may be given several times"},
        {OPTION_ALLOW_RUN, "allow-run", 0, NULL, "record commands, look into processes"},
    },
};

const struct command command_gdb_script = {
    .name = "gdb-script",
    .arguments = "",
    .help = "commands for gdb in a recorded process or its core: cairn totals, block ...",
    .description =
        "Prints a script; load it by: cairn gdb-script >cairn.gdb, and in gdb: source cairn.gdb\n"
        "Then there are: cairn totals, cairn threads, cairn block ADDRESS, cairn top [N].\n",
    .run = cmd_gdb_script,
    .words_max = 0,
};

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND|TOPIC]",
    .help = "this list, a command's options, or how to go about a question",
    .run = cmd_help,
    .words_max = 1,
    .options = {
        {OPTION_COMPLETION, "completion", 0, "SHELL", "completion for bash, zsh or fish"},
        {OPTION_MANUAL, "manual", 0, NULL, "the manual page, for scdoc"},
        {OPTION_REFERENCE, "reference", 0, "PAGE", "commands or views, in Markdown (docs/reference)"},
    },
};
// clang-format on
