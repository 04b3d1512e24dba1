#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/file_watch.hpp"

namespace glidepod::agent {

// Learns that an operator has drained this pod (`provisioner drain`): the pod's annotation
// glidepod.io/drained says why, and the kubelet keeps what it says in a file of the token's volume. So an
// idle pilot asks the API nothing.
class Withdrawal {
 public:
  // ordered is called once, from the loop, when the file first has a reason; there may be no such file. The
  // loop must outlive it.
  static Result<std::unique_ptr<Withdrawal>> create(Loop& loop, std::string file,
                                                    std::function<void(const std::string& reason)> ordered);
  ~Withdrawal();
  Withdrawal(const Withdrawal&) = delete;
  Withdrawal& operator=(const Withdrawal&) = delete;

 private:
  Withdrawal(Loop& loop, std::string file, std::function<void(const std::string&)> ordered)
      : loop_(loop), file_(std::move(file)), ordered_(std::move(ordered)) {}
  void look();

  Loop& loop_;
  std::string file_;
  std::function<void(const std::string&)> ordered_;  // none: it was called
  std::unique_ptr<FileWatch> watch_;
  Loop::TimerId first_look_ = 0;
};

}  // namespace glidepod::agent
