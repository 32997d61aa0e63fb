// What all parts of the page use. Text from the data only ever becomes the
// content of a text node or of a canvas, never HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// An element with attributes; children are elements or text.
function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "line", "path", "circle", "rect", "text", "clipPath", "defs"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A number for people: `digits` significant ones.
function show(value, digits = 6) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const text = String(Number(value.toPrecision(digits)));
  return text.replace("-", "−").replace("e−", "e-");
}

const grouped = (n) => n.toLocaleString("en-US");

// A colour of the style sheet, as it is now.
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Shows a section and links to it.
function reveal(id) {
  const section = byId(id);
  section.hidden = false;
  const link = make("a", {href: "#" + id}, section.querySelector("h2").textContent);
  document.querySelector("nav").append(link);
  return section;
}

// Calls `draw` now, and when the element's width or the colours change.
function redrawn(element, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
