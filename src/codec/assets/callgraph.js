/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call graph, brought to life: it fits the window, the wheel zooms, a drag moves, and the
 * pointer on a box leaves only its callers and callees lit.  Without this script the drawing is the
 * same at its natural size.
 */
(function () {
"use strict";

const script = document.currentScript;
const svg = (script && script.ownerSVGElement) || document.documentElement;
if (svg !== document.documentElement) return; /* part of a page: leave sizes to it */
const graph = svg.querySelector("#graph");
const head = Number(graph.getAttribute("y"));
const whole = graph.getAttribute("viewBox").split(" ").map(Number);
const SMALL = 0.5; /* a scale at which names can just be made out */
const READABLE = 0.75; /* where to begin if the whole would be smaller than that */
let box = whole.slice();
let drag = null;

function show() {
  graph.setAttribute("viewBox", box.map((n) => n.toFixed(2)).join(" "));
}

function resize() {
  const width = window.innerWidth;
  const height = window.innerHeight;
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  graph.setAttribute("width", width);
  graph.setAttribute("height", Math.max(100, height - head));
}

const roomX = () => window.innerWidth;
const roomY = () => Math.max(100, window.innerHeight - head);

/* Px of the drawing for each px of the window. */
const scale = () => Math.max(box[2] / roomX(), box[3] / roomY());

/* All of it, not larger than drawn; or as much as can be read, around the heaviest box. */
function start() {
  const heaviest = svg.querySelector('#nodes > g[data-n="0"] rect');
  box = whole.slice();
  if (scale() < 1) {
    box = [whole[0] + (whole[2] - roomX()) / 2, whole[1], roomX(), roomY()];
  } else if (scale() > 1 / SMALL && heaviest) {
    const w = roomX() / READABLE;
    const x = Number(heaviest.getAttribute("x")) + Number(heaviest.getAttribute("width")) / 2;
    const most = Math.max(whole[0], whole[0] + whole[2] - w);
    box = [Math.min(most, Math.max(whole[0], x - w / 2)), whole[1], w, roomY() / READABLE];
  }
  show();
}

function fit() {
  box = whole.slice();
  show();
}

/* Scales by `factor`; what is at this place of the window stays there. */
function zoom(factor, clientX, clientY) {
  const k = scale();
  const w = roomX() * k;
  const h = roomY() * k;
  const left = box[0] + (box[2] - w) / 2; /* what is shown, as the window's shape has it */
  const f = Math.min(3 * whole[2], Math.max(80, w * factor)) / w;
  box = [left + clientX * k * (1 - f), box[1] + (clientY - head) * k * (1 - f), w * f, h * f];
  show();
}

function move(dx, dy) {
  box[0] += dx;
  box[1] += dy;
  show();
}

/* Only `node`, what calls it, what it calls, and the edges between stay lit; none: all. */
function aim(node) {
  svg.classList.toggle("aim", node !== null);
  const near = new Set([node]);
  for (const edge of svg.querySelectorAll("#edges > g")) {
    const ends = edge.dataset.e.split(" ");
    const lit = ends.includes(node);
    edge.classList.toggle("near", lit);
    if (lit) ends.forEach((end) => near.add(end));
  }
  for (const el of svg.querySelectorAll("#nodes > g"))
    el.classList.toggle("near", near.has(el.dataset.n));
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(event.deltaY * 0.0015), event.clientX, event.clientY);
}, { passive: false });
svg.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, y: event.clientY };
  svg.classList.add("moving");
});
window.addEventListener("pointerup", () => {
  drag = null;
  svg.classList.remove("moving");
});
svg.addEventListener("pointermove", (event) => {
  if (!drag) {
    const el = event.target.closest ? event.target.closest("#nodes > g") : null;
    aim(el ? el.dataset.n : null);
    return;
  }
  const k = scale();
  move((drag.x - event.clientX) * k, (drag.y - event.clientY) * k);
  drag = { x: event.clientX, y: event.clientY };
});

const step = () => box[2] / 10;
const keys = {
  "+": () => zoom(0.8, window.innerWidth / 2, window.innerHeight / 2),
  "-": () => zoom(1.25, window.innerWidth / 2, window.innerHeight / 2),
  0: fit,
  Escape: start,
  ArrowLeft: () => move(-step(), 0),
  ArrowRight: () => move(step(), 0),
  ArrowUp: () => move(0, -step()),
  ArrowDown: () => move(0, step()),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (!Object.prototype.hasOwnProperty.call(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
window.addEventListener("resize", resize);
svg.classList.add("live");
resize();
start();
})();
