// Curves. All charts share the stretch of steps that is shown and the step that
// is pointed at.
const MARGIN = {left: 58, right: 14, top: 8, bottom: 24};
const LARGEST = 1e300;  // what lies beyond has no place on an axis
const charts = [];
let zoom = null;  // [first step, last step]; null shows all

// "eval/loss" is drawn beside "loss".
const measure = (name) => name.replace(/^(?:(?:train|training|eval|evaluation|valid|validation|val|dev|test)\/)+(?=.)/, "");

// The first index whose value is not below x, of an ascending list.
function lowerBound(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

function nearest(list, x) {
  const i = Math.min(lowerBound(list, x), list.length - 1);
  return i > 0 && x - list[i - 1] <= list[i] - x ? i - 1 : i;
}

// Round values within [low, high], about n of them.
function linearTicks(low, high, n, least = 0) {
  const rough = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 30; ++i) ticks.push(i * step + 0);  // no -0
  return ticks;
}

function logTicks(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  if (last - first < 2) {
    const ticks = [];
    for (let e = first - 1; e <= last; ++e) for (const m of [1, 2, 5]) ticks.push(m * 10 ** e);
    const inside = ticks.filter((t) => t >= low && t <= high);
    return inside.length > 3 ? inside : linearTicks(low, high, 6);
  }
  const every = Math.ceil((last - first) / 6);
  return Array.from({length: Math.floor((last - first) / every) + 1}, (_, i) => 10 ** (first + i * every));
}

