// SPDX-License-Identifier: Apache-2.0
// Threads take jobs from a queue. Planted: the lock is kept where a job finds no room.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    struct job *next;
    long number;
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first;
    int is_over;
    long sum;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int add_job(long number) {
    pthread_mutex_lock(&queue.lock);
    struct job *job = malloc(sizeof *job);
    if (!job) {
#ifdef RIGHT
        pthread_mutex_unlock(&queue.lock);
#endif
        return 0;
    }
    *job = (struct job){queue.first, number};
    queue.first = job;
    pthread_cond_signal(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    return 1;
}

static void end_jobs(void) {
    pthread_mutex_lock(&queue.lock);
    queue.is_over = 1;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static void *work(void *argument) {
    pthread_mutex_lock(&queue.lock);
    while (queue.first || !queue.is_over) {
        struct job *job = queue.first;
        if (job) {
            queue.first = job->next;
            queue.sum += job->number;
            free(job);
        } else {
            pthread_cond_wait(&queue.changed, &queue.lock);
        }
    }
    pthread_mutex_unlock(&queue.lock);
    return argument;
}

int main(void) {
    enum { THREADS = 3, JOBS = 20 };
    pthread_t threads[THREADS];
    int count = 0, is_ok = 1;
    while (count < THREADS && !pthread_create(&threads[count], NULL, work, NULL)) count++;
    for (long i = 0; is_ok && count && i < JOBS; i++) is_ok = add_job(i);
    end_jobs();
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    if (!is_ok || count < THREADS) return 1;
    printf("sum %ld\n", queue.sum);
    return 0;
}
