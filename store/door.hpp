#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/http/server.hpp"
#include "lib/http/tls.hpp"
#include "store/keeper.hpp"
#include "store/tokens.hpp"

namespace glidepod::store {

// Serves pilots' agents over HTTP, each by its token:
//
//   PUT /v1/images/SHA256   the image of a file's content; the file is the body, which the client sends when
//                           it is asked for by "100 Continue": not where the image is known
//   GET /v1/images/SHA256   the same, if it is known
//
// The answer is {"image": NAME}, or {"error": SENTENCE, "fault": "user"} with "infrastructure" where nothing
// is wrong with the image.
class Door {
 public:
  struct Settings {
    std::string address;  // HOST:PORT, :PORT
    std::string certificate_file, key_file;
    std::size_t each_pod = 16;  // requests at a time of one pod
  };
  // The others must outlive it.
  Door(Loop& loop, Keeper& keeper, Tokens& tokens) : loop_(loop), keeper_(keeper), tokens_(tokens) {}
  // Returns the port.
  Result<int> open(Settings settings);

 private:
  class Guest;
  Result<Account> account(const httplib::Request& request);
  void look(const httplib::Request& request, httplib::Response& response);
  void take(const httplib::Request& request, http::Upload& upload, httplib::Response& response);

  Loop& loop_;
  Keeper& keeper_;
  Tokens& tokens_;
  Settings settings_;
  std::unique_ptr<http::Certificate> certificate_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> guests_;  // requests under way, by pod
  std::unique_ptr<http::Server> server_;       // ends before what it uses
};

}  // namespace glidepod::store
