// Asks the provisioner again and again, and shows what it says. Names come from anybody: text nodes only.
import { concerns, counts, duration, groupsOf, leftOut, list, matches, number, object, rowsOf, stateText, summaryOf, text } from "./rows.js";
import { draw, hourColumns, hours, pointsOf, tell } from "./plot.js";

const pause = 3000, patience = 10000, firstRows = 200, mostChoices = 300;
const podColumns = ["Pod", "Node", "Container", "Job", "Owner", "State", "Image", "Bind", "Waits for"];
const groupColumns = ["Group", "Jobs waiting", "Pods waiting", "Without a job", "Busy", "Broken", "Wasted", "To make",
  "Verdict", "Reason", "Owners"];
const find = (id) => document.getElementById(id);

const view = { status: null, tag: null, rows: [], groups: [], history: null, historyTag: null, historyOf: "",
  skew: 0, trouble: "", stateCells: [], turn: 0, drawn: null };

// ---- the filter is in the URL's fragment, so that a view can be shared
function settings() {
  const given = new URLSearchParams(location.hash.slice(1));
  return { owner: given.get("owner") ?? "", image: given.get("image") ?? "", node: given.get("node") ?? "",
    group: given.get("group") || "all", all: given.get("all") === "1" };
}
function change(part) {
  const now = { ...settings(), ...part }, given = new URLSearchParams();
  for (const key of ["owner", "image", "node"]) if (now[key]) given.set(key, now[key]);
  if (now.group !== "all") given.set("group", now.group);
  if (now.all) given.set("all", "1");
  history.replaceState(null, "", given.size ? `#${given}` : location.pathname + location.search);
}

