// What a status says, as rows for tables. All of it may come from anybody: nothing here trusts its form.

const troubles = ["pull error", "unknown", "broken", "absent"];

// How much somebody should look at it; the worst first.
export const concerns = ["trouble", "waits", "runs", "none"];

function concernOf(state) {
  if (state === "running" || state === "claimed") return 2;
  if (state === "unmatched") return 3;
  return troubles.includes(state) ? 0 : 1;
}

export const list = (value) => (Array.isArray(value) ? value : []);
export const text = (value) => (typeof value === "string" ? value : "");
export const number = (value) => (Number.isFinite(value) ? value : 0);
export const object = (value) => (value !== null && typeof value === "object" ? value : {});

export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return `${Math.floor(s / 3600)} h`;
}

export function stateText(row, now) {
  return row.state.toUpperCase() + (row.since > 0 ? ` ${duration(now - row.since)}` : "");
}

// A row a job, or a pod that has none, or a container that is neither free nor a job's.
export function rowsOf(status) {
  const rows = [];
  for (const pod of list(status.pods).map(object)) {
    const jobs = list(pod.jobs).map(object);
    const base = { pod: text(pod.pod), node: text(pod.node), container: "", job: "", owner: "", image: "", digest: "",
      bind: "", waits: "", since: 0 };
    const add = (state, more) => rows.push({ ...base, state, concern: concernOf(state), ...more });
    for (const job of jobs)
      add(text(job.state) || "claimed", {
        container: text(job.container), job: text(job.job), owner: text(job.owner), image: text(job.image),
        digest: text(job.digest), waits: text(job.waits_for) || text(pod.waits_for), since: number(job.since), bind_s: job.bind_s,
        bind: Number.isFinite(job.bind_s) ? `${text(job.how)} ${job.bind_s.toFixed(1)} s`.trim() : "" });
    if (jobs.length === 0) add(text(pod.state), { since: number(pod.since), waits: text(pod.waits_for) });
    for (const part of text(pod.containers).split(" ")) {
      const [container, state] = part.split("=", 2);
      if (!state || state === "idle" || jobs.some((job) => text(job.container) === container)) continue;
      add(state, { container });
    }
  }
  return rows.map((row, at) => ({ row, at })).sort((a, b) => a.row.concern - b.row.concern || a.at - b.at)
    .map(({ row }) => row);
}

export function groupsOf(status) {
  return list(status.decisions).map(object).map((d) => {
    const group = object(d.group);
    const rare = ["gpu_types", "disk_volumes", "labels"].map((key) => text(group[key])).filter(Boolean);
    const size = [`${number(group.cpus)} CPU${group.cpus === 1 ? "" : "s"}`, `${number(group.memory_mb)} MB`,
      `${Math.round(number(group.disk_kb) / 1e6)} GB disk`];
    if (number(group.gpus) > 0) size.push(`${group.gpus} GPU${group.gpus === 1 ? "" : "s"}`);
    return { hash: text(d.group_hash), name: [...size, ...rare].join(", "), image: text(d.image), idle: number(d.idle),
      waiting: number(d.waiting), unmatched: number(d.unmatched), claimed: number(d.claimed), broken: number(d.broken),
      wasted: number(d.wasted), submit: number(d.submit), verdict: text(d.verdict),
      reason: list(d.steps).map((step) => text(object(step).text)).filter(Boolean).join("; "),
      stopped: d.breaker === "open",
      owners: Object.entries(object(d.owners)).sort((a, b) => b[1] - a[1]) };
  }).sort((a, b) => b.idle + b.waiting + b.claimed - (a.idle + a.waiting + a.claimed));
}

export function matches(row, filter) {
  return ["owner", "image", "node"].every((key) =>
    !filter[key] || row[key].toLowerCase().includes(filter[key].toLowerCase()));
}

// How many pods a status has no room for, and only counts.
export function leftOut(status) {
  return Object.values(object(object(object(status).left_out).pods)).reduce((all, count) => all + number(count), 0);
}

// How many pods and jobs there are, by state, and how long a bind took that nineteen of twenty were quicker than.
export function summaryOf(status, rows) {
  const pods = {}, jobs = {};
  for (const pod of list(status.pods).map(object)) pods[text(pod.state)] = (pods[text(pod.state)] ?? 0) + 1;
  for (const row of rows) if (row.job) jobs[row.state] = (jobs[row.state] ?? 0) + 1;
  const rest = object(status.left_out);
  for (const [from, to] of [[rest.pods, pods], [rest.jobs, jobs]])
    for (const [state, count] of Object.entries(object(from))) to[state] = (to[state] ?? 0) + number(count);
  const binds = rows.map((row) => row.bind_s).filter(Number.isFinite).sort((a, b) => a - b);
  const claimed = pods.claimed ?? 0, unmatched = pods.unmatched ?? 0;
  return { pods, jobs, claimed, unmatched, p95: binds[Math.ceil(0.95 * binds.length) - 1],
    idle: claimed + unmatched > 0 ? unmatched / (claimed + unmatched) : undefined };
}

export function counts(what, byState) {
  const sum = Object.values(byState).reduce((a, b) => a + b, 0);
  const parts = Object.entries(byState).map(([state, count]) => `${count} ${state}`);
  return `${sum} ${what}${sum === 1 ? "" : "s"}${parts.length ? `: ${parts.join(", ")}` : ""}`;
}
