// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.h"

#include "format/guard.h"
#include "runtime/check.h"
#include "runtime/sample/countdown.h"
#include "runtime/sys/environment.h"

struct settings settings;

// The archives that are linked in wrap the functions of malloc alone.
#if defined(CAIRN_STATIC)
enum { HAS_MAPPING_HOOKS = 0 };
#else
enum { HAS_MAPPING_HOOKS = 1 };
#endif

enum { RATE_DEFAULT_BYTES = 512 << 10, MAX_SAMPLES_DEFAULT = 1 << 14 };
enum { EVERY_DEFAULT_BYTES = 64 << 20 };
#define MAX_SAMPLES_MOST (1ull << 22)

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

static bool is_switch(const char *name, char value) {
    const char *text = environment_get(name);
    return text && text[0] == value && !text[1];
}

static uint64_t bytes_of(const char *name, uint64_t otherwise) {
    const char *text = environment_get(name);
    return text && text[0] ? read_bytes(text) : otherwise;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most) {
    if (value < least) return least;
    return value < most ? value : most;
}

// Whole multiples of the usual alignment. A static program's own functions know nothing of bands.
static uint64_t guard_bytes(void) {
#if defined(CAIRN_STATIC)
    return 0;
#else
    const uint64_t step = 16;
    uint64_t bytes = bytes_of("CAIRN_GUARD", 0);
    if (!bytes) return 0;
    return (within(bytes, CAIRN_GUARD_LEAST, CAIRN_GUARD_MOST) + step - 1) & ~(step - 1);
#endif
}

void settings_read(void) {
    const char *seed = environment_get("CAIRN_SEED"), *budget = environment_get("CAIRN_CPU_BUDGET");
    // a fault may meet the second walk alone
    bool is_checked = CHECK_IS_BUILT_IN && !environment_get("CAIRN_FAULT");
    settings = (struct settings){
        .is_off = is_switch("CAIRN_OFF", '1'),
        .has_no_stacks = is_switch("CAIRN_STACKS", '0'),
        .is_verified = is_checked || is_switch("CAIRN_VERIFY", '1'),
        .has_python = is_switch("CAIRN_PYTHON", '1'),
        .has_ages = is_switch("CAIRN_AGES", '1'),
        .has_mappings = HAS_MAPPING_HOOKS && is_switch("CAIRN_MMAP", '1'),
        .has_free_stacks = is_switch("CAIRN_FREE_STACKS", '1'),
        .is_sampled = is_switch("CAIRN_SAMPLE", '1'),
        .has_seed = seed && seed[0],
        .rate_bytes = bytes_of("CAIRN_RATE", RATE_DEFAULT_BYTES),
        .max_samples = bytes_of("CAIRN_MAX_SAMPLES", MAX_SAMPLES_DEFAULT),
        .overhead_bytes = bytes_of("CAIRN_MAX_OVERHEAD", 0),
        .every_bytes = bytes_of("CAIRN_EVERY", EVERY_DEFAULT_BYTES),
        .min_bytes = bytes_of("CAIRN_MIN_SIZE", 0),
        .max_bytes = bytes_of("CAIRN_MAX_SIZE", 0),
    };
    if (settings.has_seed) settings.seed = read_digits(&seed);
    if (budget) settings.cpu_budget_millionths = read_percent(budget);
    settings.rate_bytes = within(settings.rate_bytes, 1, COUNTDOWN_MOST_BYTES);
    settings.max_samples = within(settings.max_samples, 1, MAX_SAMPLES_MOST);
    settings.guard_bytes = guard_bytes();
    settings.has_notes = settings.has_ages || settings.guard_bytes;
}

bool settings_may_sample(void) {
    return settings.is_sampled || settings.overhead_bytes || settings.min_bytes ||
           settings.max_bytes;
}
