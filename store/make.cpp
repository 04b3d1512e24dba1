#include "store/make.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "store/compressor.hpp"
#include "store/digest.hpp"

namespace glidepod::store {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t k_longest_report = 4096;
constexpr std::size_t k_read_at_a_time = std::size_t{1} << 20;
// Apptainer's, for a container whose image sets none.
constexpr const char* k_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct Pipe {
  Fd from, to;
  static Result<Pipe> make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("pipe");
    (void)::fcntl(ends[0], F_SETPIPE_SZ, k_read_at_a_time);  // fewer turns, where it may
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

Error too_slow() {
  return error("the image takes too long to read").with(BadImage{});
}

// Hands on what comes at both ends, until the reader has closed both.
Result<void> drain(const std::array<std::pair<const Fd*, const Sink*>, 2>& ends, Clock::time_point end) {
  std::vector<char> buffer(k_read_at_a_time);
  std::array<pollfd, 2> waits{};
  for (std::size_t i = 0; i < ends.size(); ++i) waits.at(i) = {ends.at(i).first->get(), POLLIN, 0};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return too_slow();
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready < 0 && errno != EINTR) return Error::system("wait for the layer");
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (waits.at(i).fd < 0 || waits.at(i).revents == 0) continue;
      const auto got = ::read(waits.at(i).fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::system("read the layer");
      if (got == 0) waits.at(i).fd = -1;  // poll looks at it no more
      if (got > 0) TRY((*ends.at(i).second)(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
    }
  }
  return {};
}

// What the reader's end means: what it says counts only where it ended by itself.
Result<Layer> verdict(const ExitStatus& status, std::string_view report) {
  if (status.success()) return Layer::from_line(report);
  if (status.how == ExitStatus::How::signaled) {
    if (status.number == SIGXCPU) return too_slow();
    const auto why = error("the process that reads the image ended by {}", status.to_string());
    return status.number == SIGKILL || status.number == SIGTERM ? why : why.with(BadImage{});
  }
  const auto json = json_from(report);
  const std::string words = one_line(harmless(text_view(json, "error")));
  if (words.empty()) return error("the process that reads the image ended with {}", status.to_string());
  return member(json, "image") == nlohmann::json(true) ? error("{}", words).with(BadImage{})
                                                       : error("{}", words);
}

std::string own_architecture() {
  utsname node{};
  (void)::uname(&node);  // cannot fail
  const std::string_view machine = node.machine;
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : std::string(machine);
}

Result<Blob> put_text(Blobs& blobs, const std::string& text) {
  Digest digest;
  digest.add(text);
  const Blob blob{digest.text(), text.size()};
  TRY(blobs.put(blob, text));
  return blob;
}

}  // namespace

std::string image_config(const Layer& layer, std::string_view machine_architecture) {
  nlohmann::json run = {{"Env", {k_path}}};
  if (layer.runscript) run["Entrypoint"] = {"/.singularity.d/runscript"};
  const auto& architecture = layer.architecture;
  return json_text({{"architecture", architecture.empty() ? std::string(machine_architecture) : architecture},
                    {"os", "linux"},
                    {"config", run},
                    {"rootfs", {{"type", "layers"}, {"diff_ids", {layer.diff_id}}}}});
}

std::string image_manifest(const Blob& config, const Blob& layer) {
  const auto describe = [](const char* type, const Blob& blob) -> nlohmann::json {
    return {{"mediaType", type}, {"digest", blob.digest}, {"size", blob.size}};
  };
  return json_text({{"schemaVersion", 2},
                    {"mediaType", k_manifest_type},
                    {"config", describe(k_config_type, config)},
                    {"layers", nlohmann::json::array({describe(k_layer_type, layer)})}});
}

Result<Made> make_image(const Fd& file, Blobs& blobs, const MakeOptions& options) {
  Pipe layer = TRY(Pipe::make()), report = TRY(Pipe::make());
  const auto end = Clock::now() + options.time;
  auto reader = TRY(Child::spawn({.argv = options.reader,
                                  .environment = {"LC_ALL=C"},
                                  .stdin_fd = file.get(),
                                  .stdout_fd = layer.to.get(),
                                  .stderr_fd = report.to.get(),
                                  .parent_death_signal = SIGKILL}));
  layer.to.reset();
  report.to.reset();

  Digest digest;
  Blob blob;
  std::string line;
  const Sink to_blobs = [&](std::string_view bytes) {
    digest.add(bytes);
    blob.size += bytes.size();
    return blobs.layer(bytes);
  };
  // Here, while the reader reads on: together they take half the time.
  Compressor compressor(to_blobs);
  const Sink to_layer = [&compressor](std::string_view bytes) { return compressor.add(bytes); };
  const Sink to_line = [&line](std::string_view bytes) -> Result<void> {
    line.append(bytes.substr(0, k_longest_report - line.size()));
    return {};
  };
  const auto told = drain({{{&layer.from, &to_layer}, {&report.from, &to_line}}}, end);
  // It is over with it, whatever it does.
  if (!told) (void)reader.signal(SIGKILL);
  const auto ended = TRY(reader.wait());
  TRY(told);
  Made made;
  made.layer = TRY(verdict(ended.status, line));
  TRY(compressor.end());
  blob.digest = digest.text();
  TRY(blobs.layer_ended(blob));
  const Blob config = TRY(put_text(blobs, image_config(made.layer, own_architecture())));
  made.manifest = TRY(put_text(blobs, image_manifest(config, blob)));
  return made;
}

}  // namespace glidepod::store
