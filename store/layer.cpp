#include "store/layer.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "lib/base/json.hpp"
#include "store/digest.hpp"
#include "store/folder.hpp"
#include "store/sif.hpp"
#include "store/squashfs.hpp"

namespace glidepod::store {
namespace {

constexpr std::string_view k_runscript = ".singularity.d/runscript";
constexpr std::string_view k_removes = ".wh.";  // in a layer, a name that removes another one
// What a file system of the node would take for orders.
constexpr std::array<std::string_view, 3> k_orders = {"user.overlay.", "user.fuseoverlayfs.",
                                                      "user.containers."};

struct ReleaseArchive {
  void operator()(archive* object) const { archive_write_free(object); }
};
struct ReleaseEntry {
  void operator()(archive_entry* object) const { archive_entry_free(object); }
};

bool is_in(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path[folder.size()] == '/' && path.starts_with(folder);
}

class Tar : public Visitor {
 public:
  Tar(const Sink& sink, const Between& between, std::uint64_t most)
      : sink_(sink), between_(between), most_(most) {}

  Result<void> begin() {
    archive_.reset(archive_write_new());
    if (!archive_) return error("no memory for a tar");
    archive* tar = archive_.get();
    archive_write_set_format_pax_restricted(tar);
    // Names are bytes; in which encoding, nobody knows.
    archive_write_set_format_option(tar, "pax", "hdrcharset", "BINARY");
    archive_write_set_format_option(tar, "pax", "xattrheader", "SCHILY");
    archive_write_set_bytes_per_block(tar, 0);
    const auto written = [](archive*, void* self, const void* bytes, std::size_t size) {
      return static_cast<Tar*>(self)->take({static_cast<const char*>(bytes), size});
    };
    return check(archive_write_open(tar, this, nullptr, written, nullptr));
  }

  Result<void> entry(const Entry& from) override {
    if (from.kind == Entry::Kind::device || from.kind == Entry::Kind::socket ||
        from.path.substr(from.path.rfind('/') + 1).starts_with(k_removes)) {
      ++layer_.left_out;
      skipping_ = true;
      return {};
    }
    if (!from.same_as.empty() && left_out_first(from.same_as)) return ++layer_.left_out, Result<void>();
    skipping_ = false;
    std::erase_if(folders_, [&from](const Entry& folder) { return !is_in(from.path, folder.path); });
    if (between_ && from.apart && written_ - begin_ >= most_) TRY(next_layer());
    ++layer_.entries;
    if (from.path == k_runscript && from.kind != Entry::Kind::folder) layer_.runscript = true;
    if (from.kind == Entry::Kind::folder) folders_.push_back(from);
    return header(from);
  }

  Result<void> content(std::string_view bytes) override {
    if (skipping_) return {};
    layer_.content += bytes.size();
    const auto written = archive_write_data(archive_.get(), bytes.data(), bytes.size());
    if (!failed_ && written == static_cast<la_ssize_t>(bytes.size())) return {};
    return failed_ || written < 0 ? failure() : error("a file's content does not fit into the layer");
  }

  Result<Layer> end() {
    TRY(check(archive_write_close(archive_.get())));
    layer_.diff_id = digest_.text();
    return std::move(layer_);
  }

 private:
  // The folders that the next entry is in are in the next layer as well: who unpacks it alone must know their
  // modes.
  Result<void> next_layer() {
    TRY(check(archive_write_close(archive_.get())));
    TRY(between_({digest_.text(), written_}));
    digest_ = Digest();
    begin_ = written_;
    most_ *= 2;
    TRY(begin());
    for (const Entry& folder : folders_) TRY(header(folder));
    return {};
  }

  Result<void> header(const Entry& from) {
    const std::unique_ptr<archive_entry, ReleaseEntry> to(archive_entry_new());
    archive_entry_copy_pathname(to.get(), from.path.c_str());
    archive_entry_set_perm(to.get(), from.mode);
    archive_entry_set_uid(to.get(), from.user);
    archive_entry_set_gid(to.get(), from.group);
    archive_entry_set_mtime(to.get(), from.time, 0);
    archive_entry_set_size(to.get(), 0);
    if (!from.same_as.empty()) {
      archive_entry_set_filetype(to.get(), AE_IFREG);
      archive_entry_copy_hardlink(to.get(), from.same_as.c_str());
    } else {
      describe(from, to.get());
    }
    return check(archive_write_header(archive_.get(), to.get()));
  }

  // A file whose first name is left out keeps no other: its content is nowhere.
  static bool left_out_first(std::string_view path) {
    return path.substr(path.rfind('/') + 1).starts_with(k_removes);
  }

