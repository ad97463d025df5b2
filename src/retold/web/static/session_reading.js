// Reading a conversation: its parts, what is shown of them, finding, keys, and what is new.
import { $, $$, live, typing } from "./base.js";
import { at, page, transcript } from "./session_here.js";
import { field, found, search, stepHit } from "./session_find.js";
import { look, outline } from "./session_growth.js";
import { follow, reveal, turn, watch } from "./session_parts.js";
import { showTools, toggle } from "./session_shows.js";

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

watch();
if (transcript.dataset.tools === "open") for (const call of $$("details.call", transcript)) call.open = true;
if (matchMedia("(min-width: 64.01rem)").matches) $(".turns", page).open = true;
const start = /^#e(\d+)$/.exec(location.hash)?.[1] ?? new URLSearchParams(location.search).get("at");
if (start && at(start)) reveal(at(start));
follow();
if ($(".turns[data-all]", page)) outline();
live(look);
