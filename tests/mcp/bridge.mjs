// SPDX-License-Identifier: Apache-2.0
// Carries messages between HTTP, which the conformance suite of the Model Context Protocol speaks, and the streams of
// cairn mcp: node bridge.mjs COMMAND [ARGUMENT...]. Prints its address. A legacy session has a server of its own; modern
// requests share one, under ids of the bridge's. Listens on the loopback only.
import { spawn } from "node:child_process";
import http from "node:http";
import { randomUUID } from "node:crypto";

const [command, ...words] = process.argv.slice(2);
const VERSION = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

class Server {
  constructor() {
    this.waiting = new Map();
    this.next = 1;
    this.child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
    let rest = "";
    this.child.stdout.setEncoding("utf8");
    this.child.stdout.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) this.take(JSON.parse(line));
    });
  }
  take(message) {
    const of = message.id ?? message.params?.progressToken ?? message.params?._meta?.[SUBSCRIPTION];
    const waiter = this.waiting.get(of);
    if (!waiter) return;
    if (message.id === undefined && waiter.stream) {
      waiter.stream(message);
    } else if (message.id !== undefined) {
      this.waiting.delete(of);
      waiter.end({ ...message, id: waiter.id });
    }
  }
  send(message) {
    this.child.stdin.write(JSON.stringify(message) + "\n");
  }
  ask(message, stream, numbered = () => {}) {
    const number = this.next++;
    numbered(number);
    return new Promise((end) => {
      this.waiting.set(number, { id: message.id, end, stream });
      this.send({ ...message, id: number });
    });
  }
}

const sessions = new Map();
const shared = new Server();

function reply(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

// Codes for which HTTP has a status of its own, in the modern era.
function statusOf(answer, isModern) {
  if (!isModern || !answer.error) return 200;
  return answer.error.code === -32601 ? 404 : 400;
}

// A subscription: its notifications as events, until the client goes.
async function listen(response, message) {
  const put = (line) => response.write(`event: message\ndata: ${JSON.stringify(line)}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  let number;
  response.on("close", () => shared.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: number } }));
  put(
    await shared.ask(
      message,
      (line) => {
        line.params._meta[SUBSCRIPTION] = message.id;
        put(line);
      },
      (chosen) => (number = chosen),
    ),
  );
  response.end();
}

async function post(request, response, text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return reply(response, 400, { jsonrpc: "2.0", id: null, error: { code: -32700, message: "not JSON" } });
  }
  const isModern = message.params?._meta?.[VERSION] !== undefined;
  const headers = {};
  let server = shared;
  if (!isModern && message.method === "initialize") {
    headers["mcp-session-id"] = randomUUID();
    server = new Server();
    sessions.set(headers["mcp-session-id"], server);
  } else if (!isModern) {
    server = sessions.get(request.headers["mcp-session-id"]) ?? shared;
  }
  if (message.id === undefined || message.id === null) {
    server.send(message);
    return reply(response, 202, undefined);
  }
  if (isModern && message.method === "subscriptions/listen") return listen(response, message);
  const answer = await server.ask(message);
  return reply(response, statusOf(answer, isModern || server === shared), answer, headers);
}

const front = http.createServer((request, response) => {
  if (request.method !== "POST") return reply(response, 405, undefined);
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (part) => {
    text += part;
    if (text.length > 1 << 20) request.destroy();
  });
  return request.on("end", () => post(request, response, text));
});
front.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${front.address().port}/mcp`));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