// ---- small parts of a page
function make(name, content, attributes = {}) {
  const made = document.createElement(name);
  if (content !== "") made.append(content);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
// Only where it is another text: a screen reader reads what changes.
function say(place, what) {
  if (place.textContent !== what) place.textContent = what;
}
function headings(table, columns, numbers = []) {
  const row = make("tr", "", { role: "row" });
  for (const column of columns)
    row.append(make("th", column, { scope: "col", role: "columnheader", ...(numbers.includes(column) && { class: "number" }) }));
  table.tHead.replaceChildren(row);
}
function cell(column, content, kind = "") {
  const empty = content === "";
  const first = column === podColumns[0] || column === groupColumns[0] || column === hourColumns[0];
  const made = document.createElement(first ? "th" : "td");
  made.setAttribute("role", first ? "rowheader" : "cell");
  if (first) made.setAttribute("scope", "row");
  made.dataset.label = column;
  if (empty || kind) made.className = empty ? "empty" : kind;
  made.append(empty ? "-" : content);
  return made;
}

// ---- what is shown
const serverNow = () => Date.now() / 1000 + view.skew;

function podLine(row, now) {
  const line = make("tr", "", { role: "row" });
  const state = cell("State", stateText(row, now), concerns[row.concern]);
  if (row.since > 0) view.stateCells.push({ row, place: state });
  const image = cell("Image", row.image);
  if (row.digest) image.title = row.digest;
  line.append(cell("Pod", row.pod || "?"), cell("Node", row.node), cell("Container", row.container), cell("Job", row.job),
    cell("Owner", row.owner), state, image, cell("Bind", row.bind), cell("Waits for", row.waits));
  return line;
}

function showPods() {
  const wanted = settings(), rows = view.rows.filter((row) => matches(row, wanted));
  const most = wanted.all ? rows.length : Math.min(rows.length, firstRows), now = serverNow();
  const body = find("pods").tBodies[0];
  view.stateCells = [];
  const old = [...body.children], turn = ++view.turn;
  for (const line of old.splice(most)) line.remove();
  // Those beyond the first bit by bit, and in the place of what was there: the page stays usable, and where it is.
  let drawn;
  view.drawn = new Promise((done) => { drawn = done; });
  const put = (from) => {
    if (turn !== view.turn) return drawn();
    const to = Math.min(most, from + firstRows);
    for (let i = from; i < Math.min(to, old.length); ++i) old[i].replaceWith(podLine(rows[i], now));
    body.append(...rows.slice(Math.max(from, old.length), to).map((row) => podLine(row, now)));
    if (to < most) setTimeout(put, 0, to);
    else drawn();
  };
  put(0);
  const filtered = rows.length < view.rows.length ? `, of ${view.rows.length} without the filter` : "";
  const missing = leftOut(view.status);
  say(find("shown"), `${most} of ${rows.length} rows${filtered}${missing ? `; ${missing} pods are only counted` : ""}`);
  find("more").hidden = most === rows.length;
  say(find("more"), `Show all ${rows.length}`);
}

function showGroups() {
  const owner = settings().owner.toLowerCase(), body = document.createDocumentFragment();
  const focused = document.activeElement?.dataset?.group;
  const shown = view.groups.filter((g) => !owner || g.owners.some(([name]) => name.toLowerCase().includes(owner)));
  for (const group of shown.slice(0, firstRows)) {
    const line = make("tr", "", { role: "row" });
    const link = make("a", group.name, { href: "#plot-title", "data-group": group.hash });
    const concern = ["stopped", "unservable"].includes(group.verdict) ? "trouble" : group.verdict === "enough" ? "" : "waits";
    const owners = group.owners.slice(0, 5).map(([name, idle]) => `${name} ${number(idle)}`).join(", ") +
      (group.owners.length > 5 ? ` and ${group.owners.length - 5} more` : "");
    line.append(cell("Group", link));
    for (const [i, key] of ["idle", "waiting", "unmatched", "claimed", "broken", "wasted", "submit"].entries())
      line.append(cell(groupColumns[i + 1], String(group[key]), "number"));
    line.append(cell("Verdict", group.verdict, concern), cell("Reason", group.reason), cell("Owners", owners));
    body.append(line);
  }
  find("groups").tBodies[0].replaceChildren(body);
  if (focused) find("groups").querySelector(`[data-group="${CSS.escape(focused)}"]`)?.focus();
}

function showSummary() {
  const sum = summaryOf(view.status, view.rows), wait = view.groups.reduce((all, group) => all + group.idle, 0) +
    number(object(view.status.left_out).idle);
  const total = (byState) => String(Object.values(byState).reduce((a, b) => a + b, 0));
  const tiles = [["Jobs that wait", String(wait)], ["Jobs in pods", total(sum.jobs)], ["Pods", total(sum.pods)],
    ["Pods without a job", sum.idle === undefined ? "-" : `${Math.round(100 * sum.idle)} %`],
    ["Bound in (p95)", sum.p95 === undefined ? "-" : `${sum.p95.toFixed(1)} s`]];
  find("tiles").replaceChildren(...tiles.map(([name, value]) => {
    const tile = make("div", "");
    tile.append(make("dt", name), make("dd", value));
    return tile;
  }));
  say(find("summary"), `${counts("pod", sum.pods)}; ${counts("job", sum.jobs)}`);
}

function fill(place, values) {
  const chosen = [...new Set(values)].filter(Boolean).sort().slice(0, mostChoices);
  const old = [...place.children].map((option) => option.value);
  if (old.join("\n") !== chosen.join("\n"))
    place.replaceChildren(...chosen.map((value) => make("option", "", { value })));
}

function showChoices() {
  for (const key of ["owner", "image", "node"]) fill(find(`${key}s`), view.rows.map((row) => row[key]));
  const choices = [{ hash: "all", name: "all together" }, ...view.groups.slice(0, mostChoices)];
  const select = find("group"), old = [...select.children].map((option) => option.value).join("\n");
  if (old !== choices.map(({ hash }) => hash).join("\n"))
    select.replaceChildren(...choices.map(({ hash, name }) => make("option", name, { value: hash })));
  select.value = settings().group;
}

function showPlot() {
  const points = pointsOf(view.history), now = serverNow();
  find("plot").replaceChildren(draw(points, now));
  say(find("told"), view.history ? tell(points) : "Of this group no history is kept.");
  find("hours").tBodies[0].replaceChildren(...hours(points).map((values) => {
    const line = make("tr", "", { role: "row" });
    line.append(...values.map((value, i) => cell(hourColumns[i], String(value), i ? "number" : "")));
    return line;
  }));
}

function showAge() {
  const now = serverNow(), alerts = [], status = view.status;
  const age = status ? now - number(status.unix_time) : 0;
  // A cycle that takes long is not missed at once.
  const old = status && age > 2 * (number(status.sleep_time) || 120) + 60;
  if (view.trouble)
    alerts.push(`${view.trouble}${status ? " What is shown is of the last answer." : ""}`);
  if (old) alerts.push(`The data is old: the last cycle was ${duration(age)} ago.`);
  if (status && text(status.blind)) alerts.push(`Blind, so nothing is decided: ${status.blind}`);
  for (const group of view.groups)
    if (group.stopped)
      alerts.push(`Breaker open for ${group.image} (${group.name}): ${group.reason}`);
  for (const node of list(status?.avoided_nodes).map(object))
    alerts.push(`Node ${text(node.node)} is avoided until ${new Date(number(node.until) * 1000).toLocaleTimeString()}: ` +
      `${number(node.failed)} pilots failed there in a row`);
  for (const problem of list(status?.problems).slice(0, 20)) alerts.push(`Problem: ${text(problem)}`);
  const shown = [...find("alerts").children].map((item) => item.textContent);
  if (shown.join("\n") !== alerts.join("\n")) find("alerts").replaceChildren(...alerts.map((alert) => make("li", alert)));
  document.body.classList.toggle("old", Boolean(view.trouble || old));
  if (status) say(find("age"), `as of ${new Date(number(status.unix_time) * 1000).toLocaleTimeString()}, ${duration(age)} ago`);
  for (const { row, place } of view.stateCells) say(place, stateText(row, now));
}

function showAll() {
  performance.mark("render");
  showSummary();
  showChoices();
  showPods();
  showGroups();
  showAge();
  performance.measure("render", "render");
}

// ---- the answers
async function ask(path) {
  // What has not changed is answered from the browser's own store, after asking.
  const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(patience) });
  const now = Number(answer.headers.get("Glidepod-Now"));
  if (now > 0) view.skew = now - Date.now() / 1000;
  return answer;
}

