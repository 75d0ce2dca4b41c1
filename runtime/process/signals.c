// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/signals.h"

#include <errno.h>
#include <signal.h>

#include "format/settings.h"
#include "runtime/record/snapshots.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/environment.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"

enum { SIGNAL_COUNT = 65 };  // numbers from 1 on

// By signal.
static APART struct {
    char word;  // 0: not ours
    struct sigaction before;
} handled[SIGNAL_COUNT];

static void switch_to(uint32_t is_off) {
    cairn_switch(sink.header, is_off);
}

// A forked child without a recording of its own leaves its parent's alone.
static void obey(int number, char word) {
    if (!sink.header || slots_is_wiped()) return;
    switch (word) {
    case 'm':
        snapshots_take_in_handler(CAIRN_SNAPSHOT_MARK, number);
        return;
    case 's':
        snapshots_take_in_handler(CAIRN_SNAPSHOT_ASKED, number);
        return;
    case 't':
        switch_to(gate_is_recording());
        return;
    case 'f':
        switch_to(1);
        return;
    default:
        switch_to(0);
    }
}

static void handle(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    const struct sigaction *before = &handled[number].before;
    obey(number, handled[number].word);
    errno = saved_errno;
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
}

static void take_over(int number, char word) {
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    handled[number].word = word;
    if (sigaction(number, &action, &handled[number].before) != 0) handled[number].word = 0;
}

// "10m12t": numbers of signals, each with the letter of its word.
void signals_open(void) {
    const char *text = environment_get(CAIRN_VARIABLE(SIGNAL));
    while (text && *text >= '0' && *text <= '9') {
        int number = 0;
        for (; *text >= '0' && *text <= '9' && number < SIGNAL_COUNT; text++)
            number = number * 10 + (*text - '0');
        char word = *text;
        if (!word || number < 1 || number >= SIGNAL_COUNT) return;
        if (!handled[number].word) take_over(number, word);
        text++;
    }
}
