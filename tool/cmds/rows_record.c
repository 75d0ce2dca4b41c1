// SPDX-License-Identifier: Apache-2.0
// Commands that record: run, attach, env; and those for what is being recorded: ctl, top, push.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

// clang-format off
#define OPTION_ROW_SYMBOLS {OPTION_SYMBOLS, "symbols", 0, "WHICH", "names kept in the recording: own (default), all, none"}
#define OPTION_ROW_NO_STACKS {OPTION_NO_STACKS, "no-stacks", 0, NULL, "count only: totals and peak without call stacks"}
#define OPTION_ROW_MAX_OVERHEAD {OPTION_MAX_OVERHEAD, "max-overhead", 0, "SIZE", "memory that cairn may take in each process"}

// How a program is recorded (tool/cmds/recording_options.c reads them).
#define OPTION_ROWS_RECORDING                                                                      \
    OPTION_ROW_MAX_OVERHEAD,                                                                       \
    {OPTION_AGES, "ages", 0, NULL, "how old blocks became; 12 bytes per 32 of heap, not 4"},  \
    {OPTION_FREE_STACKS, "free-stacks", 0, NULL, "who frees what: a walk at each free too"},    \
    {OPTION_SNAPSHOT_EVERY, "snapshot-every", 0, "SIZE", "a snapshot each time so much is allocated + freed (64M)"},   \
    OPTION_ROW_NO_STACKS,                                                                          \
    {OPTION_MAX_DEPTH, "max-depth", 0, "N", "keep the N innermost frames of stacks (deep recursion)"},     \
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
#define OPTION_ROW_FRAMES {OPTION_FRAMES, "frames", 0, "LANGUAGE", "java, go, js, php, ruby, async: frames of that code too"}
#define OPTION_ROW_PYTHON                                                                          \
    {OPTION_PYTHON, "python", 0, "[=WHEN]", "Python's objects and frames: on, off, auto (if sampled)"}

const struct command command_run = {
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
    .first = "output children sample preset events free-stacks python frames quiet open",
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
        {OPTION_LOOK, "look", 0, NULL, "keep what was in blocks: --view owners, types, waste ..."},
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
};

const struct command command_attach = {
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
    .first = "output exact record-for children preset python frames quiet top cgroup keep",
    .options = {
        OPTION_ROW_PID,
        OPTION_ROW_OUTPUT,
        {OPTION_EXACT, "exact", 0, NULL, "record every block instead of a sample"},
        {OPTION_RECORD_FOR, "record-for", 0, "TIME", "leave after that time, as 60s"},
        {OPTION_CHILDREN, "children", 0, NULL, "its descendants too, there already or to come"},
        {OPTION_SCAN_HEAP, "scan-heap", 0, NULL, "count pre-existing blocks in a large heap too"},
        {OPTION_NO_SCAN_HEAP, "no-scan-heap", 0, NULL, "do not count pre-existing blocks"},
        {OPTION_CGROUP, "cgroup", 0, "PATH", "wait outside this cgroup until memory runs short"},
        {OPTION_WHEN, "when", 0, "RULE", "cgroup: when that is (rss>85%)"},
        {OPTION_KEEP, "keep", 0, "DIR", "cgroup: what is kept of its processes goes here"},
        {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL, "cgroup: copy more than 16 GiB of one"},
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
};

const struct command command_ctl = {
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
        OPTION_ROW_PID,
        {OPTION_ALL, "all", 'a', NULL, "all programs that you record"},
        {OPTION_EVENTS_FOR, "events-for", 0, "TIME", "events on: only so long, as 10s"},
    },
};

const struct command command_top = {
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
        OPTION_ROW_PID,
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
};

const struct command command_push = {
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
        OPTION_ROW_PID,
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
};

const struct command command_env = {
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
};
// clang-format on