async function askStatus() {
  const answer = await ask("status.json");
  if (!answer.ok) throw new Error(`it says: ${(await answer.text()).trim().slice(0, 200)}`);
  const tag = answer.headers.get("ETag");
  if (tag !== null && tag === view.tag) return;
  const status = await answer.json();
  Object.assign(view, { status, tag, rows: rowsOf(status), groups: groupsOf(status) });
  showAll();
}

async function askHistory() {
  const group = settings().group, answer = await ask(`history/${encodeURIComponent(group)}.json`);
  const tag = answer.headers.get("ETag");
  if (tag !== null && tag === view.historyTag && group === view.historyOf) return;
  const history = answer.ok ? await answer.json() : null;
  if (group !== settings().group) return;
  Object.assign(view, { history, historyTag: tag, historyOf: group });
  showPlot();
}

async function look() {
  try {
    await askStatus();
    await askHistory();
    view.trouble = "";
  } catch (problem) {
    const silent = problem instanceof TypeError || problem.name === "TimeoutError";
    view.trouble = silent ? "The provisioner does not answer." : `The provisioner has no status: ${problem.message}`;
  }
  showAge();
}

// Not while rows are drawn, which a slow browser would never come to the end of.
async function again() {
  if (!document.hidden) await look();
  await view.drawn;
  setTimeout(again, pause);
}

function showSettings() {
  const wanted = settings();
  for (const key of ["owner", "image", "node"]) {
    const field = find("filter").elements[key];
    if (field.value !== wanted[key]) field.value = wanted[key];
  }
  find("group").value = wanted.group;
  showPods();
  showGroups();
  if (wanted.group !== view.historyOf) askHistory().catch(() => {});
}

headings(find("pods"), podColumns);
headings(find("groups"), groupColumns, groupColumns.slice(1, 8));
headings(find("hours"), hourColumns, hourColumns.slice(1));
find("filter").addEventListener("input", (event) => { change({ [event.target.name]: event.target.value }); showSettings(); });
find("filter").addEventListener("submit", (event) => event.preventDefault());
find("filter").addEventListener("reset", () => { change({ owner: "", image: "", node: "" }); showSettings(); });
find("group").addEventListener("change", (event) => { change({ group: event.target.value }); showSettings(); });
find("more").addEventListener("click", () => { change({ all: true }); showPods(); });
find("groups").addEventListener("click", (event) => {
  const group = event.target.dataset?.group;
  if (!group) return;
  event.preventDefault();
  change({ group });
  showSettings();
  find("plot-title").scrollIntoView();
});
addEventListener("hashchange", showSettings);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
showSettings();
again();
