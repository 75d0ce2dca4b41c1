// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/recording_options.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "format/guard.h"
#include "format/settings.h"
#include "tool/base/units.h"
#include "tool/query/arguments.h"

static void put(struct recording_options *options, const char *name, const char *text) {
    char *copy = options->texts[options->count];
    snprintf(copy, RECORDING_TEXT_BYTES, "%s", text);
    options->variables[options->count++] = (struct launch_variable){name, copy};
}

static void put_number(struct recording_options *options, const char *name, uint64_t number) {
    char text[RECORDING_TEXT_BYTES];
    snprintf(text, sizeof text, "%" PRIu64, number);
    put(options, name, text);
}

// A size within the setting's bounds, if the option was given.
static bool read_size(const struct command_args *args, enum option_id option,
                      enum cairn_setting setting, struct recording_options *options,
                      struct error *error) {
    const struct cairn_setting_row *row = &cairn_settings[setting];
    uint64_t bytes = 0;
    if (!args_has(args, option)) return true;
    if (!args_size(args, option, &bytes, error)) return false;
    if (bytes < row->least || bytes > row->most)
        return error_set(error, "%s: %s is no size that can be used here", args->command->name,
                         args_text(args, option, ""));
    put_number(options, row->name, bytes);
    return true;
}

static bool read_samples(const struct command_args *args, struct recording_options *options,
                         struct error *error) {
    uint64_t number = 0;
    double share = 0;
    if (!args_number(args, OPTION_SEED, 0, UINT64_MAX, &number, error)) return false;
    if (args_has(args, OPTION_SEED)) put_number(options, CAIRN_VARIABLE(SEED), number);
    if (!args_number(args, OPTION_MAX_SAMPLES, 1, cairn_settings[CAIRN_SETTING_MAX_SAMPLES].most,
                     &number, error))
        return false;
    if (!number)
        return error_set(error, "%s: --max-samples 0 would keep none", args->command->name);
    if (args_has(args, OPTION_MAX_SAMPLES))
        put_number(options, CAIRN_VARIABLE(MAX_SAMPLES), number);
    if (!args_percent(args, OPTION_CPU_BUDGET, 0, &share, error)) return false;
    if (args_has(args, OPTION_CPU_BUDGET)) {
        const double percent = 100, least = 0.000001, most = 1;
        char text[RECORDING_TEXT_BYTES];
        if (share < least || share > most)
            return error_set(error, "%s: --cpu-budget %s: not between 0.0001%% and 100%%",
                             args->command->name, args_text(args, OPTION_CPU_BUDGET, ""));
        snprintf(text, sizeof text, "%.4f", share * percent);
        put(options, CAIRN_VARIABLE(CPU_BUDGET), text);
    }
    return read_size(args, OPTION_RATE, CAIRN_SETTING_RATE, options, error);
}

static bool read_bounds(const struct command_args *args, struct recording_options *options,
                        struct error *error) {
    uint64_t least = 0, most = 0;
    if (!read_size(args, OPTION_MIN_SIZE, CAIRN_SETTING_MIN_SIZE, options, error) ||
        !read_size(args, OPTION_MAX_SIZE, CAIRN_SETTING_MAX_SIZE, options, error) ||
        !args_size(args, OPTION_MIN_SIZE, &least, error) ||
        !args_size(args, OPTION_MAX_SIZE, &most, error))
        return false;
    if (most && most < least)
        return error_set(error, "%s: --max-size is below --min-size", args->command->name);
    return true;
}

static bool read_depth(const struct command_args *args, struct recording_options *options,
                       struct error *error) {
    const struct cairn_setting_row *row = &cairn_settings[CAIRN_SETTING_MAX_DEPTH];
    uint64_t frames = 0;
    if (!args_has(args, OPTION_MAX_DEPTH)) return true;
    if (!args_number(args, OPTION_MAX_DEPTH, 0, UINT64_MAX, &frames, error)) return false;
    if (!frames)
        return error_set(error, "%s: --max-depth 0 would keep no frame: --no-stacks does that",
                         args->command->name);
    if (frames > row->most)
        return error_set(error,
                         "%s: --max-depth %s: at most %" PRIu64 "; without it stacks have all "
                         "frames, up to %u",
                         args->command->name, args_text(args, OPTION_MAX_DEPTH, ""), row->most,
                         CAIRN_DEPTH_MAX);
    put_number(options, row->name, frames);
    return true;
}

