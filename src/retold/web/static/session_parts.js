// Further parts as one scrolls, and the way from place to place: by the outline, the strip, and turn by turn.
import { $, $$, piece } from "./base.js";
import { at, fragment, of, page, place, present, slices, transcript, turnAt, turnLinks, view } from "./session_here.js";

const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting) further(one.target);
}, { rootMargin: "1200px 0px" });
export const watch = () => {
  watcher.disconnect();
  const all = slices();
  const before = all[0] && $(".earlier a", all[0]);
  const behind = all.length && $(".later a", all[all.length - 1]);
  for (const link of [before, behind]) if (link) watcher.observe(link);
};
export const added = (html) => {
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

export const reveal = (entry) => {
  for (const one of $$(".entry.asked", transcript)) one.classList.remove("asked");
  for (let above = entry.parentElement?.closest("details"); above; above = above.parentElement?.closest("details")) above.open = true;
  entry.classList.add("asked");
  entry.scrollIntoView({ block: "start" });
  requestAnimationFrame(() => { entry.scrollIntoView({ block: "start" }); follow(); });
};
export async function goTo(number) {
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
export const follow = () => {
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
  requestAnimationFrame(() => { isDue = false; follow(); });
}, { passive: true });
export const turn = (by) => {
  const links = turnLinks();
  if (!links.length) return;
  const entry = present();
  const now = entry ? turnAt(place(entry), links) : -1;
  const isInside = entry && now >= 0 && Number(links[now].dataset.place) < place(entry);
  const next = by < 0 && isInside ? now : now + by;
  goTo(Number(links[Math.min(Math.max(next, 0), links.length - 1)].dataset.place));
};
