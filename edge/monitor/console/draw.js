// Making elements. Texts are set as texts, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
  made.append(...(Array.isArray(children) ? children : [children]));
  return made;
}

export function element(name, attributes, children = []) {
  return filled(document.createElement(name), attributes, children);
}

export function shape(name, attributes, children = []) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

export function sparkline(points) {
  const most = Math.max(1, ...points);
  const at = points.map((value, index) => `${index * 2},${18 - (16 * Math.max(0, value)) / most}`);
  const line = shape("polyline", { points: at.join(" ") });
  return shape("svg", { viewBox: "0 0 80 20", "aria-hidden": "true" }, line);
}
