#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"
#include "lib/http/transport.hpp"
#include "pilot-agent/image_store.hpp"

namespace glidepod::agent {

// Questions to an image-store that is elsewhere, by HTTPS. A file is read once for its SHA-256, by a thread,
// and sent only if the store has no such content. Trouble of the store's is waited for a minute, each time;
// one that is busy as long as the patience lasts.
class ImageUploads {
 public:
  struct Settings {
    std::string url;          // https://HOST:PORT
    std::string token_file;   // read for each request, since it is replaced now and then
    std::string ca_file;      // empty: the system's
    std::string unix_socket;  // for tests: the socket that stands for every host
    // A quarter of it is longer than it takes to fail to connect.
    Milliseconds trouble{60'000};
  };
  // Whether a setting of where the store is means one of these.
  static bool is_url(std::string_view store) { return store.starts_with("https://"); }
  // The Loop must outlive it, and it must outlive its questions.
  static Result<std::unique_ptr<ImageUploads>> create(Loop& loop, Settings settings);

  // The handler is called once, and never from inside this call. It may destroy the question.
  std::unique_ptr<StoreQuestion> ask(Fd file, std::string owner, Milliseconds patience,
                                     ImageQuestion::Handler handler);

 private:
  class Upload;
  ImageUploads(Settings settings, std::unique_ptr<http::Transport> transport, std::unique_ptr<Inbox> inbox)
      : settings_(std::move(settings)), transport_(std::move(transport)), inbox_(std::move(inbox)) {}

  Settings settings_;
  std::unique_ptr<http::Transport> transport_;
  std::unique_ptr<Inbox> inbox_;
  Workers workers_{2};  // ends before what it uses
};

}  // namespace glidepod::agent
