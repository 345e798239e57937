// The lanes of a rule: for each key its events, the windows that were looked at, and what each look gave.
import { clear, element, shape } from "/ui/draw.js";

const WIDTH = 720;
const LABEL = 120;
const LANE = 24;
const SHOWN_AT_FIRST = 8;

const hidden = new Map(); // rule: the keys that are not drawn

function timeOf(atMs) {
  return new Date(atMs).toISOString().slice(11, 23);
}

function hiddenOf(rule, lanes) {
  if (!hidden.has(rule)) hidden.set(rule, new Set(lanes.slice(SHOWN_AT_FIRST).map((lane) => lane.key)));
  return hidden.get(rule);
}

// Check boxes for the keys, and the picture of those that are chosen.
export function showLanes(keys, picture, told) {
  clear(keys);
  clear(picture);
  const lanes = (told.lanes ?? []).filter((lane) => lane.events.length + lane.looks.length > 0);
  if (!lanes.length) return;
  const without = hiddenOf(told.rule, lanes);
  const draw = () => clear(picture).append(drawn(lanes.filter((lane) => !without.has(lane.key)), told.until_ms));
  if (lanes.length > 1) keys.append(...lanes.map((lane) => choice(lane.key, without, draw)));
  if (told.more) keys.append(element("small", {}, `${told.more} more keys: name one above`));
  draw();
}

function choice(key, without, draw) {
  const box = element("input", { type: "checkbox", value: key });
  box.checked = !without.has(key);
  box.addEventListener("change", () => {
    if (box.checked) without.delete(key);
    else without.add(key);
    draw();
  });
  return element("label", {}, [box, key || "all"]);
}

function drawn(lanes, untilMs) {
  const marks = lanes.flatMap((lane) => [...lane.events, ...lane.looks]);
  const fromMs = Math.min(untilMs - 1, ...marks.map((mark) => mark.from_ms ?? mark.at_ms));
  const x = (atMs) => LABEL + ((WIDTH - LABEL - 10) * (atMs - fromMs)) / (untilMs - fromMs);
  const height = LANE * lanes.length + 22;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "Events and looks by key" });
  lanes.forEach((lane, number) => svg.append(laneOf(lane, number * LANE + LANE / 2, x)));
  for (const [atMs, anchor] of [[fromMs, "start"], [untilMs, "end"]]) {
    svg.append(shape("text", { x: x(atMs), y: height - 4, "text-anchor": anchor }, timeOf(atMs)));
  }
  return svg;
}

function laneOf(lane, y, x) {
  const group = shape("g", { "data-key": lane.key });
  const label = lane.key.length > 16 ? `${lane.key.slice(0, 15)}…` : lane.key || "all";
  group.append(shape("text", { x: 0, y: y + 4 }, [shape("title", {}, lane.key), label]));
  group.append(shape("line", { class: "base", x1: LABEL, x2: WIDTH - 10, y1: y, y2: y }));
  const lookedMs = Math.max(-Infinity, ...lane.looks.map((look) => look.at_ms));
  for (const look of lane.looks.filter((one) => one.from_ms !== null)) {
    const width = Math.max(1, x(look.at_ms) - x(look.from_ms));
    group.append(shape("rect", { class: "window", x: x(look.from_ms), y: y - 6, width, height: 12 }));
  }
  for (const event of lane.events) {
    const place = event.holds ? (event.at_ms > lookedMs && lane.looks.length ? "event inside" : "event") : "event failed";
    group.append(mark("line", event, { class: place, x1: x(event.at_ms), x2: x(event.at_ms), y1: y - 5, y2: y + 5 }));
  }
  for (const look of lane.looks) {
    group.append(mark("circle", look, { class: look.holds ? "look held" : "look failed", cx: x(look.at_ms), cy: y, r: 4.5 }));
  }
  return group;
}

function mark(name, told, attributes) {
  return shape(name, attributes, shape("title", {}, `${timeOf(told.at_ms)} ${told.text}`));
}
