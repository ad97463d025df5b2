// The pages of figures, made quicker: choices show at once, arrows move in pictures, changes are loaded when they are opened.
import { $$, fill, piece } from "./base.js";

for (const form of $$("form[data-choose]")) {
  for (const field of $$("select", form)) field.addEventListener("change", () => form.requestSubmit());
  // What is empty says nothing in an address.
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
  });
}

const STEPS = { ArrowRight: "x", ArrowLeft: "x", ArrowDown: "y", ArrowUp: "y" };
for (const chart of $$("svg[role=group]")) {
  const links = $$("a", chart);
  const where = new Map(links.map((link) => [link, link.getBBox()]));
  chart.addEventListener("keydown", (event) => {
    const here = where.get(event.target.closest("a"));
    if (!here || !STEPS[event.key]) return;
    event.preventDefault();
    const along = STEPS[event.key], across = along === "x" ? "y" : "x";
    const sign = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
    const far = (link) => (where.get(link)[along] - here[along]) * sign;
    const aside = (link) => Math.abs(where.get(link)[across] - here[across]);
    const next = links.filter((link) => far(link) > 0.5).sort((a, b) => far(a) + 3 * aside(a) - far(b) - 3 * aside(b))[0];
    if (!next) return;
    for (const link of links) link.setAttribute("tabindex", link === next ? "0" : "-1");
    next.focus();
  });
}

for (const details of $$("details[data-piece]")) {
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.is) return;
    details.dataset.is = "loading";
    const html = await piece(details.dataset.piece);
    details.dataset.is = html === null ? "" : "there";
    if (html !== null) fill(details.querySelector("[data-filled]"), html);
  });
}
