// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/tools.h"

#include <string.h>

#include "tool/mcp/app.h"

// clang-format off
#define RECORDING \
    {"recording", MCP_FILE, NULL, NULL, "path of a recording (*.cairn), the directory of a run, or a core dump with one", true, false}
#define PROCESS {"process", MCP_TEXT, "--process", NULL, "of a run of several processes: pid or name of one", false, false}
#define BY(words) {"by", MCP_CHOICE, "--by", words, "rank by: bytes held at the peak, at exit, allocated over time; calls; temporary blocks", false, false}
#define MEASURES "peak exit allocated calls temporary"
#define LIMIT {"limit", MCP_NUMBER, "--top", NULL, "length of the list, 0 for all of it", false, false}
#define DEPTH {"depth", MCP_NUMBER, "--depth", NULL, "frames of a stack or levels of the tree, 0 for all", false, false}
#define FOCUS {"function", MCP_TEXT, "--focus", NULL, "only stacks through a function or file: Perl regular expression, as \"^parse_row$\"", false, false}
#define IGNORE {"ignore", MCP_TEXT, "--ignore", NULL, "without stacks through this one, likewise", false, false}
#define MODULE {"module", MCP_TEXT, "--module", NULL, "only stacks through this library or program file, likewise", false, false}
#define THREAD {"thread", MCP_TEXT, "--thread", NULL, "what these threads allocated: id or regular expression", false, false}
#define AT {"at", MCP_TEXT, "--at", NULL, "what stacks held at a snapshot: 10s, -1m, 14:30, peak, exit, or a mark's label; not with by", false, false}
#define BETWEEN {"between", MCP_TEXT, "--between", NULL, "\"A,B\": what stacks held more at snapshot B than at A; not with by", false, false}
#define MEMORY {"subject", MCP_PROCESS, NULL, NULL, "path of a core dump, or the pid of a running process (needs --allow-run; it is stopped for some ms)", true, false}

