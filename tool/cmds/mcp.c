// SPDX-License-Identifier: Apache-2.0
// cairn mcp: the questions of cairn for agents, by the Model Context Protocol on standard input and
// output. The server itself is tool/mcp.
#include <stdlib.h>
#include <unistd.h>

#include "tool/cmds/commands.h"
#include "tool/mcp/loop.h"
#include "tool/web/web.h"

static bool read_roots(const struct command_args *args, struct roots *roots, struct error *error) {
    size_t index = 0;
    for (const char *root; (root = args_next(args, OPTION_ROOT, &index));)
        if (!roots_add(roots, root, error)) return false;
    return roots->count || roots_add(roots, ".", error);
}

static char *make_page(void) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool is_ok = out && web_put_template(out);
    if (out && !fclose(out) && is_ok) return text;
    free(text);
    return NULL;
}

int cmd_mcp(const struct command_args *args) {
    struct loop_options options = {.can_run = args_has(args, OPTION_ALLOW_RUN),
                                   .run = commands_run,
                                   .make_page = make_page,
                                   .in = STDIN_FILENO,
                                   .out = STDOUT_FILENO};
    struct error error;
    if (!read_roots(args, &options.roots, &error)) {
        roots_free(&options.roots);
        return command_fail(STATUS_USAGE, &error);
    }
    bool is_ok = loop_run(&options, &error);
    roots_free(&options.roots);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
