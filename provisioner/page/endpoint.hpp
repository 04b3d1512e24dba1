#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/http/status_server.hpp"
#include "provisioner/page/course.hpp"

namespace glidepod::provisioner {

// What a browser is told: the page, and what it asks for. Whoever can reach the port may ask.
class PageEndpoint {
 public:
  PageEndpoint();

  // What a cycle decided, and its report.
  void decided(const Plan& plan, Time at) { course_.add(plan, at); }
  void reported(std::string status);

  // Nothing where the path is none of its own.
  std::optional<http::StatusServer::Answer> answer(std::string_view path, bool leads, Time now) const;

 private:
  http::StatusServer::Answer content(std::string_view path, bool leads) const;

  std::string tags_;  // what those of this process begin with
  std::string status_;
  std::uint64_t reports_ = 0;
  Course course_;
};

}  // namespace glidepod::provisioner
