#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "lib/http/blocking.hpp"
#include "lib/http/url.hpp"
#include "lib/registry/location.hpp"

namespace glidepod::registry {

// Reads and writes images of one repository, by the OCI distribution API, for threads without a Loop: each
// call blocks and makes each request once. The registry is the operator's choice. Safe from any thread.
class Repository {
 public:
  struct Settings {
    std::string name;              // "registry.example.org/glidepod/files"
    std::string credentials_file;  // a docker config.json, which need not exist
    std::string ca_file;           // empty: the system's
    bool plain = false;            // plain HTTP
    std::string unix_socket;       // for tests: the socket that stands for every host
  };
  static Result<std::unique_ptr<Repository>> open(Settings settings);

  // The digest of the manifest that a tag or digest names; nothing if there is none.
  Result<std::optional<std::string>> find(const std::string& reference);
  // A blob whose digest is not known yet. What is not committed is taken back.
  class Upload {
   public:
    Upload(Repository& repository, http::Url place) : repository_(repository), place_(std::move(place)) {}
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;
    // Sends what comes by this pipe or socket, to its end. cancelled: as in http::Callbacks.
    Result<void> send(const std::shared_ptr<const Fd>& from, const std::function<bool()>& cancelled);
    Result<void> commit(const std::string& digest);

   private:
    Repository& repository_;
    http::Url place_;
    bool committed_ = false;
  };
  Result<std::unique_ptr<Upload>> begin_upload();
  Result<bool> has_blob(const std::string& digest);
  // Puts a file's content there.
  Result<void> put_blob(const std::string& digest, const std::shared_ptr<const Fd>& file, std::uint64_t size);
  Result<void> put_manifest(const std::string& reference, const std::string& type, const std::string& text);
  // Removes a manifest. False: this registry removes none.
  Result<bool> remove(const std::string& digest);
  // At most so many of its tags.
  Result<std::vector<std::string>> tags(std::size_t most);

 private:
  explicit Repository(Settings settings) : settings_(std::move(settings)) {}
  http::Request request(std::string method, const http::Url& url) const;
  Result<http::Url> at(const std::string& path) const;
  Result<http::Response> send(const http::Request& request, const http::Callbacks& callbacks = {});
  Result<http::Url> place_in(const http::Response& answer) const;
  Result<http::Url> new_place();
  Result<std::string> authorization(const http::Response& challenge);
  std::string credentials() const;

  Settings settings_;
  ImageLocation location_;
  std::optional<http::Url> base_;
  std::mutex mutex_;
  std::string authorization_;
};

}  // namespace glidepod::registry
