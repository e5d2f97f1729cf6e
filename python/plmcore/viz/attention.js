"use strict";
// Draws what attention.py embedded: maps of bytes [layer][head][row][column], 255 for a weight of 1.
const at = (id) => document.getElementById(id);
const maps = JSON.parse(at("attention").textContent).map((m) => ({ ...m, bytes: Uint8Array.from(atob(m.weights), (c) => c.charCodeAt(0)) }));
const CELL = 22, SVG = "http://www.w3.org/2000/svg";
let shown = { kind: 0, layer: 0, head: 0 };

const size = (m) => m.rows.length * m.columns.length;
const strength = (byte) => Math.sqrt(byte / 255);  // of the colour: most weights are small, and would not be seen
const weights = (m, layer, head) => m.bytes.subarray((layer * m.heads + head) * size(m), (layer * m.heads + head + 1) * size(m));

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function options(select, names, chosen) {
  select.replaceChildren(...names.map((name, i) => new Option(name, i, false, i === chosen)));
}

function thumbnail(m, layer, head) {
  const canvas = document.createElement("canvas");
  canvas.width = m.columns.length;
  canvas.height = m.rows.length;
  canvas.title = `layer ${m.layers[layer]}, head ${head}`;
  canvas.dataset.layer = layer;
  canvas.dataset.head = head;
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const [r, g, b] = getComputedStyle(document.documentElement).getPropertyValue("--weight").split(",").map(Number);
  weights(m, layer, head).forEach((w, i) => image.data.set([r, g, b, 255 * strength(w)], 4 * i));
  context.putImageData(image, 0, 0);
  canvas.onclick = () => show({ layer, head });
  return canvas;
}

function overview(m) {
  at("overview").style.gridTemplateColumns = `repeat(${m.heads}, auto)`;
  at("overview").replaceChildren(...m.layers.flatMap((_, layer) => Array.from({ length: m.heads }, (_, head) => thumbnail(m, layer, head))));
}

function large(m) {
  const longest = (texts) => Math.min(24, Math.max(...texts.map((t) => t.length)));
  const left = 14 + 7.2 * longest(m.rows), top = 14 + 7.2 * longest(m.columns);
  const width = left + CELL * m.columns.length + 10, height = top + CELL * m.rows.length + 10;
  const svg = element("svg", { width, height, role: "img" });
  m.columns.forEach((token, j) => {
    const x = left + CELL * (j + 0.65);
    svg.append(element("text", { transform: `translate(${x} ${top - 6}) rotate(-90)` }, token));
  });
  m.rows.forEach((token, i) => svg.append(element("text", { x: left - 6, y: top + CELL * (i + 0.7), "text-anchor": "end" }, token)));
  weights(m, shown.layer, shown.head).forEach((w, n) => {
    const i = Math.floor(n / m.columns.length), j = n % m.columns.length;
    const cell = element("rect", {
      class: "cell", x: left + CELL * j, y: top + CELL * i, width: CELL - 1, height: CELL - 1, "fill-opacity": strength(w).toFixed(3),
    });
    const told = `${m.rows[i]} → ${m.columns[j]}: ${(w / 255).toFixed(2)}`;
    cell.append(element("title", {}, told));
    cell.onmouseenter = () => { at("value").textContent = told; };
    svg.append(cell);
  });
  at("map").replaceChildren(svg);
  at("shown").textContent = `${m.name}, layer ${m.layers[shown.layer]}, head ${shown.head}`;
}

function show(change) {
  shown = { ...shown, ...change };
  const m = maps[shown.kind];
  if ("kind" in change) {
    shown.layer = shown.head = 0;
    options(at("layer"), m.layers, 0);
    options(at("head"), Array.from({ length: m.heads }, (_, i) => i), 0);
    overview(m);
  }
  at("layer").value = shown.layer;
  at("head").value = shown.head;
  for (const canvas of at("overview").children)
    canvas.classList.toggle("shown", +canvas.dataset.layer === shown.layer && +canvas.dataset.head === shown.head);
  at("value").textContent = "";
  large(m);
}

options(at("kind"), maps.map((m) => m.name), 0);
at("which").hidden = maps.length < 2;
at("kind").onchange = (e) => show({ kind: +e.target.value });
at("layer").onchange = (e) => show({ layer: +e.target.value });
at("head").onchange = (e) => show({ head: +e.target.value });
show({ kind: 0 });
