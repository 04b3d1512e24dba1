#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/make.hpp"
#include "store/shelf.hpp"

namespace glidepod::store {

class Layout;

// The fact of an Error: what came is not what was said to come.
struct Forged {};
// The fact of an Error: there is no room for more.
struct NoRoom {};

// Knows images by the content of the files that they were made of. Safe from any thread; each call blocks.
class Keeper {
 public:
  struct Settings {
    std::string folder;      // what it knows, and files that are being read; only its own user may enter
    std::string repository;  // where the images are
    std::vector<std::string> reader = {"/proc/self/exe", "layer"};
    std::size_t at_a_time = 4;     // files that are received or converted
    std::uint64_t free = 0;        // bytes of the disk that must stay free
    std::uint64_t quota = 0;       // bytes of images that one owner may have brought; 0: any number
    std::chrono::seconds keep{0};  // an image that nobody has asked for since is removed; 0: none is
  };
  // Content that somebody brings.
  struct Content {
    std::string owner;       // whose it is
    std::uint64_t size = 0;  // in bytes, as far as it is known
    // Called at most once, when it is wanted.
    std::function<Result<void>(const Sink&)> send;
  };
  Keeper(Settings settings, Shelf& shelf) : settings_(std::move(settings)), shelf_(shelf) {}

  // Makes the folder, and removes what an earlier one has left half done in it.
  Result<void> prepare();
  // The image of a file's content, as a pod names it: REPOSITORY@DIGEST. The file may change while it is
  // read: what counts is a copy. The same content is converted once, however many ask for it. An Error with a
  // BadImage is the user's to mend.
  Result<std::string> image_of(const Fd& file, const std::string& owner = {});
  // The same of content whose SHA-256 is said before: 64 hexadecimal digits. Who brings what another one is
  // bringing waits for that. What is known is not sent. An Error may have Forged or NoRoom as its fact.
  Result<std::string> image_of(const std::string& key, const Content& content);
  // The image of the content with this SHA-256, if there is one.
  Result<std::optional<std::string>> find(const std::string& key);
  // Removes what nobody has asked for in the time that images are kept. What the shelf has from earlier ones
  // that knew it is kept as long from here on.
  Result<void> expire();
  // Bytes of images that an owner has brought, or is bringing.
  std::uint64_t used_by(const std::string& owner);

 private:
  struct Known {
    std::string image;
    std::string owner;  // who brought it first; empty: that is not known
    std::uint64_t bytes = 0;
  };
  class Share;
  class Bound;
  struct Copy {
    Fd file;
    std::string key;                     // 64 hexadecimal digits
    std::chrono::duration<double> took;  // to bring
  };
  class Slot;
  Result<Copy> copy(const Content& content) const;
  Result<void> check_room(std::uint64_t size) const;
  Result<std::optional<std::string>> look_up(const std::string& key);
  Result<std::string> make(const Copy& copy, Share& share);
  Result<Made> make(const Copy& copy, Layout& layout, Share& share);
  Result<void> expire(const std::string& key, const std::set<std::string>& wanted);
  std::vector<std::string> keys() const;
  std::string known(const std::string& key) const { return settings_.folder + "/known/" + key; }
  std::optional<Known> read_known(const std::string& key) const;
  Result<void> write_known(const std::string& key, const Known& what) const;
  std::shared_ptr<std::mutex> turn(const std::string& key);

  Settings settings_;
  Shelf& shelf_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::size_t taken_ = 0;                                   // of at_a_time
  std::map<std::string, std::uint64_t> used_;               // bytes by owner
  std::map<std::string, std::weak_ptr<std::mutex>> turns_;  // by key
};

}  // namespace glidepod::store
