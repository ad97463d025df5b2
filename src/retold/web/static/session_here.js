// The conversation on this page: where it is asked for, what of it is loaded, and where in it the reader is.
import { $, $$ } from "./base.js";

export const page = $(".session");
export const transcript = $(".transcript");
export const key = page.dataset.key;
export const view = page.dataset.view === "active" ? "active" : "";

/** An address, without what says nothing. */
export const asked = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `${path}?${new URLSearchParams(given)}`;
};
/** An address of this conversation, in this view. */
export const of = (path, query = {}) => asked(path, { key, view, ...query });
export const fragment = (html) => document.createRange().createContextualFragment(html);

export const slices = () => $$(".slice", transcript);
export const place = (entry) => Number(entry.dataset.place);
export const at = (number) => document.getElementById(`e${number}`);
/** The entry that is being read. */
export const present = () => {
  const box = transcript.getBoundingClientRect();
  for (let down = 150; down < innerHeight; down += 40) {
    const entry = document.elementFromPoint(box.left + box.width / 2, down)?.closest(".transcript > .slice .entry");
    if (entry) return entry.parentElement.closest(".entry") ?? entry;
  }
  return null;
};
export const turnLinks = () => $$(".turns a[data-place]", page);
export const turnAt = (number, links = turnLinks()) => links.findLastIndex((one) => Number(one.dataset.place) <= number);