class Chart {
  constructor(name, curves) {
    this.name = name;
    this.curves = curves;
    this.log = false;
    this.steps = [...new Set(curves.flatMap((c) => c.steps))].sort((a, b) => a - b);
    this.legend = make("ul", {class: "legend"});
    this.svg = make("svg", {tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-label": `${name} by step`});
    this.spoken = make("span", {class: "unseen", "aria-live": "polite"});
    this.logButton = make("button", {type: "button", "aria-pressed": "false", title: "Logarithmic values (L)", onclick: () => this.toggleLog()}, "log");
    if (!curves.some((c) => c.values.some((v) => v > 0 && v < LARGEST))) this.logButton.disabled = true;
    this.figure = make("figure", {class: "chart", "data-name": name},
        make("figcaption", {}, make("h3", {}, name), this.logButton), this.legend, this.svg, this.spoken);
    if (curves.some((c) => c.count > c.steps.length)) {
      const count = Math.max(...curves.map((c) => c.count));
      this.figure.append(make("p", {class: "note"}, `Of ${grouped(count)} points, the smallest and largest of each stretch are drawn.`));
    }
    this.listen();
  }

  shows(v) { return Math.abs(v) < LARGEST && (!this.log || v > 0); }
  x(step) { return MARGIN.left + (step - this.domain[0]) / (this.domain[1] - this.domain[0]) * this.plotWidth; }
  stepAt(x) { return this.domain[0] + (x - MARGIN.left) / this.plotWidth * (this.domain[1] - this.domain[0]); }
  y(v) {
    const place = this.log ? Math.log(v / this.range[0]) / Math.log(this.range[1] / this.range[0])
                           : (v - this.range[0]) / (this.range[1] - this.range[0]);
    return MARGIN.top + (1 - place) * this.plotHeight;
  }

  // The values' range among the points that are shown, with a margin.
  findRange() {
    let low = Infinity, high = -Infinity;
    for (const {steps, values} of this.curves) {
      const end = lowerBound(steps, this.domain[1] + 1e-9);
      for (let i = lowerBound(steps, this.domain[0]); i < end; ++i) {
        if (!this.shows(values[i])) continue;
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
      }
    }
    if (low > high) return this.log ? [0.1, 1] : [0, 1];
    if (this.log) {
      const factor = Math.max((high / low) ** 0.05, 1.05);
      return [Math.max(low / factor, Number.MIN_VALUE), high * factor];
    }
    const margin = (high - low) * 0.05 || Math.abs(low) * 0.05 || 0.5;
    return [low - margin, high + margin];
  }

  draw() {
    const {width, height} = this.svg.getBoundingClientRect();
    if (!width) return;
    this.plotWidth = Math.max(width - MARGIN.left - MARGIN.right, 10);
    this.plotHeight = Math.max(height - MARGIN.top - MARGIN.bottom, 10);
    this.domain = zoom || extent;
    this.range = this.findRange();
    const bottom = MARGIN.top + this.plotHeight, right = MARGIN.left + this.plotWidth;
    const id = "clip" + charts.indexOf(this);
    this.overlay = make("g", {});
    this.svg.replaceChildren(
        make("defs", {}, make("clipPath", {id},
            make("rect", {x: MARGIN.left - 4, y: 0, width: this.plotWidth + 8, height: bottom + 4}))),
        ...this.axes(bottom, right),
        make("g", {"clip-path": `url(#${id})`}, ...this.curves.flatMap((c, i) => this.curve(c, `var(--curve${i % 6})`, i))),
        this.overlay);
    this.point(null);
  }

  axes(bottom, right) {
    const parts = [];
    const ticks = this.log ? logTicks(...this.range) : linearTicks(...this.range, this.plotHeight / 32);
    for (const tick of ticks) {
      const y = this.y(tick);
      parts.push(make("line", {class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y}));
      parts.push(make("text", {x: MARGIN.left - 8, y: y + 4, "text-anchor": "end"}, show(tick, 4)));
    }
    for (const tick of linearTicks(...this.domain, this.plotWidth / 70, 1)) {
      const x = this.x(tick);
      if (x > right + 1) continue;
      parts.push(make("line", {class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4}));
      parts.push(make("text", {x, y: bottom + 17, "text-anchor": x > right - 20 ? "end" : "middle"}, grouped(tick)));
    }
    parts.push(make("line", {class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom}));
    return parts;
  }

  // A line that breaks where a value cannot be drawn. Such values are marked at
  // the edge; points that have no neighbour, or few of them, are dots.
  curve({steps, values}, stroke, index) {
    const begin = Math.max(lowerBound(steps, this.domain[0]) - 1, 0);
    const end = Math.min(lowerBound(steps, this.domain[1] + 1e-9) + 1, steps.length);
    const dots = end - begin <= 40;
    const parts = [];
    let path = "", drawing = false;
    for (let i = begin; i < end; ++i) {
      const x = this.x(steps[i]).toFixed(1);
      if (!this.shows(values[i])) {
        drawing = false;
        if (!(Math.abs(values[i]) < LARGEST)) {
          parts.push(make("path", {class: "odd", d: `M${x} ${MARGIN.top + 7}l-4 -7h8z`}));
        }
        continue;
      }
      const y = this.y(values[i]).toFixed(1);
      path += (drawing ? "L" : "M") + x + " " + y;
      const alone = !drawing && !(i + 1 < end && this.shows(values[i + 1]));
      if (dots || alone) parts.push(make("circle", {cx: x, cy: y, r: 2.2, fill: stroke}));
      drawing = true;
    }
    const line = {class: "curve", d: path, style: `stroke: ${stroke}`};
    if (index >= 6) line["stroke-dasharray"] = "5 3";
    return [make("path", line), ...parts];
  }

  // Shows the values nearest to a step; at null those of the last one shown.
  point(step) {
    if (!this.domain) return;
    this.step = step;
    const end = this.steps[Math.max(lowerBound(this.steps, this.domain[1] + 1e-9) - 1, 0)];
    const at = step === null ? end : step;
    const drawn = [], words = [];
    const entries = this.curves.map((c, i) => {
      const n = nearest(c.steps, at);
      const value = c.values[n];
      const there = c.steps[n] === at ? "" : ` (at ${grouped(c.steps[n])})`;
      if (step !== null && this.shows(value) && this.isVisible(c.steps[n])) {
        drawn.push(make("circle", {cx: this.x(c.steps[n]), cy: this.y(value), r: 4, fill: `var(--curve${i % 6})`}));
      }
      words.push(`${c.name} ${show(value)}${there}`);
      return make("li", {}, make("i", {style: `border-color: var(--curve${i % 6})`}), c.name + " ",
                  make("b", {class: "value"}, show(value)), there);
    });
    this.legend.replaceChildren(make("li", {class: "step"}, `step ${grouped(at)}`), ...entries);
    this.spokenText = `step ${grouped(at)}: ${words.join(", ")}`;
    if (step !== null && this.isVisible(step)) {
      const x = this.x(step);
      drawn.unshift(make("line", {class: "crosshair", x1: x, x2: x, y1: MARGIN.top, y2: MARGIN.top + this.plotHeight}));
    }
    this.overlay.replaceChildren(...drawn);
  }

  isVisible(step) { return step >= this.domain[0] && step <= this.domain[1]; }

  toggleLog() {
    if (this.logButton.disabled) return;
    this.log = !this.log;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.draw();
  }

  listen() {
    let dragged = null;  // where it began
    const place = (event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      return Math.min(Math.max(x, MARGIN.left), MARGIN.left + this.plotWidth);
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      dragged = place(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      const x = place(event);
      pointAll(this.steps[nearest(this.steps, this.stepAt(x))]);
      if (dragged === null) return;
      this.overlay.append(make("rect", {class: "selection", x: Math.min(x, dragged), y: MARGIN.top,
                                        width: Math.abs(x - dragged), height: this.plotHeight}));
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (dragged === null) return;
      const ends = [dragged, place(event)].sort((a, b) => a - b);
      dragged = null;
      if (ends[1] - ends[0] > 5) setZoom(this.stepAt(ends[0]), this.stepAt(ends[1]));
    });
    this.svg.addEventListener("pointercancel", () => { dragged = null; pointAll(null); });
    this.svg.addEventListener("pointerleave", () => pointAll(null));
    this.svg.addEventListener("dblclick", () => setZoom());
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? 1.25 : 0.8, this.stepAt(place(event)));
    }, {passive: false});
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => pointAll(null));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = lowerBound(this.steps, this.domain[0]);
    const last = Math.max(lowerBound(this.steps, this.domain[1] + 1e-9) - 1, first);
    const here = this.step === null ? last : nearest(this.steps, this.step);
    const page = Math.max(Math.round((last - first) / 10), 1);
    const centre = this.step === null ? (this.domain[0] + this.domain[1]) / 2 : this.step;
    const move = {ArrowLeft: -1, ArrowRight: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity}[event.key];
    if (move !== undefined) {
      pointAll(this.steps[Math.min(Math.max(this.step === null && move === 1 ? last : here + move, first), last)]);
      this.spoken.textContent = this.spokenText;
    } else if (event.key === "+" || event.key === "=") zoomBy(0.5, centre);
    else if (event.key === "-") zoomBy(2, centre);
    else if (event.key === "0" || event.key === "Escape") setZoom();
    else if (event.key === "l" || event.key === "L") this.toggleLog();
    else return;
    event.preventDefault();
  }
}

