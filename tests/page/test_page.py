#!/usr/bin/env python3
"""usage: test_page.py PROVISIONER [--screenshot FILE]"""
import csv
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import Browser
from world import SETTINGS, World, jobs, pod, slot

MARKUP = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'
began = time.monotonic()
counted = {"passed": 0, "failed": 0}


def check(name, good, why=""):
    counted["passed" if good else "failed"] += 1
    if not good:
        print(f"   got: {why}")
    print(f"{'ok' if good else 'not ok'}: {name} ({time.monotonic() - began:.1f})", flush=True)


def some_pods():
    pods = [pod("pilot-a"), pod("pilot-b", "node-2"), pod("pilot-c"), pod("pilot-d", "node-3"),
            pod("pilot-e", "node-2", ("ContainerCreating", ""), ago=48), pod("pilot-f", None)]
    pods += [pod(f"bad-{i}", "node-3", ("ImagePullBackOff", f"Back-off pulling image {MARKUP}"), cpus=4) for i in range(3)]
    slots = [slot("pilot-a", "alice", "12.0"),
             slot("pilot-b", "bob", "7.0", "pulling", "reg.example/big:1", ago=48, GlidepodHow="", GlidepodBindTime="x",
                  GlidepodWaitsFor="its image, pulled beside the pod: 429 Too Many Requests"),
             slot("pilot-c", MARKUP, "8.0", image=MARKUP, GlidepodHow="warm", GlidepodBindTime=0.2), slot("pilot-d")]
    return pods, slots, [jobs(12, "alice"), jobs(3, "bob", 2), jobs(5, "carol", 4)]


def many_pods(count):
    return ([pod(f"pilot-{i:05}", f"node-{i % 300}") for i in range(count)],
            [slot(f"pilot-{i:05}", f"user{i % 40}", f"{i}.0", image=f"reg.example/image-{i % 50}:1") for i in range(count)],
            [jobs(1000 + i, f"user{i}", 1 + i % 8) for i in range(40)])


def request(world, method, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_endpoint(world):
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"),
                       ("/rows.js", "text/javascript"), ("/plot.js", "text/javascript"), ("/status.json", "application/json"),
                       ("/history/all.json", "application/json")):
        answer, body = request(world, "GET", path)
        check(f"{path} is served", answer.status == 200 and answer.getheader("Content-Type").startswith(kind) and len(body) > 100,
              (answer.status, answer.getheaders()))
    policy = answer.getheader("Content-Security-Policy")
    check("the policy allows no other host and no markup from text", policy.startswith("default-src 'none'; ") and
          "unsafe" not in policy and "http" not in policy and "require-trusted-types-for 'script'" in policy, policy)
    answer, _ = request(world, "GET", "/status.json")
    again, body = request(world, "GET", "/status.json", If_None_Match=answer.getheader("ETag"))
    # A cycle may have ended between the two.
    check("who has the status already is told so", (again.status, body) == (304, "") or again.getheader("ETag") != answer.getheader("ETag"),
          (again.status, len(body)))
    check("a history that is not kept is not found", request(world, "GET", "/history/nothing.json")[0].status == 404)
    check("nothing can be changed", request(world, "POST", "/", Content_Length="0")[0].status == 405)


ROWS = "[...document.querySelectorAll('#pods tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"


def test_table(world, browser):
    browser.look(1280, 900)
    browser.open(world.url)
    check("pods and jobs are shown", browser.wait("document.querySelectorAll('#pods tbody tr').length === 9"), (browser.ask(ROWS), browser.complaints))
    rows = {row[0]: row for row in browser.ask(ROWS)}
    check("a job that runs, with its bind", rows["pilot-a"][1:5] == ["node-1", "payload-0", "12.0", "alice"] and
          rows["pilot-a"][7] == "switched 2.5 s", rows["pilot-a"])
    check("one that waits, since when and why", rows["pilot-b"][5].startswith(("PULLING 4", "PULLING 5", "PULLING 6")) and
          "429" in rows["pilot-b"][8], rows["pilot-b"])
    check("a pod that waits, in the scheduler's words", rows["pilot-f"][5].startswith("UNSCHEDULABLE") and
          "Insufficient cpu" in rows["pilot-f"][8], rows["pilot-f"])
    check("the worst first", [row[5].split()[0] for row in browser.ask(ROWS)[:3]] == ["PULL"] * 3, browser.ask(ROWS)[:3])
    check("names of others are text", rows["pilot-c"][4] == MARKUP and rows["pilot-c"][6] == MARKUP and MARKUP in rows["bad-0"][8],
          rows["pilot-c"])
    check("  and nothing else", browser.ask("document.querySelectorAll('main img, main script').length === 0 && window.hacked === undefined"))
    check("a policy stands behind that", browser.ask(
        "(() => { try { document.createElement('p').innerHTML = 'x'; return false } catch { return true } })()"))
    browser.complaints.clear()  # it does complain of that one
    check("an open breaker is told", browser.wait("document.querySelector('#alerts').textContent.includes('Breaker open for pilot:1')"),
          browser.ask("document.querySelector('#alerts').textContent"))
    tiles = browser.ask("document.querySelector('#tiles').textContent")
    check("the share of pods without a job", "Pods without a job25 %" in tiles and "Jobs that wait20" in tiles, tiles)
    groups = browser.ask("document.querySelector('#groups tbody').textContent")
    check("groups, verdicts and owners", all(word in groups for word in ("4 CPUs", "breaker open", "carol 5", "alice 12")), groups)
    check("headings are headings", browser.ask(
        "[...document.querySelectorAll('#pods thead th')].every(th => th.scope === 'col') && "
        "[...document.querySelectorAll('#pods tbody tr')].every(row => row.cells[0].scope === 'row')"))
    check("changes are read out", browser.ask("document.querySelector('#summary').ariaLive === 'polite'"))


