#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/http/transport.hpp"
#include "lib/registry/document.hpp"

namespace glidepod::registry {

// Why it is not known what an image runs. This is the fact in the Errors of ask(), whose message is one line
// with the registry's words.
enum class Unknown : std::uint8_t {
  refused,      // the answer will be the same next time
  unreachable,  // the trouble may pass
};
bool refused(const Error& error);

struct Options {
  std::string credentials_file;                  // a docker config.json, which need not exist
  std::vector<std::string> insecure_registries;  // HOST[:PORT] that are asked by plain HTTP
  Platform platform;
  std::string unix_socket;  // for tests: the socket that stands for every host
};

using Handler = std::function<void(Result<ImageCommand>)>;
using FileHandler = std::function<void(Result<Descriptor>)>;
using ContentHandler = std::function<void(Result<void>)>;

// Asks registries what images run by themselves, by the OCI distribution API, on a Loop. It uses HTTPS, with
// tokens and credentials if a registry wants them. It follows redirects, but sends no credentials along to
// other hosts. Answers are limited in size and checked against their digests. Between questions it holds no
// connection and no memory.
class Client {
 public:
  using Operation = http::Operation;
  // The Loop must outlive it, and it must outlive its operations.
  Client(Loop& loop, Options options);

  // After a failure that may pass, it asks again with growing pauses until the deadline. The handler is
  // called once, and never from inside this call.
  std::unique_ptr<Operation> ask(std::string image, SteadyTime deadline, Handler handler);
  // The same, for an image that is a file (a SIF): which blob of its repository the file is.
  std::unique_ptr<Operation> find_file(std::string image, SteadyTime deadline, FileHandler handler);
  // Writes such a blob to a file, which is empty again before each attempt. It has the digest and the size if
  // there is no Error. The file must outlive the operation.
  std::unique_ptr<Operation> fetch_file(std::string image, const Descriptor& blob, const Fd& to,
                                        SteadyTime deadline, ContentHandler handler);

 private:
  Loop& loop_;
  Options options_;
};

}  // namespace glidepod::registry
