// Attention maps: for the sentence that is picked a block for each layer, in it
// a grid for each head. All heads of a layer show the same cell's weight.
const LARGEST_GRID = 320;
const LARGEST_CELL = 40;
const ROOM_FOR_NUMBER = 34;
const LABEL_SIZE = 11;
const LABEL_FONT = `${LABEL_SIZE}px system-ui, sans-serif`;
const measuring = document.createElement("canvas").getContext("2d");

const textWidth = (text) => {
  measuring.font = LABEL_FONT;
  return measuring.measureText(text).width;
};
const widest = (labels) => Math.ceil(labels.reduce((w, label) => Math.max(w, textWidth(label)), 0));

// The text, cut to a width.
function cut(text, width) {
  if (textWidth(text) <= width) return text;
  const characters = [...text];
  while (characters.length > 1 && textWidth(characters.join("") + "…") > width) characters.pop();
  return characters.join("") + "…";
}

// A token's text with its white space to be seen.
const visible = (token) => token.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥");

// A function that gives a weight's colour [red, green, blue], from 0 to 1, and
// one of its own to NaN.
function heatScale() {
  const rgb = (name) => color(name).match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16));
  const stops = [0, 1, 2, 3].map((i) => rgb("--heat" + i));
  const odd = rgb("--bad");
  return (weight) => {
    if (Number.isNaN(weight)) return odd;
    const place = Math.min(Math.max(weight, 0), 1) * 3;
    const i = Math.min(Math.floor(place), 2);
    const mixed = stops[i].map((from, c) => Math.round(from + (stops[i + 1][c] - from) * (place - i)));
    return mixed;
  };
}

// A context for drawing in CSS pixels on a screen of any density.
function prepare(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(density, density);
  return context;
}

class Layer {
  constructor({layer, queries, keys, heads}) {
    this.queries = queries.map(visible);
    this.keys = keys.map(visible);
    this.output = make("output", {});
    this.weights = heads.map((head) => head.map(Number));
    this.heads = heads.map((_, h) => {
      const canvas = make("canvas", {"aria-hidden": "true"});
      const cell = make("div", {class: "cell", hidden: ""});
      const value = make("b");
      const map = make("div", {class: "map", onpointermove: (e) => this.pointer(e, map), onpointerdown: (e) => this.pointer(e, map),
                               onpointerleave: () => this.select(null)}, canvas, cell);
      const figure = make("figure", {class: "head"}, make("figcaption", {}, `head ${h + 1} `, value), map);
      return {canvas, cell, value, map, figure};
    });
    this.grid = make("div", {class: "heads", tabindex: "0", role: "group", "aria-label": `Layer ${layer}: attention of ${heads.length} heads; arrow keys move between cells`,
                             onkeydown: (e) => this.key(e), onblur: () => this.select(null)}, ...this.heads.map((h) => h.figure));
    this.spoken = make("span", {class: "unseen", "aria-live": "polite"});
    this.block = make("div", {class: "layer"}, make("header", {}, make("h3", {}, layer), this.output), this.grid, this.spoken);
    this.select(null);
  }

