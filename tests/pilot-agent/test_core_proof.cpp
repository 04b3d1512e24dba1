// What runs is proven: the sequences by which a wrong image could run unnoticed.
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
const std::string k_v1 = "reg.example/app:v1";
const std::string k_v2 = "reg.example/app:v2";
const std::string k_id_v1 = "reg.example/app@" + k_digest_a;
const std::string k_id_v2 = "reg.example/app@" + k_digest_b;
const std::string k_bad = "reg.example/bad:1";

// A container that was created for an image that cannot start: it counts as a restart and never says Hello.
void cannot_start(Harness& h) {
  ContainerStatus& status = h.status(0);
  status.restart_count += 1;
  status.container_id = "test://never-started";
  h.waits(0, "RunContainerError", "mkdir /glidepod: not a directory");
}
}  // namespace

TEST_CASE("proof: after an image that cannot start, the next one's digest is learnt from its own container") {
  Harness h;
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  const ContainerStatus first = h.status(0);
  h.ask(k_bad);
  h.patched();
  h.goodbye();
  cannot_start(h);
  CHECK(h.last<Fail>().fault == wire::Fault::user);
  h.patched();
  h.hello();
  h.runs_home(0);
  h.pass(90s);
  h.ask(k_v2);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.count<Launch>() == 2);
  // The status of the first container comes again, late, with a count as high as one likes.
  ContainerStatus late = first;
  late.restart_count = 99;
  h.status(0) = late;
  h.tell();
  CHECK(h.core.watching());
  CHECK_FALSE(h.noted("event=digest image=reg.example/app:v2"));
  h.runs(0, k_v2, k_id_v2);
  h.end_job();
  h.ask(k_v2, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image == "reg.example/app:g-2@" + k_digest_b);
}

TEST_CASE("proof: a late status of another container does not prove home after an unanswered patch") {
  Harness h;
  h.ask(k_v1);
  h.patch_failed(0);
  h.patched();
  h.goodbye();
  h.hello();  // of v1: the patch was taken after all
  h.status(0).restart_count = 99;
  h.tell();  // still of the container before it, which ran home
  CHECK(h.state() == State::switching);
  h.runs(0, k_v1, k_id_v1);
  CHECK(h.state() == State::switching);
}

TEST_CASE("proof: an agent that is answered before glue's hello learns and comes home") {
  kube::Pod pod;
  Harness h(1, {}, 3);
  CHECK(h.state() == State::switching);
  h.restart();
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  h.hello();
  h.patched();
  // It may be the container that the earlier agent had a job in.
  CHECK(h.state() == State::switching);
  h.goodbye();
  h.hello();
  h.runs_home(0);
  CHECK(h.state() == State::idle);
  h.pass(90s);
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  CHECK(h.noted("event=digest image=reg.example/app:v1"));
}

TEST_CASE("proof: somebody who ends the container at that moment is noticed") {
  Harness h;
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  const ClientId client = h.ask("reg.example/app@" + k_digest_b);
  h.patched();
  h.goodbye();  // not at the kubelet's wish, which starts the old image once more
  h.hello();
  CHECK(h.last<Launch>().client == client);
  h.runs(0, k_v1, k_id_v1);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.last<SignalJob>().number == SIGKILL);
  CHECK(h.noted("event=doubtful"));
}

TEST_CASE("proof: two names of one content are no reason for doubt") {
  Harness h;
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  h.ask("reg.example/same:1");
  h.patched();
  h.goodbye();
  h.hello();
  const auto launched = h.count<Launch>();
  h.runs(0, k_v1, k_id_v1);  // by the other name
  CHECK(launched == 2);
  CHECK(h.state() == State::running);
  CHECK_FALSE(h.noted("event=doubtful"));
  CHECK_FALSE(h.noted("event=digest image=reg.example/same:1"));
}

TEST_CASE("proof: so is one who ends the container that was there first") {
  Harness h;
  const ClientId client = h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.last<Launch>().client == client);
  h.runs_home(0);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.noted("event=doubtful"));
}