const struct mcp_tool mcp_tools[] = {
    {"recordings", "List recordings",
     "Lists the recordings (*.cairn) and runs below the roots, the newest first. Start here, or with record.",
     NULL, false, true,
     {{0}},
     {{"summary", "\"recording\":\"PATH\"", "what one of them says"}},
     MCP_NO_APP},

    {"record", "Record a command",
     "Runs a command and records every allocation of it and its children; the command works as usual, some "
     "percent slower. Answers with the summary, the path of the recording and the end of the command's output.",
     "run", true, false,
     {{"command", MCP_COMMAND, NULL, NULL, "program and arguments, a list of words; no shell is used: [\"sh\",\"-c\",\"...\"] is one", true, false},
      {"directory", MCP_DIRECTORY, NULL, NULL, "where to run it, and where the recording goes (the first root)", false, false},
      {"name", MCP_NAME, NULL, NULL, "name of the recording, without .cairn (that of the program)", false, false},
      {"seconds", MCP_SECONDS, NULL, NULL, "end the command after so many seconds (600); what it did until then is recorded", false, false},
      {"sample", MCP_SWITCH, "--sample", NULL, "a random sample of blocks, for what allocates all the time", false, false},
      {"ages", MCP_SWITCH, "--ages", NULL, "how old blocks became: finds short-lived ones", false, false},
      {"python", MCP_SWITCH, "--python", NULL, "objects of Python, with lines of Python code", false, false},
      {"frames", MCP_TEXT, "--frames", NULL, "functions and lines of code in java, go, js, php or ruby, whichever the program is in; php: begin the command with \"env\",\"USE_ZEND_ALLOC=0\", else malloc has nothing of scripts", false, false},
      {"unreachable", MCP_SWITCH, "--unreachable", NULL, "find what nothing leads to at the end: true leaks", false, false}},
     {{"next", "", "findings, and what to ask"},
      {"top", "", "whole stacks, with lines, of what held most"},
      {"top", "\"group\":\"functions\"", "which functions hold the memory"},
      {"leaks", "", "what was never freed"}},
     MCP_NO_APP},

    {"summary", "Summary of a recording",
     "Peak, calls, bytes, what was left, what resident memory consisted of, how exact it all is, and the stacks "
     "that held most at the peak.",
     "report", false, false,
     {RECORDING, PROCESS, BY(MEASURES), LIMIT},
     {{"next", "", "findings, and what to ask"},
      {"tree", "", "from main inwards"},
      {"top", "\"group\":\"functions\"", "which functions hold the memory"}},
     MCP_NO_APP},

    {"next", "What to ask next",
     "The findings of a recording (growth, temporaries, reserve, hand-over between threads, ...), the largest "
     "gain first: what a fix saves, the question that shows more, and the page that says how to fix it.",
     "report --view=findings", false, false,
     {RECORDING, PROCESS},
     {{"top", "", "the largest stacks"},
      {"top", "\"by\":\"calls\"", "who allocates most often"},
      {"top", "\"by\":\"allocated\"", "who allocates most over time"},
      {"growth", "", "what rises from snapshot to snapshot"},
      {"leaks", "", "what was never freed"}},
     MCP_NO_APP},

    {"top", "Top stacks, functions, lines, threads",
     "Ranks stacks, or sums by function, line, file, directory, library, type, thread or region.",
     "report", false, false,
     {RECORDING,
      {"group", MCP_CHOICE, "--view",
       "stacks functions lines files directories modules types threads regions temporary sizes ages frees",
       "what to rank (stacks)", false, true},
      BY(MEASURES), LIMIT, DEPTH, FOCUS, IGNORE, MODULE, THREAD, AT, BETWEEN, PROCESS},
     {{"callers", "\"function\":\"NAME\"", "who calls a function of the list"},
      {"tree", "\"function\":\"NAME\"", "what a function calls"},
      {"source", "\"file\":\"FILE\"", "figures beside the lines of a file"}},
     MCP_NO_APP},

    {"tree", "Call tree under a function",
     "The tree of calls from the program's start inwards with bytes and calls of each branch; with a function, "
     "only stacks through it.",
     "report --view=tree --print", false, false,
     {RECORDING, FOCUS, BY(MEASURES), DEPTH,
      {"threshold", MCP_TEXT, "--threshold", NULL, "leave out branches below this share, as 5%", false, false},
      IGNORE, MODULE, THREAD, AT, BETWEEN, PROCESS},
     {{"callers", "\"function\":\"NAME\"", "the same from the allocating end"},
      {"source", "\"file\":\"FILE\"", "figures beside the lines of a file"}},
     MCP_NO_APP},

    {"callers", "Callers of a function",
     "Who calls it: the tree from allocating functions outwards, of stacks through the function.",
     "report --view=tree --inverted --print", false, false,
     {RECORDING,
      {"function", MCP_TEXT, "--focus", NULL, "function or file: Perl regular expression, as \"^parse_row$\"", true, false},
      BY(MEASURES), DEPTH,
      {"threshold", MCP_TEXT, "--threshold", NULL, "leave out branches below this share, as 5%", false, false},
      AT, BETWEEN, PROCESS},
     {{"source", "\"file\":\"FILE\"", "figures beside the lines of a file"},
      {"tree", "\"function\":\"NAME\"", "from main inwards"}},
     MCP_NO_APP},

    {"growth", "What grows",
     "Stacks whose live bytes rise from snapshot to snapshot, with the rate and how steady it is: leak suspects "
     "while the program runs.",
     "report --view=growth", false, false,
     {RECORDING, LIMIT, DEPTH, FOCUS, PROCESS},
     {{"timeline", "", "the heap over time"},
      {"leaks", "", "what was never freed"},
      {"callers", "\"function\":\"NAME\"", "who calls the one that grows"}},
     MCP_NO_APP},

    {"timeline", "The heap over time",
     "The curve of live bytes from start to end, with peak, marks and snapshots.",
     "report --view=timeline", false, false,
     {RECORDING, PROCESS},
     {{"growth", "", "which stacks rise"},
      {"top", "\"at\":\"TIME\"", "what stacks held then"}},
     MCP_NO_APP},

    {"leaks", "What was never freed",
     "Stacks with blocks that were left at the end, without what common libraries keep on purpose.",
     "leaks", false, false,
     {RECORDING, LIMIT, DEPTH, FOCUS, IGNORE, MODULE,
      {"baseline", MCP_FILE, "--baseline", NULL, "an older recording: only what it does not have", false, false},
      PROCESS},
     {{"growth", "", "does it rise while the program runs"},
      {"callers", "\"function\":\"NAME\",\"by\":\"exit\"", "who calls the one that leaks"}},
     MCP_NO_APP},

    {"unreachable", "What nothing leads to",
     "Blocks that no pointer leads to any more, by stack: true leaks. Of a core dump, a running process, or a "
     "recording that was made with unreachable.",
     "leaks --unreachable", false, false,
     {MEMORY, LIMIT, DEPTH},
     {{"explain", "\"address\":\"0x...\"", "what a block is and who refers to it"}},
     MCP_NO_APP},

    {"memory", "What a heap holds now",
     "Looks into a core dump or a running process, recorded or not: who keeps the memory (owners), types, how full "
     "containers are, waste (never touched, zero, equal), layout of the heap, pages, remedies (what would give memory "
     "back, and how much).",
     "report", false, false,
     {MEMORY,
      {"question", MCP_CHOICE, "--view", "owners types containers waste heap pages remedies", "which of them (owners)", false, true},
      LIMIT},
     {{"explain", "\"address\":\"0x...\"", "what a block is and who refers to it"}},
     MCP_NO_APP},

    {"explain", "Explain a block",
     "Of a block of a core dump or running process, by its address: its size, type, stack, and the way from a root "
     "to it, which is why it is still there.",
     "core", false, false,
     {MEMORY,
      {NULL, MCP_WORD, "explain", NULL, NULL, false, false},
      {"address", MCP_TEXT, NULL, NULL, "address of the block, as 0x55d0c0de1230", true, false}},
     {{"memory", "\"question\":\"owners\"", "who keeps most"}},
     MCP_NO_APP},

    {"diff", "What changed between two recordings",
     "Peak, calls, bytes and the stacks that moved; stacks are matched by names, so that the program may have been "
     "built anew. With snapshots of one recording: what changed in between.",
     "diff", false, false,
     {{"before", MCP_FILE, NULL, NULL, "the older recording", true, false},
      {"before_at", MCP_AT, NULL, NULL, "a snapshot of it: 10s, -1m, peak, exit, a mark's label", false, false},
      {"after", MCP_FILE, NULL, NULL, "the newer recording", true, false},
      {"after_at", MCP_AT, NULL, NULL, "a snapshot of it, likewise", false, false},
      {"group", MCP_CHOICE, "--view", "stacks functions lines files modules types tree", "what to compare (stacks)", false, true},
      BY(MEASURES), LIMIT, FOCUS, IGNORE, MODULE},
     {{"callers", "\"recording\":\"AFTER\",\"function\":\"NAME\"", "who calls what grew"}},
     MCP_NO_APP},

    {"check", "Whether it keeps within budgets",
     "One line a budget: held or broken, with the stacks that broke it. Sizes as 64M, shares as 20%.",
     "check", false, false,
     {{"max_peak", MCP_TEXT, "--max-peak", NULL, "the most that may be live at one time", false, false},
      {"max_exit", MCP_TEXT, "--max-exit", NULL, "the most that may be left at the end", false, false},
      {"max_calls", MCP_TEXT, "--max-calls", NULL, "the most allocations, as 1e6", false, false},
      {"max_allocated", MCP_TEXT, "--max-allocated", NULL, "the most bytes over all time", false, false},
      {"max_temporary", MCP_TEXT, "--max-temporary", NULL, "the most blocks freed before the next call: share or number", false, false},
      {"baseline", MCP_FILE, "--baseline", NULL, "no more than this recording took, of each", false, false},
      {"tolerance", MCP_TEXT, "--tolerance", NULL, "more than the baseline by this (0%)", false, false},
      RECORDING, PROCESS},
     {{"diff", "\"before\":\"OLD\",\"after\":\"NEW\"", "what moved since the baseline"}},
     MCP_NO_APP},

    {"verify_fix", "Whether a fix helped",
     "Of a finding that a recording from before the fix has: gone or still there in one from after it, with the "
     "figures of both. Record the same work twice; the calls that each made are told.",
     "check", false, false,
     {{"claim", MCP_TEXT, "--gone", NULL, "key of a finding, with its function: left:load, temporary:parse_row, growth", true, false},
      {"before", MCP_FILE, "--baseline", NULL, "the recording that has it", true, false},
      {"after", MCP_FILE, NULL, NULL, "the recording from after the fix", true, false}, PROCESS},
     {{"diff", "\"before\":\"OLD\",\"after\":\"NEW\"", "what else moved"},
      {"next", "\"recording\":\"NEW\"", "what is left to do"}},
     MCP_NO_APP},

    {"source", "A source file with figures",
     "The lines of a source file that allocate, with bytes and calls beside them. The file has to lie below a root.",
     "report --view=annotate", false, false,
     {RECORDING,
      {"file", MCP_TEXT, "--source", NULL, "the file, or the end of its path: src/parse.c", true, false},
      BY(MEASURES), PROCESS},
     {{"callers", "\"function\":\"NAME\"", "who calls a function of it"}},
     MCP_NO_APP},

    {"page", "Show a recording to the user",
     "Shows the page of a recording to the user, who can go through it: timeline, flame graph, tables, findings. "
     "Answers with the summary.",
     "report", false, false,
     {RECORDING, PROCESS},
     {{"next", "", "findings, and what to ask"}},
     MCP_APP_SHOWN},

    {"page_data", "Data of the page",
     "What the page that is shown to the user reads of the recording.",
     "open --output=-", false, false,
     {RECORDING, PROCESS},
     {{0}},
     MCP_APP_DATA},
    {0},
};
// clang-format on

