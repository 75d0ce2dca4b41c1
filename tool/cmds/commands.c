// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/commands.h"
#include "tool/cmds/torture.h"

#include <string.h>

// clang-format off
#define OPTION_ROW_ALL_FRAMES {OPTION_ALL_FRAMES, "all-frames", 0, NULL, "show the frames of allocators and runtimes too"}
#define OPTION_ROW_SYMBOLS {OPTION_SYMBOLS, "symbols", 0, "WHICH", "names kept in the recording: own (default), all, none"}
#define OPTION_ROW_LINES \
    {OPTION_LINES, "lines", 0, NULL, "tree, flame graph: tell the lines of a function apart"}
#define OPTION_ROW_BYTES {OPTION_BYTES, "bytes", 0, NULL, "sizes as plain numbers of bytes"}
#define OPTION_ROW_COLOR {OPTION_COLOR, "color", 0, "WHEN", "auto (default): on a terminal; always, never"}
#define OPTION_ROW_TOP {OPTION_TOP, "top", 'n', "N", "length of the list, 0 for all of it"}

#define OPTION_ROW_OUTPUT {OPTION_OUTPUT, "output", 'o', "PATH", "name of the recording, or a directory for it"}
#define OPTION_ROW_NO_STACKS {OPTION_NO_STACKS, "no-stacks", 0, NULL, "count only: totals and peak without call stacks"}
#define OPTION_ROW_MAX_OVERHEAD {OPTION_MAX_OVERHEAD, "max-overhead", 0, "SIZE", "memory that cairn may take in each process"}
// How a program is recorded (tool/cmds/recording_options.c reads them).
#define OPTION_ROWS_RECORDING                                                                      \
    OPTION_ROW_MAX_OVERHEAD,                                                                       \
    {OPTION_AGES, "ages", 0, NULL, "how old blocks became; 12 bytes per 32 of heap, not 4"},  \
    {OPTION_FREE_STACKS, "free-stacks", 0, NULL, "who frees what: a walk at each free too"},    \
    {OPTION_SNAPSHOT_EVERY, "snapshot-every", 0, "SIZE", "a snapshot each time so much is allocated + freed (64M)"},   \
    OPTION_ROW_NO_STACKS,                                                                          \
    {OPTION_PRESET, "preset", 0, "NAME", "rank by peak, leaks or churn; production: a sample"},          \
    {OPTION_SIGNAL, "signal", 0, "LIST", "words by signal, as USR1=mark,USR2=toggle"},               \
    {OPTION_SAMPLE, "sample", 0, NULL, "record a random sample of blocks, for production"},        \
    {OPTION_RATE, "rate", 0, "SIZE", "sample: one in so many bytes (512KiB)"},                     \
    {OPTION_SEED, "seed", 0, "N", "sample: start of the random numbers, for the same again"},      \
    {OPTION_MAX_SAMPLES, "max-samples", 0, "N", "sample: at most so many at a time (16384)"},      \
    {OPTION_CPU_BUDGET, "cpu-budget", 0, "SHARE", "sample: most processor time, as 0.5%"},         \
    {OPTION_MIN_SIZE, "min-size", 0, "SIZE", "no stacks of smaller blocks, only their sum"},       \
    {OPTION_MAX_SIZE, "max-size", 0, "SIZE", "no stacks of larger blocks, only their sum"}
// Such as need every call from the program's start.
#define OPTION_ROWS_FROM_START                                                                     \
    {OPTION_MMAP, "mmap", 0, NULL, "also what the program maps itself, by its callers"},           \
    {OPTION_GUARD, "guard", 0, "[=BYTES]", "bands around blocks (16): who writes past them"}
#define OPTION_ROW_WRAP                                                                            \
    {OPTION_WRAP, "wrap", 0, "ROW", "an allocator by name: alloc=f(size=1):free=g(ptr=1) ..."}
#define OPTION_ROW_FRAMES {OPTION_FRAMES, "frames", 0, "LANGUAGE", "java, go, js, async: frames of that code too"}
#define OPTION_ROW_PYTHON                                                                          \
    {OPTION_PYTHON, "python", 0, "[=WHEN]", "Python's objects and frames: on, off, auto (if sampled)"}
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
#define RANKED_BY_EXIT "rank by exit (default), peak, allocated or calls"
#define OPTION_ROWS_FILTER OPTION_ROWS_FILTER_AS('f', RANKED_BY_PEAK)
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
    {OPTION_JSON, "json", 'j', NULL, "everything as one JSON object (docs/reference/json.md)"},    \
    SYMBOL_OPTIONS

