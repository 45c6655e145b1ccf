function panAndZoom(picture, width, height, roomy) {
  // At first as wide as text can be read, and as high as the room.
  const w = Math.max(width, 900);
  const view = { x: (width - w) / 2, y: 0, w, h: roomy ? w / 2.2 : height };
  const show = () => picture.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  const zoom = (factor, fx, fy) => {
    const wide = Math.min(Math.max(view.w * factor, 20), Math.max(width, height) * 4);
    const ratio = wide / view.w;
    view.x += fx * view.w * (1 - ratio);
    view.y += fy * view.h * (1 - ratio);
    view.w = wide;
    view.h *= ratio;
    show();
  };
  const at = (e) => {
    const box = picture.getBoundingClientRect();
    return [(e.clientX - box.left) / (box.width || 1), (e.clientY - box.top) / (box.height || 1)];
  };
  picture.addEventListener("wheel", (e) => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2, ...at(e)); }, { passive: false });
  show();
  let from = null;
  picture.addEventListener("pointerdown", (e) => { from = at(e); });
  picture.addEventListener("pointerup", () => { from = null; });
  picture.addEventListener("pointerleave", () => { from = null; });
  picture.addEventListener("pointermove", (e) => {
    if (from === null) return;
    const to = at(e);
    view.x -= (to[0] - from[0]) * view.w;
    view.y -= (to[1] - from[1]) * view.h;
    from = to;
    show();
  });
  return { zoom, fit: () => { Object.assign(view, { x: 0, y: 0, w: width, h: height }); show(); } };
}

function pathOf(layer) {
  const name = layer.nodes.length > 0 ? layer.nodes[0] : layer.name;
  return name.split(name.includes("/") ? "/" : ".").filter((part) => part !== "");
}

// The key of the box of a layer: as many parts of its name as `level` says, more where boxes were opened; null for a box
// of its own.
function keyOf(path, level, opened) {
  let length = Math.min(level, path.length);
  while (length < path.length && opened.has(path.slice(0, length).join("/"))) ++length;
  const key = path.slice(0, length).join("/");
  return length === 0 || opened.has(key) ? null : key;
}

// Neighbours in the order of the run whose names begin alike become one box, so that edges lead forwards. Level Infinity
// keeps each layer apart; level 0 joins neighbours by number, where names tell too little.
function groupsOf(layers, level, opened) {
  const groups = [];
  const run = Math.ceil(layers.length / MOST_BOXES);
  layers.forEach((layer, index) => {
    const first = index - index % run;
    const byNumber = "layers " + first + " to " + Math.min(first + run, layers.length - 1);
    let key = level === Infinity ? null : level > 0 ? keyOf(pathOf(layer), level, opened) : byNumber;
    if (level === 0 && opened.has(key)) key = null;
    const last = groups[groups.length - 1];
    if (key !== null && last && last.key === key) {
      last.members.push(index);
    } else {
      groups.push({ key, members: [index] });
    }
  });
  return groups;
}

function deepest(layers) {
  return layers.reduce((most, layer) => Math.max(most, pathOf(layer).length), 1);
}

// The most detail that stays readable.
const MOST_BOXES = 120;
function firstLevel(layers) {
  if (layers.length <= 60) return Infinity;
  let level = 0;
  while (level < deepest(layers) && groupsOf(layers, level + 1, new Set()).length <= MOST_BOXES) ++level;
  return level;
}

