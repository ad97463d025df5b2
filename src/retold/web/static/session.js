// A conversation: further entries as one scrolls, what is opened as it is opened, and what is new as it is said.
import { $, $$, fill, live, piece, settled, typing } from "./base.js";

const page = $(".session");
const transcript = $(".transcript");
const YEAR = 31536000;

const asked = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `${path}?${new URLSearchParams(given)}`;
};
const fragment = (html) => document.createRange().createContextualFragment(html);

// What is folded is fetched when it is opened.
async function fetched(details) {
  const path = details.dataset.fetch;
  if (!path || !details.open) return;
  delete details.dataset.fetch;
  const body = $(":scope > .body", details);
  body.classList.add("waiting");
  const html = await piece(`${path}&piece=1`);
  body.classList.remove("waiting");
  if (html !== null) fill(body, html);
  else details.dataset.fetch = path;
}
document.addEventListener("toggle", (event) => { if (event.target.matches?.("details[data-fetch]")) fetched(event.target); }, true);

// Copying.
const said = (text) => { const status = $(".said-of-it"); if (status) { status.textContent = text; setTimeout(() => { status.textContent = ""; }, 4000); } };
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    said("Copied");
  } catch { said("The browser does not let this page copy"); }
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (button) { await copy(button.dataset.copy); return; }
  const link = event.target.closest?.("[data-copy-from]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  said("Making it ready …");
  const chosen = $$(".menu form input:checked", page).map((one) => `&${one.name}=${one.value}`).join("");
  const text = await piece(link.getAttribute("href") + chosen, "copy");
  if (text === null) said("It could not be made");
  else await copy(text);
});

if (page) session();

