// SPDX-License-Identifier: Apache-2.0
// Shortens a demangled C++ name to what its author wrote; part of name.h, apart for its tests.
#ifndef TOOL_SYMBOL_NAME_CLEAN_H
#define TOOL_SYMBOL_NAME_CLEAN_H

// Leaves out inline namespaces of the standard library, ABI tags, template arguments that equal
// the documented default, and the blank in "> >"; says std::string for std::basic_string<char>
// and the like. A text that does not nest properly comes back unchanged.
// Returns memory for free(), NULL only without memory.
char *name_clean_cxx(const char *demangled);

#endif