// Results for forges: a check's, and what the newest commit moved.
#define OPTION_ROWS_FORGES                                                                         \
    {OPTION_JUNIT, "junit", 0, "FILE", "write JUnit's XML as well, over what is there"},           \
    {OPTION_MARKDOWN, "markdown", 0, "FILE", "write Markdown as well, likewise"},                  \
    {OPTION_SARIF, "sarif", 0, "FILE", "write SARIF 2.1 for code scanning, likewise"},             \
    {OPTION_ANNOTATIONS, "annotations", 0, NULL, "print lines that annotate code on GitHub too"}

// How a log is performed (tool/cmds/replay_options.c).
#define OPTION_ROWS_REPLAY                                                                         \
    {OPTION_ENV, "env", 'e', "NAME=VALUE", "a variable for the allocator (may be given repeatedly)"}, \
    {OPTION_THREADS, "threads", 0, "WHICH", "as-recorded (default), or 1: all calls in one"},      \
    {OPTION_TOUCH, "touch", 0, "WHICH", "recorded: as the program did; all: every page; none"}, \
    {OPTION_PARTIAL, "partial", 0, NULL, "also a log that is not complete"}

#define OPTION_ROWS_SUPPRESSIONS                                                                   \
    {OPTION_SUPPRESSIONS, "suppressions", 0, "FILE", "leaks left out, in LeakSanitizer's syntax"}, \
    {OPTION_NO_SUPPRESSIONS, "no-suppressions", 0, NULL,                                           \
     "show what common libraries keep on purpose as well"}

#define OPTION_ROWS_LEAKS                                                                          \
    OPTION_ROWS_SUPPRESSIONS,                                                                      \
    {OPTION_BASELINE, "baseline", 0, "OLD", "leaks: only those that OLD does not have"},           \
    {OPTION_ERROR_EXITCODE, "error-exitcode", 0, "N", "leaks: end with this status if any is left"}

