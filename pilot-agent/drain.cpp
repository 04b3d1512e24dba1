#include "pilot-agent/drain.hpp"

#include <fcntl.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "pilot-agent/starter.hpp"

namespace glidepod::agent {
namespace {
constexpr Milliseconds k_look{100};
constexpr Milliseconds k_look_for_free{1'000};  // its files may take long
}  // namespace

Drain::Drain(Loop& loop, Supervisor& supervisor, std::function<bool(pid_t)> has_begun, std::string file,
             Times times)
    : loop_(loop),
      supervisor_(supervisor),
      has_begun_(std::move(has_begun)),
      file_(std::move(file)),
      times_(times) {}

Drain::~Drain() {
  loop_.cancel(timer_);
  loop_.cancel(free_timer_);
}

void Drain::begin(std::chrono::seconds grace) {
  if (begun_) return;
  begun_ = true;
  deadline_ = Loop::now() + grace;
  last_look_ = std::min(Loop::now() + times_.say, deadline_ - times_.end);
  const auto starters = unbegun();
  if (starters.empty() || !take_no_more()) return supervisor_.stop(grace);
  spdlog::info("event=drain unbegun={} grace={}s", starters.size(), grace.count());
  look();
}

std::vector<pid_t> Drain::unbegun() const {
  auto starters = starters_of(supervisor_.pid());
  std::erase_if(starters, has_begun_);
  return starters;
}

// A claim whose job is given back would get its owner's next one.
bool Drain::take_no_more() {
  if (file_.empty()) return false;
  const auto written = [&]() -> Result<void> {
    const Fd file = TRY(open_file(file_, O_WRONLY | O_CREAT | O_APPEND, 0644));
    return write_all(file, "START = False\n");
  }();
  if (!written) spdlog::warn("event=not_drained reason={}", quoted(written.error().message()));
  if (written) supervisor_.reconfigure();
  return written.ok();
}

void Drain::look() {
  timer_ = 0;
  if (!supervisor_.running()) return;
  if (Loop::now() < last_look_ && !unbegun().empty()) {
    timer_ = loop_.after(k_look, [this] { look(); });
    return;
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline_ - Loop::now());
  supervisor_.stop(std::max(left, std::chrono::seconds(0)));
}

void Drain::when_free(std::function<void()> done) {
  free_ = std::move(done);
  loop_.cancel(free_timer_);
  free_timer_ = loop_.after(Milliseconds(0), [this] { look_for_free(); });
}

void Drain::look_for_free() {
  free_timer_ = 0;
  if (!supervisor_.running() || starters_of(supervisor_.pid()).empty()) return std::exchange(free_, {})();
  free_timer_ = loop_.after(k_look_for_free, [this] { look_for_free(); });
}

}  // namespace glidepod::agent
