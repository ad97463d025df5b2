// The list of sessions: it is searched while somebody types, narrowed without a new page, goes on when scrolled, and renews itself.
import { $, $$, fill, live, piece, settled, typing } from "./base.js";

const found = $("#found");
const form = $("form.ask");
const here = () => new URL(location.href);
const asPiece = (address, name) => {
  const url = new URL(address, location.href);
  url.searchParams.set("piece", name);
  return `${url.pathname}${url.search}`;
};
const rowOf = (key) => $$("[data-key]", found).find((row) => row.dataset.key === key);
const keyOf = (element) => element?.closest?.("[data-key]")?.dataset.key;

/** Where the focus is, so that it can be put there again when all around it is new. */
function kept() {
  const now = document.activeElement;
  if (!now || !found.contains(now)) return () => {};
  const { facet, chip } = now.dataset;
  const key = keyOf(now);
  const place = key ? $$("a", now.closest("[data-key]")).indexOf(now) : 0;
  return () => {
    let next = null;
    if (key) next = rowOf(key) && ($$("a", rowOf(key))[place] ?? $("a", rowOf(key)));
    else if (facet !== undefined) next = $$("[data-facet]", found).find((one) => one.dataset.facet === facet);
    else if (chip !== undefined) next = $("[data-chip]", found);
    (next ?? $("#results")).focus({ preventScroll: true });
  };
}

/** Put what was found in place of what is shown. */
function put(html) {
  const focus = kept();
  const open = $$("details[open]", found).map((one) => one.parentElement.querySelector("h2").textContent);
  fill(found, html);
  for (const one of $$("details", found)) one.open = open.includes(one.parentElement.querySelector("h2").textContent);
  focus();
  arm();
}

let shown = location.search;
async function show(address, how) {
  const url = new URL(address, location.href);
  if (how) history[how](null, "", `${url.pathname}${url.search}`);
  shown = url.search;
  found.setAttribute("aria-busy", "true");
  const html = await piece(asPiece(url, "found"), "found");
  if (html === null) {
    if (shown === url.search) found.removeAttribute("aria-busy"); // not where another question has taken its place
    return;
  }
  found.removeAttribute("aria-busy");
  put(html);
  if (how === "pushState") scrollTo(0, 0);
  document.title = `${url.searchParams.get("q") ? `${url.searchParams.get("q")} · ` : ""}Sessions · retold`;
}

function asked() {
  const url = here();
  for (const name of ["from", "many", "piece"]) url.searchParams.delete(name);
  for (const name of ["q", "mode", "order"]) {
    const value = form.elements[name].value.trim();
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  url.hash = "";
  return url;
}

function told() {
  for (const name of ["q", "mode", "order"]) form.elements[name].value = here().searchParams.get(name) ?? "";
}

const quickly = settled(() => show(asked(), "replaceState"));
const slowly = settled(() => { if (form.elements.q.value.trim().length !== 1) show(asked(), "replaceState"); }, 500);

/** More rows, as soon as the end of the list comes near. */
let loading = false;
const near = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) more(); }, { rootMargin: "600px" });
function arm() {
  near.disconnect();
  const end = $(".more", found);
  if (end && !here().searchParams.get("mode")) near.observe(end); // to look through everything again is for people to ask
}
async function more(isAsked = false) {
  const end = $(".more", found);
  if (!end || loading) return;
  loading = true;
  near.disconnect();
  const had = isAsked || document.activeElement === $("a", end);
  const html = await piece(asPiece($("a", end).href, "rows"), "more");
  loading = false;
  if (html === null || !end.isConnected) return;
  const fresh = document.createRange().createContextualFragment(html);
  for (const row of $$("[data-key]", fresh)) if (rowOf(row.dataset.key)) row.remove();
  const first = $("[data-key] a", fresh);
  end.replaceWith(fresh);
  if (had) first?.focus();
  arm();
}

/** Coming back leads to the same row, at the same height. */
let last; // the focus is gone by the time that a page is left
addEventListener("focusin", (event) => { last = keyOf(event.target); });
function remember() {
  history.replaceState({ many: $$("[data-key]", found).length, y: scrollY, key: last }, "");
}
async function comeBack({ many, y, key }) {
  if (many > $$("[data-key]", found).length) {
    const url = here();
    url.searchParams.set("many", many);
    const html = await piece(asPiece(url, "found"), "found");
    if (html !== null) put(html);
  }
  scrollTo(0, y);
  if (key) $("a", rowOf(key) ?? found)?.focus({ preventScroll: true });
}

/** What others write meanwhile. */
const LEFT = 80;
let hasMissed = false;
async function renew() {
  hasMissed = document.hidden; // nobody looks: it is done when somebody does
  if (hasMissed) return;
  if (!found) { location.reload(); return; }
  const url = here();
  if (url.searchParams.get("mode") || url.searchParams.get("from") || found.getAttribute("aria-busy")) return;
  const html = await piece(asPiece(url, "found"), "renewed");
  if (html === null || url.search !== location.search || found.getAttribute("aria-busy")) return;
  const fresh = document.createRange().createContextualFragment(html);
  if (scrollY < LEFT && $$("[data-key]", found).length <= $$("[data-key]", fresh).length + 1) { put(html); return; }
  const known = new Set($$("[data-key]", found).map((row) => row.dataset.key));
  const count = $$("[data-key]", fresh).filter((row) => !known.has(row.dataset.key)).length;
  const button = $(".fresh", found);
  if (!count || !button) return;
  button.textContent = `${count} new`;
  button.hidden = false;
  button.onclick = () => { put(html); scrollTo(0, 0); $("[data-row] a", found)?.focus(); };
}

if (found) {
  form.addEventListener("submit", (event) => { event.preventDefault(); show(asked(), "pushState"); });
  form.addEventListener("input", (event) => {
    if (event.target.name !== "q") show(asked(), "replaceState");
    else if (form.elements.mode.value) slowly();
    else quickly();
  });
  found.addEventListener("submit", (event) => {
    event.preventDefault();
    const url = asked();
    for (const name of ["since", "until"]) {
      const value = event.target.elements[name].value;
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
    }
    show(url, "pushState");
  });
  found.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.closest(".more")) { event.preventDefault(); more(); return; }
    if (link.pathname !== "/" || link.hash) return;
    event.preventDefault();
    show(link.href, "pushState").then(told);
  });
  addEventListener("popstate", () => { if (location.search !== shown) { told(); show(location.href); } });
  addEventListener("pagehide", remember);
  addEventListener("keydown", (event) => {
    if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
    if (event.key === "n") more(true);
    else if (event.key === "f") {
      const first = $(".facets a", found);
      if (first && first.offsetParent === null) location.hash = "#facets";
      first?.focus();
    }
  });
  told();
  arm();
  if (history.state?.many) comeBack(history.state);
}
live(settled(renew, 300));
addEventListener("visibilitychange", () => { if (hasMissed) renew(); });
