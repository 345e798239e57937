// The page of a running gateway. It asks /status every two seconds, and the rest when somebody wants to see it.
import { clear, element, sparkline } from "/ui/draw.js";
import { showLanes } from "/ui/lanes.js";

const POLL_MS = 2000;
const POLL_MAX_MS = 30_000;
const POLL_SHARE = 50; // an answer of /status takes at most one part in so many of the time
const ANSWER_MS = 5000;
const AGAIN_MS = 5_000;
const AGAIN_MAX_MS = 600_000;
const SHARE = 20; // a look takes at most one part in so many of a core
const ROWS_SHOWN = 200;
const SILENT_MS = 60_000;

const $ = (id) => document.getElementById(id);
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem("token", fragment.get("token"));
  history.replaceState(null, "", location.pathname);
}
const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };

const rates = new Map(); // rule: the rows of the last minutes, one number a poll
const heard = new Map(); // stream: its count, and when that last changed
let chosen = null;
let listening = null;
let asking = Promise.resolve(); // the gateway answers one question of `why` at a time

async function ask(path, options = {}) {
  const response = await fetch(path, { headers, ...options });
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  return response;
}

const ago = (atMs, nowMs) => {
  if (atMs === null || atMs === undefined) return "never fired";
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 120) return `fired ${seconds} s ago`;
  return seconds < 7200 ? `fired ${Math.round(seconds / 60)} min ago` : `fired ${Math.round(seconds / 3600)} h ago`;
};

// --- left: rules, problems, streams ---------------------------------------------------------------------------------

function showRules(status) {
  const list = $("rules");
  const focused = document.activeElement?.dataset?.rule;
  clear(list);
  for (const [name, rule] of Object.entries(status.rules)) {
    const counts = rates.get(name) ?? { total: rule.counters.rows_out, points: [] };
    counts.points = [...counts.points, rule.counters.rows_out - counts.total].slice(-40);
    counts.total = rule.counters.rows_out;
    rates.set(name, counts);
    const isBad = rule.counters.errors > 0 || rule.actions.some((action) => action.last_error);
    const button = element("button", { "aria-current": String(name === chosen) }, [
      element("span", { class: isBad ? "bad" : "" }, name),
      sparkline(counts.points),
      element("small", {}, ago(rule.last_fired_ms, status.now_ms)),
    ]);
    button.dataset.rule = name;
    button.addEventListener("click", () => choose(name));
    list.append(element("li", {}, button));
    if (name === focused) button.focus();
  }
  const names = Object.keys(status.rules);
  if (chosen && !names.includes(chosen)) choseNone();
  if (!chosen && names.length === 1) choose(names[0]);
  for (const name of [...status.stopped, ...Object.keys(status.asleep)]) {
    list.append(element("li", {}, element("small", {}, `${name}: does not run`)));
  }
}

function showProblems(status) {
  const found = [...status.ready, ...status.files.flatMap((file) => file.problems)];
  const list = clear($("problems"));
  for (const text of found) {
    const kind = / [A-Z]\d+ warning: /.test(text.split("\n")[0]) ? "warning" : "bad";
    list.append(element("li", { class: kind }, withoutPlace(text)));
  }
  if (!found.length) list.append(element("li", { class: "good" }, "none"));
}

// The line of the file and the mark below it, which are indented, need a fixed width that the column has not.
const withoutPlace = (problem) => problem.split("\n").filter((line) => !/^\s/.test(line)).join("\n");

function showStreams(status) {
  const list = clear($("streams"));
  for (const [name, count] of Object.entries(status.intake.received)) {
    const before = heard.get(name);
    if (before === undefined || before.count !== count) heard.set(name, { count, at: status.now_ms });
    const quiet = status.now_ms - heard.get(name).at;
    const isSilent = count === 0 || quiet > SILENT_MS;
    const text = isSilent ? `${name}: silent` : `${name}: ${count} messages`;
    list.append(element("li", { class: isSilent ? "bad" : "" }, text));
  }
}

function showChoices(status) {
  const names = [...Object.keys(status.intake.received), ...Object.keys(status.rules)];
  const select = $("tapped");
  if ([...select.options].map((option) => option.value).join() === names.join()) return;
  const value = select.value;
  clear(select);
  for (const name of names) select.append(element("option", { value: name }, name));
  if (names.includes(value)) select.value = value;
}

function showGateway(status) {
  const rows = (table, pairs) => {
    const body = clear($(table).tBodies[0]);
    for (const [name, value] of pairs) {
      body.append(element("tr", {}, [element("td", {}, name), element("td", { class: "number" }, String(value))]));
    }
  };
  rows("facts", [
    ["up", `${status.up_s} s`], ["resident", `${Math.round(status.resident_bytes / 1e6)} MB`],
    ["rejected messages", Object.values(status.intake.rejected).reduce((sum, count) => sum + count, 0)],
    ["unacknowledged", status.intake.unacknowledged], ["journal to replay", `${status.journal.replay_bytes} B`],
    ["spool", `${status.spool.rows} rows`], ["uploaded files", status.spool.files ?? "no target"],
    ["dead letters", status.dead_letters.written], ["listeners", status.listeners], ["defects", status.defects],
  ]);
  rows("memory", Object.entries(status.rules).flatMap(([name, rule]) => [
    [name, `${rule.memory_bytes} B`],
    ...rule.actions.map((action) => [`  ${action.sink}: ${action.state}`, `${action.sent} sent, ${action.queued} queued`]),
  ]));
}

