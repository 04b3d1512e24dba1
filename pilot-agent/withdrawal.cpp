#include "pilot-agent/withdrawal.hpp"

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {
constexpr std::size_t k_longest_order = 200;                        // of a reason
constexpr std::size_t k_longest_order_file = std::size_t{1} << 20;  // the API takes a quarter of it
}  // namespace

Result<std::unique_ptr<Withdrawal>> Withdrawal::create(Loop& loop, std::string file,
                                                       std::function<void(const std::string&)> ordered) {
  std::unique_ptr<Withdrawal> self(new Withdrawal(loop, std::move(file), std::move(ordered)));
  self->watch_ = TRY(FileWatch::create(loop, [me = self.get()] { me->look(); }));
  if (const auto watched = self->watch_->set({self->file_}); !watched)
    spdlog::info("event=no_withdrawal reason={}", quoted(watched.error().message()));
  // An agent before this one may have been told.
  self->first_look_ = loop.after(Milliseconds(0), [me = self.get()] {
    me->first_look_ = 0;
    me->look();
  });
  return self;
}

Withdrawal::~Withdrawal() {
  loop_.cancel(first_look_);
}

void Withdrawal::look() {
  if (!ordered_) return;
  const auto text = read_file(file_, k_longest_order_file);
  if (!text) return;
  const auto reason = one_line(trim(*text), k_longest_order);
  if (!reason.empty()) std::exchange(ordered_, {})(reason);
}

}  // namespace glidepod::agent
