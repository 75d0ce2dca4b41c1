# SPDX-License-Identifier: Apache-2.0
# the log of a small program: each allocator and setting replays it several times
needs git && server_here && cairn run -q --events -o py.1.cairn git --version >/dev/null && DOC_NAME=py DOC_PID=1 &&
    cp py.1.events git.events && cairn run -q --events -o py.cairn python3 -c 'import json' >/dev/null