// --- middle and right: one rule -------------------------------------------------------------------------------------

async function choose(name) {
  chosen = name;
  $("rule-name").textContent = name;
  for (const button of document.querySelectorAll("#rules button")) {
    button.setAttribute("aria-current", String(button.dataset.rule === name));
  }
  $("tapped").value = name;
  await why();
}

// The rule is gone: what is known of it would pass for the present.
function choseNone() {
  chosen = null;
  $("rule-name").textContent = "Choose a rule";
  const shown = ["findings", "sweeps", "keys", "lanes", "sql", "clauses", "plan", "code"].map($);
  for (const part of [...shown, $("stages").tBodies[0]]) clear(part);
  $("test").hidden = true;
  showTimeline("");
}

async function showRule(name) {
  const rule = await (await ask(`/ui/rule/${encodeURIComponent(name)}`)).json();
  if (name !== chosen) return;
  for (const part of ["sql", "plan", "code"]) $(part).textContent = rule[part];
}

// While "keep looking" is on, the answer is asked for again. A look costs the gateway's machine a process of low
// priority, and the answer says how much processor time: the next one waits so much longer that looking takes a
// twentieth of a core.
let lookingAgain = null;

function lookAgain(costMs) {
  clearTimeout(lookingAgain);
  lookingAgain = setTimeout(async () => {
    const isUsed = document.hidden || !$("follow").checked || document.activeElement?.type === "range";
    if (isUsed || chosen === null) lookAgain(0);
    else await why(false, true);
  }, Math.min(AGAIN_MAX_MS, Math.max(AGAIN_MS, SHARE * costMs)));
}

async function why(isTest = false, isAgain = false) {
  if (chosen === null) return;
  const began = performance.now();
  let costMs = null;
  const name = chosen;
  showRule(name).catch(() => null); // its file may have changed since; the answer below says what is wrong
  const query = new URLSearchParams({ since: $("since").value, timeline: "1" });
  if ($("key").value) query.set("key", $("key").value);
  if (isTest) query.set("test", "1");
  const findings = isAgain ? $("findings") : clear($("findings"));
  const line = element("li", {}, "looking …");
  if (!isAgain) findings.append(line);
  const ticking = setInterval(() => {
    line.textContent = `looking … ${Math.round((performance.now() - began) / 1000)} s`;
  }, 1000);
  try {
    const answer = asking.then(() => ask(`/why/${encodeURIComponent(name)}?${query}`));
    asking = answer.catch(() => null);
    const told = await (await answer).json();
    costMs = told.cost_ms;
    if (name === chosen) showAnswer(told, isAgain);
  } catch (error) {
    if (!isAgain && name === chosen) clear(findings).append(element("li", { class: "bad" }, error.message));
  }
  clearInterval(ticking);
  lookAgain(costMs ?? performance.now() - began);
}

function showAnswer(told, isAgain) {
  const findings = clear($("findings"));
  const texts = told.findings.map((finding) => [finding.code, finding.text]);
  for (const [code, text] of texts.length ? texts : [["none", "nothing was found that keeps it from firing"]]) {
    findings.append(element("li", { "data-code": code, class: code === "fired" ? "good" : "" }, text));
  }
  const body = clear($("stages").tBodies[0]);
  for (const stage of told.stages) {
    const lost = Object.entries(stage.lost).map(([what, count]) => `−${count} ${what}`).join(", ");
    const cells = [stage.stage, `${stage.count} ${stage.unit}`, `→ ${stage.passed}`, lost];
    body.append(element("tr", {}, cells.map((text) => element("td", {}, text))));
  }
  showClauses(told.conditions);
  showSweeps(told.conditions);
  if (!isAgain) {
    $("test").hidden = told.test === undefined;
    $("test").textContent = told.test ?? "";
  }
  showLanes($("keys"), $("lanes"), told);
  showTimeline(told.timeline ?? "");
}

function showClauses(conditions) {
  const list = clear($("clauses"));
  for (const item of conditions) {
    const last = item.last === null ? "" : `; last ${item.last.text}`;
    const text = `${item.clause} ${item.text}: failed ${item.failed} of ${item.looked_at}${last}`;
    list.append(element("li", { class: item.failed ? "" : "good" }, text));
  }
}

