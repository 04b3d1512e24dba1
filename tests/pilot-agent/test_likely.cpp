#include "pilot-agent/core/likely.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

using namespace glidepod::agent;

namespace {

bool all(const Image&) {
  return true;
}

Lately after(const std::vector<std::pair<std::string, std::string>>& jobs) {
  Lately lately;
  for (const auto& [image, owner] : jobs) lately.ran(Image(image), owner);
  return lately;
}

// Renews until nothing is worth it; how often that was.
int settle(const Lately& lately, std::vector<Free>& free) {
  for (int times = 0; times < 1000; ++times) {
    const auto renewal = likeliest(lately.all(), free, all);
    if (!renewal) return times;
    free[renewal->free] = {renewal->image, "", true, false};
  }
  return 1000;
}

std::map<std::string, int> images(const std::vector<Free>& free) {
  std::map<std::string, int> result;
  for (const Free& one : free) ++result[std::string(one.image.name_or(""))];
  return result;
}

}  // namespace

TEST_CASE("likely: who has run nothing makes nothing ready") {
  const std::vector<Free> free(3, Free{Image::home(), "", true, false});
  CHECK_FALSE(likeliest({}, free, all));
  CHECK_FALSE(likeliest(after({{"a", "alice"}}).all(), {}, all));
}

TEST_CASE("likely: the image that is asked for most comes first, and as often as it is worth") {
  const Lately lately = after({{"a", "alice"}, {"a", "alice"}, {"a", "bob"}, {"b", "bob"}});
  std::vector<Free> free(4, Free{Image::home(), "", true, false});
  const auto first = likeliest(lately.all(), free, all);
  REQUIRE(first);
  CHECK(first->image == Image("a"));
  CHECK(settle(lately, free) == 4);
  CHECK(images(free) == std::map<std::string, int>{{"a", 3}, {"b", 1}});
}

TEST_CASE("likely: it comes to rest, whatever there is") {
  Lately lately;
  for (int i = 0; i < 1000; ++i)
    lately.ran(Image(fmt::format("image-{}", i * i % 23)), fmt::format("owner-{}", i % 7));
  CHECK(lately.all().size() <= Lately::k_most);
  std::vector<Free> free;
  free.reserve(24);
  for (int i = 0; i < 24; ++i)
    free.push_back({Image(fmt::format("image-{}", i % 5)), i % 3 == 0 ? "" : fmt::format("owner-{}", i % 7),
                    i % 4 != 0, false});
  CHECK(settle(lately, free) <= 48);
  CHECK(settle(lately, free) == 0);
}

TEST_CASE("likely: what one owner has used is made ready for the others") {
  const Lately lately = after({{"a", "bob"}, {"a", "bob"}, {"a", "alice"}});
  std::vector<Free> free = {{Image("a"), "alice", true, false}};
  const auto renewal = likeliest(lately.all(), free, all);
  REQUIRE(renewal);
  CHECK(renewal->image == Image("a"));
  // But not where that one alone asks for it.
  CHECK_FALSE(likeliest(after({{"a", "alice"}}).all(), free, all));
  // Unless nobody may have it as it is.
  free[0].ready = false;
  CHECK(likeliest(after({{"a", "alice"}}).all(), free, all));
}

TEST_CASE("likely: an image that may not be had is not proposed") {
  const Lately lately = after({{"a", "alice"}, {"a", "alice"}, {"b", "alice"}});
  const std::vector<Free> free(1, Free{Image::home(), "", true, false});
  const auto renewal = likeliest(lately.all(), free, [](const Image& image) { return image != Image("a"); });
  REQUIRE(renewal);
  CHECK(renewal->image == Image("b"));
}

TEST_CASE("likely: what is being made ready counts, and is left alone") {
  const Lately lately = after({{"a", "alice"}, {"a", "bob"}, {"b", "alice"}, {"b", "bob"}, {"b", "bob"}});
  std::vector<Free> free = {{Image::home(), "", true, false}, {Image("b"), "", true, true}};
  const auto renewal = likeliest(lately.all(), free, all);
  REQUIRE(renewal);
  CHECK(renewal->free == 0);
  CHECK(renewal->image == Image("a"));
  free[0].stays = true;
  CHECK_FALSE(likeliest(lately.all(), free, all));
}

TEST_CASE("likely: of many images for many owners none is forgotten for being rare") {
  // By Zipf's law, as the days of a pool are: the last of twenty images is one job in seventy.
  Lately lately;
  for (int i = 0; i < 1000; ++i)
    for (int image = 0; image < 20; ++image)
      if (i % (image + 1) == 0)
        lately.ran(Image(fmt::format("image-{}", image)), fmt::format("owner-{}", (i + image) % 5));
  std::vector<Free> free(48, Free{Image::home(), "", true, false});
  settle(lately, free);
  for (int image = 0; image < 20; ++image) CHECK(images(free)[fmt::format("image-{}", image)] > 0);
}

