/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain page: a scope (service, type, labels, time), its timeline, its flame graph, its functions.
 *
 * The scope is the address of the page, so that a link shows what its sender saw.  Whatever changes it calls go(),
 * which writes the address and asks the server (ask*) for what is not there yet; draw*() only draw.  Texts of profiles are only
 * ever set as text, never as markup.
 */
"use strict";

const $ = (id) => document.getElementById(id);
const NODES = 16384; /* of a flame graph */
const FUNCTIONS = 5000; /* of the table that are asked for, */
const ROWS = 500; /* and that are shown */
const AGAIN = 5000; /* ms until what goes on is asked for again */
const ROW = 19; /* px of a frame, its gap included */
const LABEL_MIN = 26; /* px: narrower frames have no label */
const UNITS = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const scope = {}; /* service, type, where, from, until, part ([from, until] in ms, or null), find, zoom (names) */
let flame = null; /* { name, total, self, parent, depth, end, children, x (arrays by node), names, functions, answer } */
let shares = []; /* [[service, value]], where all services are shown */
let line = null; /* { points: [[ms, value]], from, until, step, marks: [[ms, version]] } */
let zoomed = 0, chosen = 0, hits = null, matches = null, sort = "self", asked = 0, waiting = true, last = 0;

/* ---- the address ---- */

function readAddress() {
  const p = new URLSearchParams(location.search);
  scope.service = p.get("service") || "";
  scope.type = p.get("type") || "";
  scope.where = p.get("where") || "";
  scope.from = p.get("from") || "now-1h";
  scope.until = p.get("until") || "now";
  scope.part = /^\d+-\d+$/.test(p.get("part") || "") ? p.get("part").split("-").map(Number) : null;
  scope.find = p.get("find") || "";
  scope.zoom = p.getAll("zoom");
}

function address() {
  const p = new URLSearchParams();
  for (const key of ["service", "type", "where", "from", "until", "find"]) if (scope[key]) p.set(key, scope[key]);
  if (scope.part) p.set("part", scope.part.join("-"));
  for (const name of scope.zoom) p.append("zoom", name);
  return "?" + p;
}

/* A step back in the browser goes to the question before; looking around in an answer is no such step. */
function go(change, look) {
  Object.assign(scope, change);
  history[look ? "replaceState" : "pushState"](null, "", address());
  if (!look) ask();
}

/* now, now-1h30m, 2026-03-01T12:00Z, Unix time in s or ms: in milliseconds; NaN where it is none of these. */
function time(text) {
  const number = Number(text);
  let ms = Date.now();
  if (!/^now(-(\d+[smhdw])+)?$/.test(text)) return Number.isNaN(number) ? Date.parse(text) : number < 1e11 ? number * 1000 : number;
  for (const [, n, unit] of text.matchAll(/(\d+)([smhdw])/g)) ms -= n * UNITS[unit];
  return ms;
}

/* ---- asking ---- */

async function get(path, params) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path + "?" + new URLSearchParams(params), token ? { headers: { Authorization: "Bearer " + token } } : {});
  $("ticket").hidden = answer.status !== 401;
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let said = text;
  try { const e = JSON.parse(text).error; said = e.message || e; } catch { /* plain text is as good */ }
  throw new Error(said || "the server answered " + answer.status);
}

const quote = (text) => JSON.stringify(text);
const ALL = "*"; /* in the place of a service: whatever there is */
const called = () => (scope.service === ALL ? "all services" : scope.service);
const selector = () => `{${[scope.service === ALL ? "" : `service_name=${quote(scope.service)}`, scope.where].filter(Boolean).join(", ")}}`;

function fill(select, values, value, text) {
  const same = select.options.length === values.length && values.every((v, i) => select.options[i].value === v);
  if (!same) select.replaceChildren(...values.map((v) => new Option(text(v), v, false, v === value)));
  select.value = value;
}

/* process_cpu:cpu:nanoseconds:cpu:nanoseconds: what a person calls it. */
const SPOKEN = { cpu: "CPU time", wall: "wall time", off_cpu: "waiting", alloc_space: "bytes allocated", alloc_objects: "allocations",
  inuse_space: "bytes in use", inuse_objects: "objects in use", goroutine: "goroutines", contentions: "contentions", delay: "delay" };
