// SPDX-License-Identifier: Apache-2.0
// How a page of Markdown becomes one of HTML: anchors as forges make them, links to pages that lie beside it, and the
// sections that the search finds.
import path from "node:path";

const site = globalThis.cairn_site;
const sections = [];
site.sections = sections;

/** The anchor of a heading, as tests/e2e/reference.py and forges have it. */
function anchor_of(text) {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");
}

const text_of = (inline) =>
  inline.children
    .filter((part) => /^(text|code_inline|softbreak)$/.test(part.type))
    .map((part) => part.content || " ")
    .join("");

function add_anchors(state) {
  const seen = new Map();
  state.tokens.forEach((token, i) => {
    if (token.type !== "heading_open") return;
    const base = anchor_of(text_of(state.tokens[i + 1]));
    const count = seen.get(base) ?? 0;
    seen.set(base, count + 1);
    token.attrSet("id", count ? `${base}-${count}` : base);
  });
}

function link_to(href, from) {
  if (/^[a-z]+:/.test(href) || href.startsWith("#")) return href;
  const [place, part] = href.split("#");
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(from), place)).replace(/\/$/, "");
  if (/\.(png|svg)$/.test(target)) return href;
  const url =
    target === "README.md"
      ? "index.html"
      : site.pages.has(target)
        ? target.replace(/\.md$/, ".html")
        : `${target}.html`;
  const relative = path.posix.relative(path.posix.dirname(from), url);
  return part ? `${relative}#${part}` : relative;
}

function change_links(state) {
  const from = state.env.from;
  if (!from) return;
  for (const inline of state.tokens.filter((token) => token.type === "inline"))
    for (const token of inline.children)
      if (token.type === "link_open") token.attrSet("href", link_to(token.attrGet("href"), from));
}

/** A row of the README's table of questions leads to its page. */
function collect_row(from, tokens, start) {
  const end = tokens.findIndex((token, i) => i > start && token.type === "tr_close");
  const cells = tokens.slice(start, end).filter((token) => token.type === "inline");
  const links = cells.flatMap((cell) => cell.children.filter((part) => part.type === "link_open"));
  if (from !== "README.md" || !links.length) return;
  const url = links.at(-1).attrGet("href");
  const text = cells.map(text_of).join("\n");
  sections.push({ id: sections.length, url, page: "", heading: text_of(cells[0]), text });
}

/** One entry for each heading, with the text below it. */
function collect(state) {
  const { permalink, title, from } = state.env;
  if (!from) return;
  let section = null;
  state.tokens.forEach((token, i) => {
    if (token.type === "tr_open") collect_row(from, state.tokens, i);
    if (token.type === "heading_open") {
      const heading = text_of(state.tokens[i + 1]);
      const part = token.tag === "h1" ? "" : `#${token.attrGet("id")}`;
      section = { id: sections.length, url: permalink + part, page: title, heading: part ? heading : "", text: "" };
      sections.push(section);
    } else if (section && state.tokens[i - 1]?.type !== "heading_open") {
      if (token.type === "inline") section.text += text_of(token) + "\n";
      if (/^(fence|code_block)$/.test(token.type)) section.text += token.content + "\n";
    }
  });
}

/** A block scrolls by itself, by keys as well; a table too. */
function scroll_by_itself(markdown) {
  const { rules } = markdown.renderer;
  for (const kind of ["fence", "code_block"]) {
    const usual = rules[kind];
    rules[kind] = (...all) => usual(...all).replace("<pre>", '<pre tabindex="0">');
  }
  rules.table_open = () => '<div class="wide" tabindex="0"><table>\n';
  rules.table_close = () => "</table></div>\n";
}

export default function (config) {
  config.amendLibrary("md", (markdown) => {
    markdown.set({ html: false, linkify: false, typographer: false });
    markdown.enable("code");
    markdown.core.ruler.push("anchors", add_anchors);
    markdown.core.ruler.push("links", change_links);
    markdown.core.ruler.push("sections", collect);
    scroll_by_itself(markdown);
  });
  config.addGlobalData("menu", site.menu);
  config.addGlobalData("layout", "page.njk");
  config.addFilter("from", (url, page) => path.posix.relative(path.posix.dirname(page), url));
  config.setUseGitIgnore(false);
  return {
    templateFormats: ["md"],
    // what stands in a page is not a template, however many braces it has
    markdownTemplateEngine: false,
    dir: { includes: "../layout" },
  };
}