static bool read_guard(const struct command_args *args, struct recording_options *options,
                       struct error *error) {
    const char *text = args_text(args, OPTION_GUARD, "");
    uint64_t bytes = CAIRN_GUARD_LEAST;
    if (!args_has(args, OPTION_GUARD)) return true;
    if (*text &&
        (!units_size_parse(text, &bytes) || bytes < CAIRN_GUARD_LEAST || bytes > CAIRN_GUARD_MOST))
        return error_set(error, "%s: --guard=%s: a band has %u to %u bytes", args->command->name,
                         text, CAIRN_GUARD_LEAST, CAIRN_GUARD_MOST);
    put_number(options, CAIRN_VARIABLE(GUARD), bytes);
    return true;
}

// Frames of Python code. They take several times what an event takes otherwise, so that without a
// word they are there where samples alone have stacks.
static bool read_python(const struct command_args *args, bool is_sampled,
                        struct recording_options *options, struct error *error) {
    const char *given = args_text(args, OPTION_PYTHON, "");
    const char *when = *given ? given : args_has(args, OPTION_PYTHON) ? "on" : "auto";
    bool is_auto = !strcmp(when, "auto");
    options->is_for_python = !strcmp(when, "on");
    if (!is_auto && !options->is_for_python && strcmp(when, "off") != 0)
        return error_set(error, "%s: --python=%s: not one of auto, on, off", args->command->name,
                         when);
    bool is_possible = !args_has(args, OPTION_NO_STACKS);
    if (options->is_for_python || (is_auto && is_sampled && is_possible))
        put(options, CAIRN_VARIABLE(PYTHON), "1");
    return true;
}

// What --frames may name, and the variable that asks the library for it.
static const struct frames_row {
    const char *name, *variable;
    bool is_everywhere;  // not on x86-64 only
} frames_rows[] = {{"java", CAIRN_VARIABLE(JAVA), false}, {"go", CAIRN_VARIABLE(GO), false},
                   {"js", CAIRN_VARIABLE(JS), false},     {"php", CAIRN_VARIABLE(PHP), false},
                   {"ruby", CAIRN_VARIABLE(RUBY), false}, {"async", CAIRN_VARIABLE(ASYNC), true}};
enum { FRAMES_ROWS = sizeof frames_rows / sizeof *frames_rows };

static const struct frames_row *frames_row_called(const char *name) {
    for (unsigned row = 0; row < FRAMES_ROWS; row++)
        if (!strcmp(frames_rows[row].name, name)) return &frames_rows[row];
    return NULL;
}

static bool read_frames(const struct command_args *args, struct recording_options *options,
                        struct error *error) {
    const char *command = args->command->name, *name = args_text(args, OPTION_FRAMES, "");
    if (!args_has(args, OPTION_FRAMES)) return true;
    const struct frames_row *row = frames_row_called(name);
    if (!row)
        return error_set(error,
                         "%s: --frames=%s: java, go, js, php, ruby or async (Python: --python)",
                         command, name);
#if !defined(__x86_64__)
    if (!row->is_everywhere)
        return error_set(error, "%s: --frames=%s: on x86-64 only", command, name);
#endif
    put(options, row->variable, "1");
    return true;
}

// What a signal may ask for; the letters are those of CAIRN_SIGNAL.
static const struct signal_word {
    const char *name;
    char letter;
} signal_words[] = {{"mark", 'm'}, {"snapshot", 's'}, {"toggle", 't'}, {"on", 'n'}, {"off", 'f'}};
enum { SIGNAL_WORDS = sizeof signal_words / sizeof *signal_words };

// "USR1", "SIGUSR1" or "10"; 0: there is none.
static int signal_number(const char *name) {
    enum { DECIMAL = 10 };
    char *end;
    long number = strtol(name, &end, DECIMAL);
    if (*name && !*end) return number > 0 && number <= SIGRTMAX ? (int)number : 0;
    if (!strncmp(name, "SIG", 3)) name += 3;
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i);
        if (known && !strcmp(known, name)) return i;
    }
    return 0;
}

// Those that cannot be handled, and those that say that the program is broken.
static bool is_reserved(int number) {
    static const int reserved[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                   SIGILL,  SIGTRAP, SIGABRT, SIGSYS, SIGCHLD};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (reserved[i] == number) return true;
    return false;
}

