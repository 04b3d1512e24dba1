// What is known of images' names, by itself; test_core_home.cpp and test_core_proof.cpp have what the core
// makes of it.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/references.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_own = "reg.example/pilot:1";
const std::string k_job_name = "reg.example/job:1";
const Image k_job{k_job_name};

std::string digest_with(char digit) {
  return "sha256:" + std::string(64, digit);
}

kube::ContainerStatus shows(const std::string& image_id) {
  kube::ContainerStatus status;
  status.image_id = image_id;
  return status;
}

bool asks_for_home(const References& references, const Image& image) {
  Request request;
  request.asked = image;
  return references.asked_by(request).is_home();
}

References with_home() {
  References references("n");
  references.set_home(k_own);
  references.see_home(shows("reg.example/pilot@" + digest_with('a')));
  return references;
}

}  // namespace

TEST_CASE("references: home has a made-up name as soon as its digest is known, and never the same twice") {
  References references("n");
  references.set_home(k_own);
  CHECK(references.home_reference().name == k_own);
  CHECK_FALSE(references.home_reference().once);
  references.see_home(shows(""));
  CHECK(references.home_reference().name == k_own);
  references.see_home(shows("reg.example/pilot@" + digest_with('a')));
  CHECK(references.home_reference().name == "reg.example/pilot:n-1@" + digest_with('a'));
  CHECK(references.home_reference().name == "reg.example/pilot:n-2@" + digest_with('a'));
  CHECK(references.home_reference().once);
  references.see_home(shows(""));  // the pilot's container starts again
  CHECK(references.home_reference().name == "reg.example/pilot:n-4@" + digest_with('a'));
}

TEST_CASE("references: an image is patched by its name until its digest is known, and not twice in a row") {
  References references = with_home();
  REQUIRE(references.reference_for(k_job, k_own));
  CHECK(references.reference_for(k_job, k_own)->name == k_job_name);
  CHECK_FALSE(references.reference_for(k_job, k_own)->once);
  CHECK_FALSE(references.reference_for(k_job, k_job_name));
  CHECK_FALSE(references.knows(k_job));
  CHECK(references.exact_name(k_job) == k_job_name);
  CHECK(references.learn(k_job, k_job_name, shows("reg.example/job@" + digest_with('b'))) ==
        digest_with('b'));
  CHECK(references.knows(k_job));
  CHECK(references.reference_for(k_job, k_job_name)->name == "reg.example/job:n-1@" + digest_with('b'));
  CHECK(references.reference_for(k_job, k_job_name)->once);
  CHECK(references.exact_name(k_job) == "reg.example/job@" + digest_with('b'));
}

TEST_CASE("references: an image that is named by its digest needs nothing learnt") {
  References references = with_home();
  const std::string name = "reg.example/job@" + digest_with('c');
  const Image image{name};
  CHECK(references.reference_for(image, name)->name == "reg.example/job:n-1@" + digest_with('c'));
  CHECK(references.learn(image, name, shows(name)).empty());
}

TEST_CASE("references: a digest is learnt from the job's or admission's repository alone, and once") {
  References references = with_home();
  CHECK(references.learn(k_job, k_job_name, shows("other.example/job@" + digest_with('b'))).empty());
  CHECK(references.learn(k_job, k_job_name, shows("reg.example/job")).empty());
  CHECK_FALSE(references.knows(k_job));
  const std::string mirrored = "mirror.example/job:1";
  CHECK(references.learn(k_job, mirrored, shows("mirror.example/job@" + digest_with('b'))) ==
        digest_with('b'));
  // By the name that jobs use: admission sends it to the mirror again.
  CHECK(references.exact_name(k_job) == "reg.example/job@" + digest_with('b'));
  CHECK(references.learn(k_job, k_job_name, shows("reg.example/job@" + digest_with('d'))).empty());
  CHECK(references.fits(k_job, shows("reg.example/job@" + digest_with('b'))));
  CHECK_FALSE(references.fits(k_job, shows("reg.example/job@" + digest_with('d'))));
}

TEST_CASE("references: another tag of the pilot's own repository may be home, and is once that is proven") {
  References references = with_home();
  const Image second("reg.example/pilot:latest");
  CHECK(asks_for_home(references, Image(k_own)));
  CHECK_FALSE(asks_for_home(references, second));
  CHECK(references.may_be_home(second));
  CHECK_FALSE(references.may_be_home(k_job));
  references.looked_like_home(k_job);
  CHECK(references.may_be_home(k_job));
  references.proved_home(second);
  CHECK(references.exact_name(second) == "reg.example/pilot@" + digest_with('a'));
  CHECK_FALSE(references.may_be_home(second));
}

