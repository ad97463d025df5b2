// What every page can do: the palette, keys, light and dark. Pages work without any of it.

export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Fetch a piece of a page; what was asked for before, under the same name, is let go. */
const waiting = new Map();
export async function piece(path, name = path) {
  waiting.get(name)?.abort();
  const control = new AbortController();
  waiting.set(name, control);
  try {
    const answer = await fetch(path, { headers: { "x-retold": "piece" }, signal: control.signal });
    return answer.ok ? await answer.text() : null;
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw error;
  }
}

/** Put a piece from our own server in place of what an element holds. */
export function fill(element, html) {
  element.replaceChildren(document.createRange().createContextualFragment(html));
}

/** Call back when typing pauses. */
export function settled(callback, milliseconds = 90) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => callback(...given), milliseconds); };
}

/** Send a form of ours that changes something. */
export function post(path, fields) {
  const body = new URLSearchParams({ ...fields, token: document.body.dataset.token });
  return fetch(path, { method: "POST", body });
}

/** Be told of what is written into the archive while the page is open. */
export function live(callback) {
  // A browser has few connections to one server: a page that nobody looks at gives its own back.
  let source = null;
  const close = () => { source?.close(); source = null; };
  const open = () => {
    source = new EventSource("/live");
    source.addEventListener("changed", () => callback());
  };
  document.addEventListener("visibilitychange", () => {
    close();
    if (!document.hidden) { open(); callback(); }
  });
  addEventListener("pagehide", close);
  open();
}

/** Move through things with the keyboard: those are links or have one. */
export function rows() { return $$("[data-row]").filter((row) => row.offsetParent !== null); }
const link = (row) => (row.matches("a, button") ? row : $("a", row));
export function step(by, among = rows()) {
  if (!among.length) return;
  const now = among.findIndex((row) => row.contains(document.activeElement));
  const next = now < 0 ? (by > 0 ? 0 : among.length - 1) : Math.min(Math.max(now + by, 0), among.length - 1);
  link(among[next])?.focus();
  among[next].scrollIntoView({ block: "nearest" });
}

const palette = $("dialog.palette");
if (palette) {
  const field = $("input", palette);
  const found = $("#palette-found");
  let shown = null;
  const look = async () => {
    const text = field.value;
    const html = await piece(`/palette?q=${encodeURIComponent(text)}`, "palette");
    if (html !== null) { fill(found, html); shown = text; }
  };
  const open = (event) => { event?.preventDefault(); palette.showModal(); field.select(); look(); };
  $("[data-palette]")?.addEventListener("click", open);
  field.addEventListener("input", settled(look));
  palette.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      step(event.key === "ArrowDown" ? 1 : -1, $$("[data-row]", palette));
    } else if (event.key === "Escape") {
      event.preventDefault(); // a search field would only be emptied
      palette.close();
    } else if (event.key === "Enter" && event.ctrlKey) {
      event.preventDefault();
      $("form", palette).requestSubmit();
    } else if (event.key === "Enter" && event.target === field && shown === field.value && $("[data-row] a", palette)) {
      event.preventDefault(); // what is shown for other letters is not what was meant
      $("[data-row] a", palette).click();
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && document.activeElement !== field) field.focus();
  });
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") open(event);
    else if (event.key === "/" && !typing(event) && !palette.open) open(event);
  });
}

export const typing = (event) => event.target.closest?.("input, textarea, select, [contenteditable]") !== null;

let before = "";
addEventListener("keydown", (event) => {
  if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  const way = before === "g" && $(`.top nav [data-way="${CSS.escape(event.key)}"]`);
  if (way) location.href = way.href;
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") $("dialog.help")?.showModal();
  before = event.key;
});

$("[data-look-toggle]")?.addEventListener("click", () => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.look && matchMedia("(prefers-color-scheme: dark)").matches);
  const look = isDark ? "light" : "dark";
  document.documentElement.dataset.look = look;
  document.cookie = `retold-look=${look}; path=/; max-age=31536000; samesite=strict`;
});