// One "USR1=mark", added to what CAIRN_SIGNAL says.
static bool read_signal(const char *command, char *entry, char *out, size_t size,
                        struct error *error) {
    char *word = strchr(entry, '=');
    size_t which = 0, used = strlen(out);
    if (!word || word == entry)
        return error_set(error, "%s: --signal needs SIGNAL=WORD as USR1=mark, not \"%s\"", command,
                         entry);
    *word++ = 0;
    int number = signal_number(entry);
    if (!number) return error_set(error, "%s: --signal: there is no signal %s", command, entry);
    if (is_reserved(number))
        return error_set(error, "%s: --signal: %s is not for words", command, entry);
    while (which < SIGNAL_WORDS && strcmp(signal_words[which].name, word) != 0) which++;
    if (which == SIGNAL_WORDS)
        return error_set(error, "%s: --signal %s=%s: not one of mark, snapshot, toggle, on, off",
                         command, entry, word);
    int length = snprintf(out + used, size - used, "%d%c", number, signal_words[which].letter);
    return (size_t)length < size - used ||
           error_set(error, "%s: --signal: more signals than can be used", command);
}

static bool read_signals(const struct command_args *args, struct recording_options *options,
                         struct error *error) {
    enum { LIST_BYTES = 256 };
    const char *text = args_text(args, OPTION_SIGNAL, NULL);
    char list[LIST_BYTES], words[RECORDING_TEXT_BYTES] = "", *rest = list, *entry;
    if (!text) return true;
    if (strlen(text) >= sizeof list)
        return error_set(error, "%s: --signal: the list is too long", args->command->name);
    snprintf(list, sizeof list, "%s", text);
    while ((entry = strsep(&rest, ",")))
        if (!read_signal(args->command->name, entry, words, sizeof words, error)) return false;
    put(options, CAIRN_VARIABLE(SIGNAL), words);
    return true;
}

// Names for what people are after. Options that are given besides go before a preset's.
static const struct preset {
    const char *name;
    bool is_sampled;
    const char *cpu_budget;
    enum measure by;
} presets[] = {
    {"peak", false, NULL, MEASURE_PEAK},
    {"leaks", false, NULL, MEASURE_EXIT},
    {"churn", false, NULL, MEASURE_CALLS},
    {"production", true, "0.5", MEASURE_PEAK},
};

static bool find_preset(const struct command_args *args, const struct preset **preset,
                        struct error *error) {
    const char *name = args_text(args, OPTION_PRESET, presets[0].name);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        *preset = &presets[i];
        if (!strcmp(name, presets[i].name)) return true;
    }
    return error_set(error, "%s: --preset %s: not one of leaks, peak, churn, production",
                     args->command->name, name);
}

bool recording_options_read(const struct command_args *args, struct recording_options *options,
                            struct launch *launch, struct error *error) {
    uint64_t most = 0;
    const struct preset *preset;
    *options = (struct recording_options){0};
    if (!find_preset(args, &preset, error)) return false;
    bool is_sampled = args_has(args, OPTION_SAMPLE) || preset->is_sampled ||
                      (args->command->run == cmd_attach && !args_has(args, OPTION_EXACT));
    options->by = preset->by;
    if (!args_size(args, OPTION_MAX_OVERHEAD, &most, error)) return false;
    if (most) put_number(options, CAIRN_VARIABLE(MAX_OVERHEAD), most);
    uint64_t every = 0;
    if (!args_size_or_none(args, OPTION_SNAPSHOT_EVERY, &every, error)) return false;
    if (args_has(args, OPTION_SNAPSHOT_EVERY))
        put_number(options, CAIRN_VARIABLE(SNAPSHOT_EVERY), every);
    if (!read_python(args, is_sampled, options, error)) return false;
    if (!read_frames(args, options, error)) return false;
    if (!(is_sampled ? options_check_under : options_check_without)(args, SAMPLED, error))
        return false;
    if (args_has(args, OPTION_AGES)) put(options, CAIRN_VARIABLE(AGES), "1");
    if (args_has(args, OPTION_EVENTS))
        put(options, CAIRN_VARIABLE(EVENTS), args_has(args, OPTION_EVENTS_WAIT) ? "2" : "1");
    if (args_has(args, OPTION_FREE_STACKS)) put(options, CAIRN_VARIABLE(FREE_STACKS), "1");
    if (args_has(args, OPTION_MMAP)) put(options, CAIRN_VARIABLE(MMAP), "1");
    if (args_has(args, OPTION_NO_STACKS)) put(options, CAIRN_VARIABLE(STACKS), "0");
    if (is_sampled) put(options, CAIRN_VARIABLE(SAMPLE), "1");
    if (preset->cpu_budget && !args_has(args, OPTION_CPU_BUDGET))
        put(options, CAIRN_VARIABLE(CPU_BUDGET), preset->cpu_budget);
    if (!read_depth(args, options, error)) return false;
    if (!read_guard(args, options, error) || !read_signals(args, options, error)) return false;
    if (!read_samples(args, options, error) || !read_bounds(args, options, error)) return false;
    launch->recording = options->variables;
    launch->recording_count = options->count;
    return true;
}
