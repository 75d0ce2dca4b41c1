# SPDX-License-Identifier: Apache-2.0
"""A program with two allocators of its own, of which it is known what every stack holds, and their rows of --wrap."""

import pathlib

import cairn_test as t

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
static char chunk[1 << 20], *at = chunk;
OWN void *pool_alloc(size_t n) { if (at == chunk) at = malloc(1 << 20); char *p = at; at += (n + 15) / 16 * 16; return p; }
static volatile long calls;
OWN void pool_free(void *p) { calls++; __asm__("" ::"r"(p) : "memory"); }
OWN void *pool_again(void *p, size_t n) { __asm__("" ::"r"(p) : "memory"); return n > 1 << 20 ? NULL : pool_alloc(n); }
struct arena { int unused; };
OWN struct arena *arena_make(const char *name) { __asm__("" ::"r"(name) : "memory"); return malloc(64); }
OWN void *arena_take(struct arena *a, size_t n) { __asm__("" ::"r"(a) : "memory"); return malloc(n); }
OWN void arena_name(struct arena *a, const char *name) { calls++; __asm__("" ::"r"(a), "r"(name) : "memory"); }
OWN void arena_clear(struct arena *a) { calls++; __asm__("" ::"r"(a) : "memory"); }
static void *early[100], *late[100];
OWN void fill_early(void) { for (int i = 0; i < 100; i++) { early[i] = pool_alloc(1000); __asm__("" ::: "memory"); } }
OWN void fill_late(void) { for (int i = 0; i < 100; i++) { late[i] = pool_alloc(50); __asm__("" ::: "memory"); } }
OWN void grow(void) { late[0] = pool_again(late[0], 70); if (pool_again(late[1], 1ul << 40)) abort(); __asm__("" ::: "memory"); }
OWN void take_red(struct arena *a) { for (int i = 0; i < 10; i++) arena_take(a, 100); __asm__("" ::: "memory"); }
OWN void take_blue(struct arena *a) { for (int i = 0; i < 10; i++) arena_take(a, 7); __asm__("" ::: "memory"); }
int main(int argc, char **argv) {
  fill_early();
  for (int i = 0; i < 90; i++) pool_free(early[i]);
  fill_late(); grow();
  struct arena *red = arena_make("red"), *blue = arena_make("blue");
  take_red(red); take_blue(blue); take_blue(red); arena_clear(red); take_blue(red);
  if (argc > 1 && *argv[1] == 'w') { char c; write(1, "ready\n", 6); while (read(0, &c, 1) == 1) { take_red(red); write(1, "taken\n", 6); } }
  if (argc > 1 && *argv[1] == 'l') {
    int go[2]; char told;
    if (pipe(go)) return 1;
    struct arena *dyed = arena_make("red");
    take_red(dyed);
    if (!fork()) {
      close(go[1]);
      if (read(go[0], &told, 1)) _exit(1);
      for (int i = 0; i < 2000; i++) arena_make("green");
      fill_late();
      exit(0);
    }
    for (int i = 90; i < 100; i++) pool_free(early[i]);
    fill_early(); arena_clear(dyed); take_blue(dyed);
    close(go[0]); close(go[1]);
    wait(NULL);
    return 0;
  }
  if (argc > 1 && *argv[1] == 'f') {
    pid_t child = fork();
    if (!child) { for (int i = 0; i < 2000; i++) arena_make("green"); for (int i = 90; i < 100; i++) pool_free(early[i]); fill_late(); exit(0); }
    waitpid(child, NULL, 0);
  }
  return 0;
}
"""
ROWS = ["--wrap", "name=mine:alloc=pool_alloc(size=1):realloc=pool_again(ptr=1,size=2):free=pool_free(ptr=1)",
        "--wrap", "name=areas:make=arena_make(label=1):alloc=arena_take(pool=1,size=2):clear=arena_clear(pool=1)"]


def make(name="program", text=PROGRAM):
    """./program; with "fork" it has a child, with "late fork" one that begins to record once its parent has gone on;
    with "wait" it waits and takes 1000 bytes more of `red` for each line."""
    pathlib.Path(f"{name}.c").write_text(text, encoding="ascii")
    made = t.run(["gcc", "-O1", "-g", "-w", "-o", name, f"{name}.c"])
    t.check_equal(f"gcc: {made.err.decode()}", made.status, 0)
