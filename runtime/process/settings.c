// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/settings.h"

#include "format/guard.h"
#include "format/settings.h"
#include "runtime/check/check.h"
#include "runtime/sample/countdown.h"
#include "runtime/sys/environment.h"

struct settings settings;

// The archives that are linked in wrap the functions of malloc alone.
#if defined(CAIRN_STATIC)
enum { HAS_MAPPING_HOOKS = 0 };
#else
enum { HAS_MAPPING_HOOKS = 1 };
#endif

// Tells where frames of Java, Go, JavaScript, PHP and Ruby are known.
#if defined(__x86_64__)
enum { FRAMES_ARE_BUILT_IN = 1 };
#else
enum { FRAMES_ARE_BUILT_IN = 0 };
#endif

// Digits and what follows them.
static uint64_t read_digits(const char **at) {
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) value = value * 10 + (uint64_t)(**at - '0');
    return value;
}

// Bytes as the tool or a user wrote them: plain, or with K, M or G.
static uint64_t read_bytes(const char *text) {
    uint64_t value = read_digits(&text);
    if (*text == 'K') value <<= 10;
    if (*text == 'M') value <<= 20;
    if (*text == 'G') value <<= 30;
    return value;
}

// Percent, as 0.5 or 0.5%, in millionths of the whole.
static uint64_t read_percent(const char *text) {
    const uint64_t one_percent = 10000;
    uint64_t value = read_digits(&text) * one_percent;
    if (*text != '.') return value;
    uint64_t unit = one_percent / 10;
    for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
        value += (uint64_t)(*text - '0') * unit;
    return value;
}

static bool is_switch(enum cairn_setting id, char value) {
    const char *text = environment_get(cairn_settings[id].name);
    return text && text[0] == value && !text[1];
}

static uint64_t within(uint64_t value, const struct cairn_setting_row *row) {
    if (value < row->least) return row->least;
    return value < row->most ? value : row->most;
}

static uint64_t number_of(enum cairn_setting id) {
    const struct cairn_setting_row *row = &cairn_settings[id];
    const char *text = environment_get(row->name);
    uint64_t value = text && text[0] ? read_bytes(text) : row->usual;
    return value == row->usual ? value : within(value, row);
}

// Whole multiples of the usual alignment. A static program's own functions know nothing of bands.
static uint64_t guard_bytes(void) {
#if defined(CAIRN_STATIC)
    return 0;
#else
    const uint64_t step = 16;
    uint64_t bytes = number_of(CAIRN_SETTING_GUARD);
    if (!bytes) return 0;
    return (bytes + step - 1) & ~(step - 1);
#endif
}

void settings_read(void) {
    const char *seed = environment_get(CAIRN_VARIABLE(SEED)),
               *budget = environment_get(CAIRN_VARIABLE(CPU_BUDGET));
    // a fault may meet the second walk alone
    bool is_checked = CHECK_IS_BUILT_IN && !environment_get(CAIRN_VARIABLE(FAULT));
    settings = (struct settings){
        .is_off = is_switch(CAIRN_SETTING_OFF, '1'),
        .has_no_stacks = is_switch(CAIRN_SETTING_STACKS, '0'),
        .is_verified = is_checked || is_switch(CAIRN_SETTING_VERIFY, '1'),
        .has_python = is_switch(CAIRN_SETTING_PYTHON, '1'),
        .has_java = FRAMES_ARE_BUILT_IN && is_switch(CAIRN_SETTING_JAVA, '1'),
        .has_go = FRAMES_ARE_BUILT_IN && is_switch(CAIRN_SETTING_GO, '1'),
        .has_js = FRAMES_ARE_BUILT_IN && is_switch(CAIRN_SETTING_JS, '1'),
        .has_php = FRAMES_ARE_BUILT_IN && is_switch(CAIRN_SETTING_PHP, '1'),
        .has_ruby = FRAMES_ARE_BUILT_IN && is_switch(CAIRN_SETTING_RUBY, '1'),
        .has_async = is_switch(CAIRN_SETTING_ASYNC, '1'),
        .has_ages = is_switch(CAIRN_SETTING_AGES, '1'),
        .has_mappings = HAS_MAPPING_HOOKS && is_switch(CAIRN_SETTING_MMAP, '1'),
        .has_events = is_switch(CAIRN_SETTING_EVENTS, '1') || is_switch(CAIRN_SETTING_EVENTS, '2'),
        .is_waiting = is_switch(CAIRN_SETTING_EVENTS, '2'),
        .has_free_stacks = is_switch(CAIRN_SETTING_FREE_STACKS, '1'),
        .is_sampled = is_switch(CAIRN_SETTING_SAMPLE, '1'),
        .has_seed = seed && seed[0],
        .rate_bytes = number_of(CAIRN_SETTING_RATE),
        .max_samples = number_of(CAIRN_SETTING_MAX_SAMPLES),
        .overhead_bytes = number_of(CAIRN_SETTING_MAX_OVERHEAD),
        .every_bytes = number_of(CAIRN_SETTING_SNAPSHOT_EVERY),
        .min_bytes = number_of(CAIRN_SETTING_MIN_SIZE),
        .max_bytes = number_of(CAIRN_SETTING_MAX_SIZE),
        .max_depth = (uint32_t)number_of(CAIRN_SETTING_MAX_DEPTH),
    };
    if (settings.has_seed) settings.seed = read_digits(&seed);
    if (budget)
        settings.cpu_budget_millionths =
            within(read_percent(budget), &cairn_settings[CAIRN_SETTING_CPU_BUDGET]);
    settings.guard_bytes = guard_bytes();
    // turns lie where ages have their births
    bool has_room = !settings.is_sampled && !settings.has_ages && !settings.has_no_stacks;
    settings_set_events(settings.has_events && has_room);
}

bool settings_may_log(void) {
    return settings.has_events || !(settings_may_sample() || settings.has_no_stacks);
}

bool settings_may_sample(void) {
    return settings.is_sampled || settings.overhead_bytes || settings.min_bytes ||
           settings.max_bytes;
}
