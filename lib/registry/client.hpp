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

// Why it is not known what an image runs: the fact in the Errors of ask(). Their message is one line with the
// registry's words.
enum class Unknown : std::uint8_t {
  refused,      // the image or its registry will say the same again
  unreachable,  // may pass
};
bool refused(const Error& error);

struct Options {
  std::string credentials_file;                  // a docker config.json; need not exist
  std::vector<std::string> insecure_registries;  // HOST[:PORT] spoken to by plain HTTP
  Platform platform;
  std::string unix_socket;  // for tests: every host is there
};

using Handler = std::function<void(Result<ImageCommand>)>;

// Asks registries what images run by themselves, by the OCI distribution API, on a Loop. HTTPS, with tokens
// and credentials where a registry wants them; redirects are followed, credentials not sent along to other
// hosts; what comes is limited in size and checked against its digest. Between questions it holds no
// connection and no memory.
class Client {
 public:
  using Operation = http::Operation;
  // The Loop must outlive it, and it must outlive its operations.
  Client(Loop& loop, Options options);

  // Passing failures are tried again, with growing pauses, until the deadline. The handler is called once,
  // never from inside this call.
  std::unique_ptr<Operation> ask(std::string image, SteadyTime deadline, Handler handler);

 private:
  Loop& loop_;
  Options options_;
};

}  // namespace glidepod::registry