TEST_CASE("proof: a kubelet that is one image behind is noticed, whatever ran before") {
  Harness h;
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  const ClientId client = h.ask(k_v2);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.last<Launch>().client == client);
  SUBCASE("before its job has ended") {
    h.runs_home(0);
    CHECK(h.last<SignalJob>().number == SIGKILL);
  }
  SUBCASE("after it has, and is not told") {
    wire::Exited exited;
    exited.job = h.last<Launch>().job;
    exited.status = ExitStatus::exited(0);
    h.core.on_exited(h.glue[0], exited, h.now);
    h.runs_home(0);
    CHECK(h.count<SignalJob>() == 0);
  }
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  h.end_job();
  CHECK(h.count<Answer>() == 1);
}

TEST_CASE("proof: a request whose image is being asked about gets another container than a doubtful one") {
  Harness h;
  const ClientId client = h.ask(k_v1, wire::Verb::run);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.state() == State::asking);
  h.runs_home(0);
  CHECK(h.state() == State::switching);
  h.core.on_image_known(client, {{"/run"}, {}}, h.now);
  h.take();
  h.patched();
  h.goodbye();
  h.hello();
  h.runs_home(0);
  CHECK(h.count<Launch>() == 0);
  h.switch_to(0, k_v1, k_digest_a);
  CHECK(h.last<Launch>().client == client);
}

TEST_CASE("proof: where container ids cannot be told, time proves home and nothing is learnt before") {
  Harness h = Harness::without_ids();
  h.hello();
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  CHECK(h.count<Launch>() == 1);
  CHECK_FALSE(h.noted("event=digest"));
  h.lose();
  h.patched();
  h.hello();
  h.runs_home(0);
  CHECK(h.state() == State::switching);
  h.pass(90s);
  h.cleared();
  CHECK(h.state() == State::idle);
}

TEST_CASE("proof: where container ids cannot be told, who was there before a patch did not come after it") {
  Harness h = Harness::without_ids();
  h.hello();
  h.ask(k_v1);
  h.patch_failed(0);  // no answer: the way home begins, with this glue still connected
  h.patched();
  h.runs_home(0);  // that of the container before
  h.pass(90s);
  CHECK(h.state() == State::switching);
  h.goodbye();
  h.hello();
  h.runs_home(0);
  h.pass(90s);
  CHECK(h.state() == State::idle);
}

TEST_CASE("proof: an older state of the pod is not believed") {
  Harness h;
  h.pod.resource_version = "9";
  h.tell();
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.pod.resource_version = "8";
  h.waits(0, "ErrImagePull", "manifest unknown");
  CHECK(h.count<Fail>() == 0);
  h.pod.resource_version = "10";
  h.tell();
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("proof: trouble that is told before its container was shown running is old") {
  Harness h;
  SUBCASE("not shown") {
    h.lose();
    h.hello();
    h.ask(k_v1);
    h.patched();
    h.waits(0, "ErrImagePull", "manifest unknown");
    CHECK(h.count<Fail>() == 0);
    h.goodbye();
    h.tell();
  }
  SUBCASE("shown, and the status is faster than the goodbye") {
    h.ask(k_v1);
    h.patched();
    h.waits(0, "ErrImagePull", "manifest unknown");
    h.pass(60s);
    CHECK(h.count<Fail>() == 0);
    h.goodbye();
  }
  SUBCASE("it names the image") {
    h.ask(k_v1);
    h.patched();
    h.waits(0, "ErrImagePull", "failed to resolve reference \"reg.example/app:v1\": manifest unknown");
  }
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("proof: the container's id in the names of control groups") {
  const std::string id = "0123456789abcdef" + std::string(48, 'c'), pod(64, 'd');
  struct Row {
    std::string cgroup, own, found;
  };
  for (const Row& row : {
           Row{"0::/kubepods/besteffort/pod1-2-3/" + id + "\n", "0::/\n", id},
           Row{"0::/../cri-containerd-" + id + ".scope\n", "0::/\n", id},
           Row{"0::/kubepods.slice/kubepods-podx.slice/crio-" + id + ".scope\n", "0::/\n", id},
           Row{fmt::format("9:pids:/libpod_parent/libpod_pod_{}/libpod-{}\n0::/\n", pod, id),
               fmt::format("9:pids:/libpod_parent/libpod_pod_{}/libpod-{}\n", pod, std::string(64, 'e')), id},
           Row{fmt::format("4:memory:/{0}\n9:pids:/{0}\n", id), "", id},
           Row{"0::/user.slice\n", "0::/\n", ""},
           Row{"0::/" + id + "0\n", "0::/\n", ""},
           Row{fmt::format("0::/{}/{}\n", pod, id), "0::/\n", ""},
           Row{"0::/" + id + "\n", "0::/" + id + "\n", ""},
           Row{"", "", ""},
       }) {
    CAPTURE(row.cgroup);
    CHECK(container_id_in(row.cgroup, row.own) == row.found);
  }
}

TEST_CASE("proof: a status that has yet to come does not keep the clock busy") {
  Harness h = Harness::without_ids();
  h.ask(k_image_a);
  h.lose();
  h.status(0).state = ContainerStatus::State::waiting;
  h.patched();
  h.hello();
  h.pass(90s);
  CHECK(h.state() == State::switching);
  REQUIRE(h.core.next_deadline().has_value());
  CHECK(*h.core.next_deadline() > h.now);
}

TEST_CASE("proof: a glue under another container's name is refused, whether that one has come or not") {
  Harness h(2);
  const auto refused = [&](int container, const std::string& id) {
    h.core.on_hello(99, Harness::name(container), id, h.now);
    h.take();
    return h.count<DropGlue>() > 0 && h.last<DropGlue>().glue == 99;
  };
  CHECK(refused(1, h.id(0)));
  CHECK(refused(1, ""));  // from beside the agent
  CHECK(refused(0, ""));
  h.lose(1);
  CHECK(refused(1, h.id(0)));
  CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-1"});
  h.hello(1);
  CHECK(h.core.containers().missing().empty());
}

namespace {
// The kubelet may yet act on what it was told before, so that only the status proves what comes.
void be_unsettled(Harness& h) {
  h.ask(k_bad, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "manifest unknown");
  h.patched();
  h.hello();
  h.runs_home(0);
  REQUIRE(h.state() == State::idle);
}
const std::string k_none = "rpc error: failed to resolve \"" + k_v1 + "\": manifest unknown";
}  // namespace

TEST_CASE("proof: trouble in a late status is not that of a container whose glue has come") {
  Harness h;
  be_unsettled(h);
  h.tell();
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.state() == State::switching);
  SUBCASE("the status of the one before") {
    h.tell();
  }
  SUBCASE("no status since") {}
  h.waits(0, "ErrImagePull", k_none);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.state() == State::switching);
}

