#include "lib/kube/calls.hpp"

namespace glidepod::kube {

Calls::~Calls() {
  for (const auto timer : later_) client_.loop().cancel(timer);
}

void Calls::call(Call call, AnswerHandler handler) {
  const auto id = ++last_id_;
  auto exchange =
      client_.call(std::move(call), [this, id, handler = std::move(handler)](Result<std::string> answer) {
        calls_.erase(id);
        handler(std::move(answer));  // may destroy this
      });
  if (winding_up_) exchange->wind_up();
  calls_.emplace(id, std::move(exchange));
}

void Calls::later(std::function<void()> function) {
  const auto timer = std::make_shared<Loop::TimerId>();
  *timer = client_.loop().after(Milliseconds(0), [this, timer, function = std::move(function)] {
    later_.erase(*timer);
    function();
  });
  later_.insert(*timer);
}

void Calls::wind_up() {
  winding_up_ = true;
  for (const auto& [id, call] : calls_) call->wind_up();
}

}  // namespace glidepod::kube
