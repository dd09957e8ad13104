/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph, brought to life: zoom, find, walk, flip.
 *
 * The drawing is complete without this script; the script reads it once (one group a frame, in
 * preorder, its place as shares of the whole) and from then on only moves what is there.  Texts of
 * the profile are only ever set as text, never as markup.
 *
 *   frame = { el, rect, name, lines, x, w, depth, parent, children, value }    x, w: share of all
 */
(function () {
"use strict";

const NS = "http://www.w3.org/2000/svg";
const script = document.currentScript;
const svg = (script && script.ownerSVGElement) || document.documentElement;
const get = (id) => svg.querySelector("#" + id);
const PAD = 32; /* from the edge of the drawing to the frames */
const EDGE = 16; /* from the edge of the drawing to the panel */
const LABEL_MIN = 26; /* px: narrower frames have no label */
const SHOWN_MIN = 0.05; /* px: narrower frames are not shown */
const ZOOM_MS = 160;
const FOOT = 90; /* height of legend and detail */
const top0 = Number(svg.dataset.top);
const row = Number(svg.dataset.row);
const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;

let width = Number(svg.getAttribute("width"));
let zoomed; /* the frame that fills the width */
let chosen; /* the frame of the detail bar and the keys */
let view = { x: 0, w: 1 }; /* what part of the whole is shown */
let flipped = svg.dataset.root === "bottom";
let hits = [];
let animation = 0;
const back = []; /* frames zoomed to before */

/* ---- reading the drawing ---- */

/* The frames leave the drawing while they are made ready: thousands of changes, one layout. */
const group = get("frames");
const afterGroup = group.nextSibling;
group.remove();

/* Without the path of the package: encoding/json.Marshal is json.Marshal. */
function shorten(name) {
  const path = /^[^([< ]*\//.exec(name);
  return path && path[0].length < name.length ? name.slice(path[0].length) : name;
}

function readFrames() {
  const all = [];
  const path = [];
  const span = width - 2 * PAD;
  for (const el of Array.from(group.children)) {
    const rect = el.querySelector("rect");
    const title = el.querySelector("title");
    const lines = title.textContent.split("\n");
    const frame = {
      el, rect, lines, name: lines[0], children: [], depth: Number(el.dataset.d),
      value: Number(el.dataset.v),
      x: (Number(rect.getAttribute("x")) - PAD) / span,
      w: Number(el.dataset.w || rect.getAttribute("width")) / span,
    };
    const texts = el.querySelectorAll("text");
    frame.short = shorten(frame.name);
    frame.aside = el.dataset.p || "";
    frame.style = texts.length ? texts[0].getAttribute("class") || "" : el.dataset.c || "";
    title.remove(); /* the tip below says the same, at once */
    for (const text of texts) text.remove();
    frame.label = null;
    frame.share = null;
    path.length = frame.depth;
    frame.parent = frame.depth ? path[frame.depth - 1] : null;
    if (frame.parent) frame.parent.children.push(frame);
    path[frame.depth] = frame;
    el.frame = frame;
    all.push(frame);
  }
  return all;
}

const frames = readFrames();
const rows = frames.reduce((most, frame) => Math.max(most, frame.depth), 0) + 1;
zoomed = chosen = frames[0];

/* ---- making things ---- */

function make(parent, tag, attributes, text) {
  const el = document.createElementNS(NS, tag);
  for (const key in attributes) el.setAttribute(key, attributes[key]);
  if (text !== undefined) el.textContent = text;
  if (parent) parent.appendChild(el);
  return el;
}

function button(name, key, action) {
  const g = make(svg, "g", { class: "button", role: "button", tabindex: "0", "aria-label": name });
  const w = 32 + 6.6 * (name.length + key.length);
  make(g, "rect", { x: 0.5, y: 0.5, width: w - 1, height: 27, rx: 6 });
  make(g, "text", { x: 10, y: 18.5 }, name);
  make(g, "text", { x: w - 10, y: 18, class: "key end" }, key);
  g.addEventListener("click", action);
  g.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  g.w = w;
  return g;
}

/* The lines on top, and the fonts to measure them by. */
const words = { headline: "600 20px", finding: "13px", facts: "12px" };

const ruler = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d");
const family = window.getComputedStyle(get("headline")).fontFamily;
const advances = new Map();

function charWidth(char, font) {
  const key = font + char;
  let w = advances.get(key);
  if (w === undefined) {
    ruler.font = font + (font.endsWith("mono") ? "space" : " " + family);
    w = ruler.measureText(char).width;
    advances.set(key, w);
  }
  return w;
}

/* As much of `text` as fits, with "…" where it is cut; "" where nothing does. */
function fit(text, room, font) {
  const dots = charWidth("…", font);
  let used = 0;
  let cut = 0;
  let at = 0;
  for (const char of text) {
    used += charWidth(char, font);
    at += char.length;
    if (used > room) return cut ? text.slice(0, cut) + "…" : "";
    if (used + dots <= room) cut = at;
  }
  return text;
}

function textWidth(text, font) {
  let used = 0;
  for (const char of text) used += charWidth(char, font);
  return used;
}

const fontOf = (frame) =>
  (frame.style.includes("it") ? "italic " : "") + (frame.style.includes("b") ? "600 " : "") +
  (frame.style === "mono" ? "12px mono" : "12px");

/* ---- layout ---- */

const footTop = () => top0 + rows * row + 8;
const isAbove = (frame) => zoomed !== frame && contains(frame, zoomed);
const yOf = (frame) => top0 + (flipped ? rows - 1 - frame.depth : frame.depth) * row;

function contains(outer, inner) {
  for (let at = inner; at; at = at.parent) if (at === outer) return true;
  return false;
}

/* Where a frame is now: [x, width] in px; ancestors of the zoomed one fill the width. */
function place(frame) {
  const span = width - 2 * PAD;
  const left = Math.max(0, (frame.x - view.x) / view.w);
  const right = Math.min(1, (frame.x + frame.w - view.x) / view.w);
  return [PAD + left * span, (right - left) * span];
}

function setText(frame, which, text, x, y, style) {
  if (!text) {
    if (frame[which]) frame[which].remove();
    frame[which] = null;
    return 0;
  }
  const el = frame[which] || (frame[which] = make(frame.el, "text", { class: style }));
  el.setAttribute("x", x.toFixed(1));
  el.setAttribute("y", y);
  if (el.textContent !== text) el.textContent = text;
  return 1;
}

function drawFrame(frame) {
  const [x, w] = place(frame);
  if (w < SHOWN_MIN) {
    if (!frame.hidden) frame.el.setAttribute("display", "none");
    frame.hidden = true;
    return;
  }
  if (frame.hidden) frame.el.removeAttribute("display");
  frame.hidden = false;
  const y = yOf(frame);
  const shown = w > 2 ? w - 1 : w; /* a gap between neighbours */
  frame.rect.setAttribute("x", x.toFixed(2));
  if (y !== frame.y) frame.rect.setAttribute("y", y);
  frame.y = y;
  frame.rect.setAttribute("width", shown.toFixed(2));
  const up = isAbove(frame);
  if (up !== frame.up) frame.el.classList.toggle("up", up);
  frame.up = up;
  const room = w < LABEL_MIN ? 0 : shown - 10;
  const aside = room && frame.aside ? textWidth(frame.aside, "11px") + 12 : 0;
  const full = room ? textWidth(frame.name, fontOf(frame)) : 0;
  const both = aside && full + aside <= room;
  const name = full <= room ? frame.name : frame.short;
  setText(frame, "label", room ? fit(name, room, fontOf(frame)) : "", x + 6, y + 13, frame.style);
  setText(frame, "share", both ? frame.aside : "", x + shown - 6, y + 13, "pc");
}

function draw() {
  for (const frame of frames) drawFrame(frame);
}

function zoomTo(frame, keep) {
  if (!keep && frame !== zoomed) back.push(zoomed);
  zoomed = frame;
  const from = { x: view.x, w: view.w };
  const start = window.performance.now();
  window.cancelAnimationFrame(animation);
  function step(now) {
    const t = still ? 1 : Math.min(1, (now - start) / ZOOM_MS);
    const eased = 1 - (1 - t) * (1 - t);
    view.x = from.x + (frame.x - from.x) * eased;
    view.w = from.w + (frame.w - from.w) * eased;
    draw();
    if (t < 1) animation = window.requestAnimationFrame(step);
  }
  step(still ? start + ZOOM_MS : start);
  showCrumb();
}

function zoomBack() {
  if (back.length) zoomTo(back.pop(), true);
}

function zoomOut() {
  back.length = 0;
  zoomTo(frames[0], true);
}

function flip() {
  flipped = !flipped;
  draw();
  reveal(chosen);
}

/* ---- what is said ---- */

const crumb = get("crumb");
const crumbHome = crumb.textContent;

function showCrumb() {
  const room = find.x - PAD - 16;
  const home = zoomed === frames[0];
  const text = home ? crumbHome : "Zoomed to " + zoomed.name + ", " + zoomed.aside;
  crumb.textContent = home && textWidth(text, "12px") > room ? "" : fit(text, room, "12px");
  reset.classList.toggle("none", home);
}

const detail = make(svg, "g", { id: "detail", "aria-live": "polite" });
const detailBack = make(detail, "rect", { class: "panel", x: EDGE + 0.5, height: FOOT, rx: 8 });
make(detail, "rect", { class: "bg", y: 8, width: "100%", height: FOOT + 8 });
detail.appendChild(detailBack);
const detailRule = make(detail, "line", { class: "rule", x1: EDGE, y1: 33.5, y2: 33.5 });
const detailName = make(detail, "text", { class: "b", x: PAD, y: 57 });
const detailFrom = make(detail, "text", { class: "small i3", x: PAD, y: 76 });
const detailCost = make(detail, "text", { class: "end", y: 66 });
const legend = get("legend");
const help = make(detail, "text", { class: "small i3 end", y: 21 });
detail.insertBefore(legend, detailRule);
legend.removeAttribute("transform");

function showDetail(frame) {
  const cost = frame.lines[1] || "";
  const room = width - 2 * PAD - textWidth(cost, "13px") - 24;
  detailName.textContent = fit(frame.name, room, "600 13px");
  const from = frame.lines[2] || (frame.depth ? "" : "Click a frame to zoom in, or find one");
  detailFrom.textContent = fit(from, room, "12px");
  detailCost.textContent = cost;
}

/* The outermost frame to zoom to in which this one is still wide enough to see. */
function surroundings(frame) {
  let at = frame;
  while (at.parent && (frame.w / at.parent.w) * width > 40) at = at.parent;
  return at;
}

function choose(frame) {
  if (!frame) return;
  chosen.el.classList.remove("on");
  chosen = frame;
  frame.el.classList.add("on");
  frame.el.parentNode.appendChild(frame.el); /* on top, so that its outline is whole */
  if (frame.hidden) zoomTo(surroundings(frame));
  showDetail(frame);
  reveal(frame);
}

function reveal(frame) {
  if (!standalone()) return;
  const y = yOf(frame);
  const high = window.innerHeight - FOOT - 16;
  if (y < window.scrollY + 8) window.scrollTo(0, y - top0 < row * 3 ? 0 : y - 80);
  else if (y + row > window.scrollY + high) window.scrollTo(0, y + row - high);
}

/* ---- the tip that follows the pointer ---- */

const tip = make(svg, "g", { class: "tip none" });
const tipBack = make(tip, "rect", { rx: 8, x: 0.5, y: 0.5 });
const tipLines = [0, 1, 2].map((i) =>
  make(tip, "text", { x: 12, y: 22 + 18 * i, class: ["b", "small", "small i3"][i] }));

function showTip(frame, event) {
  const fonts = ["600 13px", "12px", "12px"];
  const most = Math.min(520, width - 48);
  let wide = 0;
  let n = 0;
  frame.lines.slice(0, 3).forEach((line, i) => {
    const text = fit(line, most - 24, fonts[i]);
    tipLines[i].textContent = text;
    wide = Math.max(wide, textWidth(text, fonts[i]));
    if (text) n = i + 1;
  });
  for (let i = n; i < 3; i++) tipLines[i].textContent = "";
  const w = wide + 24;
  const h = 18 * n + 16;
  tipBack.setAttribute("width", w);
  tipBack.setAttribute("height", h);
  const box = svg.getBoundingClientRect();
  const px = event.clientX - box.left;
  const py = event.clientY - box.top;
  const x = Math.max(8, Math.min(px + 12, width - w - 8));
  const low = py + 20 + h > window.innerHeight - box.top - 8;
  tip.setAttribute("transform", "translate(" + x + "," + (low ? py - h - 12 : py + 20) + ")");
  tip.classList.remove("none");
}

const hideTip = () => tip.classList.add("none");

/* ---- find ---- */

const find = { x: 0, w: 236 };
const field = make(svg, "foreignObject", { width: find.w, height: 28 });
const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
input.setAttribute("placeholder", "Find");
input.setAttribute("aria-label", "Find frames by regular expression");
input.setAttribute("spellcheck", "false");
field.appendChild(input);
const found = make(svg, "text", { class: "small i3 end" }, "/");
found.style.pointerEvents = "none";

function pattern(text) {
  const flags = /[A-Z]/.test(text) ? "u" : "iu"; /* a capital asks for capitals */
  try {
    return new RegExp(text, flags);
  } catch (error) {
    return new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags);
  }
}

const someFolded = frames.some((frame) => frame.el.dataset.folded); /* whose names are not here */

/* Frames that match, and the share of the whole that the outermost of them hold. */
function search(text) {
  const re = text ? pattern(text) : null;
  let share = 0;
  hits = [];
  for (const frame of frames) {
    const hit = Boolean(re) && frame.depth > 0 && !frame.el.dataset.folded && re.test(frame.name);
    frame.covered = Boolean(frame.parent && (frame.parent.covered || frame.parent.hit));
    frame.hit = hit;
    frame.el.classList.toggle("hit", hit);
    if (!hit) continue;
    hits.push(frame);
    if (!frame.covered) share += frame.value;
  }
  svg.classList.toggle("finding", Boolean(re));
  share = frames[0].value > 0 ? (100 * share) / frames[0].value : 0;
  found.textContent = re ? (someFolded ? "≥ " : "") + share.toFixed(1) + " %" : "/";
  return { share, count: hits.length };
}

function nextHit(step) {
  if (!hits.length) return;
  const at = hits.indexOf(chosen);
  const next = at < 0 ? (step > 0 ? 0 : hits.length - 1) : at + step;
  choose(hits[(next + hits.length) % hits.length]);
}

function clearSearch() {
  input.value = "";
  input.blur();
  search("");
}

/* ---- keys and pointer ---- */

function sideways(step) {
  const level = frames
    .filter((frame) => frame.depth === chosen.depth && !frame.hidden)
    .sort((a, b) => a.x - b.x);
  choose(level[level.indexOf(chosen) + step]);
}

const downwards = () => choose(chosen.children.find((frame) => !frame.hidden));
const upwards = () => choose(chosen.parent);

function copyName() {
  const done = () => {
    detailFrom.textContent = "Copied";
    window.setTimeout(() => showDetail(chosen), 900);
  };
  if (navigator.clipboard) navigator.clipboard.writeText(chosen.name).then(done, () => {});
}

const keys = {
  ArrowDown: () => (flipped ? upwards() : downwards()),
  ArrowUp: () => (flipped ? downwards() : upwards()),
  ArrowLeft: () => sideways(-1),
  ArrowRight: () => sideways(1),
  Enter: () => zoomTo(chosen),
  Escape: () => (input.value ? clearSearch() : zoomBack()),
  0: zoomOut,
  "/": () => input.focus(),
  n: () => nextHit(1),
  N: () => nextHit(-1),
  i: flip,
  c: copyName,
};

document.addEventListener("keydown", (event) => {
  const typing = document.activeElement === input;
  if ((event.ctrlKey || event.metaKey) && event.key === "f" && !typing) {
    event.preventDefault();
    input.focus();
    input.select();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") clearSearch();
    else if (event.key === "Enter") {
      input.blur();
      nextHit(1);
    }
    return;
  }
  if (!Object.prototype.hasOwnProperty.call(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

const frameAt = (event) => {
  const el = event.target.closest ? event.target.closest("#frames > g") : null;
  return el ? el.frame : null;
};

svg.addEventListener("click", (event) => {
  const frame = frameAt(event);
  if (!frame) return;
  hideTip();
  choose(frame);
  zoomTo(frame);
});
svg.addEventListener("mousemove", (event) => {
  const frame = frameAt(event);
  if (frame) showTip(frame, event);
  else hideTip();
});
svg.addEventListener("mouseleave", hideTip);
input.addEventListener("input", () => search(input.value));

const reset = button("Reset", "0", zoomOut);
const turn = button("Flip", "i", flip);

/* ---- fitting the window ---- */

const standalone = () => svg === document.documentElement;

function placeFoot() {
  const end = footTop();
  const stick = standalone() ? window.scrollY + window.innerHeight - FOOT - 8 : end;
  detail.setAttribute("transform", "translate(0," + Math.min(end, Math.max(stick, top0)) + ")");
}

function resize() {
  const parent = standalone() ? document.documentElement : svg.parentNode;
  const room = standalone() ? parent.clientWidth || window.innerWidth : parent.clientWidth;
  const content = footTop() + FOOT + 16;
  const height = standalone() ? Math.max(content, window.innerHeight) : content;
  width = Math.max(360, room || width);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  get("panel").setAttribute("width", width - 2 * EDGE - 1);
  get("panel").setAttribute("height", footTop() + FOOT - Number(get("panel").getAttribute("y")));
  find.w = Math.min(236, width - 2 * PAD - 90);
  const y = top0 - 37;
  find.x = width - PAD - find.w;
  field.setAttribute("x", find.x);
  field.setAttribute("y", y);
  field.setAttribute("width", find.w);
  found.setAttribute("x", width - PAD - 9);
  found.setAttribute("y", y + 18.5);
  turn.setAttribute("transform", "translate(" + (find.x - turn.w - 8) + "," + y + ")");
  reset.setAttribute("transform", "translate(" + (find.x - turn.w - reset.w - 12) + "," + y + ")");
  find.x -= turn.w + reset.w + 12;
  help.setAttribute("x", width - PAD);
  help.textContent =
    width < 1000 ? "" : "Arrows walk · ↵ zooms · Esc goes back · n next hit · c copies";
  for (const el of [detailBack, detailRule]) {
    el.setAttribute("width", width - 2 * EDGE - 1);
    el.setAttribute("x2", width - EDGE);
  }
  detailCost.setAttribute("x", width - PAD);
  for (const id in words) {
    const line = get(id);
    line.full = line.full || line.textContent;
    line.textContent = fit(line.full, width - 2 * EDGE, words[id]);
  }
  for (const key of legend.querySelectorAll("g")) {
    const text = key.querySelector("text");
    const end = Number(text.getAttribute("x")) + textWidth(text.textContent, "12px");
    key.classList.toggle("none", end > width - PAD);
  }
  draw();
  placeFoot();
  showCrumb();
  showDetail(chosen);
}

window.addEventListener("resize", resize);
window.addEventListener("scroll", placeFoot);
svg.appendChild(tip);
svg.classList.add("live");
resize();
svg.insertBefore(group, afterGroup);

/* For a page around the drawing, and for tests. */
svg.kiln = {
  frames, search, nextHit, zoomTo, zoomBack, zoomOut, flip, choose,
  state: () => ({ zoomed, chosen, hits, flipped, view }),
};
})();
