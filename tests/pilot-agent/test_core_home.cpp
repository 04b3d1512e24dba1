// The pilot's own image: the way home, and as what a job asks for.
#include <csignal>

#include "lib/kube/image_reference.hpp"
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
const std::string k_home = "reg.example/pilot:1";

// A node that was given its images as files: its imageIDs name no repository, so no digest is known.
struct Bare : Harness {
  explicit Bare(Core::Earlier earlier = Core::Earlier::none) : Harness(1, {}, 0, earlier) {
    for (ContainerStatus& status : pod.statuses) status.image_id = k_digest_home;
    restart();
    hello();
    core.on_first_pod(pod, earlier, now);
    all.clear();
    take();
  }
};
}  // namespace

TEST_CASE("home: a job that asks for the pilot's own image gets what home is, at once") {
  Harness h;
  h.ask(k_home);
  CHECK(h.core.snapshot().containers[0].image == k_home);
  CHECK(h.count<Patch>() == 0);
  CHECK(h.count<Launch>() == 1);
  CHECK(h.noted("how=warm"));
  h.end_job();
  h.ask(k_home, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image.starts_with("reg.example/pilot:"));
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.count<Launch>() == 2);
  CHECK(h.noted("how=fresh"));
}

TEST_CASE("home: the registry is asked for the digest that runs, not for the pilot's tag") {
  Harness h;
  h.ask(k_home, wire::Verb::run);
  CHECK(h.last<AskImage>().image == "reg.example/pilot@" + k_digest_home);
}