// Rows by the longest way from a start.
function placed(groups, layers) {
  const groupOf = new Map();
  groups.forEach((g, i) => g.members.forEach((m) => groupOf.set(m, i)));
  groups.forEach((g, i) => {
    const from = new Set();
    g.members.forEach((m) => layers[m].readsFrom.forEach((r) => {
      const source = groupOf.get(r);
      if (source !== undefined && source < i) from.add(source);
    }));
    g.from = [...from];
    g.row = g.from.reduce((row, f) => Math.max(row, groups[f].row + 1), 0);
  });
  const columns = new Map();
  groups.forEach((g) => { g.column = columns.get(g.row) || 0; columns.set(g.row, g.column + 1); });
  const widest = Math.max(1, ...columns.values());
  groups.forEach((g) => { g.x = 20 + (g.column + (widest - columns.get(g.row)) / 2) * 230; g.y = 12 + g.row * 58; });
  return { width: widest * 230 + 20, height: columns.size * 58 + 12 };
}

function groupBox(group, layers, total, open) {
  const members = group.members.map((m) => layers[m]);
  const time = members.reduce((sum, l) => sum + (l.depth === 0 ? l.timeUs || 0 : 0), 0);
  const one = members.length === 1;
  const title = one ? titleOf(members[0], group.members[0]) : group.key + " (" + members.length + " layers)";
  const line = one ? members[0].family + " " + micros(members[0].timeUs) : micros(time);
  const heavy = total > 0 ? Math.min(1, 8 * time / total) : 0;
  return s("g", { class: "node", on: { click: () => open(group) } },
    s("rect", { class: "box", x: group.x, y: group.y, width: 200, height: 34, rx: 5,
      fill: one ? familyColour(members[0].family) : "#b9c2d0", "fill-opacity": (0.35 + 0.65 * heavy).toFixed(2) }),
    s("text", { x: group.x + 6, y: group.y + 14 }, shortened(title, 32)),
    s("text", { x: group.x + 6, y: group.y + 28 }, shortened(line, 32)),
    hover(title + "\n" + line + (one ? "\n" + members[0].implementation : "\na click opens it")));
}

function graphPicture(report) {
  const layers = report.layers;
  if (layers.length === 0) return h("p", {}, "There are no layers.");
  const total = totalTime(report);
  const opened = new Set();
  const most = deepest(layers);
  let level = firstLevel(layers);
  const room = h("div", {});
  const note = h("span", { class: "note" });
  let view = null;
  const open = (group) => {
    if (group.key !== null) { opened.add(group.key); draw(); }
  };
  const draw = () => {
    const groups = groupsOf(layers, level, opened);
    const size = placed(groups, layers);
    const picture = s("svg", { class: "pans graph", viewBox: `0 0 ${size.width} ${size.height}`, preserveAspectRatio: "xMidYMin meet" });
    groups.forEach((g) => g.from.forEach((f) => {
      const a = groups[f];
      picture.appendChild(s("path", { class: "edge", d: `M${a.x + 100} ${a.y + 34} C${a.x + 100} ${a.y + 48} ${g.x + 100} ${g.y - 14} ${g.x + 100} ${g.y}` }));
    }));
    groups.forEach((g) => picture.appendChild(groupBox(g, layers, total, open)));
    view = panAndZoom(picture, size.width, size.height, true);
    empty(room).appendChild(picture);
    empty(note).appendChild(document.createTextNode(groups.length + (groups.length === 1 ? " box for " : " boxes for ") + layers.length + " layers"));
  };
  const detail = h("select", { class: "detail-level", on: { change: () => { level = Number(detail.value); opened.clear(); draw(); } } },
    h("option", { value: 0, selected: level === 0 ? "" : null }, "runs of layers"),
    Array.from({ length: most }, (unused, i) => h("option", { value: i + 1, selected: level === i + 1 ? "" : null }, "names of " + (i + 1) + " parts")),
    h("option", { value: "Infinity", selected: level === Infinity ? "" : null }, "every layer"));
  draw();
  return h("div", {}, h("div", { class: "controls" }, detail,
    h("button", { on: { click: () => view.zoom(1 / 1.5, 0.5, 0.5) } }, "+"), h("button", { on: { click: () => view.zoom(1.5, 0.5, 0.5) } }, "−"),
    h("button", { on: { click: () => view.fit() } }, "all"), note), room);
}
