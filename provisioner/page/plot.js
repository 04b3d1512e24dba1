// The plot of a group: its demand above, its pods below, and the same in words and in numbers.
import { list } from "./rows.js";

const lines = [
  { key: "idle", name: "jobs that wait", panel: 0 },
  { key: "claimed", name: "pods with a job", panel: 1 },
  { key: "unmatched", name: "pods without a job", panel: 1 },
  { key: "waiting", name: "pods on their way", panel: 1 },
  { key: "wasted", name: "ended without a job, last hour", panel: 1 },
];
const width = 900, left = 52, right = 12, panelHeight = 120, gap = 46, top = 24;
const gapSeconds = 900;  // without a point for longer nothing is known

function element(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// [{unix_time, idle, ...}] of what /history/... answers.
export function pointsOf(history) {
  const columns = list(history?.columns);
  return list(history?.points).map((point) =>
    Object.fromEntries(columns.map((name, i) => [name, Number.isFinite(point?.[i]) ? point[i] : 0])));
}

const clock = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

// A round number not below the most.
function roundUp(most) {
  for (let power = 1; ; power *= 10)
    for (const step of [1, 2, 4, 5]) if (step * power >= most) return step * power;
}

export function draw(points, now) {
  const from = Math.min(points[0]?.unix_time ?? now, now - 600), span = Math.max(now - from, 1);
  const x = (time) => left + ((width - left - right) * (time - from)) / span;
  const height = top + 2 * panelHeight + gap + 50;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "plot-title told" });
  for (const panel of [0, 1]) {
    const mine = lines.filter((line) => line.panel === panel);
    const base = top + panelHeight + panel * (panelHeight + gap);
    const most = roundUp(Math.max(1, ...points.map((point) => Math.max(...mine.map((line) => point[line.key] ?? 0)))));
    for (const part of [0, 0.5, 1]) {
      const at = base - panelHeight * part;
      svg.append(element("line", { class: "axis", x1: left, x2: width - right, y1: at, y2: at }));
      if (most * part === Math.floor(most * part))
        svg.append(element("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, String(most * part)));
    }
    let legend = left;
    for (const { key, name } of mine) {
      let path = "", last = -Infinity;
      for (const point of points) {
        const y = base - (panelHeight * (point[key] ?? 0)) / most, at = `${x(point.unix_time).toFixed(1)} ${y.toFixed(1)}`;
        // Of no length at first, so that also a lone point is seen.
        path += point.unix_time - last > gapSeconds ? `M${at}h0` : `L${at}`;
        last = point.unix_time;
      }
      if (path) svg.append(element("path", { class: key, d: path }));
      const above = base - panelHeight - 10;
      svg.append(element("path", { class: key, d: `M${legend} ${above - 4}h26` }),
        element("text", { x: legend + 32, y: above }, name));
      legend += 60 + name.length * 6.6;
    }
  }
  const bottom = top + 2 * panelHeight + gap;
  for (const part of [0, 0.25, 0.5, 0.75, 1])
    svg.append(element("text", { x: left + (width - left - right) * part, y: bottom + 20,
      "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, clock(from + span * part)));
  return svg;
}

// What the plot shows, for who cannot see it.
export function tell(points) {
  const last = points.at(-1);
  if (!last) return "No cycle of the last day is known.";
  const most = points.reduce((a, b) => (b.idle > a.idle ? b : a));
  return `Since ${clock(points[0].unix_time)}. At ${clock(last.unix_time)}: ${last.idle} jobs wait; ${last.claimed} pods have a job, ` +
    `${last.unmatched} have none, ${last.waiting} are on their way, ${last.broken} are broken; ${last.wasted} ended ` +
    `without a job in the hour before. Most jobs waited at ${clock(most.unix_time)}: ${most.idle}.`;
}

// The last point of each hour, the newest first.
export function hours(points) {
  const byHour = new Map();
  for (const point of points) byHour.set(Math.floor(point.unix_time / 3600), point);
  return [...byHour.values()].reverse().map((point) => [clock(point.unix_time), ...lines.map(({ key }) => point[key])]);
}
export const hourColumns = ["Time", ...lines.map(({ name }) => name)];