def test_update(world, browser):
    pods, slots, idle = some_pods()
    world.set(pods + [pod("pilot-new", "node-9")], slots + [slot("pilot-new", "dave", "99.0")], idle)
    check("a new job appears by itself", browser.wait("document.querySelector('#pods').textContent.includes('dave')"))
    check("  and in the summary", browser.wait("document.querySelector('#summary').textContent.includes('10 pods')"),
          browser.ask("document.querySelector('#summary').textContent"))
    world.set(pods, slots, idle)
    check("  and is gone again", browser.wait("!document.querySelector('#pods').textContent.includes('dave')"))


def test_avoided(world, browser):
    pods, slots, idle = some_pods()
    failing = [pod(f"bad-node-{i}", f"{MARKUP}-node", ago=60) for i in range(3)]
    world.set(pods + failing, slots, idle)
    browser.wait("document.querySelector('#summary').textContent.includes('12 pods')")
    for one in failing:
        one["status"] = {"phase": "Failed", "containerStatuses": [{"name": "pilot", "restartCount": 0, "ready": False, "state": {
            "terminated": {"exitCode": 1, "reason": "Error"}}}]}
    world.set(pods + failing, slots, idle)
    check("a node that breaks pilots is named, as text", browser.wait(
        f"document.querySelector('#alerts').textContent.includes({json.dumps('Node ' + MARKUP + '-node is avoided until ')})"),
        browser.ask("document.querySelector('#alerts').textContent"))
    world.set(pods, slots, idle)
    browser.wait("document.querySelector('#summary').textContent.includes('9 pods')")


def test_filter(world, browser):
    browser.type("[name=owner]", "ALI")
    check("a filter by owner", browser.wait("document.querySelectorAll('#pods tbody tr').length === 1"), browser.ask(ROWS))
    check("  of groups too", browser.ask("document.querySelectorAll('#groups tbody tr').length === 1"))
    check("  is in the address", browser.ask("location.hash") == "#owner=ALI", browser.ask("location.hash"))
    check("  and counted", browser.ask("document.querySelector('#shown').textContent") == "1 of 1 rows, of 9 without the filter",
          browser.ask("document.querySelector('#shown').textContent"))
    browser.type("[name=owner]", "")
    browser.type("[name=node]", "node-3")
    check("a filter by node", browser.wait("document.querySelectorAll('#pods tbody tr').length === 4"), browser.ask(ROWS))
    browser.open(world.url + "#image=big&node=node-2")
    check("an address with a filter shows the same view", browser.wait("document.querySelectorAll('#pods tbody tr').length === 1") and
          browser.ask("document.querySelector('[name=image]').value") == "big", browser.ask(ROWS))
    browser.ask("location.hash = ''")
    check("without it everything is back", browser.wait("document.querySelectorAll('#pods tbody tr').length === 9"))


