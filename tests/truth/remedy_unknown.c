// SPDX-License-Identifier: Apache-2.0
// A program that never asks malloc for anything: there is no heap to look at. The twin has one.
//
// claim: remedy_unknown
// flags: -O2
// file: view
// view: remedies
#include "remedy.h"

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (!HOLDS) take_blocks(0);
    ledger_name("why", "its malloc heap could not be found");
    wait_for_input();
    return 0;
}