TEST_CASE("home: where only its name is known, a used container is made fresh by its end") {
  Bare h;
  h.ask(k_home);
  h.end_job();
  h.ask("", wire::Verb::exec, "uid:0");
  CHECK(h.last<Patch>().image == k_home);
  h.patched();  // which changes nothing, so the kubelet stops nothing
  CHECK(h.last<KillGlue>().glue == h.glue[0]);
  CHECK(h.count<Launch>() == 1);
  h.over[0] = true;
  h.hello();
  CHECK(h.count<DropGlue>() == 0);  // of that one nothing more is awaited
  CHECK(h.count<Launch>() == 1);
  h.runs(0, k_home, k_digest_home);
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("home: where only its name is known, a container that has it still need not be stopped for it") {
  Bare h;
  h.ask(k_image_a);
  h.patch_failed(0);  // it may have been taken: home
  CHECK(h.last<Patch>().image == k_home);
  h.patched();  // which changes nothing
  h.runs(0, k_home, k_digest_home);
  CHECK(h.count<KillGlue>() == 0);
  CHECK(h.state() == State::idle);
}

TEST_CASE("home: an earlier agent's container of that name is ended before its first use") {
  Bare h(Core::Earlier::some);
  CHECK(h.state() == State::switching);
  h.patched();
  CHECK(h.count<KillGlue>() == 1);
  h.over[0] = true;
  h.hello();
  h.runs(0, k_home, k_digest_home);
  CHECK(h.state() == State::idle);
}

TEST_CASE("home: a name that admission leads elsewhere for the first time is another image") {
  Bare h;
  Policy policy;
  policy.first = Policy::First::prove;
  h.restart(policy);
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  h.patched("mirror.example/" + k_home);
  CHECK(h.state() == State::switching);  // the kubelet is about to start it anew
  h.goodbye();
  h.hello();
  CHECK(h.state() == State::idle);
}

TEST_CASE("home: an earlier agent's container is nobody's, whatever image is asked for") {
  Harness h(1, {}, 1);
  h.patch_failed(403);
  CHECK(h.state() == State::idle);
  h.ask(k_home);
  CHECK(h.count<Launch>() == 0);
  CHECK(h.state() == State::switching);
}

TEST_CASE("home: an earlier agent's glue that comes back late is not taken for the new container's") {
  Harness h(1, {}, 3);
  h.restart();
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  h.hello();  // of the container that is to be stopped; its status shows home
  h.patched();
  CHECK(h.state() == State::switching);
  h.ask("", wire::Verb::exec, "uid:0");
  CHECK(h.count<Launch>() == 0);
}

TEST_CASE("home: a container that starts before the pod is known has what the pod says, not home") {
  Harness h;
  h.pod.containers.at(1).image = "reg.example/app:g1-3@" + k_digest_a;
  h.restart();
  h.hello();
  h.goodbye();
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  h.runs(0, "reg.example/app:g1-3", "reg.example/app@" + k_digest_a);
  h.ask(k_home);
  CHECK(h.count<Launch>() == 0);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
}

TEST_CASE("home: an image that an earlier agent has patched, and the kubelet has yet to start, is not home") {
  Harness h;
  h.pod.containers.at(1).image = "reg.example/app:g1-9@" + k_digest_a;
  h.restart();
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  h.patch_failed(403);
  h.goodbye();
  h.hello();
  h.runs(0, "reg.example/app:g1-9", "reg.example/app@" + k_digest_a);
  CHECK(h.state() == State::idle);
  h.ask(k_home);
  CHECK(h.count<Launch>() == 0);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
}

TEST_CASE("home: a service mesh may put its container before all others") {
  Harness h(1, {}, 0, Core::Earlier::none, [](kube::Pod& pod) {
    pod.containers.insert(pod.containers.begin(), {"mesh-proxy", "reg.example/proxy:1", {"sleep", "9"}});
  });
  h.hello();
  CHECK(h.core.containers().size() == 1);
  CHECK(h.core.containers().others(h.pod) == std::vector<std::string>{"mesh-proxy"});
  const ClientId client = h.ask("reg.example/pilot:1");
  CHECK(h.last<Launch>().client == client);
  CHECK(h.count<Patch>() == 0);
}

TEST_CASE("home: payload containers of another image than the pilot's are not home") {
  Harness h;
  h.pod.containers.at(1).image = "reg.example/other:1";
  h.restart();
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  h.ask(k_home);
  CHECK(h.count<Launch>() == 0);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("home: a container of an earlier agent that comes back is patched, since it may have had a job") {
  Harness h(1, {}, 3);
  h.patch_failed(403);
  h.core.on_glue_lost(h.glue[0], h.now);  // only its connection
  const int before = h.count<Patch>();
  h.hello();
  CHECK(h.count<Patch>() == before + 1);
  h.runs_home(0);
  CHECK(h.state() == State::switching);
}

TEST_CASE("home: a job that names the pilot's own content by another tag runs") {
  Harness h;
  const ClientId client = h.ask("reg.example/pilot:latest");
  h.patched();
  h.goodbye();
  h.hello();
  h.runs_home(0);
  // Or of one that the kubelet started before it heard of the patch, and is about to stop.
  h.pass(89s);
  CHECK(h.count<Launch>() == 0);
  h.pass(1s);
  CHECK(h.last<Launch>().client == client);
  h.tell();
  CHECK_FALSE(h.noted("event=doubtful"));
  CHECK(h.state() == State::running);
  h.end_job();
  CHECK(h.last<Answer>().client == client);
  // What it is by digest is known now.
  h.ask("reg.example/pilot:latest", wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
}

TEST_CASE(
    "home: of its repository, too, a container that the kubelet stops once more was of the image before") {
  Harness h;
  h.ask("reg.example/pilot:latest");
  h.patched();
  h.goodbye();  // not at the kubelet's wish
  h.hello();
  h.runs_home(0);
  h.pass(5s);
  h.goodbye();
  CHECK(h.count<Launch>() == 0);
  h.hello();
  h.runs(0, "reg.example/pilot:latest", "reg.example/pilot@" + k_digest_a);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("home: its content by a name of another repository runs from the second start on") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs_home(0);
  CHECK(h.noted("event=doubtful"));
  h.end_job(0, ExitStatus::signaled(SIGKILL));
  const ClientId client = h.ask(k_image_a);
  // The pod says that name already: by way of home.
  for (int i = 0; i < 2; ++i) {
    h.patched();
    h.goodbye();
    h.hello();
    h.runs_home(0);
  }
  h.pass(90s);
  CHECK(h.last<Launch>().client == client);
  h.end_job();
  CHECK(h.last<Answer>().client == client);
  // What it is by digest is known now, so that a goodbye proves it.
  const ClientId next = h.ask(k_image_a, wire::Verb::exec, "bob");
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.last<Launch>().client == next);
}

TEST_CASE("home: where imageIDs name no repository, too, and then it is home at once") {
  Bare h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, k_home, k_digest_home);
  CHECK(h.noted("event=doubtful"));
  h.end_job(0, ExitStatus::signaled(SIGKILL));
  const ClientId client = h.ask(k_image_a);
  for (int i = 0; i < 2; ++i) {  // by way of home
    h.patched();
    h.goodbye();
    h.hello();
    h.runs(0, k_home, k_digest_home);
  }
  h.pass(90s);
  CHECK(h.last<Launch>().client == client);
  h.tell();
  CHECK(h.state() == State::running);
  h.end_job();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image == k_home);
}

namespace {
// One more switch to an image that was loaded into the node: no status tells its digest.
void switch_to_loaded(Bare& h, const std::string& image, const std::string& content,
                      const std::string& name = {}) {
  h.ask(image, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image == (name.empty() ? image : name));
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, image, content);
  h.end_job();
}
const std::string k_again = "event=name_again container=payload-0 image=docker.io/library/a:1";
}  // namespace

