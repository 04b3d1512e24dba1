#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "lib/kube/client.hpp"

namespace glidepod::kube {

// Keeps the API calls that are under way, many at a time. Destroying this object cancels them, and their
// handlers are not called any more. The client must outlive it.
class Calls {
 public:
  explicit Calls(Client& client) : client_(client) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls();

  // The handler is called once, from the loop.
  void call(Call call, AnswerHandler handler);
  // Calls the function from the loop, unless this object is destroyed before.
  void later(std::function<void()> function);
  // Stops repeating. Calls that wait for their next attempt fail; attempts under way are the last ones.
  void wind_up();

 private:
  Client& client_;
  bool winding_up_ = false;
  std::uint64_t last_id_ = 0;
  std::set<Loop::TimerId> later_;
  std::map<std::uint64_t, std::unique_ptr<http::Exchange>> calls_;
};

}  // namespace glidepod::kube
