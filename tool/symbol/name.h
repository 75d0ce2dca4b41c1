// SPDX-License-Identifier: Apache-2.0
// From the name in a symbol table to the name a person would say.
#ifndef TOOL_SYMBOL_NAME_H
#define TOOL_SYMBOL_NAME_H

#include <stdbool.h>
#include <stddef.h>

// Demangles C++ (Itanium), Rust (legacy and v0) and D without parameters, return types and hashes,
// then leaves out what the writer of the code did not write: inline namespaces of the standard
// library (std::__cxx11, std::__1) and template arguments that are the documented defaults
// (std::vector<int, std::allocator<int> > is std::vector<int>). Lambdas and closures are numbered
// ("main::{lambda#1}", "run::{closure#0}"), an anonymous namespace is "(anon)". C++ names that are
// not mangled are shortened likewise; other names, those of Swift among them, are copied as they
// are. Compiler suffixes (.part.0, .isra.0, .constprop.0, .cold, .llvm.123) are dropped. Returns
// memory for free(), NULL only without memory.
char *name_readable(const char *mangled);

// The same, but whole: parameters, all template arguments and namespaces.
char *name_full(const char *mangled);

// A readable name has a lambda or closure in it ("main::{lambda#1}"); where the last one begins,
// with the brace, or NULL.
const char *name_last_closure(const char *readable);
// Rust's async code is closures by its names, and "{async_fn#0}", "{async_block#0}" or
// "{async_closure#0}" by its debug information (`word`): "async fn outer::load" for a function,
// "outer::load::{async block#0}" for what is in one. NULL: the word is none of these. For free().
char *name_of_async(const char *readable, const char *word);
static inline bool name_has_closure(const char *readable) {
    return name_last_closure(readable) != NULL;
}

// Second part of shortening a C++ name, after name_clean.h: what has no name of its own.

// In place, never longer: "(anonymous namespace)" becomes "(anon)",
// "f(int)::{lambda(int)#1}::operator()" becomes "f::{lambda#1}", and the parameters of functions
// around a local name go.
void name_shorten_closures(char *name);

#endif