const parts = (type) => { const p = type.split(":"); return { name: p[0], type: p[1] || "", unit: p[2] || "" }; };
function spoken(type) {
  const p = parts(type), word = SPOKEN[p.type] || p.type;
  return p.name === "mutex" || p.name === "block" ? `${p.name} ${word}` : word;
}
const isLevel = (type) => /^(inuse_|goroutine|threads)/.test(parts(type).type);

async function askScope() {
  const services = (await get("/api/v1/services", {})).services;
  $("empty").hidden = services.length > 0;
  if (!services.length) return false;
  const newest = services.reduce((a, b) => (b.newest > a.newest ? b : a));
  scope.service = scope.service || (services.length > 1 ? ALL : newest.name);
  const names = services.map((s) => s.name), all = scope.service === ALL;
  const mine = all ? newest : services.find((s) => s.name === scope.service);
  fill($("service"), [...(names.length > 1 || all ? [ALL] : []), ...(mine ? names : [scope.service, ...names])], scope.service,
    (v) => (v === ALL ? "all services" : v));
  const types = all ? [...new Set(services.flatMap((s) => s.types.map((t) => t.id)))] : mine ? mine.types.map((t) => t.id) : [];
  if (!types.includes(scope.type)) scope.type = types.find((t) => /^process_cpu:cpu/.test(t)) || types[0] || scope.type;
  fill($("type"), types.length ? types : [scope.type], scope.type, spoken);
  last = mine && mine.newest ? Date.parse(mine.newest) : 0;
  return Boolean(scope.type);
}

async function askLine(query, from, until) {
  const params = { from: Math.floor(from), until: Math.ceil(until) };
  const [answer, marks] = await Promise.all([get("/api/v1/query", { query, ...params, format: "series" }),
    scope.service === ALL ? { deployments: [] } : get("/api/v1/deployments", { service: scope.service, ...params })]);
  const { start, step_seconds, series } = answer.series, step = step_seconds * 1000, s = series[0] || { bucket: [], value: [] };
  line = { points: s.bucket.map((b, i) => [Date.parse(start) + b * step, s.value[i]]), from, until, step,
    marks: marks.deployments.map((d) => [Date.parse(d.at), d.version]) };
}

async function askFlame(query, from, until) {
  flame = takeFlame(await get("/api/v1/query", { query, from: Math.floor(from), until: Math.ceil(until), nodes: NODES, limit: FUNCTIONS }));
}

/* Of all services: what each of them has, the largest first. */
async function askShares(query, from, until) {
  shares = [];
  if (scope.service !== ALL) return;
  const params = { query, from: Math.floor(from), until: Math.ceil(until), step: Math.ceil((until - from) / 1000) + "s" };
  const { series } = (await get("/api/v1/query", { ...params, format: "series", by: "service_name" })).series;
  shares = series.map((s) => [s.labels.service_name, s.sum]).sort((a, b) => b[1] - a[1]);
}

async function ask(quietly) {
  const mine = ++asked;
  waiting = true;
  const late = quietly ? 0 : setTimeout(() => document.body.classList.add("stale"), 200);
  try {
    const there = await askScope();
    if (mine !== asked) return;
    history.replaceState(null, "", address());
    for (const id of ["when", "what", "keys"]) $(id).hidden = !there;
    showScope();
    if (!there) return say(scope.service ? `There is no service ${scope.service}.` : "No profiles yet.");
    const query = scope.type + selector(), from = time(scope.from), until = time(scope.until);
    for (const name of ["from", "until"]) if (Number.isNaN(time(scope[name]))) throw new Error(`${name}: not a time: "${scope[name]}"`);
    const part = scope.part || [from, until];
    await Promise.all([askLine(query, from, until), askFlame(query, ...part), askShares(query, ...part)]);
    if (mine !== asked) return;
    zoomed = chosen = 0;
    for (const name of scope.zoom) zoomed = chosen = childNamed(zoomed, name);
    draw();
  } catch (error) {
    if (mine !== asked) return;
    say("The question failed: " + error.message, true);
    if (!flame) for (const id of ["when", "what", "keys"]) $(id).hidden = true;
  } finally {
    clearTimeout(late);
    if (mine === asked) {
      waiting = false;
      document.body.classList.remove("stale");
    }
  }
}

/* ---- the flame ---- */