TEST_CASE("proof: trouble of a container that was shown running is that of the next one, ids or none") {
  Harness h = Harness::without_ids();
  h.tell();
  h.ask(k_v1);
  h.patched();
  h.waits(0, "ErrImagePull", k_none);
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("proof: a Hello before all has come about makes the wait begin anew") {
  Harness h;
  h.ask(k_bad, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "manifest unknown");
  h.patched();
  h.pass(60s);
  h.hello();
  h.runs_home(0);
  REQUIRE(h.state() == State::idle);
  h.pass(89s);
  CHECK_FALSE(h.core.snapshot().containers[0].settled);
  h.pass(1s);
  CHECK(h.core.snapshot().containers[0].settled);
}

TEST_CASE("proof: a container that has gone is waited for, whatever its status had shown") {
  Harness h;
  be_unsettled(h);
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, "reg.example/other:1", "reg.example/other@" + k_digest_b);
  const int patches = h.count<Patch>();
  h.goodbye();
  h.pass(15s);
  CHECK(h.count<Patch>() == patches);
}

TEST_CASE("proof: where no id can be told a container that starts again by itself is nobody's") {
  Harness h = Harness::without_ids();
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  h.lose();
  h.hello();
  REQUIRE(h.state() == State::idle);
  h.ask(k_v1, wire::Verb::exec, "bob");
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("proof: what a container's status tells once its glue has gone changes nothing") {
  Harness h = Harness::without_ids();
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  h.pass(91s);
  h.lose();
  h.runs_home(0);
  CHECK_FALSE(h.noted("event=doubtful"));
}

TEST_CASE("proof: nothing is awaited of a container that has gone, and its id is not told") {
  Harness h;
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  REQUIRE(h.core.watching());
  h.lose();
  CHECK(h.noted("event=glue_lost container=payload-0 state=idle"));
  CHECK(h.core.snapshot().containers[0].instance.empty());
  h.hello();
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("proof: a container in doubt is not settled") {
  Harness h;
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  h.runs_home(0);
  CHECK(h.noted("event=doubtful"));
  CHECK_FALSE(h.core.snapshot().containers[0].settled);
}

TEST_CASE("proof: a digest is learnt once") {
  Harness h;
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  h.ask(k_v1, wire::Verb::exec, "bob");
  h.switch_to(0, k_v1, k_digest_b);  // that of the content for one platform
  CHECK(h.count<Launch>() == 2);
  CHECK_FALSE(h.noted("digest=" + k_digest_b));
}

TEST_CASE("proof: a container that has yet to act on a patch is not settled, however long that takes") {
  Harness h;
  be_unsettled(h);
  h.ask(k_v1);
  h.patched();
  h.core.on_time(h.now + 100s);
  h.take();
  CHECK_FALSE(h.core.snapshot().containers[0].settled);
}

TEST_CASE("proof: where no id can be told a digest is learnt once the container has run for long enough") {
  Harness h = Harness::without_ids();
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  CHECK_FALSE(h.noted("event=digest"));
  h.pass(120s);
  CHECK(h.noted("event=digest image=" + k_v1));
}

TEST_CASE("proof: where no id can be told time proves what has started by itself, too") {
  Harness h = Harness::without_ids();
  h.goodbye();
  h.hello();
  CHECK(h.state() == State::switching);
  h.runs_home(0);
  h.pass(90s);
  CHECK(h.state() == State::idle);
}

TEST_CASE("proof: what ran before is known though its status came late") {
  Harness h;
  h.ask(k_v1);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  h.pass(30s);  // it is awaited no longer
  h.runs(0, k_v1, k_id_v1);
  h.ask("reg.example/app@" + k_digest_b);
  h.patched();
  h.goodbye();  // not at the kubelet's wish, which starts the old image once more
  h.hello();
  h.runs(0, k_v1, k_id_v1);
  CHECK(h.noted("event=doubtful"));
}

TEST_CASE("proof: where no id can be told a container that was switched is nobody's, too") {
  Harness h = Harness::without_ids();
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  const ClientId client = h.ask(k_v2, wire::Verb::exec, "bob");
  h.core.on_client_gone(client, h.now);
  h.take();
  h.switch_to(0, k_v2, k_digest_b);
  REQUIRE(h.state() == State::idle);
  h.ask(k_v2, wire::Verb::exec, "carol");
  CHECK(h.noted("how=warm"));
}

TEST_CASE("proof: a patch by which nothing is started is followed by another one") {
  Harness h;
  be_unsettled(h);
  h.ask(k_v1);
  h.patched();
  h.tell();
  const int patches = h.count<Patch>();
  h.pass(89s);
  CHECK(h.count<Patch>() == patches);
  h.pass(1s);
  CHECK(h.count<Patch>() == patches + 1);
}

TEST_CASE("proof: the pilot's own image is known by its name, or by its digest under another one") {
  const Home home{"reg.example/pilot:1", "reg.example/pilot@" + k_digest_home, "reg.example/pilot",
                  k_digest_home};
  CHECK(names_home("reg.example/pilot:1", home));
  CHECK(names_home("mirror.example/other:g-1@" + k_digest_home, home));
  CHECK_FALSE(names_home("reg.example/pilot@" + k_digest_a, home));
  CHECK_FALSE(names_home("reg.example/pilot:2", home));
  const Home bare{"reg.example/pilot:1", k_digest_home, "", ""};
  CHECK_FALSE(names_home("reg.example/pilot:2", bare));
  CHECK(names_home(k_digest_home.substr(0, 30), bare));
  CHECK_FALSE(names_home(k_digest_a.substr(0, 30), bare));
  CHECK_FALSE(names_home(k_digest_home.substr(0, 30), home));
}

TEST_CASE("proof: where no id can be told, too, trouble before the container was shown running is old") {
  Harness h = Harness::without_ids();
  h.lose();
  h.hello();
  h.ask(k_v1);
  h.status(0).state = ContainerStatus::State::waiting;
  h.status(0).reason = "ErrImagePull";
  h.status(0).message = k_none;
  h.patched();
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("proof: a digest that is known stays, whatever another start of its image shows") {
  Harness h;
  const std::string another = "sha256:" + std::string(64, 'c');
  h.ask(k_v1);
  h.switch_to(0, k_v1, k_digest_a);
  h.end_job();
  h.ask(k_image_b);
  h.switch_to(0, k_image_b, k_digest_b);
  h.end_job();
  h.ask(k_v1);
  h.switch_to(0, k_v1, another);
  CHECK_FALSE(h.noted("digest=" + another));
}