// A slider moves a constant: how often the rule would have fired in the time that is recorded.
function showSweeps(conditions) {
  const box = clear($("sweeps"));
  for (const { text, sweep } of conditions) {
    if (sweep === null || !sweep.values.length) continue;
    const numbers = [...sweep.values, sweep.bound];
    const span = Math.max(...numbers) - Math.min(...numbers) || 1;
    const [low, high] = [Math.min(...numbers) - span / 10, Math.max(...numbers) + span / 10];
    const slider = element("input", { type: "range", min: low, max: high, step: "any", value: sweep.bound });
    const label = element("output", {});
    const tell = () => {
      const bound = Number(slider.value);
      const holds = { "<": (v) => v < bound, "<=": (v) => v <= bound, ">": (v) => v > bound, ">=": (v) => v >= bound };
      const count = sweep.values.filter(holds[sweep.operator]).length;
      label.textContent = ` ${text}: at ${Number(bound.toPrecision(6))} it would have held ${count} times`;
    };
    slider.addEventListener("input", tell);
    tell();
    box.append(element("p", {}, element("label", {}, [slider, label])));
  }
}

function showTimeline(svg) {
  const image = $("timeline");
  URL.revokeObjectURL(image.src);
  image.hidden = !svg;
  if (svg) image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
}

// --- below: what passes, dead letters -------------------------------------------------------------------------------

async function toggleTap() {
  if (listening !== null) {
    listening.abort();
    return;
  }
  listening = new AbortController();
  $("tap").setAttribute("aria-pressed", "true");
  $("tap").textContent = "Stop";
  try {
    await follow(listening.signal);
  } catch (error) {
    if (error.name !== "AbortError") addRow(error.message);
  }
  listening = null;
  $("tap").setAttribute("aria-pressed", "false");
  $("tap").textContent = "Listen";
}

async function follow(signal) {
  const where = $("where").value.trim();
  const query = where ? `?${new URLSearchParams({ where })}` : "";
  const response = await ask(`/tap/${encodeURIComponent($("tapped").value)}${query}`, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines.slice(-ROWS_SHOWN)) if (line) addRow(line);
  }
}

function addRow(text) {
  const rows = $("rows");
  rows.append(`${text}\n`);
  while (rows.childNodes.length > ROWS_SHOWN) rows.firstChild.remove();
  rows.scrollTop = rows.scrollHeight;
}

async function showLetters() {
  const letters = await (await ask("/ui/dead-letters")).json();
  const list = clear($("letters"));
  for (const letter of letters) {
    const place = letter.topic || letter.rule || "";
    const item = element("li", {}, `${new Date(letter.at_ms).toISOString()} ${place}: ${letter.reason} `);
    if (letter.again !== null) item.append(retryButton(letter));
    list.append(item);
  }
  if (!letters.length) list.append(element("li", { class: "good" }, "none"));
}

async function showLog() {
  const log = $("log");
  const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
  log.textContent = (await (await ask("/ui/log")).json()).join("\n");
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function retryButton(letter) {
  const button = element("button", { title: `publish it to ${letter.again}` }, letter.is_retried ? "Try once more" : "Try again");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      button.textContent = await (await ask(`/ui/dead-letters/${letter.id}`, { method: "POST" })).text();
    } catch (error) {
      button.textContent = error.message;
      button.disabled = false;
    }
  });
  return button;
}

// --- the page -------------------------------------------------------------------------------------------------------

let written = -1;

async function poll() {
  let tookMs = 0;
  try {
    const began = performance.now();
    const status = await (await ask("/status", { signal: AbortSignal.timeout(ANSWER_MS) })).json();
    tookMs = performance.now() - began;
    $("gateway").textContent = status.gateway;
    $("state").textContent = status.ready.length ? "running, not all is well" : "running";
    $("state").className = "";
    for (const show of [showRules, showProblems, showStreams, showChoices, showGateway]) show(status);
    if (written !== status.dead_letters.written) await showLetters();
    written = status.dead_letters.written;
    if (!$("gateway-view").hidden) await showLog();
  } catch (error) {
    $("state").textContent = `the gateway does not answer (${error.message}); trying again`;
    $("state").className = "gone";
  }
  setTimeout(poll, Math.min(POLL_MAX_MS, Math.max(POLL_MS, POLL_SHARE * tookMs)));
}

function show(view) {
  for (const name of ["rules", "gateway"]) {
    $(`${name}-view`).hidden = name !== view;
    $(`view-${name}`).setAttribute("aria-pressed", String(name === view));
  }
  if (view === "gateway") showLog().catch(() => null); // poll tells what is wrong
}

function moveFocus(event) {
  const buttons = [...document.querySelectorAll("#rules button")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !buttons.length) return;
  event.preventDefault();
  const at = buttons.indexOf(document.activeElement);
  buttons[(at + step + buttons.length) % buttons.length].focus();
}

$("ask").addEventListener("click", () => why());
$("since").addEventListener("change", () => why());
$("make-test").addEventListener("click", () => why(true));
$("tap").addEventListener("click", toggleTap);
$("view-rules").addEventListener("click", () => show("rules"));
$("view-gateway").addEventListener("click", () => show("gateway"));
$("rules").addEventListener("keydown", moveFocus);
poll();
