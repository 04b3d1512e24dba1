#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

using Words = std::vector<std::string>;
const registry::ImageCommand k_both{{"/entry", "x"}, {"cmd"}};

ClientId run(Harness& h, const std::string& image, Words arguments = {}, const std::string& owner = "alice") {
  Request request;
  request.client = ++h.last_id;
  request.verb = wire::Verb::run;
  request.asked = Image(image);
  request.owner = owner;
  request.uid = 20001;
  request.job = "1.0";
  request.arguments = std::move(arguments);
  h.core.on_bind(request, h.now);
  h.take();
  return request.client;
}
void known(Harness& h, ClientId client, const registry::ImageCommand& command = k_both) {
  h.core.on_image_known(client, command, h.now);
  h.take();
}
void unknown(Harness& h, ClientId client, wire::Fault fault = wire::Fault::user) {
  h.core.on_image_unknown(client, fault, "no such thing", h.now);
  h.take();
}

}  // namespace

TEST_CASE("core: a run asks what its image runs while the container is switched") {
  for (const bool answer_first : {true, false}) {
    CAPTURE(answer_first);
    Harness h;
    const ClientId client = run(h, k_image_a);
    REQUIRE(h.count<AskImage>() == 1);
    CHECK(h.count<Patch>() == 1);
    CHECK(h.last<AskImage>().client == client);
    CHECK(h.last<AskImage>().image == k_image_a);
    CHECK(h.last<AskImage>().deadline == h.now + 120s);
    if (answer_first) known(h, client);
    h.switch_to(0, k_image_a, k_digest_a);
    if (!answer_first) {
      CHECK(h.state() == State::asking);
      CHECK(h.count<Launch>() == 0);
      CHECK(h.core.next_deadline().has_value());
      known(h, client);
    }
    CHECK(h.state() == State::running);
    CHECK(h.last<Launch>().client == client);
    CHECK(h.last<Launch>().argv == Words{"/entry", "x", "cmd"});
    CHECK(h.count<AskImage>() == 1);
    CHECK(h.noted("how=switched"));
    h.end_job();
    CHECK(h.state() == State::idle);
  }
}

TEST_CASE("core: arguments take the place of CMD, what is not a run asks nothing") {
  Harness h;
  const ClientId client = run(h, k_image_a, {"a", "b"});
  known(h, client);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().argv == Words{"/entry", "x", "a", "b"});
  h.end_job();
  h.all.clear();
  h.ask(k_image_a);
  CHECK(h.last<Launch>().argv.empty());
  h.end_job();
  h.ask(k_image_b, wire::Verb::test);
  CHECK(h.count<AskImage>() == 0);
}

TEST_CASE("core: an image that runs nothing is its user's fault") {
  for (const registry::ImageCommand& none : {registry::ImageCommand{}, registry::ImageCommand{{""}, {"x"}}}) {
    Harness h;
    const ClientId client = run(h, k_image_a);
    known(h, client, none);
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == wire::Fault::user);
    CHECK(h.last<Fail>().message == "the image has neither ENTRYPOINT nor CMD: name the executable to run");
    h.switch_to(0, k_image_a, k_digest_a);
    CHECK(h.state() == State::idle);
    CHECK(h.count<Launch>() == 0);
  }
  // With arguments it is they that run.
  Harness h;
  known(h, run(h, k_image_a, {"/a"}), {});
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().argv == Words{"/a"});
}

TEST_CASE("core: a digest is asked for once, a tag each time") {
  Harness h;
  known(h, run(h, k_image_a));
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  // The pod's status has told the digest: the container's own content is asked for, not the tag.
  const ClientId second = run(h, k_image_a);
  CHECK(h.count<AskImage>() == 2);
  CHECK(h.last<AskImage>().image == "docker.io/library/a@" + k_digest_a);
  CHECK(h.state() == State::asking);
  CHECK(h.count<Patch>() == 1);
  known(h, second);
  h.end_job();
  run(h, k_image_a, {"c"});
  CHECK(h.count<AskImage>() == 2);
  CHECK(h.state() == State::running);
  CHECK(h.last<Launch>().argv == Words{"/entry", "x", "c"});
  h.end_job();
  // Also by another name, and with an answer that is an error.
  run(h, "reg.example/other:2@" + k_digest_a);
  CHECK(h.count<AskImage>() == 2);
  h.switch_to(0, "reg.example/other:2", k_digest_a);
  CHECK(h.count<Launch>() == 4);
}

TEST_CASE("core: few answers are kept") {
  Harness h;
  const auto digest = [](int i) { return fmt::format("sha256:{:064x}", i + 1); };
  for (int i = 0; i < 40; ++i) {
    const ClientId client = run(h, "reg.example/x@" + digest(i));
    known(h, client);
    h.core.on_client_gone(client, h.now);
    h.take();
    // Whatever is under way, the way home ends it.
    h.patched();
    h.goodbye();
    h.hello();
    REQUIRE(h.state() == State::idle);
  }
  CHECK(h.count<AskImage>() == 40);
  run(h, "reg.example/x@" + digest(39));
  CHECK(h.count<AskImage>() == 40);
  h.end_job();
  run(h, "reg.example/x@" + digest(8));
  CHECK(h.count<AskImage>() == 40);
  h.switch_to(0, "reg.example/x:1", digest(8));
  h.end_job();
  run(h, "reg.example/x@" + digest(7));
  CHECK(h.count<AskImage>() == 41);
}