  draw() {
    const available = this.grid.clientWidth;
    if (!available) return;
    const left = Math.min(widest(this.queries), 96, Math.floor(available * 0.3)) + 8;
    const columns = this.keys.length, rows = this.queries.length;
    const room = Math.min(available - left, LARGEST_GRID);
    const cell = Math.min(Math.max(Math.floor(room / Math.max(columns, rows)), 3), LARGEST_CELL);
    const keyWidth = widest(this.keys);
    const every = Math.ceil((LABEL_SIZE + 2) / cell);  // labels that find room
    const upright = keyWidth > cell * every - 3;
    const top = upright ? Math.min(keyWidth, 96) + 8 : LABEL_SIZE + 8;
    Object.assign(this, {left, top, cell});
    const scale = heatScale(), ink = color("--ink");
    this.heads.forEach(({canvas, map}, h) => {
      const [width, height] = [left + columns * cell, top + rows * cell];
      const context = prepare(canvas, width, height);
      map.style.width = width + "px";
      context.font = LABEL_FONT;
      context.fillStyle = ink;
      context.textBaseline = "middle";
      context.textAlign = "right";
      for (let q = 0; q < rows; q += every) context.fillText(cut(this.queries[q], left - 8), left - 6, top + (q + 0.5) * cell);
      for (let k = 0; k < columns; k += every) {
        context.save();
        context.translate(left + (k + 0.5) * cell, top - 6);
        if (upright) context.rotate(-Math.PI / 2);
        context.textAlign = upright ? "left" : "center";
        context.fillText(cut(this.keys[k], upright ? top - 8 : cell * every), 0, upright ? 0 : -LABEL_SIZE / 2);
        context.restore();
      }
      const gap = cell >= 8 ? 1 : 0;
      this.weights[h].forEach((weight, i) => {
        const [red, green, blue] = scale(weight);
        context.fillStyle = `rgb(${red} ${green} ${blue})`;
        const [x, y] = [left + i % columns * cell, top + Math.floor(i / columns) * cell];
        context.fillRect(x, y, cell - gap, cell - gap);
        if (cell < ROOM_FOR_NUMBER) return;
        context.fillStyle = 0.3 * red + 0.59 * green + 0.11 * blue > 128 ? "#14171b" : "#ffffff";
        context.textAlign = "center";
        context.fillText(Number.isFinite(weight) ? weight.toFixed(2) : show(weight), x + cell / 2, y + cell / 2);
      });
    });
    this.select(this.selected);
  }

  pointer(event, map) {
    const box = map.getBoundingClientRect();
    const k = Math.floor((event.clientX - box.left - this.left) / this.cell);
    const q = Math.floor((event.clientY - box.top - this.top) / this.cell);
    const inside = k >= 0 && q >= 0 && k < this.keys.length && q < this.queries.length;
    this.select(inside ? {q, k} : null);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {q, k} = this.selected || {q: 0, k: 0};
    const [rows, columns] = [this.queries.length, this.keys.length];
    const to = {ArrowUp: [q - 1, k], ArrowDown: [q + 1, k], ArrowLeft: [q, k - 1], ArrowRight: [q, k + 1], Home: [q, 0], End: [q, columns - 1]}[event.key];
    if (!to) return;
    event.preventDefault();
    const clamp = (i, n) => Math.min(Math.max(i, 0), n - 1);
    this.select(this.selected ? {q: clamp(to[0], rows), k: clamp(to[1], columns)} : {q, k});
    this.spoken.textContent = `${this.output.textContent}: ` + this.heads.map((h, i) => `head ${i + 1} ${h.value.textContent}`).join(", ");
  }

  select(cell) {
    this.selected = cell;
    this.output.textContent = cell ? `${this.queries[cell.q]} → ${this.keys[cell.k]}` : "";
    this.heads.forEach((head, h) => {
      head.cell.hidden = !cell;
      head.value.textContent = cell ? show(this.weights[h][cell.q * this.keys.length + cell.k], 4) : "";
      if (!cell) return;
      const gap = this.cell >= 8 ? 1 : 0;
      Object.assign(head.cell.style, {
        left: this.left + cell.k * this.cell + "px", top: this.top + cell.q * this.cell + "px",
        width: this.cell - gap + "px", height: this.cell - gap + "px",
      });
    });
  }
}

function attentionSection(maps) {
  if (!maps.length) return;
  const section = reveal("attention");
  const sentences = [...new Set(maps.map((m) => m.sentence))];
  let layers = [];
  const draw = () => {
    const scale = section.querySelector(".scale canvas");
    const context = prepare(scale, 120, 10);
    const heat = heatScale();
    for (let x = 0; x < 120; ++x) {
      context.fillStyle = `rgb(${heat(x / 119).join(" ")})`;
      context.fillRect(x, 0, 1, 10);
    }
    for (const layer of layers) layer.draw();
  };
  const pick = (i) => {
    layers = maps.filter((m) => m.sentence === sentences[i]).map((m) => new Layer(m));
    byId("layers").replaceChildren(...layers.map((l) => l.block));
    draw();
  };
  byId("sentence").append(...sentences.map((text, i) => make("option", {value: i}, text)));
  byId("sentence").addEventListener("change", (event) => pick(event.target.value));
  pick(0);
  redrawn(byId("layers"), draw);
}
