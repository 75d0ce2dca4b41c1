// SPDX-License-Identifier: Apache-2.0
// Signals as words to cairn, only where the user asked for them (CAIRN_SIGNAL, cairn run --signal):
// the one case in which the runtime handles a signal. A handler that is there already is called
// after ours; one that the program sets later takes the signal over, and ours is gone.
//
// The handler takes no lock that it could wait for, allocates nothing and keeps errno: whatever it
// interrupts, cairn's own work included, goes on as if nothing had been.
#ifndef RUNTIME_PROCESS_SIGNALS_H
#define RUNTIME_PROCESS_SIGNALS_H

// Sets the handlers that the settings want; once a process.
void signals_open(void);

#endif