/* Siblings stand by size: the largest is read first.  Nodes stay in preorder, whose `end` skips what is too narrow. */
function takeFlame(answer) {
  const { names, files, modules, kinds, name, depth, total, self } = answer.flamegraph, n = name.length;
  const f = { answer, names, name, depth, total, self, functions: answer.top.rows, parent: [], end: [],
    children: name.map(() => []), x: new Float64Array(n) };
  for (let i = 0; i < n; i++) {
    let parent = Math.max(i - 1, 0);
    while (parent && depth[parent] >= depth[i]) parent = f.parent[parent];
    f.parent.push(parent);
    if (i) f.children[parent].push(i);
  }
  for (let i = n - 1; i >= 0; i--) f.end[i] = f.children[i].length ? f.end[f.children[i][f.children[i].length - 1]] : i + 1;
  for (let i = 0; i < n; i++) {
    let x = f.x[i];
    for (const c of f.children[i].sort((a, b) => total[b] - total[a] || a - b)) { f.x[c] = x; x += total[c]; }
  }
  coloured.clear();
  names.forEach((text, i) => coloured.set(text, family(text, files[i], modules[i], kinds[i])));
  for (const r of f.functions) if (!coloured.has(r.name)) coloured.set(r.name, family(r.name, r.file, r.module, r.kind));
  return f;
}

const nameOf = (i) => (i ? flame.names[flame.name[i]] : called());
const childNamed = (i, name) => flame.children[i].find((c) => flame.names[flame.name[c]] === name) || i;
function pathOf(i) {
  const path = [];
  for (; i; i = flame.parent[i]) path.unshift(flame.names[flame.name[i]]);
  return path;
}

function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

/* Whose code, guessed from names and paths as src/codec/palette.c does, in fewer words; and which of six colours its module has. */
const any = (...words) => new RegExp(words.join("|"));
const RUNTIME = any("^runtime[./]", "^internal/runtime", "^gcBgMark", "^__libc_start", "^_start$", "^start_thread$", "^clone3?$",
  "^node::", "^v8::", "^uv_", "^_?PyEval_", "^JavaMain", "^\\(", "^\\[");
const LIBRARY = any("^(std|core|alloc)::", "^java[x/.]", "^jdk[/.]", "^sun[/.]", "^System\\.", "^Microsoft\\.", "^JSON\\.", "^Buffer\\.");
const GO = new RegExp("^(bufio|bytes|compress|context|crypto|database|encoding|errors|fmt|hash|internal|io|log|math|mime|net|os|path|" +
  "reflect|regexp|sort|strconv|strings|sync|syscall|text|time|unicode|vendor)[/.][^:]*$");
const ELSEWHERE = any("/vendor/", "/pkg/mod/", "@v", "/go/src/", "golang/src/", "go-[0-9.]+/src/", "node_modules/", "^node:",
  "(site|dist)-packages/", "/gems/", "/rustc/", "/\\.cargo/", "/usr/(include|lib|local/go)/");
function family(name, file, module, kind) {
  if (kind === "kernel" || /^\[kernel|^vmlinux$/.test(module) || /_\[k\]$/.test(name)) return ["kernel", 0];
  if (RUNTIME.test(name)) return ["runtime", 0];
  const lib = !/^main\./.test(name) && (LIBRARY.test(name) || GO.test(name) || ELSEWHERE.test(file) || /\.so\b/.test(module));
  return [lib ? "lib" : "own", hash(name.replace(/[.:/][^.:/]*$/, "") || module) % 6];
}

const coloured = new Map(); /* by name: family, number */
let palette = null;
function colour(name) {
  const [family, i] = coloured.get(name) || ["own", 0];
  return Array.isArray(palette[family]) ? palette[family][i] : palette[family];
}

function readPalette() {
  const css = getComputedStyle(document.documentElement), of = (v) => css.getPropertyValue("--" + v).trim();
  palette = { own: of("own").split(" "), lib: of("lib").split(" "), font: getComputedStyle(document.body).fontFamily };
  for (const v of ["runtime", "kernel", "ink", "ink-3", "line", "line-2", "sunk", "panel", "accent", "soft"]) palette[v] = of(v);
}

/* A canvas of so many CSS pixels, sharp on any screen. */
function surface(canvas, height) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.textBaseline = "middle";
  return [c, width];
}

const share = (i) => flame.total[i] / (flame.total[0] || 1);
const percent = (part) => (100 * part).toFixed(1) + " %";

