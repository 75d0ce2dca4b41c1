// SPDX-License-Identifier: Apache-2.0
// Methods of .NET as its runtime writes them to a map of generated code (DOTNET_PerfMapEnabled):
// `RESULT [ASSEMBLY] TYPE::METHOD(ARGUMENTS)[TIER]`, as MethodDesc::GetFullMethodInfo and
// PerfMap::LogJITCompiledMethod of CoreCLR 6 to 10 put it together.
#ifndef TOOL_SYMBOL_DOTNET_NAME_H
#define TOOL_SYMBOL_DOTNET_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { DOTNET_NAME_MOST = 1024 };  // bytes; of what is longer the rest is cut

struct dotnet_name {
    char
        method[DOTNET_NAME_MOST];  // "Shop.Cart.Add": as in stack traces of .NET, without arguments
    char assembly[DOTNET_NAME_MOST];  // "Shop"
};

// Takes a name apart; false: it is none of .NET's. Compilers' own types are left out: the body of
// an async method or an iterator is called as the method, a lambda as `METHOD.<lambda>`.
bool dotnet_name_read(struct dotnet_name *name, const char *text);

// Tells whether the source of generated code is an assembly: it has neither a directory nor a line,
// and is no file of Python's.
bool dotnet_is_assembly(const char *file, unsigned line);
// Tells whether an assembly belongs to .NET itself or to Microsoft's packages for it.
bool dotnet_is_framework(const char *assembly);

#endif
