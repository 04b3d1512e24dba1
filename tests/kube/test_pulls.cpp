#include "lib/kube/pulls.hpp"

#include <doctest/doctest.h>

#include "lib/kube/pod.hpp"

using namespace glidepod;
using namespace glidepod::kube;

TEST_CASE("pulls: what is written is read") {
  const std::vector<WantedImage> wanted = {{"docker.io/library/a:1", "g1-p1"},
                                           {"b@sha256:" + std::string(64, 'b'), "x"}};
  CHECK(read_wanted(wanted_text(wanted)) == wanted);
  const std::vector<PulledImage> pulled = {
      {wanted[0], PulledImage::State::failed, "ErrImagePull", "a \"word\""},
      {wanted[1], PulledImage::State::ready, "", ""}};
  CHECK(read_pulled(pulled_text(pulled)) == pulled);
  CHECK(wanted_text({}) == "[]");
}

TEST_CASE("pulls: what is not as it should be is left out") {
  for (const char* text : {"", "{}", "null", "[", "\"a\"", "[1, null, []]", R"([{"image": "a"}])",
                           R"([{"image": "a", "ask": ""}])", R"([{"image": 7, "ask": "x"}])",
                           R"([{"image": "a", "ask": "X\n"}])", R"([{"image": "a//b", "ask": "x"}])",
                           R"([{"image": "a b", "ask": "x"}])", R"([{"image": "-a;rm", "ask": "x"}])",
                           R"([{"image": "a\u0000", "ask": "x"}])", R"([{"image": "", "ask": "x"}])"}) {
    CAPTURE(text);
    CHECK(read_wanted(text).empty());
  }
  CHECK(read_wanted(R"([{"image": "a//b", "ask": "x"}, {"image": "a", "ask": "y"}])").size() == 1);
  CHECK(read_pulled(R"([{"image": "a", "ask": "x", "state": "maybe"}])").empty());
  CHECK(read_pulled(R"([{"image": "a b", "ask": "x", "state": "ready"}, 7])").empty());
  for (const char* ask : {"a", "z", "0", "9", "-"}) CHECK(read_wanted(wanted_text({{"a", ask}})).size() == 1);
  for (const char* ask : {"`", "{", "/", ":", "+", "~", "A"})
    CHECK(read_wanted(wanted_text({{"a", ask}})).empty());
}

TEST_CASE("pulls: lengths are bounded") {
  std::vector<WantedImage> many(10'000, {"docker.io/library/a:1", "x"});
  CHECK(read_wanted(wanted_text(many)).size() == k_most_wanted);
  std::string by_hand = "[";
  for (int i = 0; i < 10'000; ++i) by_hand += R"({"image": "a", "ask": "x"},)";
  CHECK(read_wanted(by_hand + R"({"image": "a", "ask": "x"}])").empty());
  CHECK(read_wanted("[" + std::string(100'000, '[')).empty());
  CHECK(read_wanted(wanted_text({{std::string(5000, 'a'), "x"}})).empty());
  CHECK(read_wanted(wanted_text({{"a", std::string(65, 'x')}})).empty());
  CHECK(read_wanted(wanted_text({{"a", std::string(64, 'x')}})).size() == 1);
  std::string one_more = "[";
  for (std::size_t i = 0; i < k_most_wanted; ++i) one_more += R"({"image": "a", "ask": "x"},)";
  CHECK(read_wanted(one_more + R"({"image": "a", "ask": "x"}])").size() == k_most_wanted);
  std::string longest = R"([{"image": "a", "ask": "x"}])";
  longest.resize(k_most_wanted * 8192, ' ');
  CHECK(read_wanted(longest).size() == 1);
  CHECK(read_wanted(longest + " ").empty());
  const auto long_words = read_pulled(pulled_text(
      {{{"a", "x"}, PulledImage::State::failed, std::string(9000, 'r'), std::string(9000, 'm')}}));
  REQUIRE(long_words.size() == 1);
  CHECK(long_words[0].message.size() <= 1010);
  // Read and written again it stays what it is.
  CHECK(read_pulled(pulled_text(long_words)) == long_words);
}

TEST_CASE("pulls: the annotations of a pod") {
  const auto pod = parse_pod(
      R"({"metadata": {"annotations": {"glidepod.io/wanted-images": "[{\"image\": \"a\", \"ask\": \"g1\"}, 1]",
        "glidepod.io/pulled-images": "[{\"image\": \"a\", \"ask\": \"g1\", \"state\": \"ready\"}]",
        "glidepod.io/likely-images": "[{\"image\": \"a\", \"share\": 5}]"}}})");
  const WantedImage wanted{"a", "g1"};
  CHECK(pod.value().wanted_images == std::vector{wanted});
  CHECK(pod.value().pulled_images == std::vector<PulledImage>{{wanted, PulledImage::State::ready, {}, {}}});
  CHECK(pod.value().likely_images == std::vector<LikelyImage>{{"docker.io/library/a:latest", 5}});
  CHECK(annotation_patch("a/b", "c") == R"({"metadata":{"annotations":{"a/b":"c"}}})");
}

TEST_CASE("pulls: what is likely, bounded and by full names") {
  const std::vector<LikelyImage> likely = {
      {"docker.io/library/a:1", 700}, {"docker.io/library/b:1", 1}, {"docker.io/library/c:1", 1000}};
  CHECK(read_likely(likely_text(likely)) == likely);
  CHECK(read_likely(R"([{"image": "a", "share": 5}])")[0].image == "docker.io/library/a:latest");
  for (const char* text :
       {"", "{}", "[1, null, []]", R"([{"image": "a"}])", R"([{"image": "a", "share": 0}])",
        R"([{"image": "a", "share": 1001}])", R"([{"image": "a", "share": "5"}])",
        R"([{"image": "a", "share": 0.5}])", R"([{"image": "a b", "share": 5}])"}) {
    CAPTURE(text);
    CHECK(read_likely(text).empty());
  }
  CHECK(read_likely(likely_text(std::vector<LikelyImage>(1000, likely[0]))).size() == k_most_wanted);
}