function session() {
  const key = page.dataset.key;
  const view = page.dataset.view === "active" ? "active" : "";
  const of = (path, query = {}) => asked(path, { key, view, ...query });
  const slices = () => $$(".slice", transcript);

  // What is shown.
  const shown = () => {
    const names = $$("[data-show][aria-pressed=true]", page).map((one) => one.dataset.show);
    const tools = transcript.dataset.tools;
    return [...names, ...(tools === "none" ? [] : [tools])].join(".") || "nothing";
  };
  const remember = () => { document.cookie = `retold-show=${shown()}; path=/; max-age=${YEAR}; samesite=strict`; };
  const press = (button, is) => button.setAttribute("aria-pressed", is ? "true" : "false");
  const kept = (change) => {  // what one reads stays where it is
    const entry = present();
    const top = entry?.getBoundingClientRect().top;
    change();
    if (entry && entry.offsetParent !== null) scrollBy(0, entry.getBoundingClientRect().top - top);
  };
  const toggle = (button) => kept(() => {
    press(button, button.getAttribute("aria-pressed") !== "true");
    transcript.classList.toggle(`show-${button.dataset.show}`);
    remember();
  });
  const showTools = (tools) => kept(() => {
    transcript.dataset.tools = tools;
    for (const one of $$("[data-tools]", $(".bar", page))) press(one, one.dataset.tools === tools);
    transcript.classList.toggle("show-calls", tools !== "none");
    for (const call of $$("details.call", transcript)) call.open = tools === "open";
    remember();
  });
  $(".bar", page).addEventListener("click", (event) => {
    const button = event.target.closest("[data-show], [data-tools]");
    if (!button || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (button.dataset.show) toggle(button);
    else showTools(button.dataset.tools);
  });
  $(".bar", page).addEventListener("keydown", (event) => {
    if (event.key === " " && event.target.matches("[role=button]")) { event.preventDefault(); event.target.click(); }
  });

  // Further entries.
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) further(one.target);
  }, { rootMargin: "1200px 0px" });
  const watch = () => {
    watcher.disconnect();
    const all = slices();
    const before = all[0] && $(".earlier a", all[0]);
    const behind = all.length && $(".later a", all[all.length - 1]);
    for (const link of [before, behind]) if (link) watcher.observe(link);
  };
  const added = (html) => {
    const piece = fragment(html);
    if (transcript.dataset.tools === "open") for (const call of $$("details.call", piece)) call.open = true;
    return piece;
  };
  let busy = false;
  async function further(link) {
    if (busy || !link.isConnected) return;
    busy = true;
    const isEarlier = "until" in link.dataset;
    const query = isEarlier ? { until: link.dataset.until } : { first: link.dataset.first };
    const html = await piece(of("/session/part", query), "part");
    busy = false;
    if (html === null || !link.isConnected) return;
    const slice = link.closest(".slice");
    const top = slice.getBoundingClientRect().bottom;
    link.parentElement.remove();
    const made = added(html);
    for (const other of $$(isEarlier ? ".later" : ".earlier", made)) other.remove();
    if (isEarlier) {
      slice.before(made);
      scrollBy(0, slice.getBoundingClientRect().bottom - top);
    } else slice.after(made);
    watch();
    follow();
  }

  // From place to place.
  const place = (entry) => Number(entry.dataset.place);
  const at = (number) => document.getElementById(`e${number}`);
  const reveal = (entry) => {
    for (const one of $$(".entry.asked", transcript)) one.classList.remove("asked");
    for (let above = entry.parentElement?.closest("details"); above; above = above.parentElement?.closest("details")) above.open = true;
    entry.classList.add("asked");
    entry.scrollIntoView({ block: "start" });
    requestAnimationFrame(() => { entry.scrollIntoView({ block: "start" }); follow(); });
  };
  async function goTo(number) {
    if (!at(number)) {
      const html = await piece(of("/session/part", { at: number || 1 }), "part");
      if (html === null) return;
      for (const slice of slices()) slice.remove();
      transcript.append(added(html));
      watch();
    }
    const entry = at(number) ?? $(".entry", transcript);
    if (!entry) return;
    reveal(entry);
    history.replaceState(null, "", `${of("/session", { at: number || "" })}#e${number}`);
  }
  page.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-place]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || (view && link.closest(".found"))) return;
    event.preventDefault();
    const drawer = link.closest("details.turns");
    if (drawer && matchMedia("(max-width: 64rem)").matches) drawer.open = false;
    goTo(Number(link.dataset.place));
  });
  page.addEventListener("click", (event) => {
    const strip = event.target.closest(".minimap");
    if (!strip) return;
    const box = strip.getBoundingClientRect();
    const number = Math.floor(((event.clientY - box.top) / box.height) * Number(page.dataset.total));
    const links = turnLinks();
    goTo(Number(links[turnAt(number, links)]?.dataset.place ?? number));
  });
  const present = () => {
    const box = transcript.getBoundingClientRect();
    for (let down = 150; down < innerHeight; down += 40) {
      const entry = document.elementFromPoint(box.left + box.width / 2, down)?.closest(".transcript > .slice .entry");
      if (entry) return entry.parentElement.closest(".entry") ?? entry;
    }
    return null;
  };
  const turnLinks = () => $$(".turns a[data-place]", page);
  const turnAt = (number, links = turnLinks()) => links.findLastIndex((one) => Number(one.dataset.place) <= number);
  const follow = () => {
    const entry = present();
    if (!entry) return;
    const links = turnLinks();
    const now = links[turnAt(place(entry), links)];
    for (const one of $$(".turns a[aria-current]", page)) if (one !== now) one.removeAttribute("aria-current");
    if (now && !now.hasAttribute("aria-current")) {
      now.setAttribute("aria-current", "true");
      const box = now.closest(".turns");
      const [inner, outer] = [now.getBoundingClientRect(), box.getBoundingClientRect()];
      if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
    }
    const mark = $(".minimap .now", page);
    const total = Number(page.dataset.total);
    if (mark && total) {
      mark.setAttribute("y", String((place(entry) / total) * 1000 - 4));
      mark.setAttribute("height", "8");
    }
  };
  let isDue = false;
  addEventListener("scroll", () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; follow(); if (isAtEnd()) below.hidden = true; });
  }, { passive: true });
  const turn = (by) => {
    const links = turnLinks();
    if (!links.length) return;
    const entry = present();
    const now = entry ? turnAt(place(entry), links) : -1;
    const isInside = entry && now >= 0 && Number(links[now].dataset.place) < place(entry);
    const next = by < 0 && isInside ? now : now + by;
    goTo(Number(links[Math.min(Math.max(next, 0), links.length - 1)].dataset.place));
  };

  // Finding.
  const found = $(".found", page);
  const field = $(".find-here input[type=search]", page);
  const told = $("[data-found-told]", page);
  let hit = -1;
  const hits = () => $$(".hits a", found);
  const find = async () => {
    hit = -1;
    told.textContent = "";
    if (!field.value.trim()) { found.hidden = true; return; }
    const html = await piece(asked("/session/find", { key, q: field.value, piece: 1 }), "find");
    if (html === null) return;
    fill(found, html);
    found.hidden = false;
  };
  const stepHit = (by) => {
    const all = hits();
    if (!all.length) return;
    hit = (hit + by + all.length) % all.length;
    for (const one of all) one.removeAttribute("aria-current");
    all[hit].setAttribute("aria-current", "true");
    found.scrollTop = all[hit].offsetTop - found.clientHeight / 2;
    told.textContent = `${hit + 1} of ${all.length}`;
    if (view) location.href = all[hit].href;
    else goTo(Number(all[hit].dataset.place));
  };
  field.addEventListener("input", settled(find, 150));
  field.form.addEventListener("submit", async (event) => { event.preventDefault(); if (found.hidden) await find(); stepHit(1); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = ""; found.hidden = true; told.textContent = ""; field.blur(); }
  });

  // What is selected, everywhere.
  const everywhere = $(".search-selected", page);
  const selected = () => {
    const chosen = getSelection();
    const isOurs = chosen && !chosen.isCollapsed && transcript.contains(chosen.anchorNode);
    return isOurs ? chosen.toString().replace(/["“”„‟«»\s]+/gu, " ").trim().slice(0, 200) : "";
  };
  document.addEventListener("selectionchange", settled(() => { everywhere.hidden = !selected(); }, 200));
  const search = () => { const text = selected(); if (text) location.href = asked("/", { q: text.includes(" ") ? `"${text}"` : text }); };
  everywhere.addEventListener("mousedown", (event) => event.preventDefault());
  everywhere.addEventListener("click", search);

  // The panels that are named further up.
  for (const [selector, id] of [["[data-ledger]", "ledger"], ["[data-elsewhere]", "elsewhere"]]) {
    for (const link of $$(selector, page)) link.addEventListener("click", (event) => {
      event.preventDefault();
      const panel = document.getElementById(id);
      panel.open = true;
      panel.scrollIntoView({ block: "nearest" });
    });
  }
  document.addEventListener("click", (event) => {
    for (const menu of $$("details.menu[open]", page)) if (!menu.contains(event.target)) menu.open = false;
  });

  // Keys.
  let before = "";
  addEventListener("keydown", (event) => {
    const key = event.key;
    const was = before;
    before = key;
    if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]") || was === "g") return;
    const button = $(`[data-show][aria-keyshortcuts="${CSS.escape(key)}"]`, page);
    if (button) toggle(button);
    else if (key === "o") showTools({ none: "calls", calls: "open", open: "none" }[transcript.dataset.tools]);
    else if (key === "v") location.href = $("[data-view-toggle]", page).href;
    else if (key === "[") turn(-1);
    else if (key === "]") turn(1);
    else if (key === "f") { event.preventDefault(); field.select(); field.focus(); }
    else if (key === "n") stepHit(1);
    else if (key === "p") stepHit(-1);
    else if (key === "s") search();
    else if (key === "Escape") { found.hidden = true; for (const menu of $$("details.menu[open]", page)) menu.open = false; }
  });

  // What is new.
  const below = $(".new-below", page);
  const isAtEnd = () => scrollY + innerHeight >= document.documentElement.scrollHeight - 60;
  const toEnd = (times = 3) => {  // what was not drawn yet turns out longer when it is
    scrollTo(0, document.documentElement.scrollHeight);
    if (times) requestAnimationFrame(() => toEnd(times - 1));
  };
  below.addEventListener("click", () => { below.hidden = true; toEnd(); });
  const sayChanged = () => {
    if ($(".changed-above", page)) return;
    const note = fragment('<p class="changed-above" role="status">Something further up has changed: <a>load it anew</a></p>').firstChild;
    $("a", note).href = of("/session", { at: present()?.dataset.place ?? "" });
    transcript.prepend(note);
  };
  const hasTurned = (then, now) => Object.entries(then).some(([fate, count]) => (now[fate] ?? 0) < count)
    || Object.entries(now).some(([fate, count]) => fate !== "live" && count > (then[fate] ?? 0));
  let isLooking = false;
  async function look() {
    if (isLooking) return;
    isLooking = true;
    try { await grown(); } finally { isLooking = false; }
  }
  async function outline() {
    const lines = await piece(of("/session/outline", { at: present()?.dataset.place ?? "" }), "outline");
    if (lines === null) return;
    const isOpen = $(".turns", page).open;
    fill($(".outline", page), lines);
    $(".turns", page).open = isOpen;
    follow();
  }
  async function grown() {
    const answer = await piece(asked("/session/state", { key }), "state");
    if (answer === null) return;
    const now = JSON.parse(answer);
    if (now.stamp === page.dataset.stamp) return;
    const then = JSON.parse(page.dataset.fates);
    const wasWhole = !$(".slice:last-of-type .later", transcript);
    Object.assign(page.dataset, { stamp: now.stamp, total: String(now.total), fates: JSON.stringify(now.fates) });
    await outline();
    if (view || hasTurned(then, now.fates)) sayChanged();
    if (wasWhole) await renew();
    follow();
  }
  async function renew() {
    const stays = isAtEnd();
    const last = slices().at(-1);
    const html = last && await piece(of("/session/part", { first: last.dataset.first }), "part");
    if (!html) return;
    const open = new Set($$("details[open][id]", last).map((one) => one.id));
    const made = added(html);
    if (!$(".earlier", last)) for (const one of $$(".earlier", made)) one.remove();
    for (const one of $$("details[id]", made)) if (open.has(one.id)) one.open = true;
    last.replaceWith(made);
    watch();
    if (stays) toEnd();
    else below.hidden = isAtEnd();
  }

  watch();
  if (transcript.dataset.tools === "open") for (const call of $$("details.call", transcript)) call.open = true;
  if (matchMedia("(min-width: 64.01rem)").matches) $(".turns", page).open = true;
  const start = /^#e(\d+)$/.exec(location.hash)?.[1] ?? new URLSearchParams(location.search).get("at");
  if (start && at(start)) reveal(at(start));
  follow();
  if ($(".turns[data-all]", page)) outline();
  live(look);
}