TEST_CASE("likely: what was asked for long ago is forgotten") {
  Lately lately = after({{"old", "alice"}, {"old", "alice"}});
  for (int i = 0; i < 1000; ++i) lately.ran(Image("new"), "alice");
  std::vector<Free> free(3, Free{Image("old"), "", true, false});
  settle(lately, free);
  CHECK(images(free)["new"] == 3);
}

TEST_CASE("likely: a job that finds none takes what the others miss least") {
  const Lately lately = after({{"a", "alice"}, {"a", "alice"}, {"b", "bob"}});
  const std::vector<Free> free = {{Image("a"), "", true, false},
                                  {Image("b"), "", true, false},
                                  {Image("c"), "", true, false},
                                  {Image("b"), "", true, false}};
  CHECK(least_wanted(lately.all(), free) == 2);
  CHECK(least_wanted(lately.all(), std::span(free).first(2)) == 1);
  CHECK(least_wanted({}, free) == 0);
}

TEST_CASE("likely: what the queues want leads a pilot that has run nothing, for whoever comes") {
  const std::vector<QueuedImage> queued = {{Image("a"), 600}, {Image("b"), 400}};
  std::vector<Free> free(2, Free{Image::home(), "", true});
  free[0] = {Image("a"), "alice", true};
  const auto renewal = likeliest(with_queued({}, queued), free, all);
  REQUIRE(renewal);
  CHECK(renewal->image == Image("a"));
  CHECK(renewal->free == 0);
}

TEST_CASE("likely: what the queues want weighs as much as ten jobs, whatever the shares add up to") {
  const Lately lately = after({{"a", "alice"}, {"a", "alice"}, {"a", "alice"}});
  const std::vector<Free> free(1, Free{Image::home(), "", true});
  const auto first = [&](int share) {
    const std::vector<QueuedImage> queued = {{Image("b"), share}};
    return likeliest(with_queued(lately.all(), queued), free, all)->image;
  };
  CHECK(first(200) == Image("a"));
  CHECK(first(400) == Image("b"));
  double weight = 0;
  const std::vector<QueuedImage> far_too_much(16, {Image("b"), 1000});
  for (const auto& one : with_queued({}, far_too_much)) weight += one.weight;
  CHECK(weight == doctest::Approx(10));
}

TEST_CASE("likely: a job counts a little less for each that came after it") {
  CHECK(after({{"a", "alice"}, {"b", "bob"}}).all()[0].weight == doctest::Approx(0.995));
  // Of one image, each owner by itself.
  const Lately lately = after({{"a", "alice"}, {"a", "bob"}, {"a", "bob"}});
  REQUIRE(lately.all().size() == 2);
  CHECK(lately.all()[1].weight == doctest::Approx(1.995));
}

TEST_CASE("likely: of what ran, so much is kept, and the least gives way") {
  Lately lately;
  lately.ran(Image("often"), "alice");
  lately.ran(Image("often"), "alice");
  for (std::size_t i = 1; i < Lately::k_most; ++i) lately.ran(Image(fmt::format("image-{}", i)), "alice");
  REQUIRE(lately.all().size() == Lately::k_most);
  lately.ran(Image("new"), "alice");
  CHECK(lately.all().size() == Lately::k_most);
  CHECK(lately.all().front().image == Image("often"));
  CHECK(lately.all()[1].image == Image("image-2"));
  CHECK(lately.all().back().image == Image("new"));
}

TEST_CASE("likely: nothing is made ready for less than a two-hundredth of all") {
  const std::vector<Free> free = {{Image("a"), "", true, true}, {Image::home(), "", true, false}};
  const auto worth = [&](double weight) {
    const std::vector<Lately::One> lately = {{Image("a"), "", 100}, {Image("b"), "", weight}};
    return likeliest(lately, free, [](const Image& image) { return image == Image("b"); }).has_value();
  };
  CHECK(worth(2));
  CHECK_FALSE(worth(1));
}

TEST_CASE("likely: the same image anew for others costs its owner half as much again") {
  const auto renewed = [](double of_others) {
    const std::vector<Lately::One> lately = {{Image("a"), "alice", 1}, {Image("a"), "bob", of_others}};
    const std::vector<Free> free = {{Image("a"), "alice", true, false}};
    return likeliest(lately, free, all).has_value();
  };
  // For bob it gains half of his weight, and alice, for whom it stays as good, counts a quarter against it.
  CHECK(renewed(0.7));
  CHECK_FALSE(renewed(0.3));
}

TEST_CASE("likely: by the same image anew the others gain half of their weight, and no more") {
  const std::vector<Lately::One> lately = {
      {Image("a"), "alice", 1}, {Image("a"), "bob", 0.7}, {Image("b"), "", 1.3}};
  const std::vector<Free> free = {{Image("a"), "alice", true, false}};
  const auto renewal = likeliest(lately, free, all);
  REQUIRE(renewal);
  CHECK(renewal->image == Image("b"));
}