const struct command commands[] = {
    {
        .name = "run",
        .arguments = "[--] PROGRAM [ARGUMENT...]",
        .help = "run a program, record its heap, say what held its memory",
        .description =
            "The program keeps its streams, signals, terminal and exit status. What cairn\n"
            "has to say goes to stderr, after the end. The recording is NAME.PID.cairn in the\n"
            "current directory: a file, or a directory with a file for each if more than one\n"
            "process recorded.\n"
            "\n"
            "Status: the program's own, 128+N if signal N ended it; 125 if cairn failed, 126\n"
            "if PROGRAM cannot be executed, 127 if it was not found.\n",
        .run = cmd_run,
        .has_program = true,
        .words_max = SIZE_MAX,
        .options = {
            OPTION_ROW_OUTPUT,
            {OPTION_CHILDREN, "children", 0, "WHICH",
             "also record: all (default), none, or a pattern of names"},
            OPTION_ROWS_RECORDING,
            OPTION_ROWS_FROM_START,
            {OPTION_EVENTS, "events", 0, "[=FILE]", "also log every allocation and free, in order"},
            {OPTION_EVENTS_WAIT, "events-wait", 0, NULL, "events: wait for cairn and the disk, lose none"},
            {OPTION_EVENTS_FOR, "events-for", 0, "TIME", "events: only the first of it, as 10s"},
            {OPTION_EVENTS_KEEP, "events-keep", 0, "SIZE", "events: keep the last of them only, as 256M"},
            {OPTION_OFF, "off", 0, NULL, "start without recording: cairn ctl on, or --when"},
            {OPTION_START_AFTER, "start-after", 0, "TIME", "record only from then on, as 10s"},
            {OPTION_RECORD_FOR, "record-for", 0, "TIME", "record only so long, as 2m"},
            {OPTION_WHEN, "when", 0, "RULE", "snapshot when rss>80%, heap>1G, ...; --off: record"},
            {OPTION_LOG, "log", 0, "FILE", "append what stacks held and did, at each snapshot"},
            {OPTION_MARK_EVERY, "mark-every", 0, "TIME", "a mark each time, as 60s"},
            {OPTION_UNREACHABLE, "unreachable", 0, NULL, "what nothing leads to at the end: leaks --unreachable"},
            {OPTION_QUIET, "quiet", 'q', NULL, "record, print nothing but what went wrong"},
            {OPTION_SUMMARY, "summary", 0, "FILE", "write the summary there instead of stderr"},
            {OPTION_OPEN, "open", 0, NULL, "show the recording in a browser afterwards"},
            OPTION_ROW_TOP,
            OPTION_ROW_ALL_FRAMES,
            OPTION_ROW_SYMBOLS,
            OPTION_ROW_PYTHON,
            OPTION_ROW_FRAMES,
            OPTION_ROW_WRAP,
            {OPTION_EXEC, "exec", 0, NULL, "become the program (same pid), leave cairn out"},
            {OPTION_IGNORE_CHECKS, "ignore-checks", 0, NULL, "run it even if it cannot be recorded"},
        },
    },
    {
        .name = "attach",
        .arguments = "PID|NAME | --cgroup PATH --keep DIR",
        .help = "attach to a running process, until Ctrl-C or for a time",
        .description =
            "The program is stopped for some milliseconds, at a moment at which a library can be\n"
            "loaded into it, and again when cairn leaves: by Ctrl-C, after --record-for, or by\n"
            "cairn ctl PID detach. It goes on as before, and can be attached to again. A random\n"
            "sample is recorded unless --exact is given. What was allocated before is counted too,\n"
            "by size and type, unless it takes long to find: --scan-heap, --no-scan-heap\n"
            "(docs/howto/attach.md).\n"
            "\n"
            "--cgroup waits until the memory of a cgroup runs short, and keeps the heap, owners and\n"
            "types of its largest processes before the kernel kills one (docs/howto/oom.md).\n",
        .run = cmd_attach,
        .words_max = 1,
        .options = {
            OPTION_ROW_OUTPUT,
            {OPTION_EXACT, "exact", 0, NULL, "record every block instead of a sample"},
            {OPTION_RECORD_FOR, "record-for", 0, "TIME", "leave after that time, as 60s"},
            {OPTION_CHILDREN, "children", 0, NULL, "its descendants too, there already or to come"},
            {OPTION_SCAN_HEAP, "scan-heap", 0, NULL, "count pre-existing blocks in a large heap too"},
            {OPTION_NO_SCAN_HEAP, "no-scan-heap", 0, NULL, "do not count pre-existing blocks"},
            {OPTION_CGROUP, "cgroup", 0, "PATH", "wait outside this cgroup until memory runs short"},
            {OPTION_WHEN, "when", 0, "RULE", "cgroup: when that is (rss>85%)"},
            {OPTION_KEEP, "keep", 0, "DIR", "cgroup: what is kept of its processes goes here"},
            {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL, "cgroup: copy more than 1 GiB of one"},
            OPTION_ROWS_RECORDING,
            OPTION_ROW_PYTHON,
            OPTION_ROW_FRAMES,
            OPTION_ROW_WRAP,
            {OPTION_QUIET, "quiet", 'q', NULL, "record, print nothing but what went wrong"},
            OPTION_ROW_TOP,
            OPTION_ROW_ALL_FRAMES,
            OPTION_ROW_SYMBOLS,
            {OPTION_IGNORE_CHECKS, "ignore-checks", 0, NULL, "even if a seccomp filter might end it"},
        },
    },
    {
        .name = "ctl",
        .arguments = "[PID|NAME] status|on|off|mark [LABEL]|snapshot [LABEL]|rate SIZE|events on|events off|check|detach",
        .help = "control a running recording",
        .description =
            "It returns at once, and works on programs that wait for something too.\n"
            "  status            what is recorded, and since when\n"
            "  off, on           stop recording allocations, go on; frees are always recorded\n"
            "  mark [LABEL]      what is allocated from now on is kept apart\n"
            "  snapshot [LABEL]  keep what every stack holds now\n"
            "  rate SIZE         one sample in so many bytes from now on (cairn run --sample)\n"
            "  events on, off    log every allocation and free, in order, until off: cairn events\n"
            "  check             look at the guard bands of all blocks (cairn run --guard)\n"
            "  detach            cairn attach leaves the program\n"
            "Without PID or NAME status is of every program that is being recorded. All other\n"
            "words want one: a PID, or the NAME of exactly one that you record; --all means all\n"
            "that you record. Only its user and root may.\n",
        .run = cmd_ctl,
        .words_max = 3,
        .options = {
            {OPTION_ALL, "all", 'a', NULL, "all programs that you record"},
            {OPTION_EVENTS_FOR, "events-for", 0, "TIME", "events on: only so long, as 10s"},
        },
    },
    {
        .name = "top",
        .arguments = "[PID|NAME]",
        .help = "what a program holds while it is being recorded, live by stack",
        .description =
            "A screen with the live heap, its rate, resident memory, and the stacks by what they\n"
            "hold, how they grow, what they allocate; it goes into a stack, searches, sets marks,\n"
            "lists tenants or requests, switches processes (? lists its keys). The program is not\n"
            "stopped and does nothing for it. Without PID or NAME: what is being recorded. Without\n"
            "a terminal the text is printed once, as with --once.\n",
        .run = cmd_top,
        .words_max = 1,
        .options = {
            {OPTION_ONCE, "once", 0, NULL, "print it once: two samples, an interval apart"},
            {OPTION_JSON, "json", 'j', NULL, "the same as one JSON object (docs/reference/json.md)"},
            {OPTION_BY, "by", 'b', "MEASURE", "sort by live (default), growth, rate or temporary"},
            {OPTION_INTERVAL, "interval", 0, "TIME", "between two samples (500ms)"},
            {OPTION_TOP, "top", 'n', "N", "once: so many stacks (20; --json: all), 0 for all"},
            {OPTION_CONTEXT, "context", 0, "LABEL", "by the values of this key of labels; stacks of KEY=VALUE"},
            {OPTION_HEAP, "heap", 0, "NAME", "stacks of an allocator by name (--wrap); '': all names"},
            OPTION_ROW_ALL_FRAMES,
            OPTION_ROW_BYTES,
            SYMBOL_OPTIONS,
        },
    },
    {
        .name = "push",
        .arguments = "PID|NAME|RECORDING | --all | --cgroup PATH --to URL",
        .help = "profiles of what is being recorded, again and again, to an engine",
        .description =
            "What stacks allocated since the last time and what they hold now goes to Pyroscope,\n"
            "Parca or an OpenTelemetry Collector, or the metrics to Prometheus or VictoriaMetrics,\n"
            "by the system's curl. The process is neither stopped nor asked. What an engine that is\n"
            "away does not take waits in files, is bounded, and is sent when it is back. A NAME is\n"
            "all processes that are called so, also those to come; a RECORDING is sent once.\n"
            "\n"
            "The engine is known by the URL's port or path, or named: pyroscope (:4040),\n"
            "pyroscope-push, parca (:7070), otlp (:4318), prometheus (:9090, :8428).\n"
            "docs/howto/push.md has examples, and what each of them takes.\n",
        .run = cmd_push,
        .words_max = 1,
        .options = {
            {OPTION_TO, "to", 0, "URL", "of the engine, as http://localhost:4040"},
            {OPTION_FORMAT, "format", 'f', "ENGINE", "which engine it is, if the URL does not say"},
            {OPTION_EVERY, "every", 0, "TIME", "how often (15s)"},
            {OPTION_LABEL, "label", 0, "NAME=VALUE", "a label of everything sent (several times)"},
            {OPTION_ALL, "all", 'a', NULL, "every program that you record, now and later"},
            {OPTION_CGROUP, "cgroup", 0, "PATH", "those of them in a cgroup and those below"},
            {OPTION_ONCE, "once", 0, NULL, "one interval, then end: 1 if it did not arrive"},
            {OPTION_HEADERS, "headers", 0, "FILE", "lines of HTTP, as Authorization: Bearer ..."},
            {OPTION_QUEUE, "queue", 0, "DIR", "where what has to wait is kept"},
            {OPTION_QUEUE_SIZE, "queue-size", 0, "SIZE", "how much of it at most (64M)"},
            {OPTION_QUIET, "quiet", 'q', NULL, "say nothing but what ends it"},
        },
    },
    {
        .name = "report",
        .arguments = "[SUBJECT]",
        .help = "what held the memory: summary, ranked stacks, call tree, JSON",
        .description =
            "SUBJECT is a recording, the directory of a run with several processes, or the pid or\n"
            "name of a program that is being recorded; without it, the newest recording in the current\n"
            "directory. Of a run, all processes are listed, and views are of all of them added up;\n"
            "--process goes into one. Views heap, pages, owners, types, containers and waste are of any process,\n"
            "by its pid, or a core dump: the process is stopped for some milliseconds.\n"
            "REGEX is a Perl regular expression, found anywhere in a name: '^main$', '(?i)tree'.\n",
        .run = cmd_report,
        .words_max = 1,
        .has_views = true,
        .options = {REPORT_OPTIONS(RANKED_BY_PEAK),
                    {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                     "owners and the like: copy more than 128 MiB of a process"},
                    {OPTION_WASTE_SEED, "seed", 0, "N", "waste of a larger one: draw the same part again"}},
    },
    {
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
        .has_views = true,
        .view = "leaks",
        .options = {REPORT_OPTIONS(RANKED_BY_EXIT),
                    {OPTION_UNREACHABLE, "unreachable", 0, NULL,
                     "of a PID or core: blocks that nothing leads to"},
                    {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                     "with it: copy more than 128 MiB of a process"}},
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
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
    },
    {
        .name = "import",
        .arguments = "FILE",
        .help = "another profiler's file as a recording: heaptrack, jemalloc, memray, pprof and others",
        .description =
            "The recording is FILE.cairn in the current directory. FILE may be compressed (gzip,\n"
            "Zstandard, LZ4); its format is found by content, or --format: heaptrack, massif,\n"
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
    },
    {
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
    },
    {
        .name = "check",
        .arguments = "SUBJECT | -- COMMAND [ARGUMENT...]",
        .help = "whether a recording, or a command, keeps within budgets; for tests",
        .description =
            "One line a budget, with the stacks that broke it where it does not hold. Of a run, each\n"
            "budget is for the process that took most. A file of budgets has limits by program\n"
            "name (docs/howto/ci.md). Blocks that common libraries keep are not counted at exit.\n"
            "\n"
            "Status: 0 if all budgets hold, 1 if one does not, 2 for wrong use.\n",
        .run = cmd_check,
        .words_max = SIZE_MAX,
        .options = {
            {OPTION_MAX_PEAK, "max-peak", 0, "SIZE", "the most that may be live at one time"},
            {OPTION_MAX_EXIT, "max-exit", 0, "SIZE", "the most that may be left at the end"},
            {OPTION_MAX_CALLS, "max-calls", 0, "N", "the most allocations, as 1e6"},
            {OPTION_MAX_ALLOCATED, "max-allocated", 0, "SIZE", "the most bytes over all time"},
            {OPTION_MAX_OVERRUNS, "max-overruns", 0, "N",
             "most blocks that were written past (cairn run --guard)"},
            {OPTION_MAX_TEMPORARY, "max-temporary", 0, "SHARE|N",
             "the most blocks freed before the next call"},
            {OPTION_MAX_WASTE, "max-waste", 0, "SHARE",
             "of a PID or core: what may be of no use, as 20%"},
            {OPTION_WASTE_SEED, "seed", 0, "N", "max-waste of more than 128 MiB: draw this part"},
            {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL, "max-waste: read all of a process"},
            {OPTION_MAX_LOST, "max-leaked", 0, "SIZE",
             "what nothing leads to at the end; also PID, core"},
            {OPTION_BASELINE, "baseline", 0, "OLD[,OLD]", "no more than these took, of each"},
            {OPTION_TOLERANCE, "tolerance", 0, "SHARE", "more than the baseline by this (0%)"},
            {OPTION_BUDGETS, "budgets", 0, "FILE", "limits by program name, in TOML"},
            OPTION_ROW_PROCESS,
            OPTION_ROWS_SUPPRESSIONS,
            OPTION_ROWS_FORGES,
            {OPTION_SERIES, "series", 0, "FILE|DIR", "append the figures to a history (cairn history)"},
            {OPTION_COMMIT, "commit", 0, "ID", "series: of this commit (HEAD)"},
            {OPTION_TEST, "test", 0, "NAME", "series: name of the test (the program's)"},
            {OPTION_ADAPTER, "adapter", 0, "NAME", "each test of a runner by its name: auto, ctest ..."},
            OPTION_ROW_OUTPUT,
            SYMBOL_OPTIONS,
        },
    },
    TORTURE_COMMAND,
    {
        .name = "history",
        .arguments = "[FILE|DIR] | bisect [--series FILE] -- COMMAND [ARGUMENT...]",
        .help = "what commits changed: figures of tests over time, steps, the stacks that moved",
        .description =
            "FILE is what cairn check --series wrote; without it, cairn-history.db in the current\n"
            "directory. Commits are those of the line that ends at HEAD. A figure that was counted\n"
            "makes a step when it differs at all; of samples, threads and what varies between two\n"
            "runs of a commit, when it differs by more than that explains (docs/howto/history.md).\n"
            "\n"
            "bisect finds the commit of the newest step that was up, among those that were not\n"
            "recorded: git bisect run with COMMAND, the test, after --build at each commit. What\n"
            "it measures becomes a part of the history.\n",
        .run = cmd_history,
        .words_max = SIZE_MAX,
        .options = {
            {OPTION_BY, "by", 'b', "MEASURE", "peak, exit, calls, bytes, temporary or waste alone"},
            {OPTION_TEST, "test", 0, "PATTERN", "tests of such a name, * ? and [abc] as in a shell"},
            OPTION_ROW_TOP,
            {OPTION_COMMIT, "commit", 0, "ID", "the line that ends there (HEAD)"},
            OPTION_ROW_BYTES,
            OPTION_ROW_COLOR,
            {OPTION_JSON, "json", 'j', NULL, "all of it as one JSON object (docs/reference/json.md)"},
            {OPTION_HTML, "html", 0, "FILE", "write a page, over what is there"},
            OPTION_ROWS_FORGES,
            {OPTION_ERROR_EXITCODE, "error-exitcode", 0, "N", "end so if the newest commit made a step up"},
            {OPTION_SERIES, "series", 0, "FILE|DIR", "the same as FILE|DIR, for bisect (cairn-history.db)"},
            {OPTION_BUILD, "build", 0, "COMMAND", "bisect: what builds each commit, for the shell"},
        },
    },
    {
        .name = "info",
        .arguments = "[SUBJECT]",
        .help = "what a recording holds: process, modules, losses",
        .run = cmd_info,
        .words_max = 1,
        .options = {OPTION_ROW_PROCESS, OPTION_ROW_BYTES, SYMBOL_OPTIONS},
    },
    {
        .name = "core",
        .arguments = "CORE|PID|NAME [count|list|enumerate|summarize|describe|explain SET [TYPE] | "
                     "describe|explain ADDRESS | summarize [MODULE [FUNCTION]] | save FILE]",
        .help = "the blocks of a process in its core dump, or as it runs",
        .description =
            "The recording is part of the core, so that nothing else is needed: each block that\n"
            "was in use with its size as requested, thread and stack. Cores of the kernel and of\n"
            "gcore will do. Every other command takes the core as SUBJECT too: cairn report CORE.\n"
            "Of a process that was not recorded: the chunks of glibc's malloc, used and free.\n"
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
        .options = {{OPTION_RECORDING, "recording", 0, "FILE",
                     "what the process recorded into a file of its own"},
                    {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL,
                     "copy more than 128 MiB of a process that stands"},
                    {OPTION_FORCE, "force", 0, NULL, "save: write over FILE if it exists"},
                    {OPTION_CONTENTS, "contents", 0, NULL,
                     "save: what text blocks begin with, too (48 bytes)"},
                    SYMBOL_OPTIONS},
    },
    {
        .name = "symbolize",
        .arguments = "[SUBJECT]",
        .help = "keep all names in a recording, to read it elsewhere",
        .description =
            "Names are looked up in files again, where they may be better by now (--debug-dir,\n"
            "--debuginfod); names that the recording has and no file knows stay.\n",
        .run = cmd_symbolize,
        .words_max = 1,
        .options = {SYMBOL_OPTIONS},
    },
    {
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
    },
    {
        .name = "env",
        .arguments = "",
        .help = "the environment that makes any program record itself",
        .description =
            "For units, images, debuggers and test runners that cannot start a program with\n"
            "cairn run. An image needs the library beside them: --library puts it there.\n",
        .run = cmd_env,
        .words_max = 0,
        .options = {
            OPTION_ROW_OUTPUT,
            OPTION_ROWS_RECORDING,
            OPTION_ROWS_FROM_START,
            {OPTION_FOR, "for", 0, "WHAT", "form: shell (default), systemd, docker or gdb"},
            {OPTION_LIBRARY, "library", 0, "DIR", "write cairn's libraries into DIR, and use that"},
        },
    },
    {
        .name = "gdb-script",
        .arguments = "",
        .help = "commands for gdb in a recorded process or its core: cairn totals, block ...",
        .description =
            "Prints a script; load it by: cairn gdb-script >cairn.gdb, and in gdb: source cairn.gdb\n"
            "Then there are: cairn totals, cairn threads, cairn block ADDRESS, cairn top [N].\n",
        .run = cmd_gdb_script,
        .words_max = 0,
    },
    {
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
    },
    {0},
};
// clang-format on

const struct command *command_find(const char *name) {
    for (const struct command *command = commands; command->name; command++)
        if (!strcmp(command->name, name)) return command;
    return NULL;
}
