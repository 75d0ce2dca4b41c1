// SPDX-License-Identifier: Apache-2.0
// A profile as tables and views of an SQLite database (docs/reference/exports.md lists them).
#ifndef TOOL_EXPORT_SQLITE_H
#define TOOL_EXPORT_SQLITE_H

#include <sqlite3.h>

#include "tool/export/export.h"

// Makes and fills the tables of an empty database. False after an error was filled.
bool export_sqlite_fill(sqlite3 *database, const struct export *export, struct error *error);

#endif
