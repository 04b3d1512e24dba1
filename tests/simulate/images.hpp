#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulate/random.hpp"
#include "tests/simulate/weather.hpp"

namespace glidepod::simulate {

// What an image holds. The simulation knows which one each container really runs.
struct Content {
  enum class Kind : std::uint8_t { good, start_error, run_error, create_error, gone, mute };
  Kind kind = Kind::good;
  std::string digest;                // "sha256:..."
  std::vector<std::string> on_node;  // its repositories there, as its imageID may show; empty: not there
  std::vector<std::string> names;    // under which it is there, tags and digests
  bool runs_nothing = false;         // neither ENTRYPOINT nor CMD
};

// The registry and the node's store. Images are named in full, and a mirror holds the same as what it
// mirrors.
class Images {
 public:
  static constexpr int k_home = 0;
  static constexpr std::string_view k_home_name = "reg.example/glidepod/pilot:1";
  static constexpr std::string_view k_mirror = "mirror.example/";

  Images(Random& random, const Weather& weather, SteadyTime now);
  // What jobs may ask for.
  const std::vector<std::string>& wanted() const { return wanted_; }
  // Those of them that can start, whichever content is meant.
  std::vector<std::string> startable() const;
  const Content& content(int index) const { return contents_[static_cast<std::size_t>(index)]; }
  int contents() const { return static_cast<int>(contents_.size()); }
  // A tag gets another content; what it had counts no more for new pulls.
  std::optional<std::string> move_a_tag(Random& random);

  // The content a reference means to the registry; none if there is no such thing.
  std::optional<int> in_registry(std::string_view reference) const;
  std::optional<int> on_node(const std::string& reference) const;
  void pull(const std::string& reference, int content);
  // As a status has them.
  std::string image_id(int content, bool bare) const;
  std::string shown_name(int content, const std::string& reference, bool any, Random& random) const;

  // Whether a job that names this image may run in this content: a digest, or what a tag ever meant since the
  // pilot started.
  bool means(const std::string& image, int content) const;
  bool can_be_at_fault(const std::string& image) const;
  // Whether no registry has it, nor ever had.
  bool never_there(std::string_view reference) const;
  bool may_run_nothing(const std::string& image) const;

 private:
  std::vector<Content> contents_;
  std::map<std::string, std::vector<int>, std::less<>> tags_;  // the newest last
  std::map<std::string, int> node_;
  std::vector<std::string> wanted_;
};

}  // namespace glidepod::simulate
