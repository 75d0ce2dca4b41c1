// SPDX-License-Identifier: Apache-2.0
// What cairn says it is: in help, in the man page, and in files that it writes.
#ifndef TOOL_BASE_VERSION_H
#define TOOL_BASE_VERSION_H

#define CAIRN_TOOL_VERSION "0.1.0"

#endif
