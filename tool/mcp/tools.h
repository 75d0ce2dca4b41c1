// SPDX-License-Identifier: Apache-2.0
// The one table of questions that an agent may ask: each is a command of cairn with some of its
// options, under names that explain themselves. What the command prints is the answer, so that an
// agent reads the same words as a user. A new question is a row.
#ifndef TOOL_MCP_TOOLS_H
#define TOOL_MCP_TOOLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum mcp_parameter_kind {
    MCP_TEXT,
    MCP_NUMBER,     // 0 or more
    MCP_SWITCH,     // true or false
    MCP_CHOICE,     // one of some words
    MCP_FILE,       // a recording, the directory of a run, a core dump
    MCP_PROCESS,    // the same, or the pid of a process
    MCP_AT,         // a snapshot of the file before it: FILE@SNAPSHOT
    MCP_WORD,       // a word of the command, always there: `option` is it
    MCP_COMMAND,    // a list of words: what to run
    MCP_DIRECTORY,  // where to run it
    MCP_NAME,       // of a file that is made
    MCP_SECONDS,    // how long it may take
};

struct mcp_parameter {
    const char *name;  // NULL: not a parameter (MCP_WORD)
    enum mcp_parameter_kind kind;
    const char *option;   // of the command: "--top"; NULL: a word of it
    const char *choices;  // words, a blank between two; the first is taken unless one is given,
                          // if `option` has to be there
    const char *help;
    bool is_required;
    bool has_default;  // CHOICE: the first word is passed on unless another is given
};

// A question that leads on: shown below an answer, with the same recording.
struct mcp_next {
    const char *tool;
    const char *with;  // more arguments, as the inside of a JSON object; "": none
    const char *why;
};

enum { MCP_PARAMETERS_MAX = 14, MCP_NEXT_MAX = 5 };

// Questions of the page as an app: they are told to clients alone that show apps.
enum mcp_app_part {
    MCP_NO_APP,
    MCP_APP_SHOWN,  // the client shows the page beside the answer
    MCP_APP_DATA,   // asked by the page, and answered with its data, whatever their size
};

struct mcp_tool {
    const char *name, *title, *help;
    const char *command;  // of cairn, with fixed options: words, a blank between two
    bool is_run;          // starts a program: only with --allow-run
    bool is_list;         // lists what is there: no command
    struct mcp_parameter parameters[MCP_PARAMETERS_MAX];  // ends with kind MCP_TEXT and no name
    struct mcp_next next[MCP_NEXT_MAX];                   // ends with tool NULL
    enum mcp_app_part app;
};

extern const struct mcp_tool mcp_tools[];  // ends with name NULL

const struct mcp_tool *mcp_tool_find(const char *name);
bool mcp_parameter_is_last(const struct mcp_parameter *parameter);

// For tools/list; NULL without memory. Tools that run programs are left out unless they may, and
// those of the page unless the client shows apps.
json_t *mcp_tools_json(bool can_run, bool has_apps);

#endif
