#include "pilot-agent/folder_tar.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/wire/folder_mark.hpp"

namespace glidepod::agent {
namespace {

constexpr std::size_t k_block = 512, k_name = 100, k_longest_path = 4095;
constexpr std::uint64_t k_largest_plain = (std::uint64_t{1} << 33) - 1;  // eleven octal digits
constexpr std::int64_t k_no_time = 315532800;  // 1980: the first that a zip can have
constexpr std::size_t k_buffered = std::size_t{1} << 20;
constexpr std::size_t k_beside_name = 96;  // bytes of a node of seen_, more than those of a list's entry
enum Type : char {
  file = '0',
  same = '1',
  symlink = '2',
  directory = '5',
  pipe = '6',
  extended = 'x',
  global = 'g'
};

struct Header {
  std::string path, target;
  Type type = file;
  unsigned mode = 0;
  std::uint64_t size = 0;
  std::int64_t time = 0;
};

// One record of pax, whose length counts itself.
std::string record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;
  auto length = rest + 1;
  while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
  return fmt::format("{} {}={}\n", length, key, value);
}

class FolderTar {
 public:
  FolderTar(const FolderRules& rules, const Fd& to) : rules_(rules), to_(to) {}

  Result<void> write(const Fd& folder) {
    const auto text = record("comment", "an image");
    TRY(add(block({std::string(wire::k_folder_mark), "", global, 0644, text.size(), 0})));
    TRY(add(padded(text)));
    TRY(contents(folder, "", 0));
    TRY(add(std::string(2 * k_block, '\0')));
    return flush();
  }

