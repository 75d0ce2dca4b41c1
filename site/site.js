// SPDX-License-Identifier: Apache-2.0
// Search, colours and the menu of narrow screens. Classic scripts, no request: pages work from file:// as from a server.
(() => {
  const top = document.currentScript.dataset.top;
  const $ = (name) => document.querySelector(name);
  const SHOWN = 12;
  const SNIPPET = 150;
  const LITTLE_WORDS = new Set(
    "a an and are at by can did do does for how i in is it my of on or the to was what when which who why with".split(
      " ",
    ),
  );

  function remembered(value) {
    try {
      if (value) localStorage.setItem("cairn-theme", value);
      return localStorage.getItem("cairn-theme");
    } catch {
      return null;
    }
  }

  function set_up_theme() {
    const root = document.documentElement;
    const kept = remembered();
    if (kept) root.dataset.theme = kept;
    $("#theme").hidden = false;
    $("#theme").onclick = () => {
      const is_dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = is_dark ? "light" : "dark";
      remembered(root.dataset.theme);
    };
  }

  function set_up_menu() {
    const button = $("#menu-button");
    button.hidden = false;
    document.body.classList.add("with-script");
    button.onclick = () => button.setAttribute("aria-expanded", $("#menu").classList.toggle("open"));
    const here = $("nav [aria-current]");
    if (here && $("#menu").scrollHeight > $("#menu").clientHeight)
      $("#menu").scrollTop = here.offsetTop - $("#menu").clientHeight / 2;
  }

  function load(name) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = top + name;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
  }

  /** Words, and the parts of names: CAIRN_OUTPUT is itself, and CAIRN, and OUTPUT; so --max-peak. */
  function words_of(text) {
    const words = text.split(/[^\p{L}\p{N}_-]+/u).map((word) => word.replace(/^-+|-+$/g, ""));
    const parts_of = (word) => (/[_-]/.test(word) ? [word, ...word.split(/[_-]+/)] : [word]);
    return words.flatMap(parts_of).filter(Boolean);
  }

  let ready = null;
  /** The index is read when somebody wants to search. */
  function engine() {
    ready ??= Promise.all([load("minisearch.js"), load("index.js")]).then(() => {
      const search = new window.MiniSearch({
        fields: ["page", "heading", "text"],
        storeFields: ["url", "page", "heading", "text"],
        tokenize: words_of,
        processTerm: (term) => (LITTLE_WORDS.has(term.toLowerCase()) ? null : term.toLowerCase()),
        searchOptions: {
          boost: { page: 4, heading: 3 },
          prefix: true,
          fuzzy: (word) => (word.length > 4 ? 0.2 : 0),
          // news and lists have every word, and answer few questions
          boostDocument: (id, term, { url, heading }) =>
            /^(CHANGELOG|ARCHITECTURE|docs\/agents|docs\/reference\/commands)/.test(url) ? 0.4 : heading ? 1 : 1.5,
          weights: { prefix: 0.6, fuzzy: 0.2 },
        },
      });
      search.addAll(window.cairnIndex);
      return search;
    });
    return ready;
  }

  function element(name, ...children) {
    const made = document.createElement(name);
    made.append(...children);
    return made;
  }

  /** The text around the first word that was found, words marked. */
  function snippet(text, terms) {
    const flat = text.replace(/\s+/g, " ");
    const pattern = new RegExp(`(${terms.map((term) => term.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|")})`, "gi");
    const first = Math.max(0, flat.search(pattern));
    const from = Math.max(0, first - 50);
    const shown = (from ? "…" : "") + flat.slice(from, from + SNIPPET);
    return shown.split(pattern).map((part, i) => (i % 2 ? element("mark", part) : part));
  }

  function row(hit) {
    const link = element("a", element("b", hit.heading || hit.page), hit.heading ? ` · ${hit.page}` : "");
    link.href = top + hit.url;
    link.tabIndex = -1;
    link.append(element("small", ...snippet(hit.text, hit.terms)));
    const item = element("li", link);
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    return item;
  }

  /** What has all words, then what has some. */
  function find(search, words) {
    const all = search.search(words, { combineWith: "AND" });
    const urls = new Set(all.map((hit) => hit.url));
    return [...all, ...search.search(words).filter((hit) => !urls.has(hit.url))].slice(0, SHOWN);
  }

  function set_up_search() {
    const box = $("#search input");
    const list = $("#found");
    let chosen = -1;
    $("#search").hidden = false;

    function open(is_open) {
      list.hidden = !is_open;
      box.setAttribute("aria-expanded", is_open);
      if (!is_open) box.removeAttribute("aria-activedescendant");
    }
    function choose(index) {
      const rows = [...list.querySelectorAll("[role=option]")];
      if (!rows.length) return;
      chosen = (index + rows.length) % rows.length;
      rows.forEach((item, i) => {
        item.id = `found-${i}`;
        item.setAttribute("aria-selected", i === chosen);
      });
      box.setAttribute("aria-activedescendant", `found-${chosen}`);
      rows[chosen].scrollIntoView({ block: "nearest" });
    }
    async function show() {
      const words = box.value.trim();
      if (!words) return open(false);
      const search = await engine();
      if (words !== box.value.trim()) return;
      const hits = find(search, words);
      list.replaceChildren(...hits.map(row));
      if (!hits.length) {
        const none = element("li", "nothing found");
        none.className = "none";
        list.append(none);
      }
      open(true);
      choose(0);
    }
    box.onfocus = () => engine();
    box.oninput = show;
    box.onkeydown = (event) => {
      if (event.key === "ArrowDown") choose(chosen + 1);
      else if (event.key === "ArrowUp") choose(chosen - 1);
      else if (event.key === "Escape") open(false);
      else if (event.key === "Enter") list.querySelector("[aria-selected=true] a")?.click();
      else return;
      event.preventDefault();
    };
    list.onclick = () => open(false);
    document.addEventListener("click", (event) => {
      if (!$("#search").contains(event.target)) open(false);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      box.focus();
      event.preventDefault();
    });
  }

  function set_up_headings() {
    for (const heading of document.querySelectorAll("main :is(h2, h3)[id]")) {
      const link = element("a", "#");
      link.className = "here";
      link.href = `#${heading.id}`;
      link.setAttribute("aria-label", "Link to this section");
      heading.append(link);
    }
  }

  set_up_theme();
  set_up_menu();
  set_up_search();
  set_up_headings();
})();
