# SPDX-License-Identifier: Apache-2.0
# alone
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

# The page's server, without the indentation of the page, and what asks it.
sed -n '/^    const http = /,/^    http.createServer/s/^    //p' "$SOURCE_DIR/docs/howto/node.md" >server.js && loopback || return
cat >load.js <<'END'
const http = require('http'), agent = new http.Agent({keepAlive: true, maxSockets: 16});
let left = 2000;
process.on('uncaughtException', () => process.exit(1));
for (let i = left; i--;)
    http.get({port: 8081, host: '127.0.0.1', agent}, (answer) => answer.resume().on('end', () => --left || process.exit(0)));
END
served_by_node() {
    node load.js
}
