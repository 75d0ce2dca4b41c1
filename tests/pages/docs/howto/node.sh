# SPDX-License-Identifier: Apache-2.0
needs node && cat >serve.js <<'END' && cp serve.js app.js && cairn run -q --frames=js -o probe.cairn node -e 0 || return
const sessions = [];

// What is sent to one of them.
function open() {
    sessions.push(Buffer.alloc(64 * 1024));
}

for (let i = 0; i < 40; i++)
    // as for a connection
    open();
END
cairn info probe.cairn | grep -q 'stacks have its frames' || { echo "V8 of this node is none that is read" && return 77; }