TEST_CASE("core: an image of which nothing is learnt fails the run at once, and not the container") {
  for (const wire::Fault fault : {wire::Fault::user, wire::Fault::infrastructure}) {
    for (const bool switched : {false, true}) {
      Harness h;
      const ClientId client = run(h, k_image_a);
      if (switched) h.switch_to(0, k_image_a, k_digest_a);
      unknown(h, client, fault);
      CHECK(h.count<Fail>() == 1);
      CHECK(h.last<Fail>().client == client);
      CHECK(h.last<Fail>().fault == fault);
      CHECK(h.last<Fail>().of_job);
      CHECK(h.last<Fail>().message == "no such thing");
      if (!switched) h.switch_to(0, k_image_a, k_digest_a);
      CHECK(h.state() == State::idle);
      h.ask(k_image_a);
      CHECK(h.state() == State::running);
      // A second answer, or one for nobody, changes nothing.
      unknown(h, client);
      known(h, client);
      known(h, 999);
      CHECK(h.count<Fail>() == 1);
      CHECK(h.count<Launch>() == 1);
    }
  }
}

TEST_CASE("core: tested first, as HTCondor's hook does") {
  Harness h;
  h.ask(k_image_a, wire::Verb::test);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::reserved);
  CHECK(h.count<AskImage>() == 0);
  const ClientId client = run(h, k_image_a);
  CHECK(h.state() == State::asking);
  CHECK(h.last<AskImage>().image == "docker.io/library/a@" + k_digest_a);
  h.pass(70s);  // longer than a reservation
  CHECK(h.state() == State::asking);
  known(h, client);
  CHECK(h.state() == State::running);
  CHECK(h.noted("how=switched"));
}

TEST_CASE("core: a container that goes while its image is asked for is replaced, and the answer kept") {
  for (const bool by_goodbye : {true, false}) {
    CAPTURE(by_goodbye);
    Harness h(2);
    const ClientId client = run(h, k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    REQUIRE(h.state(0) == State::asking);
    if (by_goodbye)
      h.goodbye(0);
    else
      h.lose(0);
    CHECK(h.state(1) == State::switching);
    known(h, client);
    h.patched();
    h.goodbye(1);
    h.hello(1);
    CHECK(h.state(1) == State::running);
    CHECK(h.last<Launch>().client == client);
    CHECK(h.count<AskImage>() == 1);
    CHECK(h.count<Fail>() == 0);
  }
}

TEST_CASE("core: who asked may go, be signalled, wait too long, or see the pilot end") {
  enum class What { gone, signalled, late, finished };
  for (const What what : {What::gone, What::signalled, What::late, What::finished}) {
    CAPTURE(static_cast<int>(what));
    Harness h;
    const ClientId client = run(h, k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    REQUIRE(h.state() == State::asking);
    switch (what) {
      case What::gone:
        h.core.on_client_gone(client, h.now);
        break;
      case What::signalled:
        h.core.on_client_signal(client, SIGTERM, h.now);
        break;
      case What::late:
        h.pass(600s);
        break;
      case What::finished:
        h.core.finish(h.now);
        break;
    }
    h.take();
    CHECK(h.count<Answer>() == (what == What::signalled ? 1 : 0));
    CHECK(h.count<Fail>() == (what == What::late || what == What::finished ? 1 : 0));
    if (what == What::finished) continue;
    CHECK(h.state() == State::idle);
    known(h, client);
    CHECK(h.count<Launch>() == 0);
    CHECK_FALSE(h.core.next_deadline().has_value());
    h.ask(k_image_a);
    CHECK(h.state() == State::running);
  }
}

TEST_CASE("core: whoever waits has the container of a run of which nothing is learnt") {
  Harness h;
  const ClientId client = run(h, k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  REQUIRE(h.state() == State::asking);
  const ClientId next = h.ask(k_image_a);
  CHECK(h.count<Launch>() == 0);
  unknown(h, client);
  CHECK(h.last<Launch>().client == next);
}

TEST_CASE("core: what is known to run nothing fails at once, and its switch goes on without it") {
  Harness h;
  const std::string image = "reg.example/x@" + k_digest_a;
  known(h, run(h, image), {});
  h.switch_to(0, "reg.example/x:1", k_digest_a);
  h.ask(k_image_b);
  h.switch_to(0, k_image_b, k_digest_b);
  h.end_job();
  run(h, image);
  CHECK(h.count<Fail>() == 2);
  CHECK(h.count<AskImage>() == 1);
  CHECK(h.state() == State::switching);
  h.switch_to(0, "reg.example/x:1", k_digest_a);
  CHECK(h.state() == State::idle);
}