TEST_CASE("references: a request asks for home by the pilot's own name for it, or as a probe") {
  References references("n");
  kube::Pod pod;
  pod.containers = {{"agent", "reg.example/other:1", {}}, {"pilot", k_own, {}}};
  references.begin(pod);
  CHECK(references.home().image == k_own);
  CHECK(references.home().image_id.empty());
  pod.statuses = {shows("reg.example/pilot@" + digest_with('a'))};
  pod.statuses.front().name = "agent";
  references.see(pod);
  CHECK(references.home().image_id.empty());
  pod.statuses.front().name = "pilot";
  references.see(pod);
  CHECK(references.home().digest == digest_with('a'));
  CHECK(asks_for_home(references, Image(k_own)));
  CHECK_FALSE(asks_for_home(references, k_job));
  Request probe;
  probe.any_image = true;
  probe.asked = k_job;
  CHECK(references.asked_by(probe).is_home());
  CHECK(references.name_of(Image::home()) == k_own);
  CHECK(references.exact_name(Image::home()) == "reg.example/pilot@" + digest_with('a'));
  CHECK(references.pull_name(Image("reg.example/job:1@" + digest_with('b'))) ==
        "reg.example/job@" + digest_with('b'));
  CHECK(references.pull_name(k_job) == k_job_name);
}

TEST_CASE("references: where the node names no digests, what was proven to be home is home by its name") {
  References references("n");
  references.set_home(k_own);
  references.see_home(shows(digest_with('a')));
  references.looked_like_home(k_job);
  references.proved_home(k_job);
  CHECK(asks_for_home(references, k_job));
  CHECK_FALSE(references.may_be_home(k_job));
  CHECK(references.fits(k_job, shows(digest_with('a'))));
  CHECK_FALSE(references.fits(k_job, shows(digest_with('b'))));
}

TEST_CASE(
    "references: an image without a digest has many names by the node's id of it, each container its own") {
  References references = with_home();
  References::IdUses one, other;
  const auto name = [&](References::IdUses* uses) {
    return references.reference_for(k_job, k_job_name, uses)->name;
  };
  CHECK_FALSE(references.may_try_id(k_job));
  CHECK_FALSE(references.reference_for(k_job, k_job_name, &one));
  CHECK(references.learn(k_job, k_job_name, shows(digest_with('b'))).empty());
  CHECK(references.may_try_id(k_job));
  CHECK_FALSE(references.reference_for(k_job, k_job_name));
  CHECK(name(&one) == digest_with('b').substr(0, 23));
  CHECK_FALSE(references.reference_for(k_job, k_job_name, &one)->once);  // the second
  CHECK(name(&other) == digest_with('b').substr(0, 23));
  for (std::size_t length = 25; length <= 71; ++length)
    CHECK(name(&one) == digest_with('b').substr(0, length));
  CHECK(name(&one) == digest_with('b').substr(0, 23));
  CHECK(references.learn(k_job, k_job_name, shows(digest_with('c'))).empty());  // it was loaded anew
  CHECK(name(&one) == digest_with('c').substr(0, 23));
  CHECK_FALSE(references.may_try_id(Image::home()));  // home has a digest
  CHECK(references.home_reference(&one).name == "reg.example/pilot:n-1@" + digest_with('a'));
}

TEST_CASE("references: an id that is refused is left, and all of them where none was ever taken") {
  References references("n");
  References::IdUses uses;
  references.set_home(k_own);
  references.see_home(shows(digest_with('a')));
  references.learn(k_job, k_job_name, shows(digest_with('b')));
  CHECK(references.may_try_id(Image::home()));
  CHECK(references.home_reference().name == k_own);
  CHECK(references.home_reference(&uses).name == digest_with('a').substr(0, 23));
  SUBCASE("as the node has that one no more") {
    references.id_worked();
    references.id_refused(k_job);
    CHECK(references.ids_work());
    CHECK(references.reference_for(k_job, k_own, &uses)->name == k_job_name);
  }
  SUBCASE("as a rule is against them") {
    references.id_refused(k_job);
  }
  SUBCASE("as the pilot's own must be there") {
    references.id_worked();
    references.id_refused(Image::home());
  }
  if (references.ids_work()) return;
  CHECK_FALSE(references.may_try_id(Image::home()));
  references.learn(k_job, k_job_name, shows(digest_with('b')));
  CHECK_FALSE(references.may_try_id(k_job));
}

TEST_CASE("references: that admission drops tags is told once, by a name that had both") {
  References references = with_home();
  const std::string asked = "reg.example/job:n-1@" + digest_with('b');
  CHECK_FALSE(references.see_admitted(asked, asked));
  CHECK_FALSE(references.see_admitted(asked, "mirror.example/job:n-1@" + digest_with('b')));
  CHECK_FALSE(references.see_admitted(k_job_name, "reg.example/job@" + digest_with('b')));
  CHECK_FALSE(references.tags_dropped());
  CHECK(references.see_admitted(asked, "reg.example/job@" + digest_with('b')));
  CHECK(references.tags_dropped());
  CHECK_FALSE(references.see_admitted(asked, "reg.example/job@" + digest_with('b')));
}