const struct mcp_tool *mcp_tool_find(const char *name) {
    for (const struct mcp_tool *tool = mcp_tools; name && tool->name; tool++)
        if (!strcmp(tool->name, name)) return tool;
    return NULL;
}

bool mcp_parameter_is_last(const struct mcp_parameter *parameter) {
    return !parameter->name && parameter->kind != MCP_WORD;
}

static json_t *choices_of(const char *words) {
    json_t *list = json_array();
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        json_array_append_new(list, json_stringn(words, length));
    }
    return list;
}

static json_t *schema_of(const struct mcp_parameter *parameter) {
    const char *help = parameter->help;
    switch (parameter->kind) {
    case MCP_NUMBER:
        return json_pack("{s:s,s:i,s:s}", "type", "integer", "minimum", 0, "description", help);
    case MCP_SECONDS:
        return json_pack("{s:s,s:i,s:s}", "type", "integer", "minimum", 1, "description", help);
    case MCP_SWITCH:
        return json_pack("{s:s,s:s}", "type", "boolean", "description", help);
    case MCP_CHOICE:
        return json_pack("{s:s,s:o,s:s}", "type", "string", "enum", choices_of(parameter->choices),
                         "description", help);
    case MCP_COMMAND:
        return json_pack("{s:s,s:{s:s},s:i,s:s}", "type", "array", "items", "type", "string",
                         "minItems", 1, "description", help);
    default:
        return json_pack("{s:s,s:s}", "type", "string", "description", help);
    }
}