let extent = [0, 1];  // of the steps of all curves

function pointAll(step) {
  for (const chart of charts) chart.point(step);
}

// Shows the steps from `first` to `last`, at least one; without them, all.
function setZoom(first = extent[0], last = extent[1]) {
  first = Math.max(first, extent[0]);
  last = Math.min(last, extent[1]);
  if (last - first < 1) {
    first = Math.min(Math.max(Math.round((first + last) / 2 - 0.5), extent[0]), extent[1] - 1);
    last = first + 1;
  }
  zoom = first <= extent[0] && last >= extent[1] ? null : [first, last];
  byId("reset").disabled = !zoom;
  byId("range").textContent = `Steps ${grouped(Math.ceil(first))} to ${grouped(Math.floor(last))}`;
  for (const chart of charts) {
    const step = chart.step ?? null;
    chart.draw();
    if (step !== null) chart.point(step);
  }
}

function zoomBy(factor, centre) {
  const [first, last] = zoom || extent;
  setZoom(centre - (centre - first) * factor, centre + (last - centre) * factor);
}

function curvesSection(curves) {
  if (!curves.length) return;
  reveal("curves");
  const groups = new Map();
  for (const curve of curves) {
    const name = measure(curve.name);
    groups.set(name, [...(groups.get(name) || []), curve]);
  }
  // Losses first, times last, the others as the run logged them.
  const rank = (name) => name === "loss" ? 0 : name.startsWith("time/") ? 2 : 1;
  for (const name of [...groups.keys()].sort((a, b) => rank(a) - rank(b))) charts.push(new Chart(name, groups.get(name)));
  byId("charts").append(...charts.map((c) => c.figure));
  extent = [Math.min(...charts.map((c) => c.steps[0])), Math.max(...charts.map((c) => c.steps[c.steps.length - 1]))];
  if (extent[0] === extent[1]) extent = [extent[0], extent[0] + 1];
  byId("reset").addEventListener("click", () => setZoom());
  for (const chart of charts) redrawn(chart.svg, () => chart.draw());
  setZoom();
}
