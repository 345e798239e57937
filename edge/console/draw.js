// Making elements. Texts are set as texts, never as HTML.

export function element(name, attributes, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
  made.append(...(Array.isArray(children) ? children : [children]));
  return made;
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

export function sparkline(points) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "polyline");
  const most = Math.max(1, ...points);
  const at = points.map((value, index) => `${index * 2},${18 - (16 * Math.max(0, value)) / most}`);
  svg.setAttribute("viewBox", "0 0 80 20");
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("points", at.join(" "));
  svg.append(line);
  return svg;
}
