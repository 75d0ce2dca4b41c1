// SPDX-License-Identifier: Apache-2.0
// Handlers that allocate: on the normal stack, on an alternate stack, one inside the other, and one
// for a fault in code. The program itself is not in the allocator when they come.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALTERNATE_BYTES 65536

static void *volatile sink;
static volatile int handled;
static char *page;

static void on_plain(int signal) {
    (void)signal;
    sink = malloc(111);
    handled++;
}

static void on_alternate(int signal) {
    (void)signal;
    sink = malloc(222);
    handled++;
    raise(SIGUSR1);
    sink = malloc(333);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    sink = malloc(444);
    handled++;
    if (info->si_addr != page || mprotect(page, 4096, PROT_READ | PROT_WRITE)) _exit(9);
}

static void install(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    if (sigaction(signal, &action, NULL)) abort();
}

__attribute__((noinline)) static void fault_here(void) {
    page[0] = 1;
    __asm__ volatile("" ::: "memory");
}

int main(void) {
    stack_t alternate = {.ss_sp = malloc(ALTERNATE_BYTES), .ss_size = ALTERNATE_BYTES};
    if (sigaltstack(&alternate, NULL)) abort();
    install(SIGUSR1, on_plain, 0);
    install(SIGUSR2, on_alternate, SA_ONSTACK);
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    if (sigaction(SIGSEGV, &fault, NULL)) abort();
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 10; i++) {
        raise(SIGUSR1);
        raise(SIGUSR2);
    }
    fault_here();
    printf("handled %d\n", handled);
    return 0;
}
