// Finding something in this conversation, and what is selected in it everywhere.
import { $, $$, fill, piece, settled } from "./base.js";
import { asked, key, page, transcript, view } from "./session_here.js";
import { goTo } from "./session_parts.js";

export const found = $(".found", page);
export const field = $(".find-here input[type=search]", page);
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
export const stepHit = (by) => {
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
export const search = () => { const text = selected(); if (text) location.href = asked("/", { q: text.includes(" ") ? `"${text}"` : text }); };
everywhere.addEventListener("mousedown", (event) => event.preventDefault());
everywhere.addEventListener("click", search);
