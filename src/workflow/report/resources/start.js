function facts(subject) {
  const r = subject.report;
  const launches = r.layers.reduce((n, l) => n + l.launches.length, 0);
  const time = totalTime(r);
  const bases = [...new Set(topLayers(r).map((l) => l.timeBasis))].filter((b) => b !== "none").map((b) => BASES[b]);
  const rows = [
    ["device", r.device + (r.here ? "" : " (not here)")],
    ["inputs", r.inputs.map((i) => i.name + " " + i.shape.join("×")).join(", ")],
    ["file", scaled(subject.fileBytes, "B") + ", weights " + scaled(subject.weightBytes, "B")],
    ["layers", r.layers.length + (launches > 0 ? ", " + launches + " launches of " + r.kernels.length + " kernels" : "")],
    ["operations", scaled(r.layers.reduce((n, l) => n + l.flops, 0), "FLOP")],
    ["time of the layers", time > 0 ? micros(time) + ", " + bases.join("; ") : "–"],
  ];
  if (r.plainMs !== null) rows.push(["plain run", micros(1000 * r.plainMs)]);
  if (r.activationBytes > 0) rows.push(["activations", scaled(r.activationBytes, "B")]);
  Object.entries(subject.properties).filter(([, v]) => v !== "").forEach(([k, v]) => rows.push([k, shortened(String(v), 300)]));
  return h("table", { class: "facts" }, rows.map(([k, v]) => h("tr", {}, h("th", {}, k), h("td", {}, v))));
}

function columns(draw) {
  const two = DATA.subjects.length > 1;
  const grid = h("div", { class: "columns", style: "--columns:" + DATA.subjects.length });
  DATA.subjects.forEach((subject) => grid.appendChild(h("section", {}, two ? h("h3", {}, subject.file) : null, draw(subject))));
  return grid;
}

function start() {
  const page = empty(document.getElementById("page"));
  const add = (...nodes) => nodes.forEach((node) => page.appendChild(node));
  add(h("h1", {}, DATA.subjects.map((subject) => subject.file).join(" beside ")));
  add(h("p", {}, "Ingot " + DATA.version + (DATA.compiler ? ", " + DATA.compiler : "")));
  add(columns(facts));
  add(h("h2", {}, "Time by family"), familyTable());
  add(h("h2", {}, "Layers"), layerControls(), columns(layerTable));
  add(h("h2", {}, "Roofline"), columns((subject) => roofline(subject.report)));
  if (DATA.timeline !== null) add(h("h2", {}, "Launches over time"), timelinePicture(DATA.timeline));
  add(h("h2", {}, "Cold start"), columns((subject) => coldStart(subject.coldStart)));
  add(h("h2", {}, "Graph"), columns((subject) => graphPicture(subject.report)));
}
start();
