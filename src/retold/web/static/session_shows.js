// What of the conversation is shown: chosen by buttons and keys, and remembered.
import { $, $$ } from "./base.js";
import { page, present, transcript } from "./session_here.js";

const YEAR = 31536000;
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
export const toggle = (button) => kept(() => {
  press(button, button.getAttribute("aria-pressed") !== "true");
  transcript.classList.toggle(`show-${button.dataset.show}`);
  remember();
});
export const showTools = (tools) => kept(() => {
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
