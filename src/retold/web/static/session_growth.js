// What is said while somebody reads: put behind what is there, or told where it changes what is further up.
import { $, $$, fill, piece } from "./base.js";
import { asked, fragment, key, of, page, present, slices, transcript, view } from "./session_here.js";
import { added, follow, watch } from "./session_parts.js";

const below = $(".new-below", page);
const isAtEnd = () => scrollY + innerHeight >= document.documentElement.scrollHeight - 60;
const toEnd = (times = 3) => {  // what was not drawn yet turns out longer when it is
  scrollTo(0, document.documentElement.scrollHeight);
  if (times) requestAnimationFrame(() => toEnd(times - 1));
};
addEventListener("scroll", () => { if (isAtEnd()) below.hidden = true; }, { passive: true });
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
export async function look() {
  if (isLooking) return;
  isLooking = true;
  try { await grown(); } finally { isLooking = false; }
}
export async function outline() {
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
