// Names from models are data: they reach the page as text nodes and attribute values alone.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#5b8def", "#e5943b", "#4fae74", "#d65f6f", "#9a75d1", "#3fb2bd", "#b98d4f", "#d97fc0", "#8fa64a", "#7d8899"];

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") {
      for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    } else if (value !== null && value !== undefined) {
      node.setAttribute(key, String(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    node.appendChild(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function empty(node) {
  while (node.firstChild) node.removeChild(node.firstChild);
  return node;
}

function digits(v, count) {
  return v === 0 ? "0" : Number(v.toPrecision(count)).toString();
}
function scaled(v, unit) {
  if (v === null || v === undefined) return "–";
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  while (v >= 999.5 && i + 1 < prefixes.length) { v /= 1000; ++i; }
  return digits(v, 3) + " " + prefixes[i] + unit;
}
function micros(v) {
  return v === null || v === undefined ? "–" : v >= 1000 ? digits(v / 1000, 4) + " ms" : digits(v, 3) + " µs";
}
function percent(v) {
  return v === null || v === undefined ? "–" : digits(100 * v, v < 0.1 ? 2 : 3) + " %";
}
function shortened(text, length) {
  return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

const FAMILIES = [];
for (const subject of DATA.subjects) {
  for (const layer of subject.report.layers) {
    if (!FAMILIES.includes(layer.family)) FAMILIES.push(layer.family);
  }
}
FAMILIES.sort();
function colourOf(name, names) {
  return COLOURS[names.indexOf(name) % COLOURS.length];
}
const familyColour = (family) => colourOf(family, FAMILIES);

function titleOf(layer, index) {
  return layer.name || layer.family + " (" + index + ")";
}
function bytesOf(layer) {
  return layer.bytesRead + layer.bytesWritten;
}
// Layers in bodies of control flow are part of the layer that runs them.
function topLayers(report) {
  return report.layers.filter((layer) => layer.depth === 0);
}
function totalTime(report) {
  return topLayers(report).reduce((sum, layer) => sum + (layer.timeUs || 0), 0);
}

const REASONS = {
  only: "the only tactic",
  model: "chosen by the cost model",
  preferred: "preferred by its family, though the cost model rates another as cheaper",
  timed: "chosen by the timing cache",
  forced: "forced by an option",
  shared: "chosen because other layers use its kernel too",
  profile: "chosen because its kernel is compiled for the engine's profiles",
  fallback: "the chosen one did not compile",
};
const BASES = {
  measured: "measured",
  model: "predicted by the cost model",
  roofline: "a lower bound from bytes and operations",
  none: "not known",
};

function choiceText(c) {
  const next = c.runnerUp === null ? "" : ", next " + c.runnerUp + " " + micros(c.runnerUpUs);
  return c.tactic + ": " + micros(c.predictedUs) + " predicted" + next + "; " + REASONS[c.reason];
}

function launchTable(launches) {
  const head = ["kernel", "grid", "block", "waves", "shared", "registers", "spilled"];
  return h("table", {}, h("tr", {}, head.map((t) => h("th", {}, t))), launches.map((l) => h("tr", {},
    h("td", {}, h("code", {}, l.entry + " " + l.hash)),
    h("td", {}, l.grid.join(" × ")), h("td", {}, l.block), h("td", {}, digits(l.waves, 3)),
    h("td", {}, scaled(l.dynamicShared + (l.staticShared || 0), "B")),
    h("td", {}, l.registers === null ? "–" : l.registers),
    h("td", {}, l.localBytes === null ? "–" : scaled(l.localBytes, "B")))));
}

// Names of the layers that read what layer `index` writes.
function readersOf(layers, index) {
  return layers.filter((l) => l.name !== "" && l.readsFrom.includes(index)).map((l) => l.name);
}

function layerDetail(layers, index) {
  const layer = layers[index];
  const list = (name, items) => items.length === 0 ? null
    : h("div", {}, h("b", {}, name + ": "), items.map((t) => h("div", {}, h("code", {}, t))));
  return h("div", {},
    h("div", {}, h("b", {}, "implementation: "), layer.implementation, "; time ", BASES[layer.timeBasis],
      layer.limitedBy ? "; limited by " + layer.limitedBy : ""),
    layer.choices.map((c) => h("div", {}, choiceText(c))),
    layer.name === "" ? list("no node of the model; read by", readersOf(layers, index)) : list("ONNX nodes", layer.nodes),
    list("reads", layer.inputs), list("writes", layer.outputs),
    layer.launches.length > 0 ? launchTable(layer.launches) : null);
}

const COLUMNS = [
  ["#", (l, i) => i, "number", (l, i) => i],
  ["layer", (l, i) => titleOf(l, i), "", null],
  ["time", (l) => l.timeUs, "number", (l) => micros(l.timeUs)],
  ["", null, "bars", null],
  ["of peak", (l) => l.shareOfPeak, "number", (l) => percent(l.shareOfPeak)],
  ["operations", (l) => l.flops, "number", (l) => scaled(l.flops, "")],
  ["bytes", bytesOf, "number", (l) => scaled(bytesOf(l), "B")],
];
const VIEW = { column: 0, descending: false, text: "", family: "", redraw: [] };

function shown(report) {
  const text = VIEW.text.toLowerCase();
  const rows = report.layers.map((layer, index, layers) => ({ layer, index, layers })).filter(({ layer }) =>
    (VIEW.family === "" || layer.family === VIEW.family) &&
    (text === "" || (layer.name + " " + layer.family + " " + layer.implementation).toLowerCase().includes(text)));
  const key = COLUMNS[VIEW.column][1];
  const order = (a, b) => a === b ? 0 : a === null ? -1 : b === null ? 1 : a < b ? -1 : 1;
  rows.sort((a, b) => order(key(a.layer, a.index), key(b.layer, b.index)) * (VIEW.descending ? -1 : 1) || a.index - b.index);
  return rows;
}

function sortBy(column) {
  VIEW.descending = VIEW.column === column ? !VIEW.descending : column > 1;
  VIEW.column = column;
  VIEW.redraw.forEach((draw) => draw());
}

function layerRow({ layer, index, layers }, most, body) {
  const colour = familyColour(layer.family);
  const width = most > 0 ? 100 * (layer.timeUs || 0) / most : 0;
  const row = h("tr", { class: "layer", on: { click: () => {
    const next = row.nextSibling;
    if (next && next.className === "detail") {
      body.removeChild(next);
    } else {
      body.insertBefore(h("tr", { class: "detail" }, h("td", { colspan: COLUMNS.length }, layerDetail(layers, index))), next);
    }
  } } }, COLUMNS.map(([name, , kind, text]) => {
    if (name === "layer") {
      return h("td", { title: titleOf(layer, index) }, h("span", { class: "chip", style: "background:" + colour }),
        "\u2003".repeat(layer.depth), layer.body ? layer.body + ": " : "", layer.family, " ",
        h("span", { class: "soft" }, shortened(titleOf(layer, index), 90)));
    }
    if (kind === "bars") {
      return h("td", { class: "bars" }, h("span", { class: "bar", style: "width:" + width.toFixed(2) + "%;background:" + colour }));
    }
    return h("td", { class: kind }, text(layer, index));
  }));
  return row;
}

function layerTable(subject) {
  const most = Math.max(0, ...subject.report.layers.map((l) => l.timeUs || 0));
  const body = h("tbody", {});
  const head = h("tr", {});
  const count = h("p", {});
  const draw = () => {
    const rows = shown(subject.report);
    empty(head);
    COLUMNS.forEach(([name, key, kind], i) => head.appendChild(h("th", key === null ? {} : {
      class: kind + " sorts" + (i === VIEW.column ? " sorted" : ""), on: { click: () => sortBy(i) } }, name)));
    empty(body);
    rows.forEach((row) => body.appendChild(layerRow(row, most, body)));
    const time = rows.reduce((sum, { layer }) => sum + (layer.depth === 0 ? layer.timeUs || 0 : 0), 0);
    empty(count).appendChild(document.createTextNode(rows.length + " of " + subject.report.layers.length + " layers, " + micros(time)));
  };
  VIEW.redraw.push(draw);
  draw();
  return h("div", {}, count, h("div", { class: "scroll" }, h("table", { class: "layers" }, h("thead", {}, head), body)));
}

function layerControls() {
  const redraw = () => VIEW.redraw.forEach((draw) => draw());
  const text = h("input", { type: "search", placeholder: "filter by name", on: { input: () => { VIEW.text = text.value; redraw(); } } });
  const family = h("select", { on: { change: () => { VIEW.family = family.value; redraw(); } } },
    h("option", { value: "" }, "all families"), FAMILIES.map((f) => h("option", { value: f }, f)));
  return h("div", { class: "controls" }, text, family, h("span", { class: "note" }, "a click on a heading sorts, on a layer says more"));
}

function familySums(report) {
  const sums = new Map();
  for (const layer of topLayers(report)) {
    const sum = sums.get(layer.family) || { time: 0, count: 0 };
    sum.time += layer.timeUs || 0;
    sum.count += 1;
    sums.set(layer.family, sum);
  }
  return sums;
}

function familyTable() {
  const all = DATA.subjects.map((subject) => familySums(subject.report));
  const time = (family) => Math.max(...all.map((sums) => sums.has(family) ? sums.get(family).time : 0));
  const most = Math.max(...FAMILIES.map(time));
  const two = all.length === 2;
  const cells = (family) => all.map((sums) => {
    const sum = sums.get(family) || { time: 0, count: 0 };
    const width = most > 0 ? 100 * sum.time / most : 0;
    return [h("td", { class: "number" }, sum.count), h("td", { class: "number" }, micros(sum.time)),
      h("td", { class: "bars" }, h("span", { class: "bar", style: "width:" + width.toFixed(2) + "%;background:" + familyColour(family) }))];
  });
  const ratio = (family) => {
    const [a, b] = all.map((sums) => sums.has(family) ? sums.get(family).time : 0);
    return h("td", { class: "number" }, a > 0 && b > 0 ? digits(b / a, 3) : "–");
  };
  return h("table", { class: "families" }, h("tr", {}, h("th", {}, "family"), all.map(() => [h("th", { class: "number" }, "layers"),
    h("th", { class: "number" }, "time"), h("th", {})]), two ? h("th", { class: "number" }, "second : first") : null),
    FAMILIES.slice().sort((a, b) => time(b) - time(a)).map((family) =>
      h("tr", {}, h("td", {}, family), cells(family), two ? ratio(family) : null)));
}