def test_plot(world, browser):
    check("the plot is there", browser.wait("document.querySelectorAll('#plot svg path[d]').length >= 10"))
    check("  with words for who cannot see it", browser.ask(
        "document.querySelector('#plot svg').getAttribute('role') === 'img' && "
        "/20 jobs wait; 3 pods have a job, 1 have none/.test(document.querySelector('#told').textContent)"),
        browser.ask("document.querySelector('#told').textContent"))
    check("  and numbers", browser.ask("document.querySelector('#hours tbody tr').cells[1].textContent") == "20")
    browser.ask("[...document.querySelectorAll('#groups a')].find(a => a.textContent.startsWith('2 CPUs')).click()")
    segments = browser.ask("import('/plot.js').then(({draw}) => draw([...Array(1440).keys()].filter(i => i < 700 || i > 800)"
                           ".map(i => ({unix_time: 1e9 + 60 * i, idle: i, claimed: 1, unmatched: 0, waiting: 0, wasted: 0})), 1e9 + 86400)"
                           ".querySelector('path').getAttribute('d').match(/M/g).length)")
    check("  a day with an hour of which nothing is known is drawn with a gap", segments == 2, segments)
    check("that of one group", browser.wait("/: 3 jobs wait; 0 pods/.test(document.querySelector('#told').textContent)"),
          browser.ask("document.querySelector('#told').textContent"))
    check("  is in the address", browser.ask("location.hash").startswith("#group="), browser.ask("location.hash"))
    browser.ask("document.querySelector('#group').value = 'all'; document.querySelector('#group').dispatchEvent(new Event('change'))")
    check("  and all together again", browser.wait("/20 jobs wait/.test(document.querySelector('#told').textContent)"))


def test_looks(browser):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.ask(ground)
    browser.look(1280, 900, dark=True)
    check("dark where that is preferred", browser.ask(ground) != light and browser.ask(ground) == "rgb(17, 22, 29)", browser.ask(ground))
    browser.look(390, 844, dark=True, phone=True)
    width = browser.ask("document.documentElement.scrollWidth")
    check("a phone need not scroll sideways", width <= 390, width)
    check("  rows are cards there, with what each cell is", browser.ask(
        "getComputedStyle(document.querySelector('#pods tbody td')).display === 'block' && "
        "getComputedStyle(document.querySelector('#pods tbody td'), '::before').content.includes('data-label') === false && "
        "document.querySelector('#pods tbody td').dataset.label === 'Node'"))
    browser.call("Accessibility.enable")
    roles = [node.get("role", {}).get("value") for node in browser.call("Accessibility.getFullAXTree")["nodes"]]
    check("  and rows and cells for a screen reader", roles.count("row") >= 10 and roles.count("cell") >= 60 and
          roles.count("columnheader") >= 9, {role: roles.count(role) for role in ("table", "row", "cell", "columnheader", "rowheader")})
    browser.call("Accessibility.disable")
    browser.look(1280, 900)


def test_owners(world, browser):
    world.settings(SETTINGS + "hide_owners=yes\n")
    world.process.send_signal(signal.SIGHUP)
    check("owners can be hidden", browser.wait("/owner-[0-9a-f]{8}/.test(document.querySelector('#pods').textContent)"))
    shown = browser.ask("document.querySelector('#pods').textContent + document.querySelector('#groups').textContent")
    served = request(world, "GET", "/status.json")[1]
    check("  everywhere", not any(name in text for name in ("alice", "bob", "carol") for text in (shown, served)), shown)
    owners = [job["owner"] for entry in json.loads(served)["pods"] for job in entry["jobs"]]
    asked = [owner for decision in json.loads(served)["decisions"] for owner in decision["owners"]]
    check("  each by a name of its own, the same everywhere", len(set(owners)) == 3 and len(set(owners) & set(asked)) == 2, (owners, asked))
    world.settings(SETTINGS)
    world.process.send_signal(signal.SIGHUP)
    check("  and be shown again", browser.wait("document.querySelector('#pods').textContent.includes('alice')"))


def quickest(measure, limit=1000, tries=4):
    """Of several times in ms, as what runs beside the browser takes its share; the first that is good enough will do."""
    best = float("inf")
    for _ in range(tries):
        best = min(best, measure())
        if best < limit:
            break
    return best


def test_many(world, browser):
    browser.ask("performance.clearMeasures()")
    world.set(*many_pods(5000))
    check("5,000 pods arrive", browser.wait("document.querySelector('#summary').textContent.startsWith('5000 pods')", 30),
          browser.ask("document.querySelector('#summary').textContent"))

    def rendered():
        browser.wait("performance.getEntriesByName('render').length > 0", 30)
        took = browser.ask("performance.getEntriesByName('render').at(-1).duration")
        browser.ask("performance.clearMeasures()")
        return took

    # Of what somebody does, with the first rows shown, until it is laid out.
    def done(action):
        browser.ask("location.hash = ''")
        browser.wait("document.querySelectorAll('#pods tbody tr').length === 200")
        return browser.ask(f"(() => {{ const begin = performance.now(); {action}; document.body.getBoundingClientRect(); "
                           "return performance.now() - begin })()")

    def shown():
        return done("document.querySelector('#more').click()")

    def filtered():
        return done("const field = document.querySelector('[name=owner]'); field.value = 'user7'; "
                    "field.dispatchEvent(new Event('input', {bubbles: true}))")

    taken = quickest(rendered)
    check(f"  shown in {taken:.0f} ms", taken < 1000)
    check("  the first of them", browser.ask("document.querySelectorAll('#pods tbody tr').length") == 200)
    taken = quickest(shown)
    check(f"  all on demand, which keeps it busy for {taken:.0f} ms", taken < 1000)
    check("  and they come", browser.wait("document.querySelectorAll('#pods tbody tr').length === 5000", 60))
    taken = quickest(filtered)
    check(f"  filtered in {taken:.0f} ms", taken < 1000 and browser.ask("document.querySelectorAll('#pods tbody tr').length") == 125)


