// SPDX-License-Identifier: Apache-2.0
// Second part of shortening a C++ name, after name_clean.h: what has no name of its own.
#ifndef TOOL_SYMBOL_NAME_CLOSURE_H
#define TOOL_SYMBOL_NAME_CLOSURE_H

// In place, never longer: "(anonymous namespace)" becomes "(anon)",
// "f(int)::{lambda(int)#1}::operator()" becomes "f::{lambda#1}", and the parameters of functions
// around a local name go.
void name_shorten_closures(char *name);

#endif
