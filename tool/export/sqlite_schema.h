// SPDX-License-Identifier: Apache-2.0
// The tables and views of an exported database.
#ifndef TOOL_EXPORT_SQLITE_SCHEMA_H
#define TOOL_EXPORT_SQLITE_SCHEMA_H

extern const char sqlite_tables[];       // statements that make them
extern const char sqlite_module_sums[];  // a table made of the others; needs cairn_root(number)
extern const char sqlite_views[];        // after the tables are filled: indexes too

#endif
