// SPDX-License-Identifier: Apache-2.0
// Makes the site: node build.mjs SOURCE OUTPUT, in a directory that has these files and node_modules (dev/site.sh).
// The pages are README.md, the documents beside it and docs/; they lie in the site as they lie in the repository, so
// that their links hold. A file of another kind that a page links to becomes a page with its text.
// Nothing needs a server: the search index is a script.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync, readdirSync } from "node:fs";
import path from "node:path";
import Eleventy from "@11ty/eleventy";

const [source, output] = process.argv.slice(2).map((name) => path.resolve(name));
const INPUT = "pages";
const LINK = /\]\(([^)\s#]+)/g;
const GROUPS = [
  ["Learn", (name) => name === "README.md" || name === "docs/tutorial.md" || name === "docs/reference/glossary.md"],
  ["Questions", (name) => name.startsWith("docs/howto/") || name.startsWith("docs/agents/")],
  ["Look up", (name) => name.startsWith("docs/reference/")],
  ["Understand", (name) => name.startsWith("docs/explain/")],
  ["The project", () => true],
];

const read = (name) => readFileSync(path.join(source, name), "utf8");
const without_blocks = (text) => text.replace(/^(```+)[^]*?^\1/gm, "");

function links_of(name, text = read(name)) {
  const found = [...without_blocks(text).matchAll(LINK)].map((match) => match[1]);
  return found
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => path.posix.normalize(path.posix.join(path.posix.dirname(name), link)));
}

/** Pages in the order of the README's questions, then as it names them; then the others, by name. */
function pages_in_order() {
  const text = read("README.md");
  const links = [...links_of("README.md", text.slice(text.indexOf("## Questions"))), ...links_of("README.md")];
  const named = ["README.md", ...links.filter((name) => name.endsWith(".md"))];
  const rest = readdirSync(path.join(source, "docs"), { recursive: true })
    .map((name) => `docs/${name}`)
    .filter((name) => name.endsWith(".md"))
    .sort();
  return [...new Set([...named, ...rest, "CONTRIBUTING.md", "SECURITY.md", "THIRD_PARTY.md", "bench/README.md"])];
}

const title_of = (text, name) => (text.match(/^# (.*)$/m) ?? [null, path.basename(name)])[1].replace(/[`*]/g, "");
const url_of = (name) => (name === "README.md" ? "index.html" : `${name.replace(/\.md$/, "")}.html`);

function put(name, content) {
  const place = path.join(INPUT, name);
  mkdirSync(path.dirname(place), { recursive: true });
  writeFileSync(place, content);
}

function front(data) {
  return `---json\n${JSON.stringify(data)}\n---\n`;
}

/** What pages link to and is none itself: images as they are, texts as pages. */
function put_linked(pages) {
  const linked = new Set(pages.flatMap((name) => links_of(name)).filter((name) => !pages.includes(name)));
  for (const name of linked) {
    const from = path.join(source, name);
    if (!existsSync(from)) throw new Error(`${name} is linked to and not there`);
    if (statSync(from).isDirectory()) {
      const names = readdirSync(from).sort().join("\n");
      put(`${name}.md`, front({ title: name, permalink: `${name}.html` }) + `# ${name}\n\`\`\`\n${names}\n\`\`\`\n`);
    } else if (/\.(png|svg)$/.test(name)) {
      mkdirSync(path.join(output, path.dirname(name)), { recursive: true });
      cpSync(from, path.join(output, name));
    } else {
      const text = `# ${name}\n\`\`\`\`\`\`\n${read(name)}\n\`\`\`\`\`\`\n`;
      put(`${name}.md`, front({ title: name, permalink: `${name}.html` }) + text);
    }
  }
}

rmSync(INPUT, { recursive: true, force: true });
rmSync(output, { recursive: true, force: true });
const pages = pages_in_order();
const menu = GROUPS.map(([label]) => ({ label, pages: [] }));
for (const name of pages) {
  // without what is for agents alone, and for tests/tools/page_blocks.py
  const text = read(name)
    .replace(/^---\n[^]*?\n---\n/, "")
    .replace(/^<!--.*-->\n/gm, "");
  const title = title_of(text, name);
  put(name, front({ title, permalink: url_of(name), from: name }) + text);
  menu[GROUPS.findIndex(([, has]) => has(name))].pages.push({ url: url_of(name), title });
}
put_linked(pages);
globalThis.cairn_site = { menu, pages: new Set(pages) };

const eleventy = new Eleventy(INPUT, output, { configPath: "eleventy.config.mjs", quietMode: true });
await eleventy.write();
for (const name of ["style.css", "site.js"]) cpSync(name, path.join(output, name));
cpSync("node_modules/minisearch/dist/umd/index.js", path.join(output, "minisearch.js"));
writeFileSync(
  path.join(output, "index.js"),
  `window.cairnIndex = ${JSON.stringify(globalThis.cairn_site.sections)};\n`,
);