TEST_CASE("home: a name that comes again, as no digest is known, waits for the kubelet and fails nothing") {
  Bare h;
  switch_to_loaded(h, k_image_a, "docker://a");
  switch_to_loaded(h, k_image_b, "docker://b");
  CHECK_FALSE(h.noted("event=name_again"));
  h.ask(k_image_a);
  CHECK(h.noted(k_again));
  h.patched();
  h.goodbye();
  SUBCASE("for as long as its pause lasts") {
    h.waits(0, "CrashLoopBackOff", "back-off 5m0s restarting failed container");
    h.pass(400s);
    CHECK(h.count<Fail>() == 0);
    h.hello();
    CHECK(h.count<Launch>() == 3);
  }
  SUBCASE("but not for what cannot be pulled, as the node has collected it and no registry has it") {
    h.waits(0, "ImagePullBackOff", "Back-off pulling image");
    h.pass(200s);
    CHECK(h.count<Fail>() == 1);
  }
  SUBCASE("nor for what the node must not pull") {
    h.waits(0, "ErrImageNeverPull",
            "Container image \"docker.io/library/a:1\" is not present with pull policy of Never");
    CHECK(h.last<Fail>().fault == wire::Fault::user);
  }
  CHECK(h.core.snapshot().failures == 0);
}

TEST_CASE("home: a name that has yet to run is waited for no longer than anything that does not start") {
  Bare h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "CrashLoopBackOff", "back-off 10s restarting failed container");
  h.pass(200s);
  CHECK(h.count<Fail>() == 1);
  CHECK_FALSE(h.noted("event=name_again"));
}

namespace {
// The name by the first digits of an id.
std::string by_id(const std::string& id, std::size_t digits) {
  return id.substr(0, kube::k_id_prefix + digits);
}
// Image a comes again, after b, and its name would have to wait.
struct Again : Bare {
  Again() {
    switch_to_loaded(*this, k_image_a, k_digest_a);
    switch_to_loaded(*this, k_image_b, k_digest_b);
    client = ask(k_image_a);
    CHECK(last<Patch>().image == k_image_a);
    patched();
    goodbye();
    waits(0, "CrashLoopBackOff", "back-off 5m0s restarting failed container");
  }
  ClientId client = 0;
};
}  // namespace

TEST_CASE("home: an image without a digest goes by the node's id of it where its name would have to wait") {
  Again h;
  CHECK(h.last<Patch>().image == by_id(k_digest_a, 16));
  CHECK(h.noted("event=by_id container=payload-0 image=" + k_image_a + " name=" + by_id(k_digest_a, 16)));
  h.patched();
  h.hello();
  CHECK(h.count<Launch>() == 2);  // by its id the status has to prove it
  SUBCASE("and so do later switches at once, each by another name, home too") {
    h.runs(0, k_image_a, k_digest_a);
    CHECK(h.last<Launch>().client == h.client);
    h.end_job();
    switch_to_loaded(h, k_image_b, k_digest_b, by_id(k_digest_b, 16));
    switch_to_loaded(h, k_image_a, k_digest_a, by_id(k_digest_a, 17));
    for (std::size_t digits = 17; digits <= 64; ++digits) {
      switch_to_loaded(h, k_image_b, k_digest_b, by_id(k_digest_b, digits));
      switch_to_loaded(h, k_image_a, k_digest_a, by_id(k_digest_a, digits == 64 ? 16 : digits + 1));
    }
    h.ask("");
    h.end_job();
    h.lose();
    CHECK(h.last<Patch>().image == by_id(k_digest_home, 16));
  }
  SUBCASE("but nothing begins in other content") {
    h.runs(0, k_image_a, k_digest_b);
    h.pass(5s);
    CHECK(h.count<Launch>() == 2);
  }
}

TEST_CASE("home: a name by id that is not taken gives way to the plain one, which waits") {
  Again h;
  SUBCASE("as a rule of the cluster's refuses it") {
    h.patch_failed(403, "admission webhook denied the request: images of our registry alone");
  }
  SUBCASE("as the runtime does not know it") {
    h.patched();
    h.waits(0, "ErrImagePull",
            "failed to resolve reference \"docker.io/library/" + by_id(k_digest_a, 16) + "\"");
  }
  SUBCASE("as it may not be pulled") {
    h.patched();
    h.waits(0, "ErrImageNeverPull",
            "Container image \"" + by_id(k_digest_a, 16) + "\" is not present with pull policy of Never");
  }
  SUBCASE("as it cannot be pulled, which is said without its name") {
    h.patched();
    h.waits(0, "ErrImagePull", "manifest unknown");
    h.pass(15s);
  }
  CHECK(h.noted("event=not_by_id"));
  CHECK(h.count<Fail>() == 0);
  if (h.last<Patch>().image != k_image_a) {  // the pod has the plain name: another one comes in between
    CHECK(h.last<Patch>().image == k_home);
    h.patched();
    h.hello();
    h.runs(0, k_home, k_digest_home);
  }
  CHECK(h.last<Patch>().image == k_image_a);
  h.patched();
  h.waits(0, "CrashLoopBackOff", "back-off 5m0s restarting failed container");
  CHECK(h.last<Patch>().image == k_image_a);
  h.pass(400s);
  CHECK(h.count<Fail>() == 0);
  CHECK(h.core.snapshot().failures == 0);
}
