// SPDX-License-Identifier: Apache-2.0
// What is inline in the public headers, as functions of a library, so that abidw sees their types
// and those of the table behind them (dev/abi.sh).
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define static
#define inline
#include <cairn/cairn.h>
#include <cairn/expect.h>
