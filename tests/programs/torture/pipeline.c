// SPDX-License-Identifier: Apache-2.0
// A thread makes items, main prints them. Planted: main is not told that the thread gave up.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 5 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *item;
static int has_failed;

static void put(char *text, int failed) {
    pthread_mutex_lock(&lock);
    while (item) pthread_cond_wait(&changed, &lock);
    item = text;
    has_failed = failed;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *produce(void *argument) {
    for (int i = 0; i < ITEMS; i++) {
        char *text = malloc(32);
        if (!text) {
#ifdef RIGHT
            put(NULL, 1);
#endif
            break;
        }
        snprintf(text, 32, "item %d", i);
        put(text, 0);
    }
    return argument;
}

int main(void) {
    pthread_t thread;
    int is_ok = 1;
    if (pthread_create(&thread, NULL, produce, NULL)) return 1;
    for (int i = 0; is_ok && i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (!item && !has_failed) pthread_cond_wait(&changed, &lock);
        is_ok = item != NULL;
        if (is_ok) puts(item);
        free(item);
        item = NULL;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(thread, NULL);
    return !is_ok;
}