static json_t *tool_json(const struct mcp_tool *tool) {
    json_t *properties = json_object(), *required = json_array();
    const struct mcp_parameter *parameter = tool->parameters;
    for (; !mcp_parameter_is_last(parameter); parameter++) {
        if (!parameter->name) continue;
        json_object_set_new(properties, parameter->name, schema_of(parameter));
        if (parameter->is_required) json_array_append_new(required, json_string(parameter->name));
    }
    json_object_set_new(properties, "page",
                        json_pack("{s:s,s:i,s:s}", "type", "integer", "minimum", 1, "description",
                                  "a long answer comes in pages: which one (1)"));
    json_t *meta = tool->app ? app_tool_meta(tool->app == MCP_APP_SHOWN) : NULL;
    return json_pack("{s:s,s:s,s:s,s:{s:s,s:o,s:o,s:b},s:{s:b,s:b,s:b},s:o*}", "name", tool->name,
                     "title", tool->title, "description", tool->help, "inputSchema", "type",
                     "object", "properties", properties, "required", required,
                     "additionalProperties", 0, "annotations", "readOnlyHint", !tool->is_run,
                     "destructiveHint", tool->is_run, "openWorldHint", tool->is_run, "_meta", meta);
}

json_t *mcp_tools_json(bool can_run, bool has_apps) {
    json_t *list = json_array();
    for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++)
        if ((!tool->is_run || can_run) && (!tool->app || has_apps))
            json_array_append_new(list, tool_json(tool));
    return json_pack("{s:o}", "tools", list);
}
