// SPDX-License-Identifier: Apache-2.0
// Sends messages, and tries again where one finds no room. Planted: forever, and each time says so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_room_missing;
static char *make_message(int number) {
    if (is_room_missing) return NULL;  // as where memory is short for longer
    char *message = malloc(80);
    is_room_missing = !message;
    if (message) snprintf(message, 80, "message %d", number);
    return message;
}

static int send(int number) {
    char *message = make_message(number);
#ifdef RIGHT
    for (int tries = 0; !message && tries < 3; tries++) {
#else
    while (!message) {
#endif
        fprintf(stderr, "no room for message %d, trying again\n", number);
        message = make_message(number);
    }
    if (message) puts(message);
    free(message);
    return message != NULL;
}

int main(void) {
    int is_ok = 1;
    for (int i = 0; i < 3; i++) is_ok &= send(i);
    return !is_ok;
}
