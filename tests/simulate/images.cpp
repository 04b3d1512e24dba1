#include "tests/simulate/images.hpp"

#include <algorithm>
#include <array>

#include "lib/kube/image_reference.hpp"

namespace glidepod::simulate {

namespace {
std::string_view without_mirror(std::string_view reference) {
  if (reference.starts_with(Images::k_mirror)) reference.remove_prefix(Images::k_mirror.size());
  return reference;
}
std::string_view digest_in(std::string_view reference) {
  const auto at = reference.find('@');
  return at == std::string_view::npos ? std::string_view() : reference.substr(at + 1);
}
std::string_view repository_in(std::string_view reference) {
  reference = reference.substr(0, reference.find('@'));
  const auto colon = reference.rfind(':');
  const auto slash = reference.rfind('/');
  return colon == std::string_view::npos || colon < slash ? reference : reference.substr(0, colon);
}
// As a runtime keeps it: beside a digest, the tag counts for nothing.
std::string local_name(std::string_view reference) {
  const auto digest = digest_in(reference);
  if (digest.empty()) return std::string(reference);
  return std::string(repository_in(reference)) + "@" + std::string(digest);
}
}  // namespace

Images::Images(Random& random, const Weather& weather, SteadyTime) {
  constexpr std::array kinds = {Content::Kind::start_error, Content::Kind::run_error,
                                Content::Kind::create_error, Content::Kind::gone};
  const auto add = [&](Content::Kind kind) {
    const char digit = static_cast<char>('0' + contents_.size());
    contents_.push_back({kind, "sha256:" + std::string(64, digit), {}, {}, false});
    return static_cast<int>(contents_.size()) - 1;
  };
  add(Content::Kind::good);
  tags_[std::string(k_home_name)] = {k_home};
  pull(std::string(k_home_name), k_home);
  if (weather.home_names) {
    const std::string repository(repository_in(k_home_name));
    wanted_ = {repository + ":latest", "docker.io/library/pilot:1", repository + "@" + contents_[0].digest};
    tags_[wanted_[0]] = tags_[wanted_[1]] = {k_home};
  }
  for (int i = 0; i < weather.images; ++i) {
    const bool bad = i > 0 && random.chance(weather.bad_images);
    const int content =
        add(bad ? kinds[static_cast<std::size_t>(random.between(0, 3))] : Content::Kind::good);
    if (bad && random.aside(20).chance(250)) contents_.back().kind = Content::Kind::mute;
    contents_.back().runs_nothing = random.aside(2).chance(150);
    const std::string repository = random.chance(700) ? "docker.io/library/app" : "quay.example/team/tool";
    const std::string name = repository + ":v" + std::to_string(i);
    tags_[name] = {content};
    wanted_.push_back(name);
    if (weather.many_names && random.chance(500)) {
      const std::string alias = "docker.io/library/alias:v" + std::to_string(i);
      tags_[alias] = {content};
      wanted_.push_back(alias);
    }
    if (random.chance(200)) wanted_.push_back(repository + "@" + contents_.back().digest);
    if (random.chance(200) && !bad) pull(name, content);
    if (weather.many_names && !bad && random.chance(300))
      pull("other.example/same:v" + std::to_string(i), content);
  }
}

std::vector<std::string> Images::startable() const {
  std::vector<std::string> result;
  for (const std::string& name : wanted_)
    if (!can_be_at_fault(name)) result.push_back(name);
  return result;
}

std::optional<std::string> Images::move_a_tag(Random& random) {
  const std::string& name = random.pick(wanted_);
  const auto tag = tags_.find(name);
  if (tag == tags_.end()) return std::nullopt;
  tag->second.push_back(static_cast<int>(random.between(1, contents() - 1)));
  return name;
}

std::optional<int> Images::in_registry(std::string_view reference) const {
  reference = without_mirror(reference);
  if (const auto digest = digest_in(reference); !digest.empty()) {
    const auto found = std::ranges::find(contents_, digest, &Content::digest);
    return found == contents_.end() ? std::nullopt
                                    : std::optional(static_cast<int>(found - contents_.begin()));
  }
  const auto tag = tags_.find(reference);
  return tag == tags_.end() ? std::nullopt : std::optional(tag->second.back());
}

std::optional<int> Images::on_node(const std::string& reference) const {
  if (kube::is_by_id(reference)) {
    const auto found = std::ranges::find_if(contents_, [&](const Content& content) {
      return !content.on_node.empty() && content.digest.starts_with(reference);
    });
    return found == contents_.end() ? std::nullopt
                                    : std::optional(static_cast<int>(found - contents_.begin()));
  }
  if (const auto found = node_.find(local_name(reference)); found != node_.end()) return found->second;
  // The content is known by its digest under every repository that the node has had it from; a runtime finds
  // it by any.
  const auto digest = digest_in(reference);
  if (digest.empty()) return std::nullopt;
  const auto found = std::ranges::find(contents_, digest, &Content::digest);
  if (found == contents_.end() || !std::ranges::count(found->on_node, repository_in(reference)))
    return std::nullopt;
  return static_cast<int>(found - contents_.begin());
}

void Images::pull(const std::string& reference, int index) {
  Content& content = contents_[static_cast<std::size_t>(index)];
  const std::string name = local_name(reference);
  for (Content& other : contents_) std::erase(other.names, name);
  node_[name] = index;
  content.names.push_back(name);
  const std::string repository(repository_in(reference));
  if (!std::ranges::count(content.on_node, repository)) content.on_node.push_back(repository);
}

std::string Images::image_id(int index, bool bare) const {
  const Content& found = content(index);
  if (bare || found.on_node.empty()) return found.digest;
  return found.on_node.front() + "@" + found.digest;
}

std::string Images::shown_name(int index, const std::string& reference, bool any, Random& random) const {
  const auto& names = content(index).names;
  return any && !names.empty() ? random.pick(names) : reference;
}

bool Images::means(const std::string& image, int index) const {
  if (const auto digest = digest_in(image); !digest.empty()) return content(index).digest == digest;
  const auto tag = tags_.find(image);
  return tag != tags_.end() && std::ranges::count(tag->second, index) > 0;
}

bool Images::may_run_nothing(const std::string& image) const {
  for (int i = 0; i < contents(); ++i)
    if (content(i).runs_nothing && means(image, i)) return true;
  return false;
}

bool Images::never_there(std::string_view reference) const {
  const std::string image(without_mirror(reference));
  for (int i = 0; i < contents(); ++i)
    if (content(i).kind != Content::Kind::gone && means(image, i)) return false;
  return digest_in(image).empty() ? tags_.contains(image) : in_registry(image).has_value();
}

bool Images::can_be_at_fault(const std::string& image) const {
  for (int i = 0; i < contents(); ++i)
    if (content(i).kind != Content::Kind::good && means(image, i)) return true;
  return false;
}

}  // namespace glidepod::simulate
