#include "store/make.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
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
constexpr std::size_t k_longest_report = std::size_t{16} << 10;
constexpr std::size_t k_most_layers = 64;  // a reader of ours never comes near it
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

// What the reader says: a line for each layer that ends, before it writes the next one's first byte, and a
// last one.
class Report {
 public:
  void add(std::string_view bytes) {
    text_.append(bytes.substr(0, k_longest_report - text_.size()));
    for (std::size_t end = 0; (end = text_.find('\n', begin_)) != std::string::npos; begin_ = end + 1)
      if (auto layer = LayerEnd::from_line(std::string_view(text_).substr(begin_, end - begin_)); layer)
        ends_.push_back(std::move(*layer));
      else
        return;
  }
  // Where layers end of which not all bytes have been taken, in the order in which they were told.
  std::deque<LayerEnd>& ends() { return ends_; }
  std::string_view last() const { return std::string_view(text_).substr(begin_); }

 private:
  std::string text_;
  std::size_t begin_ = 0;  // of the last line
  std::deque<LayerEnd> ends_;
};

// The layers that come one after the other, each compressed, to blobs.
class Layers {
 public:
  Layers(Report& report, Blobs& blobs) : report_(report), blobs_(blobs) {}

  Result<void> add(std::string_view bytes) {
    for (auto& ends = report_.ends(); !ends.empty() && ends.front().at <= taken_ + bytes.size();
         ends.pop_front()) {
      if (ends.front().at <= begin_ || ends.front().at < taken_ || blobs_of_.size() >= k_most_layers)
        return error("a layer ends where none can");
      const auto rest = static_cast<std::size_t>(ends.front().at - taken_);
      TRY(take(bytes.substr(0, rest)));
      bytes.remove_prefix(rest);
      TRY(end());
      diff_ids_.push_back(std::move(ends.front().diff_id));
    }
    return take(bytes);
  }
  Result<void> end() {
    TRY(compressor_.end());
    blob_.digest = digest_.text();
    TRY(blobs_.layer_ended(blob_));
    blobs_of_.push_back(std::exchange(blob_, {}));
    digest_ = Digest();
    begin_ = taken_;
    return {};
  }
  const std::vector<Blob>& whole() const { return blobs_of_; }
  std::uint64_t unpacked() const { return taken_; }
  std::vector<std::string>& diff_ids() { return diff_ids_; }

 private:
  Result<void> take(std::string_view bytes) {
    taken_ += bytes.size();
    return compressor_.add(bytes);
  }

  Report& report_;
  Blobs& blobs_;
  Digest digest_;
  Blob blob_;
  std::uint64_t begin_ = 0, taken_ = 0;
  std::vector<Blob> blobs_of_;
  std::vector<std::string> diff_ids_;
  const Sink sink_ = [this](std::string_view bytes) {
    digest_.add(bytes);
    blob_.size += bytes.size();
    return blobs_.layer(bytes);
  };
  // Here, while the reader reads on: together they take half the time.
  Compressor compressor_{sink_};
};

// What can be read now; 0 at the end, -1 where nothing is there yet.
Result<ssize_t> read_now(const pollfd& from, std::vector<char>& buffer) {
  const auto got = ::read(from.fd, buffer.data(), buffer.size());
  if (got < 0 && errno != EINTR && errno != EAGAIN) return Error::system("read the layer");
  return got;
}

// Hands on what comes at both ends, until the reader has closed both.
Result<void> drain(const Fd& layers_from, Layers& layers, const Fd& report_from, Report& report,
                   Clock::time_point end) {
  std::vector<char> buffer(k_read_at_a_time), line(k_longest_report);
  std::array<pollfd, 2> waits{pollfd{layers_from.get(), POLLIN, 0}, pollfd{report_from.get(), POLLIN, 0}};
  auto& [bytes_wait, report_wait] = waits;
  while (bytes_wait.fd >= 0 || report_wait.fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return too_slow();
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready < 0 && errno != EINTR) return Error::system("wait for the layer");
    if (ready <= 0) continue;
    ssize_t bytes = -1;
    if (bytes_wait.fd >= 0 && bytes_wait.revents != 0) bytes = TRY(read_now(bytes_wait, buffer));
    // What was said before these bytes were written is there by now.
    const ssize_t said = report_wait.fd >= 0 ? TRY(read_now(report_wait, line)) : -1;
    if (said > 0) report.add({line.data(), static_cast<std::size_t>(said)});
    if (said == 0) report_wait.fd = -1;  // poll looks at it no more
    if (bytes > 0) TRY(layers.add({buffer.data(), static_cast<std::size_t>(bytes)}));
    if (bytes == 0) bytes_wait.fd = -1;
  }
  return report.ends().empty() ? Result<void>() : error("a layer ends where none can");
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
  auto diff_ids = layer.below;
  diff_ids.push_back(layer.diff_id);
  return json_text({{"architecture", architecture.empty() ? std::string(machine_architecture) : architecture},
                    {"os", "linux"},
                    {"config", run},
                    {"rootfs", {{"type", "layers"}, {"diff_ids", diff_ids}}}});
}

std::string image_manifest(const Blob& config, const std::vector<Blob>& layers) {
  const auto describe = [](const char* type, const Blob& blob) -> nlohmann::json {
    return {{"mediaType", type}, {"digest", blob.digest}, {"size", blob.size}};
  };
  auto described = nlohmann::json::array();
  for (const auto& layer : layers) described.push_back(describe(k_layer_type, layer));
  return json_text({{"schemaVersion", 2},
                    {"mediaType", k_manifest_type},
                    {"config", describe(k_config_type, config)},
                    {"layers", described}});
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

  if (::fcntl(report.from.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("fcntl");
  Report said;
  Layers layers(said, blobs);
  const auto told = drain(layer.from, layers, report.from, said, end);
  // It is over with it, whatever it does.
  if (!told) (void)reader.signal(SIGKILL);
  const auto ended = TRY(reader.wait());
  TRY(told);
  Made made;
  made.layer = TRY(verdict(ended.status, said.last()));
  made.layer.below = std::move(layers.diff_ids());
  TRY(layers.end());
  TRY(blobs.layers_ended(layers.unpacked()));
  const Blob config = TRY(put_text(blobs, image_config(made.layer, own_architecture())));
  made.manifest = TRY(put_text(blobs, image_manifest(config, layers.whole())));
  return made;
}

}  // namespace glidepod::store
