#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

 private:
  Loop& loop_;
  Options options_;
};

}  // namespace glidepod::registry