/* Where node i is: [x, y, width] in px of the whole drawing; callers of the zoomed node are as wide as it. */
function place(i, width) {
  const whole = flame.total[zoomed] || 1;
  const above = i <= zoomed && flame.end[i] >= flame.end[zoomed];
  return above ? [0, flame.depth[i] * ROW, width]
    : [(flame.x[i] - flame.x[zoomed]) / whole * width, flame.depth[i] * ROW, flame.total[i] / whole * width];
}

function eachShown(width, then) {
  for (let i = zoomed; ; i = flame.parent[i]) { then(i, ...place(i, width)); if (!i) break; }
  for (let i = zoomed + 1; i < flame.end[zoomed];) {
    const [x, y, w] = place(i, width);
    if (w >= 0.3) then(i, x, y, w);
    i = w >= 0.3 ? i + 1 : flame.end[i];
  }
}

function drawFlame() {
  const well = $("flame").parentElement.parentElement, width = $("flame").clientWidth, top = well.scrollTop, height = well.clientHeight;
  let rows = 0;
  eachShown(width, (i) => { rows = Math.max(rows, flame.depth[i] + 1); });
  $("flame").parentElement.style.height = rows * ROW + "px";
  const [c] = surface($("flame"), Math.min(height, Math.max(rows * ROW, ROW)));
  eachShown(width, (i, x, y, w) => {
    y -= top;
    if (y + ROW < 0 || y > height) return;
    const name = nameOf(i), dim = hits && !hits.has(i), other = i && flame.names[flame.name[i]] === "other";
    c.fillStyle = !i || dim ? palette.sunk : other ? palette.panel : colour(name);
    c.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.5), ROW - 1);
    if (other || i === chosen) {
      c.strokeStyle = i === chosen ? palette.ink : palette["line-2"];
      c.lineWidth = i === chosen ? 2 : 1;
      c.setLineDash(other && i !== chosen ? [2, 2] : []);
      c.strokeRect(x + 1, y + 1, Math.max(w - 3, 1), ROW - 3);
    }
    if (w >= LABEL_MIN) label(c, name, percent(share(i)), x, y, w, dim);
    if (hits && hits.has(i)) { c.fillStyle = palette.ink; c.fillRect(x, y + ROW - 3, Math.max(w - 1, 0.5), 2); }
  });
}

function label(c, name, aside, x, y, w, dim) {
  c.font = "12px " + palette.font;
  c.fillStyle = dim ? palette["ink-3"] : palette.ink;
  const most = Math.floor((w - 10) / 3), y2 = y + ROW / 2;
  let text = name.length > most ? name.slice(0, most) : name, long = c.measureText(text).width;
  const fits = w > 110 && long + 56 < w;
  while (text.length > 1 && long > w - 10) {
    text = text.slice(0, Math.min(text.length - 1, Math.floor(text.length * (w - 10) / long)));
    long = c.measureText(text + "…").width;
  }
  if (long <= w - 8) c.fillText(text.length < name.length ? text + "…" : text, x + 5, y2);
  if (fits) { c.textAlign = "right"; c.font = "11px " + palette.font; c.fillText(aside, x + w - 6, y2); c.textAlign = "left"; }
}

function nodeAt(event) {
  const box = $("flame").getBoundingClientRect(), x = event.clientX - box.left;
  const depth = Math.floor((event.clientY - box.top + $("flame").parentElement.parentElement.scrollTop) / ROW);
  let found = -1;
  eachShown(box.width, (i, left, y, w) => { if (flame.depth[i] === depth && x >= left && x < left + w) found = i; });
  return found;
}

function zoomTo(i) {
  zoomed = chosen = i;
  go({ zoom: pathOf(i) }, true);
  draw();
}

function choose(i) {
  chosen = i;
  draw();
  const [, y] = place(i, 1), well = $("flame").parentElement.parentElement;
  if (y < well.scrollTop) well.scrollTop = y;
  else if (y + ROW > well.scrollTop + well.clientHeight) well.scrollTop = y + ROW - well.clientHeight;
}

function describe(i) {
  const both = (value) => `${percent(value / (flame.total[0] || 1))} (${amount(value, parts(scope.type).unit)})`;
  return `${both(flame.total[i])}, self ${both(flame.self[i])}`;
}

