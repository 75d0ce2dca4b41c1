// SPDX-License-Identifier: Apache-2.0
// The application around the page, if there is one: an editor (a webview of VS Code), or the host of an MCP App, a page
// of which has no data yet. Places in source code are links there.

import { h } from "./dom";

type Arguments = Record<string, unknown>;
type Message = {
  jsonrpc: "2.0";
  id?: number | string;
  method?: string;
  params?: Arguments;
  result?: unknown;
  error?: { message: string };
};

declare global {
  interface Window {
    acquireVsCodeApi?: () => { postMessage(message: unknown): void };
  }
}

/** Shows a line of a source file; null: nobody can. */
let show: ((file: string, line: number) => void) | null = null;

/** "parse.c:12", a link where somebody shows the file. */
export function place(file: string, line: number, text: string, title = file): HTMLElement {
  const onShow = show;
  return onShow
    ? h("button", { type: "button", class: "link mono place", title, onclick: () => onShow(file, line) }, text)
    : h("span", { class: "dim mono", title }, text);
}

/** Finds an editor around the page, whose colours it takes; returns what is to be called when the page is ready. */
export function findEditor(): () => void {
  const editor = window.acquireVsCodeApi?.(),
    theme = document.body.dataset.vscodeThemeKind;
  if (!editor) return () => {};
  show = (file, line) => editor.postMessage({ show: { file, line } });
  document.documentElement.dataset.theme = theme && !theme.includes("light") ? "dark" : "light";
  return () => editor.postMessage({ ready: true });
}

const PROTOCOL = "2026-01-26";

class Host {
  private waiting = new Map<number, (answer: Message) => void>();
  private next = 1;

  constructor(private heard: (method: string, params: Arguments) => void) {
    addEventListener("message", ({ source, data }) => {
      if (source === window.parent && data?.jsonrpc === "2.0") this.take(data);
    });
  }

  private take({ id, method, params, ...rest }: Message): void {
    if (!method) {
      this.waiting.get(id as number)?.({ ...rest, jsonrpc: "2.0" });
      this.waiting.delete(id as number);
    } else if (id !== undefined) {
      const known = method === "ping" || method === "ui/resource-teardown";
      this.send({ id, ...(known ? { result: {} } : { error: { code: -32601, message: method } }) });
    } else this.heard(method, params ?? {});
  }

  send(message: object): void {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  ask(method: string, params: Arguments): Promise<never> {
    const id = this.next++;
    this.send({ id, method, params });
    return new Promise((resolve, reject) =>
      this.waiting.set(id, ({ result, error }) =>
        error ? reject(new Error(error.message)) : resolve(result as never),
      ),
    );
  }
}

/** The data of the recording that the host's question is about. */
export async function dataOfHost(): Promise<string> {
  let asked: (params: Arguments) => void;
  const question = new Promise<Arguments>((resolve) => (asked = resolve)),
    context = ({ theme }: Arguments) => {
      if (theme) document.documentElement.dataset.theme = String(theme);
    },
    host = new Host((method, params) => {
      if (method.endsWith("/tool-input")) asked(params.arguments as Arguments);
      if (method.endsWith("/host-context-changed")) context(params);
    }),
    { hostContext } = (await host.ask("ui/initialize", {
      protocolVersion: PROTOCOL,
      appInfo: { name: "cairn", version: "1" },
      appCapabilities: {},
    })) as { hostContext?: Arguments };
  context(hostContext ?? {});
  host.send({ method: "ui/notifications/initialized" });
  show = (file, line) =>
    void host
      .ask("ui/message", { role: "user", content: [{ type: "text", text: `Look at ${file}:${line}` }] })
      .catch(() => 0);
  const { recording, process } = await question,
    answer = (await host.ask("tools/call", {
      name: "page_data",
      arguments: process ? { recording, process } : { recording },
    })) as { content: { text: string }[]; isError?: boolean };
  if (answer.isError) throw new Error(answer.content[0].text);
  return answer.content[0].text;
}
