// The tables: samples, parameters, configuration; and the summary on top.

// A table that scrolls within itself. The keyboard can scroll it.
function scrolled(label, table) {
  return make("div", {class: "table", tabindex: "0", role: "region", "aria-label": label}, table);
}

function samplesSection(samples) {
  if (!samples.length) return;
  const section = reveal("samples");
  const judged = samples.filter((s) => s.wanted !== null);
  const body = make("tbody");
  const fill = (list) => body.replaceChildren(...list.map((s) => make("tr", s.wrong ? {class: "wrong"} : {},
      make("td", {class: "text"}, s.input), make("td", {class: "text"}, s.output),
      ...(judged.length ? [
        make("td", {class: "text"}, s.wanted ?? ""),
        make("td", {class: "verdict"}, s.wanted === null ? "" : s.wrong ? "✗ wrong" : "✓ right"),
      ] : []))));
  fill(samples);
  if (judged.length) {
    const wrong = judged.filter((s) => s.wrong);
    const box = make("input", {type: "checkbox", id: "wrong-only", onchange: () => fill(box.checked ? wrong : samples)});
    section.querySelector(".toolbar").append(
        make("span", {}, `${grouped(judged.length - wrong.length)} of ${grouped(judged.length)} right`),
        ...(wrong.length ? [make("label", {}, box, "wrong ones only")] : []));
  }
  const names = judged.length ? ["Input", "Output", "Wanted", "Verdict"] : ["Input", "Output"];
  section.append(scrolled("Samples", make("table", {},
      make("thead", {}, make("tr", {}, ...names.map((n) => make("th", {scope: "col"}, n)))), body)));
}

// The text, which may go on in a new line after each dot.
const breakable = (text) => text.split(/(?<=\.)/).flatMap((part, i) => i ? [make("wbr"), part] : [part]);

function parametersSection(parameters) {
  if (!parameters.length) return;
  const columns = [
    {key: "name", title: "Name", css: "code", text: (p) => p.name},
    {key: "shape", title: "Shape", css: "code number", text: (p) => p.shape, by: (p) => Number(p.count)},
    {key: "dtype", title: "Type", css: "code optional", text: (p) => p.dtype},
    {key: "count", title: "Count", css: "number", text: (p) => grouped(p.count), by: (p) => p.count},
    {key: "norm", title: "Norm", css: "number", text: (p) => show(Number(p.norm)), by: (p) => Number(p.norm)},
  ];
  const body = make("tbody");
  const fill = (list) => body.replaceChildren(...list.map((p) => make("tr", {},
      ...columns.map((c) => make(c.key === "name" ? "th" : "td",
          c.key === "name" ? {scope: "row", class: c.css} : {class: c.css}, ...(c.key === "name" ? breakable(p.name) : [c.text(p)]))))));
  fill(parameters);
  const heads = columns.map((c) => make("th", {scope: "col", class: c.css.replace("code", ""), "aria-sort": "none"},
      make("button", {type: "button", onclick: () => sort(c)}, c.title)));
  // Up, down, and back to the model's own order.
  const sort = (column) => {
    const head = heads[columns.indexOf(column)];
    const next = {none: "ascending", ascending: "descending", descending: "none"}[head.getAttribute("aria-sort")];
    heads.forEach((h) => h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", next);
    const by = column.by || column.text;
    const compare = (a, b) => {
      const [x, y] = [by(a), by(b)];
      if (typeof x === "string") return x.localeCompare(y, "en", {numeric: true});
      return Number.isNaN(x) - Number.isNaN(y) || x - y || 0;
    };
    const list = [...parameters];
    if (next !== "none") list.sort((a, b) => next === "ascending" ? compare(a, b) : compare(b, a));
    fill(list);
  };
  const total = parameters.reduce((sum, p) => sum + p.count, 0);
  const norm = Math.hypot(...parameters.map((p) => Number(p.norm)));
  const foot = make("tr", {}, make("td", {}, `${grouped(parameters.length)} tensors`), make("td"),
      make("td", {class: "optional"}), make("td", {class: "number"}, grouped(total)),
      make("td", {class: "number"}, show(norm)));
  reveal("parameters").append(scrolled("Parameters",
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body, make("tfoot", {}, foot))));
}

// The leaves of nested objects as ["a.b", value].
function leaves(object, prefix) {
  return Object.entries(object).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length
      ? leaves(value, prefix + name + ".") : [[prefix + name, value]]);
}

function configSection(config) {
  if (typeof config === "string") {
    if (config) reveal("config").append(make("div", {class: "table"}, make("pre", {}, config)));
    return;
  }
  if (config === null || Object.keys(config).length === 0) return;
  const rows = leaves({config}, "").map(([name, value]) => make("tr", {},
      make("th", {scope: "row", class: "code"}, name.replace(/^config\./, "")),
      make("td", {class: "code text"}, typeof value === "string" ? value : JSON.stringify(value))));
  reveal("config").append(scrolled("Configuration", make("table", {}, make("tbody", {}, ...rows))));
}

function summary({curves, parameters, samples}) {
  const entry = (name, value) => byId("summary").append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const last = (list) => list[list.length - 1];
  if (curves.length) entry("Last step", grouped(Math.max(...curves.map((c) => last(c.steps)))));
  for (const curve of curves.filter((c) => measure(c.name) === "loss")) {
    const best = curve.values.filter(Number.isFinite).reduce((a, b) => Math.min(a, b), Infinity);
    const isTrain = curve.name === "loss" || curve.name.startsWith("train/");
    if (isTrain) entry("Last " + curve.name, show(last(curve.values), 4));
    else entry("Best " + curve.name, show(best, 4));
  }
  const judged = samples.filter((s) => s.wanted !== null);
  if (judged.length) entry("Samples right", `${judged.filter((s) => !s.wrong).length} of ${judged.length}`);
  if (parameters.length) entry("Parameters", grouped(parameters.reduce((sum, p) => sum + p.count, 0)));
}
