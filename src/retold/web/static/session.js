// What every page about a conversation can do: fetch what is opened, and copy. The conversation itself comes with more.
import { $, $$, fill, piece } from "./base.js";

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
  const chosen = $$(".session .menu form input:checked").map((one) => `&${one.name}=${one.value}`).join("");
  const text = await piece(link.getAttribute("href") + chosen, "copy");
  if (text === null) said("It could not be made");
  else await copy(text);
});
