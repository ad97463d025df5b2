// Buttons that take their time say so; commands can be copied.
import { $, $$ } from "./base.js";

for (const form of $$("form[data-busy]")) {
  form.addEventListener("submit", () => {
    const button = $("button", form);
    button.textContent = form.dataset.busy;
    button.setAttribute("aria-busy", "true");
    setTimeout(() => { button.disabled = true; });
  });
}

for (const button of $$("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText($(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}