/* Capitals ask for capitals; what is no expression is a text.  A match below a match counts once. */
function search() {
  const text = scope.find;
  hits = null;
  $("found").textContent = "";
  if (!text) return;
  try {
    const e = new RegExp(text, /[A-Z]/.test(text) ? "" : "i");
    matches = (name) => e.test(name);
  } catch {
    matches = (name) => name.includes(text);
  }
  const good = flame.names.map(matches);
  let sum = 0, until = 0;
  hits = new Set();
  for (let i = 1; i < flame.name.length; i++) {
    if (!good[flame.name[i]]) continue;
    hits.add(i);
    if (i >= until) { sum += flame.total[i]; until = flame.end[i]; }
  }
  $("found").textContent = hits.size ? `${hits.size} frames, ${percent(sum / (flame.total[0] || 1))}` : "nothing";
}

/* ---- numbers ---- */

const group = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");
function amount(value, unit) {
  const steps = unit === "nanoseconds" ? [[36e11, "h"], [6e10, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
    : unit === "bytes" ? [[1 << 30, "GB"], [1 << 20, "MB"], [1024, "kB"], [1, "B"]] : [[1, ""]];
  const [size, name] = steps.find(([s]) => Math.abs(value) >= s) || steps[steps.length - 1], n = value / size;
  return ((n < 10 && n % 1 ? n.toFixed(2) : n < 100 && n % 1 ? n.toFixed(1) : group(Math.round(n))) + " " + name).trim();
}
/* Of a flow, what a second of it is; of a level, the level. */
function rate(value, ms) {
  const p = parts(scope.type);
  if (isLevel(scope.type)) return amount(value, p.unit);
  if (p.unit === "nanoseconds") return (value / ms / 1e6).toPrecision(3) + (p.type === "cpu" ? " cores" : " s a second");
  return amount(value / ms * 1e3, p.unit) + " a second";
}

/* ---- everything around ---- */

function say(text, bad) { $("sentence").textContent = text; $("sentence").classList.toggle("bad", Boolean(bad)); }

function showScope() {
  const preset = [...$("range").options].find((o) => o.value && o.value === scope.from && scope.until === "now");
  $("range").value = preset ? preset.value : "";
  $("dates").hidden = Boolean(preset);
  $("where").value = scope.where;
  $("find").value = scope.find;
  const local = (ms) => (Math.abs(ms) < 8e15 ? new Date(ms - new Date(ms).getTimezoneOffset() * 6e4).toISOString().slice(0, 19) : "");
  $("from").value = local(time(scope.from));
  $("until").value = local(time(scope.until));
  document.title = scope.service ? `${called()}, ${spoken(scope.type)} – Kiln` : "Kiln";
}

const clock = (ms, day) => new Date(ms).toLocaleString([],
  { ...(day && { month: "short", day: "numeric" }), hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/* Templates of C++ are longer than a sentence bears; the table of functions has all of the name. */
const brief = (name) => (name.length > 72 ? name.slice(0, 70) + "…" : name);

function showSentence() {
  const [from, until] = scope.part || [time(scope.from), time(scope.until)], total = flame.total[0], p = parts(scope.type);
  const before = last ? `; the last is of ${clock(last, true)}` : "";
  if (!total) return say(`Nothing of ${called()} from ${clock(from, true)} to ${clock(until, true)}${before}.`);
  const first = flame.functions[0];
  say(`${called()}: ${rate(total, until - from)} on average${isLevel(scope.type) ? "" : `, ${amount(total, p.unit)} in all`}` +
    (first ? `; ${percent(first.self / total)} in ${brief(first.name)} itself` : ""));
}

function draw() {
  search();
  showSentence();
  showNote();
  drawLine();
  drawFlame();
  $("detail").textContent = `${nameOf(chosen)}  ·  ${describe(chosen)}`;
  $("whole").hidden = !zoomed;
  showShares();
  showTable();
}

function showShares() {
  const whole = shares.reduce((sum, s) => sum + s[1], 0) || 1;
  $("shares").hidden = !shares.length;
  $("services").replaceChildren(...shares.slice(0, ROWS).map(([name, value]) => {
    const row = document.createElement("tr"), button = document.createElement("button"), own = row.insertCell();
    button.textContent = button.title = name;
    button.onclick = () => go({ service: name, zoom: [] });
    own.append(button);
    meter(row.insertCell(), value / whole, value / shares[0][1]);
    return row;
  }));
}

function meter(cell, part, length) {
  cell.textContent = percent(part);
  cell.style.background = `linear-gradient(to left, var(--soft) ${100 * length}%, transparent 0)`;
}

function showTable() {
  const total = flame.total[0] || 1, by = (a, b) => (sort === "name" ? (a.name < b.name ? -1 : 1) : b[sort] - a[sort]);
  const list = flame.functions.filter((f) => !hits || matches(f.name)).sort(by);
  const all = hits ? list.length : flame.answer.top.functions;
  const most = list.reduce((m, f) => Math.max(m, f.self), 1);
  $("count").textContent = all > ROWS ? `${ROWS} of ${group(all)}` : group(all);
  for (const th of document.querySelectorAll("th")) {
    const on = th.firstElementChild.dataset.by === sort;
    if (on) th.setAttribute("aria-sort", sort === "name" ? "ascending" : "descending"); else th.removeAttribute("aria-sort");
  }
  $("rows").replaceChildren(...list.slice(0, ROWS).map((f) => {
    const row = document.createElement("tr"), mark = document.createElement("i"), cell = row.insertCell();
    mark.style.background = colour(f.name);
    cell.append(mark, f.name);
    cell.title = f.name;
    meter(row.insertCell(), f.self / total, f.self / most);
    row.insertCell().textContent = percent(f.total / total);
    row.onclick = () => { $("find").value = "^" + f.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$"; $("find").oninput(); };
    return row;
  }));
}

/* What was cut, estimated or left out: the server says it. */
function showNote() {
  const said = flame.answer.notes.filter((n) => !["nothing_found", "rows_cut"].includes(n.code));
  const notes = said.map((n) => n.text.replace(/\.?$/, "."));
  if (scope.part) notes.push(`${clock(scope.part[0], true)} – ${clock(scope.part[1], true)} of the timeline; a click on it shows all.`);
  $("note").textContent = notes.join(" ");
}

/* ---- the timeline ---- */

let drag = null;
const AXIS = 16;

function drawLine() {
  const height = 104, [c, width] = surface($("timeline"), height), span = line.until - line.from, floor = height - AXIS;
  const x = (ms) => (ms - line.from) / span * width, most = line.points.reduce((m, p) => Math.max(m, p[1]), 0);
  const y = (v) => floor - v / (most || 1) * (floor - 32), bar = Math.max(1, line.step / span * width - 0.5);
  const part = drag && drag.to !== drag.at ? [drag.at, drag.to].sort((a, b) => a - b) : scope.part;
  if (part) { c.fillStyle = palette.soft; c.fillRect(x(part[0]), 0, x(part[1]) - x(part[0]), floor); }
  for (const [ms, v] of line.points) {
    c.fillStyle = part && (ms + line.step <= part[0] || ms >= part[1]) ? palette["line-2"] : palette.accent;
    c.fillRect(x(ms), y(v), bar, floor - y(v));
  }
  c.fillStyle = palette["line-2"];
  c.fillRect(0, floor, width, 1);
  c.font = "11px " + palette.font;
  c.fillStyle = palette.ink;
  for (const [ms, version] of line.marks) { c.fillRect(x(ms), 16, 1, floor - 16); c.fillText(version, Math.min(x(ms) + 4, width - 60), 23); }
  c.fillStyle = palette["ink-3"];
  c.fillText(most ? "at most " + rate(most, line.step) : "nothing", 0, 7);
  for (let i = 0; i <= 6; i++) {
    c.textAlign = i === 0 ? "left" : i === 6 ? "right" : "center";
    c.fillText(clock(line.from + span * i / 6, span > 864e5), width * i / 6, height - 6);
  }
  c.textAlign = "left";
}

function msAt(event) {
  const box = $("timeline").getBoundingClientRect(), at = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  return Math.round(line.from + at * (line.until - line.from));
}

$("timeline").onpointerdown = (event) => {
  $("timeline").setPointerCapture(event.pointerId);
  drag = { at: msAt(event), to: msAt(event), x: event.clientX };
};
$("timeline").onpointermove = (event) => { if (drag) { drag.to = msAt(event); drawLine(); } };
$("timeline").onpointerup = (event) => {
  const wide = Math.abs(event.clientX - drag.x) > 3, part = [drag.at, drag.to].sort((a, b) => a - b);
  drag = null;
  if (wide) go({ part, zoom: [] }); else if (scope.part) go({ part: null, zoom: [] }); else drawLine();
};

/* ---- what people do ---- */

/* Half a window to the left or to the right. */
function shift(by) {
  const from = time(scope.from), until = time(scope.until), step = by * (until - from) / 2;
  go({ from: String(Math.round(from + step)), until: String(Math.round(until + step)), part: null });
}

function walk(key) {
  const f = flame, family = f.children[f.parent[chosen]], at = family.indexOf(chosen);
  if (key === "ArrowDown" && f.children[chosen].length) choose(f.children[chosen][0]);
  if (key === "ArrowUp" && chosen) choose(f.parent[chosen]);
  if (key === "ArrowRight" && chosen && at + 1 < family.length) choose(family[at + 1]);
  if (key === "ArrowLeft" && chosen && at > 0) choose(family[at - 1]);
}

function nextHit(by) {
  if (!hits || !hits.size) return;
  const list = [...hits], at = list.findIndex((i) => i >= chosen), there = list[at] === chosen;
  const next = by > 0 ? (at < 0 ? 0 : there ? at + 1 : at) : (at < 0 ? list.length : at) - 1;
  const i = list[(next + list.length) % list.length];
  if (i < zoomed || i >= flame.end[zoomed]) zoomTo(0);
  choose(i);
}

$("flame").onclick = (event) => { const i = nodeAt(event); if (i >= 0) zoomTo(i); };
$("flame").onpointermove = (event) => {
  const i = flame ? nodeAt(event) : -1, tip = $("tip");
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.textContent = `${nameOf(i)}\n${describe(i)}`;
  tip.style.left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
};
$("flame").onpointerleave = () => { $("tip").hidden = true; };
$("flame").parentElement.parentElement.onscroll = () => { if (flame) drawFlame(); };
$("whole").onclick = () => zoomTo(0);
$("find").oninput = () => { go({ find: $("find").value }, true); draw(); };
$("service").onchange = () => go({ service: $("service").value, zoom: [], part: null });
$("type").onchange = () => go({ type: $("type").value, zoom: [] });
$("range").onchange = () => {
  if ($("range").value) go({ from: $("range").value, until: "now", part: null });
  else $("dates").hidden = false;
};
$("scope").onsubmit = (event) => {
  event.preventDefault();
  const ms = (id) => String(Date.parse($(id).value));
  const times = $("range").value ? {} : { from: ms("from"), until: ms("until"), part: null };
  go({ where: $("where").value.trim().replace(/^\{|\}$/g, ""), ...times });
};
$("ticket").onsubmit = (event) => { event.preventDefault(); sessionStorage.setItem("token", $("token").value); ask(); };
for (const button of document.querySelectorAll("th button")) button.onclick = () => { sort = button.dataset.by; showTable(); };

/* What goes on until now is followed while somebody watches; who looks around in an answer keeps it, and only hears of new services. */
async function follow() {
  if (document.hidden || waiting || drag || scope.until !== "now") return;
  if (!scope.part && !scope.find && !zoomed && !chosen) return ask(true);
  try { await askScope(); } catch { /* the next question says it */ }
}

const KEYS = { "/": () => $("find").focus(), n: () => nextHit(1), N: () => nextHit(-1), 0: () => zoomTo(0), Enter: () => zoomTo(chosen),
  "[": () => shift(-1), "]": () => shift(1) };
addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey || !flame) return;
  if (event.key === "Escape") {
    if (typing && event.target.id !== "find") return event.target.blur();
    if (scope.find) { $("find").value = ""; $("find").oninput(); $("find").blur(); } else if (zoomed) zoomTo(flame.parent[zoomed]);
    else if (scope.part) go({ part: null });
    return;
  }
  if (typing && event.target.id === "find" && event.key === "Enter") { $("find").blur(); $("flame").focus(); return nextHit(1); }
  if (typing || (event.target.tagName === "BUTTON" && event.key === "Enter")) return;
  const does = KEYS[event.key] || (event.key.startsWith("Arrow") && walk);
  if (does) { event.preventDefault(); does(event.key); }
});
addEventListener("popstate", () => { readAddress(); ask(); });
addEventListener("resize", () => { if (flame) draw(); });
matchMedia("(prefers-color-scheme: dark)").onchange = () => { readPalette(); if (flame) draw(); };
$("commands").textContent = `kiln push --server ${location.origin} --service my-service --time now cpu.pb.gz
curl --data-binary @cpu.pb.gz '${location.origin}/api/v1/profiles?service=my-service&time=now'`;

$("scope").hidden = false;
readPalette();
readAddress();
showScope();
ask();
setInterval(follow, AGAIN);