def test_silence(world, browser):
    alerts = "document.querySelector('#alerts').textContent"
    browser.ask("Date.now = (real => () => real() + 3600000)(Date.now)")
    time.sleep(5)
    # As soon as the next answer has come, which takes longer on a busy machine.
    check("a browser's clock does not matter", browser.wait(f"!{alerts}.includes('old')"), browser.ask(alerts))
    check("nothing was complained of", not browser.complaints, browser.complaints)
    foreign = [url for url in browser.requests if not url.startswith((world.url, "data:", "about:"))]
    check("no other host was asked", not foreign and len(browser.requests) > 10, foreign)
    world.stop()
    check("a provisioner that does not answer is told", browser.wait(f"{alerts}.includes('does not answer')"), browser.ask(alerts))
    browser.ask("Date.now = (real => () => real() + 3600000)(Date.now)")
    check("  and that the data is old", browser.wait(f"{alerts}.includes('The data is old: the last cycle was 60 min ago')"), browser.ask(alerts))


def screenshot(world, browser, program, path):
    """For docs/provisioner-tasks.md: some pods, and above them the simulated day, since nobody waits for a real one."""
    pods = [pod(f"glidepod-b8caa165-6b0389b9-{i}", f"node-{i % 4 + 1}") for i in range(4)]
    pods += [pod("glidepod-b8caa165-6b0389c4-0", "node-2", ("ErrImagePull", "manifest unknown"), ago=200)]
    slots = [slot(one["metadata"]["name"], owner, f"{5 + i}.0", image="registry.example.org/demo/tools:1", ago=21 + 60 * i)
             for i, (one, owner) in enumerate(zip(pods, ("alice", "bob")))]
    slots += [slot(pods[2]["metadata"]["name"], "alice", "12.0", "pulling", "registry.example.org/demo/big:3", ago=48,
                   GlidepodHow="", GlidepodBindTime="", GlidepodWaitsFor="its image, pulled beside the pod"),
              slot(pods[3]["metadata"]["name"])]
    world.set(pods, slots, [jobs(12, "alice"), jobs(3, "bob", 2)])
    browser.wait("document.querySelector('#summary').textContent.startsWith('5 pods')")
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        subprocess.run([program, "simulate", "provisioner/scenarios/day.conf", "--csv", file.name], check=True, stdout=subprocess.DEVNULL)
        day = [{"unix_time": int(row["seconds"]), "idle": int(row["idle_jobs"]), "wasted": 0,
                **{key: int(row[key]) for key in ("waiting", "unmatched", "claimed")}} for row in csv.DictReader(Path(file.name).read_text("utf-8").splitlines())]
    browser.look(1100, 1000)
    browser.ask(f"import('/plot.js').then(({{draw}}) => document.querySelector('#plot').replaceChildren(draw({json.dumps(day)}, 86400)))")
    browser.ask("document.querySelector('details').remove(); document.querySelector('#told').remove()")
    browser.look(1100, browser.ask("document.documentElement.scrollHeight"))
    browser.screenshot(path)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    world = World(sys.argv[1])
    try:
        world.set(*some_pods())
        world.wait_for_log("submit=0 .*")
        browser = Browser()
        try:
            time.sleep(1.5)
            if "--screenshot" in sys.argv:
                browser.open(world.url)
                return screenshot(world, browser, sys.argv[1], sys.argv[3])
            test_endpoint(world)
            test_table(world, browser)
            test_update(world, browser)
            test_avoided(world, browser)
            test_filter(world, browser)
            test_plot(world, browser)
            test_looks(browser)
            test_owners(world, browser)
            test_many(world, browser)
            test_silence(world, browser)
        finally:
            browser.close()
    finally:
        world.remove()
    print(f"{counted['passed']} passed, {counted['failed']} failed")
    return 0 if counted["failed"] == 0 else 1


sys.exit(main())
