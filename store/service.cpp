#include "store/service.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "lib/base/log.hpp"
#include "lib/base/workers.hpp"
#include "store/door.hpp"
#include "store/keeper.hpp"
#include "store/serve.hpp"
#include "store/tokens.hpp"

namespace glidepod::store {
namespace {

constexpr std::chrono::hours k_between_cleanings{1};

Result<std::unique_ptr<Shelf>> shelf_of(const Service& service) {
  if (!service.registry) {
    std::vector<std::string> command = {service.podman};
    command.insert(command.end(), service.podman_options.begin(), service.podman_options.end());
    return std::unique_ptr<Shelf>(std::make_unique<PodmanShelf>(command, service.repository));
  }
  auto registry = TRY(registry::Repository::open({.name = service.repository,
                                                  .credentials_file = service.registry_auth,
                                                  .ca_file = service.registry_ca,
                                                  .plain = service.plain_http,
                                                  .unix_socket = {}}));
  return std::unique_ptr<Shelf>(std::make_unique<RegistryShelf>(std::move(registry), service.repository));
}

Result<void> check(const Service& service) {
  if (service.socket.empty() && service.listen.empty())
    return error("nobody could ask: give --socket PATH, --listen ADDRESS or both");
  if (!service.listen.empty() && (service.certificate.empty() || service.key.empty()))
    return error("--listen needs --certificate and --key: tokens and images are not sent in the open");
  return {};
}

}  // namespace

Result<void> serve(const Service& service) {
  TRY(check(service));
  ::umask(0077);
  const auto shelf = TRY(shelf_of(service));
  Keeper keeper({.folder = service.folder,
                 .repository = service.repository,
                 .free = service.free_mib << 20,
                 .quota = service.quota_mib << 20,
                 .keep = std::chrono::days(service.keep_days)},
                *shelf);
  TRY(keeper.prepare());
  Loop loop = TRY(Loop::create());
  TRY(loop.on_signals({SIGTERM, SIGINT}, [&loop](const signalfd_siginfo&) { loop.stop(); }));
  Workers cleaner(1);
  std::function<void()> clean = [&] {
    cleaner.run([&keeper] {
      if (const auto done = keeper.expire(); !done)
        spdlog::warn("event=expire_failed reason={}", quoted(done.error().message()));
    });
    loop.after(k_between_cleanings, [&clean] { clean(); });
  };
  if (service.keep_days > 0) clean();
  Server server(loop, keeper);
  if (!service.socket.empty()) TRY(server.listen(service.socket));
  std::optional<TokenReviews> tokens;
  std::optional<Door> door;
  if (!service.listen.empty()) {
    tokens.emplace(TokenReviews::Settings{TRY(kube::endpoint_in_pod(service.service_account, environ)),
                                          service.audience, service.accounts});
    door.emplace(loop, keeper, *tokens);
    (void)TRY(door->open(
        {.address = service.listen, .certificate_file = service.certificate, .key_file = service.key}));
  }
  spdlog::info("event=ready socket={} listen={} folder={} repository={}", quoted(service.socket),
               quoted(service.listen), service.folder, service.repository);
  TRY(loop.run());
  // Whoever waits for a conversion asks the next one again; what is half done, that one removes.
  spdlog::info("event=ended");
  ::_exit(0);
}

}  // namespace glidepod::store