  void describe(const Entry& from, archive_entry* to) {
    switch (from.kind) {
      case Entry::Kind::folder:
        archive_entry_set_filetype(to, AE_IFDIR);
        break;
      case Entry::Kind::file:
        archive_entry_set_filetype(to, AE_IFREG);
        archive_entry_set_size(to, static_cast<la_int64_t>(from.size));
        break;
      case Entry::Kind::link:
        archive_entry_set_filetype(to, AE_IFLNK);
        archive_entry_copy_symlink(to, from.target.c_str());
        break;
      case Entry::Kind::fifo:
        archive_entry_set_filetype(to, AE_IFIFO);
        break;
      case Entry::Kind::device:
      case Entry::Kind::socket:
        break;  // left out before
    }
    for (const auto& [name, value] : from.attributes)
      if (is_kept(name)) archive_entry_xattr_add_entry(to, name.c_str(), value.data(), value.size());
  }

  static bool is_kept(std::string_view attribute) {
    return attribute.starts_with("user.") && std::ranges::none_of(k_orders, [&](std::string_view prefix) {
             return attribute.starts_with(prefix);
           });
  }

  // libarchive is told of no failure, since it would keep some memory for ever; everybody looks at failed_.
  la_ssize_t take(std::string_view bytes) {
    if (!failed_) {
      digest_.add(bytes);
      written_ += bytes.size();
      if (const auto written = sink_(bytes); !written) failed_ = written.error();
    }
    return static_cast<la_ssize_t>(bytes.size());
  }
  Result<void> check(int code) const {
    return failed_ || code < ARCHIVE_WARN ? Result<void>(failure()) : Result<void>();
  }
  Error failure() const {
    if (failed_) return *failed_;
    const char* words = archive_error_string(archive_.get());
    return error("write the layer: {}", words != nullptr ? words : "it failed");
  }

  Digest digest_;
  const Sink& sink_;
  const Between& between_;
  std::unique_ptr<archive, ReleaseArchive> archive_;
  std::uint64_t written_ = 0, begin_ = 0;  // bytes of all layers, and of those before this one
  std::uint64_t most_;                     // bytes after which another layer begins
  std::vector<Entry> folders_;             // that the last entry is in, or is
  std::optional<Error> failed_;
  Layer layer_;
  bool skipping_ = false;
};

}  // namespace

std::string Layer::to_line() const {
  return json_text({{"diff_id", diff_id},
                    {"architecture", architecture},
                    {"runscript", runscript},
                    {"entries", entries},
                    {"left_out", left_out},
                    {"content", content}});
}

Result<Layer> Layer::from_line(std::string_view line) {
  const auto json = json_from(line);
  const auto number = [&json](const char* key) {
    const auto& value = member(json, key);
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  };
  Layer layer{text_of(json, "diff_id"),
              text_of(json, "architecture"),
              member(json, "runscript") == nlohmann::json(true),
              number("entries"),
              number("left_out"),
              number("content")};
  const auto odd = [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); };
  if (!is_digest(layer.diff_id) || std::ranges::any_of(layer.architecture, odd))
    return error("what was said of the layer cannot be understood");
  return layer;
}

std::string LayerEnd::to_line() const {
  return json_text({{"diff_id", diff_id}, {"ended_at", at}});
}

Result<LayerEnd> LayerEnd::from_line(std::string_view line) {
  const auto json = json_from(line);
  const auto& at = member(json, "ended_at");
  if (!at.is_number_unsigned() || !is_digest(text_of(json, "diff_id")))
    return error("what was said of a layer's end cannot be understood");
  return LayerEnd{text_of(json, "diff_id"), at.get<std::uint64_t>()};
}

Result<Layer> write_layers(const Fd& file, const Limits& limits, const Sink& sink, const Between& between) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::system("stat the image file");
  if (!S_ISREG(info.st_mode)) return error("the image is no plain file").with(BadImage{});
  const auto root = find_root(file, static_cast<std::uint64_t>(info.st_size));
  if (!root) return root.error().with(BadImage{});
  // Errors of the sink are ours; what else goes wrong while reading is the image's fault.
  bool written = true;
  const Sink watched = [&](std::string_view bytes) {
    auto taken = sink(bytes);
    written = written && taken.ok();
    return taken;
  };
  Between told;
  if (between)
    told = [&](const LayerEnd& end) {
      auto taken = between(end);
      written = written && taken.ok();
      return taken;
    };
  Tar tar(watched, told, limits.layer);
  TRY(tar.begin());
  const auto read = root->folder ? read_folder(file, limits, tar) : read_squashfs(file, *root, limits, tar);
  if (!read) return written ? read.error().with(BadImage{}) : read.error();
  Layer layer = TRY(tar.end());
  layer.architecture = root->architecture;
  return layer;
}

}  // namespace glidepod::store