 private:
  static std::string block(const Header& header) {
    std::array<char, k_block> bytes{};
    const auto text = [&bytes](std::size_t at, std::size_t room, std::string_view value) {
      std::memcpy(bytes.data() + at, value.data(), std::min(room, value.size()));
    };
    const auto octal = [&text](std::size_t at, std::size_t digits, std::uint64_t value) {
      text(at, digits, fmt::format("{:0{}o}", value, digits));
    };
    text(0, k_name, header.path);
    octal(100, 7, header.mode);
    octal(108, 7, 0);
    octal(116, 7, 0);
    octal(124, 11, header.size > k_largest_plain ? 0 : header.size);
    octal(136, 11, static_cast<std::uint64_t>(std::clamp<std::int64_t>(header.time, 0, k_largest_plain)));
    text(148, 8, "        ");
    bytes[156] = header.type;
    text(157, k_name, header.target);
    text(257, 8, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (const char byte : bytes) sum += static_cast<unsigned char>(byte);
    text(148, 8, fmt::format("{:06o}{} ", sum, '\0'));
    return {bytes.data(), bytes.size()};
  }
  static std::string padded(std::string text) {
    text.resize((text.size() + k_block - 1) / k_block * k_block);
    return text;
  }

  Result<void> head(const Header& header) {
    std::string more;
    if (header.path.size() > k_name) more += record("path", header.path);
    if (header.target.size() > k_name) more += record("linkpath", header.target);
    if (header.size > k_largest_plain) more += record("size", std::to_string(header.size));
    if (!more.empty()) {
      more = record("hdrcharset", "BINARY") + more;
      TRY(add(block({"pax", "", extended, 0644, more.size(), 0})));
      TRY(add(padded(more)));
    }
    return add(block(header));
  }

  Result<void> contents(const Fd& folder, const std::string& path, std::size_t depth) {
    if (depth > rules_.depth) return error("the image has folders in each other, more than {}", rules_.depth);
    const auto held = held_;
    for (const auto& name : TRY(names(folder, path))) {
      const std::string full = path.empty() ? name : fmt::format("{}/{}", path, name);
      if (full.size() > k_longest_path)
        return error("the image has a name of more than {} bytes", k_longest_path);
      TRY(one(folder, name, full, depth));
    }
    held_ = held;
    return {};
  }
  // Names that are held in memory, this one with what is beside it.
  Result<void> hold(std::size_t& sum, std::size_t bytes) {
    sum += bytes + k_beside_name;
    if (held_ + held_links_ <= rules_.names) return {};
    return error(
        "the image has too many files in one folder, or with several names: more than {} MiB of names",
        rules_.names >> 20);
  }

  Result<std::vector<std::string>> names(const Fd& folder, const std::string& path) {
    const Fd listed = TRY(reopen(folder, O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(::fcntl(listed.get(), F_DUPFD_CLOEXEC, 0)),
                                                      ::closedir);
    if (!listing) return Error::system("read the folder '/{}' of the image", path);
    std::vector<std::string> result;
    while (const auto* entry = ::readdir(listing.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > rules_.entries) return error("the image has more than {} files", rules_.entries);
      TRY(hold(held_, name.size()));
      result.emplace_back(name);
    }
    std::ranges::sort(result);
    return result;
  }

  Result<void> one(const Fd& folder, const std::string& name, const std::string& path, std::size_t depth) {
    // By what is held nothing else can take its place.
    const Fd held = open_beneath(folder, name, O_PATH | O_NOFOLLOW);
    if (!held) return Error::system("look at '/{}' of the image", path);
    struct stat info {};
    if (::fstat(held.get(), &info) != 0) return Error::system("look at '/{}' of the image", path);
    if (rules_.user && info.st_uid != *rules_.user)
      return error("'/{}' of the image belongs to user {}", path, info.st_uid);
    // It becomes root's: what its owner may read, the job may.
    const auto readable = (info.st_mode >> 6) & 05;
    Header header{path, "",
                  file, (info.st_mode & 01777) | readable << 3 | readable,
                  0,    rules_.times ? info.st_mtime : k_no_time};
    if (S_ISDIR(info.st_mode)) {
      header.type = directory;
      TRY(head(header));
      return contents(held, path, depth + 1);
    }
    if (S_ISLNK(info.st_mode)) {
      header.type = symlink;
      header.target = link_at(folder, name);
      if (header.target.empty()) return error("the link '/{}' of the image cannot be read", path);
      return head(header);
    }
    if (S_ISFIFO(info.st_mode)) {
      header.type = pipe;
      return head(header);
    }
    if (!S_ISREG(info.st_mode)) return {};
    if (info.st_nlink > 1) {
      const auto [first, is_first] = seen_.try_emplace({info.st_dev, info.st_ino}, path);
      if (!is_first) {
        header.type = same;
        header.target = first->second;
        return head(header);
      }
      TRY(hold(held_links_, path.size()));
    }
    header.size = static_cast<std::uint64_t>(info.st_size);
    TRY(head(header));
    return content(held, path, header.size);
  }

  Result<void> content(const Fd& held, const std::string& path, std::uint64_t size) {
    if (size > rules_.content - content_)
      return error("the image has more than {} MiB of content", rules_.content >> 20);
    content_ += size;
    const Fd from = TRY(reopen(held, O_RDONLY));
    std::array<char, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): it is filled
    for (std::uint64_t done = 0; done < size;) {
      const auto got = ::pread(from.get(), piece.data(), std::min<std::uint64_t>(piece.size(), size - done),
                               static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::system("read '/{}' of the image", path);
      if (got == 0) return error("'/{}' of the image has changed while it was read", path);
      TRY(add({piece.data(), static_cast<std::size_t>(got)}));
      done += static_cast<std::uint64_t>(got);
    }
    return add(std::string((k_block - size % k_block) % k_block, '\0'));
  }

  Result<void> add(std::string_view bytes) {
    buffer_ += bytes;
    return buffer_.size() < k_buffered ? Result<void>() : flush();
  }
  Result<void> flush() {
    TRY(write_all(to_, buffer_).in("copy the image's folder"));
    buffer_.clear();
    return {};
  }

  const FolderRules& rules_;
  const Fd& to_;
  std::string buffer_;
  std::map<std::pair<dev_t, ino_t>, std::string> seen_;  // files with several names, by the first
  std::uint64_t entries_ = 0, content_ = 0;
  std::size_t held_ = 0, held_links_ = 0;  // bytes of the names of open folders, and of seen_
};

}  // namespace

Result<void> write_folder_tar(const Fd& folder, const FolderRules& rules, const Fd& to) {
  return FolderTar(rules, to).write(folder);
}

}  // namespace glidepod::agent
