
"use strict";
// Draws the search whose data stand in #search. A node is [parent, text, score, fate, final score, group]; a column of the tree is a
// step, with a node's row its rank in its group.
const search = JSON.parse(document.getElementById("search").textContent);
const FATES = ["kept", "dropped", "finished"];
const SAID = { kept: "goes on", dropped: "dropped", finished: "finished" };
const COLUMN = 146, ROW = 54, WIDTH = 114, HEIGHT = 40, TOP = 34, LEFT = 14, GAP = 26;
const at = (id) => document.getElementById(id);
const shown = { prompt: 0, step: 1, result: 0 };

function made(name, attributes = {}, text = null) {
  const svg = ["svg", "g", "rect", "path", "text", "title"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

const number = (x) => (x === null ? "" : x.toFixed(3).replace("-", "\u2212"));

// A token on a card: its spaces do not show, its line ends do.
function label(text, most = 12) {
  const line = text.replaceAll("\n", "\u23ce").trim() || "\u2423";
  const letters = [...line];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "\u2026" : line;
}

// The places of the nodes from the prompt to one: [step, place] each.
function way(steps, step, place) {
  const found = [];
  for (; step >= 0 && place >= 0; place = steps[step][place][0], step--) found.unshift([step, place]);
  return found;
}

const textOf = (steps, step, place) => way(steps, step, place).map(([s, p]) => steps[s][p][1]);

// The first row of each group, and how many rows there are: a group has as many as its largest step.
function rows(steps) {
  const most = new Map();
  for (const nodes of steps) {
    const count = new Map();
    for (const node of nodes) count.set(node[5], (count.get(node[5]) ?? 0) + 1);
    for (const [group, n] of count) most.set(group, Math.max(most.get(group) ?? 0, n));
  }
  const first = new Map();
  let next = 0;
  for (const group of [...most.keys()].sort((a, b) => a - b)) {
    first.set(group, next);
    next += most.get(group);
  }
  return { first, count: next };
}

// The middle of each node's card.
function layout(steps) {
  const { first, count } = rows(steps);
  const groups = [...first.keys()];
  const y = (row, group) => TOP + 12 + (row + 0.5) * ROW + groups.indexOf(group) * (groups.length > 1 ? GAP : 0);
  const places = steps.map((nodes, step) => {
    const used = new Map();
    return nodes.map((node) => {
      const rank = used.get(node[5]) ?? 0;
      used.set(node[5], rank + 1);
      return { x: LEFT + (step + 1.5) * COLUMN, y: y(first.get(node[5]) + rank, node[5]) };
    });
  });
  const extra = groups.length > 1 ? (groups.length - 1) * GAP : 0;
  const height = TOP + 24 + count * ROW + extra;
  return { places, start: { x: LEFT + COLUMN / 2, y: (TOP + height) / 2 }, height, width: 2 * LEFT + (steps.length + 1) * COLUMN };
}

function card(place, classes, token, below, hint) {
  const node = made("g", { class: `node ${classes}`, transform: `translate(${place.x} ${place.y})` });
  node.append(
    made("title", {}, hint),
    made("rect", { x: -WIDTH / 2, y: -HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 7 }),
    made("text", { class: "token", y: below ? -2 : 4 }, token),
  );
  if (below) node.append(made("text", { class: "score", y: 14 }, below));
  return node;
}

function edge(from, to, classes) {
  const [a, b] = [from.x + WIDTH / 2, to.x - WIDTH / 2], half = (a + b) / 2;
  return made("path", { class: `edge ${classes}`, d: `M${a} ${from.y}C${half} ${from.y} ${half} ${to.y} ${b} ${to.y}` });
}

function draw() {
  const { steps, text, results } = search.prompts[shown.prompt];
  const { places, start, width, height } = layout(steps);
  const end = results[shown.result];
  const chosen = new Set(way(steps, end.step, end.place).map(String));
  const svg = made("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "the search as a tree" });
  svg.append(made("rect", { class: "now", x: 0, y: 0, width: COLUMN, height }));
  svg.append(made("text", { class: "head", x: start.x, y: 20 }, "prompt"));
  const cards = [card(start, "prompt chosen", label(text.length > 12 ? "\u2026" + text.slice(-11).trim() : text), "", text)], edges = [], bright = [];
  steps.forEach((nodes, s) => {
    svg.append(made("text", { class: "head", "data-step": s + 1, x: places[s][0].x, y: 20 }, `step ${s + 1}`));
    nodes.forEach((node, p) => {
      const [parent, token, score, fate, final] = node;
      const on = chosen.has(String([s, p]));
      const kind = FATES[fate] + (on ? " chosen" : "");
      const below = fate === 2 ? `${number(score)} \u2192 ${number(final)}` : number(score);
      const made = card(places[s][p], kind, label(token), search.kind === "beams" ? below : number(score), JSON.stringify(token));
      made.dataset.step = s + 1;
      cards.push(made);
      const line = edge(parent < 0 ? start : places[s - 1][parent], places[s][p], kind);
      line.dataset.step = s + 1;
      (on ? bright : edges).push(line);
    });
  });
  svg.append(...edges, ...bright, ...cards);
  at("tree").replaceChildren(svg);
  at("step").max = steps.length;
  show();
}

// Up to the step that is asked for.
function show() {
  const { steps } = search.prompts[shown.prompt];
  shown.step = Math.min(Math.max(shown.step, 1), steps.length);
  at("step").value = shown.step;
  at("at").value = `step ${shown.step} of ${steps.length}`;
  for (const element of document.querySelectorAll("#tree [data-step]")) element.classList.toggle("later", Number(element.dataset.step) > shown.step);
  const left = LEFT + shown.step * COLUMN;
  document.querySelector("#tree .now").setAttribute("x", left);
  const tree = at("tree");
  if (left + COLUMN > tree.scrollLeft + tree.clientWidth || left < tree.scrollLeft) tree.scrollLeft = left + 1.5 * COLUMN - tree.clientWidth;
  candidates(steps, shown.step - 1);
  answers();
}

function line(cells, attributes) {
  const row = made("tr", attributes);
  for (const [kind, text] of cells) row.append(made(attributes ? "td" : "th", { class: kind }, text));
  return row;
}

function candidates(steps, s) {
  const several = new Set(steps.flat().map((node) => node[5])).size > 1;
  const unit = search.kind === "samples" ? "sample" : "group";
  at("looked").textContent = `What step ${s + 1} looked at`;
  const head = [["", ""], ["text", "new text"], ["number", "token"], ["number", "log-probability"], ["number", "final score"]];
  const rows = steps[s].map(([parent, , score, fate, final, group], p) => {
    const before = parent < 0 ? 0 : steps[s - 1][parent][2];
    const said = SAID[FATES[fate]] + (several ? `, ${unit} ${group + 1}` : "");
    const text = textOf(steps, s, p);
    return line(
      [["fate", said], ["text", joined(text)], ["number", number(score - before)], ["number", number(score)], ["number", number(final)]],
      { class: FATES[fate] },
    );
  });
  at("candidates").replaceChildren(line(head), ...rows);
}

// Ids have no spaces of their own.
const joined = (pieces) => pieces.join(pieces.every((piece) => /^\d+$/.test(piece)) ? " " : "");

function answers() {
  const { results } = search.prompts[shown.prompt];
  const rows = results.map(({ step, score, text }, i) => {
    const row = line(
      [["number", String(i + 1)], ["text", text], ["number", String(step + 1)], ["number", number(score)]],
      { "data-result": i, class: i === shown.result ? "chosen" : "" },
    );
    row.addEventListener("click", () => { shown.result = i; draw(); });
    return row;
  });
  at("results").replaceChildren(line([["number", ""], ["text", "text"], ["number", "tokens"], ["number", "score"]]), ...rows);
}

function pick(prompt) {
  Object.assign(shown, { prompt, result: 0, step: search.prompts[prompt].steps.length });
  draw();
}

function move(by) {
  shown.step += by;
  show();
}

search.prompts.forEach(({ text }, i) => at("prompt").append(made("option", { value: i }, `${i + 1}: ${label(text, 60)}`)));
at("which").hidden = search.prompts.length < 2;
at("prompt").addEventListener("change", (event) => pick(Number(event.target.value)));
at("step").addEventListener("input", (event) => { shown.step = Number(event.target.value); show(); });
at("back").addEventListener("click", () => move(-1));
at("on").addEventListener("click", () => move(1));
document.addEventListener("keydown", (event) => {
  if (event.target.id !== "step" && event.target.tagName !== "SELECT" && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    event.preventDefault();
    move(event.key === "ArrowLeft" ? -1 : 1);
  }
});
pick(0);
