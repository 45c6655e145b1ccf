const hover = (text) => s("title", {}, text);

function logTicks(low, high) {
  const ticks = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; ++e) ticks.push(Math.pow(10, e));
  return ticks;
}

function dotsOf(report) {
  return report.layers.map((layer, index) => ({ layer, index })).filter(({ layer }) =>
    layer.timeUs > 0 && layer.flops > 0 && bytesOf(layer) > 0).map(({ layer, index }) =>
    ({ layer, index, x: layer.flops / bytesOf(layer), y: layer.flops / layer.timeUs * 1e6 }));
}

function roofs(figures) {
  return [["f16 products", figures.f16ProductFlops], ["f32 products", figures.f32ProductFlops], ["scalars", figures.scalarFlops]];
}

// Both axes are logarithmic: operations a byte, operations a second.
function roofline(report) {
  const dots = dotsOf(report);
  if (dots.length === 0) return h("p", {}, "No layer has both a time and operations.");
  const figures = report.figures;
  const width = 760, height = 380, left = 70, right = 14, top = 16, bottom = 36;
  const xs = dots.map((d) => d.x), ys = dots.map((d) => d.y);
  if (figures !== null) {
    roofs(figures).forEach(([, peak]) => { ys.push(peak); xs.push(peak / figures.bytesPerSecond); });
  }
  const around = (list) => { // two decades at least
    const low = Math.min(...list) / 2, high = Math.max(...list) * 2, more = Math.max(1, Math.sqrt(100 * low / high));
    return [low / more, high * more];
  };
  const [x0, x1] = around(xs), [y0, y1] = around(ys);
  const px = (x) => left + (width - left - right) * Math.log(x / x0) / Math.log(x1 / x0);
  const py = (y) => height - bottom - (height - top - bottom) * Math.log(y / y0) / Math.log(y1 / y0);
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "roofline", role: "img" });
  for (const x of logTicks(x0, x1)) {
    picture.appendChild(s("line", { class: "axis", x1: px(x), x2: px(x), y1: top, y2: height - bottom }));
    picture.appendChild(s("text", { class: "soft", x: px(x), y: height - bottom + 14, "text-anchor": "middle" }, x >= 1 ? scaled(x, "") : digits(x, 2)));
  }
  for (const y of logTicks(y0, y1)) {
    picture.appendChild(s("line", { class: "axis", x1: left, x2: width - right, y1: py(y), y2: py(y) }));
    picture.appendChild(s("text", { class: "soft", x: left - 6, y: py(y) + 4, "text-anchor": "end" }, scaled(y, "")));
  }
  picture.appendChild(s("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "operations a byte"));
  picture.appendChild(s("text", { x: 4, y: 11 }, "operations a second"));
  if (figures !== null) {
    const corner = figures.f16ProductFlops / figures.bytesPerSecond;
    const low = Math.max(x0, y0 / figures.bytesPerSecond);
    picture.appendChild(s("path", { class: "roof", d: `M${px(low)} ${py(low * figures.bytesPerSecond)} L${px(corner)} ${py(figures.f16ProductFlops)}` },
      hover("memory: " + scaled(figures.bytesPerSecond, "B/s"))));
    picture.appendChild(s("text", { x: px(low) + 6, y: py(low * figures.bytesPerSecond) + 18 }, "memory " + scaled(figures.bytesPerSecond, "B/s")));
    for (const [name, peak] of roofs(figures)) {
      picture.appendChild(s("path", { class: "roof", d: `M${px(peak / figures.bytesPerSecond)} ${py(peak)} L${width - right} ${py(peak)}` }));
      picture.appendChild(s("text", { x: width - right - 4, y: py(peak) + (name.startsWith("f32") ? 13 : -4), "text-anchor": "end" }, name + " " + scaled(peak, "FLOP/s")));
    }
  }
  const longest = Math.max(...dots.map((d) => d.layer.timeUs));
  for (const d of dots) {
    const radius = 3 + 7 * Math.sqrt(d.layer.timeUs / longest);
    picture.appendChild(s("circle", { class: "dot", cx: px(d.x).toFixed(1), cy: py(d.y).toFixed(1), r: radius.toFixed(1), fill: familyColour(d.layer.family), "fill-opacity": 0.7 },
      hover(`${d.index}: ${d.layer.family} ${titleOf(d.layer, d.index)}\n${d.layer.implementation}\n${micros(d.layer.timeUs)} (${BASES[d.layer.timeBasis]})\n` +
        `${digits(d.x, 3)} operations a byte, ${scaled(d.y, "FLOP/s")}\n${percent(d.layer.shareOfPeak)} of what the device could`)));
  }
  return h("div", {}, picture, h("p", {}, `${dots.length} of ${report.layers.length} layers; a dot's area grows with its time`));
}

// Spans inside others, on one thread, are drawn below them.
function rowsOfSpans(events) {
  const open = new Map();
  return events.map((e) => {
    const stack = open.get(e.thread) || [];
    while (stack.length > 0 && stack[stack.length - 1] <= e.startMs) stack.pop();
    const row = stack.length;
    stack.push(e.endMs);
    open.set(e.thread, stack);
    return row;
  });
}

function legend(names) {
  return h("div", { class: "legend" }, names.map((n) => h("span", {}, h("i", { class: "chip", style: "background:" + colourOf(n, names) }), n)));
}

function coldStart(events) {
  if (events.length === 0) return h("p", {}, "Nothing was recorded.");
  const names = [];
  events.forEach((e) => { if (!names.includes(e.phase)) names.push(e.phase); });
  const rows = rowsOfSpans(events);
  const depth = new Map();
  events.forEach((e, i) => depth.set(e.thread, Math.max(depth.get(e.thread) || 0, rows[i] + 1)));
  const threads = [...depth.keys()].sort((a, b) => a - b);
  const top = new Map();
  let height = 6;
  threads.forEach((t) => { top.set(t, height); height += 17 * depth.get(t) + 6; });
  const width = 1000, left = 64, end = Math.max(...events.map((e) => e.endMs), 0.001);
  const px = (ms) => left + (width - left - 6) * ms / end;
  const picture = s("svg", { viewBox: `0 0 ${width} ${height + 20}`, class: "cold" });
  threads.forEach((t) => picture.appendChild(s("text", { class: "soft", x: 4, y: top.get(t) + 12 }, "thread " + t)));
  events.forEach((e, i) => {
    const x = px(e.startMs), w = Math.max(px(e.endMs) - x, 0.6), y = top.get(e.thread) + 17 * rows[i];
    const label = e.phase + (e.detail ? " " + e.detail : "");
    picture.appendChild(s("rect", { class: "span", x: x.toFixed(2), y, width: w.toFixed(2), height: 15, rx: 2, fill: colourOf(e.phase, names) },
      hover(`${label}\n${digits(e.endMs - e.startMs, 4)} ms from ${digits(e.startMs, 4)} ms on`)));
    if (w > 50) picture.appendChild(s("text", { class: "box-text", x: x + 4, y: y + 11 }, shortened(label, Math.floor(w / 6.5))));
  });
  for (let i = 0; i <= 5; ++i) {
    picture.appendChild(s("text", { class: "soft", x: px(end * i / 5), y: height + 14, "text-anchor": i === 5 ? "end" : "middle" }, digits(end * i / 5, 3) + " ms"));
  }
  return h("div", {}, legend(names), picture);
}

// The launches of one replay: `start` and `end` have one number a block, in nanoseconds; -1 for none.
function timelineLaunches(timeline) {
  const launches = Array.isArray(timeline.launches) ? timeline.launches : [];
  return launches.map((l) => {
    const known = (list) => (Array.isArray(list) ? list : []).filter((v) => v >= 0);
    const starts = known(l.start), ends = known(l.end);
    const low = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
    const high = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
    return { step: String(l.step || ""), tactic: String(l.tactic || l.kernel || ""), blocks: starts.length,
      start: low(starts), ready: high(known(l.ready)), end: high(ends) };
  }).filter((l) => l.end >= l.start);
}

function timelinePicture(timeline) {
  const launches = timelineLaunches(timeline);
  if (launches.length === 0) return h("p", {}, "The timeline has no launches.");
  const first = launches.reduce((a, l) => Math.min(a, l.start), Infinity);
  const last = launches.reduce((a, l) => Math.max(a, l.end), -Infinity);
  const lanes = [];
  const placed = launches.map((l) => {
    let lane = lanes.findIndex((end) => end <= l.start);
    if (lane < 0) lane = lanes.push(0) - 1;
    lanes[lane] = l.end;
    return lane;
  });
  const width = 1000, height = lanes.length * 24 + 24;
  const px = (ns) => (width - 8) * (ns - first) / Math.max(last - first, 1) + 4;
  const names = [];
  launches.forEach((l) => { const kind = l.tactic.split(/[ _]/)[0]; if (!names.includes(kind)) names.push(kind); });
  const picture = s("svg", { class: "pans timeline", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" });
  launches.forEach((l, i) => {
    const x = px(l.start), y = placed[i] * 24 + 4, w = Math.max(px(l.end) - x, 0.3);
    const text = hover(`${i}: ${l.step}\n${l.tactic}\n${digits((l.end - l.start) / 1000, 4)} µs from ${digits((l.start - first) / 1000, 4)} µs on, ${l.blocks} blocks`);
    picture.appendChild(s("rect", { class: "launch", x: x.toFixed(2), y, width: w.toFixed(2), height: 20, fill: colourOf(l.tactic.split(/[ _]/)[0], names) }, text));
    if (l.ready > l.start) {
      picture.appendChild(s("rect", { x: x.toFixed(2), y, width: Math.max(px(Math.min(l.ready, l.end)) - x, 0).toFixed(2), height: 20, fill: "#0004" }));
    }
  });
  panAndZoom(picture, width, height, false);
  return h("div", {}, h("p", {}, `${launches.length} launches in ${micros((last - first) / 1000)}; the dark part of a launch waits for those before; the wheel zooms, dragging moves`),
    legend(names), picture);
}
