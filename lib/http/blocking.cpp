#include "lib/http/blocking.hpp"

#include <memory>

#include "lib/http/easy.hpp"

namespace glidepod::http {
namespace {

CURL* thread_handle() {
  struct Free {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  thread_local const std::unique_ptr<CURL, Free> handle(curl_easy_init());
  return handle.get();
}

int watch_limits(void* callbacks, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Callbacks*>(callbacks)->cancelled() ? 1 : 0;
}

}  // namespace

Result<Response> perform(Request request, const Callbacks& callbacks) {
  TRY(start_curl());
  CURL* handle = thread_handle();
  if (!handle) return error("libcurl: no memory");
  curl_easy_reset(handle);
  Easy easy(handle, std::move(request));
  if (callbacks.cancelled) {
    if (callbacks.cancelled()) return Error("cancelled").with(Lost{Lost::Why::cancelled, false});
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, watch_limits);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &callbacks);
  }
  if (callbacks.data)
    easy.taker = [&](std::string_view data) {
      if (easy.status() >= 200 && easy.status() < 300) return callbacks.data(data);
      easy.body().append(data);
      return easy.body().size() <= easy.request().longest_body;
    };
  return easy.outcome(curl_easy_perform(handle));
}

}  // namespace glidepod::http
