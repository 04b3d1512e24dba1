#include "provisioner/service/api_counts.hpp"

namespace glidepod::provisioner {

void Histogram::add(double seconds) {
  for (std::size_t i = 0; i < k_bounds.size(); ++i)
    if (seconds <= k_bounds[i]) ++buckets[i];
  ++count;
  sum += seconds;
}

void ApiCounts::add(std::string_view method, int status, std::chrono::duration<double> took) {
  ++requests[{std::string(method), status}];
  seconds[std::string(method)].add(took.count());
}

}  // namespace glidepod::provisioner
