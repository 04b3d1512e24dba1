#pragma once

#include <map>
#include <memory>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"
#include "lib/wire/channel.hpp"
#include "store/keeper.hpp"

namespace glidepod::store {

// Serves pilots' agents on a Unix socket, which only root can open: an agent sends an image file's descriptor
// and gets the image's name.
class Server {
 public:
  // Both must outlive it.
  Server(Loop& loop, Keeper& keeper) : loop_(loop), keeper_(keeper) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Result<void> listen(const std::string& path);

 private:
  using Id = std::uint64_t;
  void accept();
  void take(Id id, wire::Frame frame);
  Result<void> begin(Id id, wire::Frame frame);
  void answer(Id id, const Result<std::string>& image);

  Loop& loop_;
  Keeper& keeper_;
  Fd listener_;
  std::map<Id, std::unique_ptr<wire::Channel>> channels_;
  Id last_id_ = 0;
  std::unique_ptr<Inbox> inbox_;
  // Files are read as many at a time; whoever comes then waits.
  std::optional<Workers> workers_{std::in_place, 4};
};

}  // namespace glidepod::store
