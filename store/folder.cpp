#include "store/folder.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lib/wire/folder_mark.hpp"

namespace glidepod::store {
namespace {

constexpr std::size_t k_folder_piece = std::size_t{256} << 10;

struct EndArchive {
  void operator()(archive* object) const { archive_read_free(object); }
};

class FolderReader {
 public:
  FolderReader(const Fd& file, const Limits& limits, Visitor& visitor)
      : file_(file), limits_(limits), visitor_(visitor), tar_(archive_read_new()) {}

  Result<void> read() {
    if (!tar_) return error("no memory to read the folder");
    // A tar has its content as it is. Only one with holes, which no agent makes, could become a larger one.
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) return Error::system("stat the folder");
    file_size_ = static_cast<std::uint64_t>(info.st_size);
    archive_read_support_format_tar(tar_.get());
    // Names are bytes: the agent says so with each that is not in a plain header. Conversions would want
    // files.
    const auto next = [](archive*, void* self, const void** bytes) {
      return static_cast<FolderReader*>(self)->next(bytes);
    };
    TRY(check(archive_read_open(tar_.get(), this, nullptr, next, nullptr)));
    for (archive_entry* found = nullptr;;) {
      const int code = archive_read_next_header(tar_.get(), &found);
      if (code == ARCHIVE_EOF) return {};
      TRY(check(code));
      TRY(one(found));
    }
  }

 private:
  la_ssize_t next(const void** bytes) {
    const auto got = ::pread(file_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(at_));
    if (got > 0) at_ += static_cast<std::uint64_t>(got);
    *bytes = buffer_.data();
    return got;
  }

  // Neither empty nor absolute, and no part of it leads up.
  Result<std::string> path_of(const char* text) const {
    std::string path(text != nullptr ? text : "");
    while (path.ends_with('/')) path.pop_back();
    std::size_t depth = 0;
    for (std::size_t at = 0; at <= path.size(); ++depth) {
      const auto end = std::min(path.find('/', at), path.size());
      const auto part = std::string_view(path).substr(at, end - at);
      if (part.empty() || part == "." || part == "..")
        return error("the folder has a name that leads out of it");
      at = end + 1;
    }
    if (path.size() > limits_.path) return error("the image has a name of more than {} bytes", limits_.path);
    if (depth > limits_.depth + 1)
      return error("the image has folders in each other, more than {}", limits_.depth);
    return path;
  }

  static Result<Entry::Kind> kind_of(archive_entry* from) {
    switch (archive_entry_filetype(from)) {
      case AE_IFDIR:
        return Entry::Kind::folder;
      case AE_IFREG:
        return Entry::Kind::file;
      case AE_IFLNK:
        return Entry::Kind::link;
      case AE_IFIFO:
        return Entry::Kind::fifo;
      default:
        return error("the folder has a file of a kind that is not read here");
    }
  }

  Result<void> one(archive_entry* from) {
    if (++entries_ > limits_.entries) return error("the image has more than {} files", limits_.entries);
    Entry entry;
    entry.path = TRY(path_of(archive_entry_pathname(from)));
    if (archive_entry_hardlink(from) != nullptr)
      entry.same_as = TRY(path_of(archive_entry_hardlink(from)));
    else
      entry.kind = TRY(kind_of(from));
    entry.mode = archive_entry_perm(from) & 07777;
    entry.time =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(archive_entry_mtime(from), 0, UINT32_MAX));
    if (entry.kind == Entry::Kind::link) {
      const char* target = archive_entry_symlink(from);
      entry.target = target != nullptr ? target : "";
      if (entry.target.empty() || entry.target.size() > limits_.path)
        return error("the link '/{}' leads nowhere", entry.path);
    }
    const bool has_content = entry.kind == Entry::Kind::file && entry.same_as.empty();
    if (has_content) {
      const auto size = archive_entry_size(from);
      entry.size = size > 0 ? static_cast<std::uint64_t>(size) : 0;
      if (entry.size > limits_.content - content_)
        return error("the image has more than {} MiB of content", limits_.content >> 20);
      if (entry.size > file_size_ - content_)
        return error("the folder claims more content than its file has");
      content_ += entry.size;
    }
    TRY(visitor_.entry(entry));
    return has_content ? content(entry.size) : Result<void>();
  }

  Result<void> content(std::uint64_t left) {
    std::array<char, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): it is filled
    while (left > 0) {
      const auto got =
          archive_read_data(tar_.get(), piece.data(), std::min<std::uint64_t>(piece.size(), left));
      if (got < 0) return failure();
      if (got == 0) return error("the folder is cut off");
      TRY(visitor_.content({piece.data(), static_cast<std::size_t>(got)}));
      left -= static_cast<std::uint64_t>(got);
    }
    return {};
  }

  Result<void> check(int code) const {
    return code < ARCHIVE_WARN ? Result<void>(failure()) : Result<void>();
  }
  Error failure() const {
    const char* words = archive_error_string(tar_.get());
    return error("the folder cannot be read: {}", words != nullptr ? words : "it is cut off");
  }

  const Fd& file_;
  std::uint64_t at_ = 0, file_size_ = 0;
  const Limits& limits_;
  Visitor& visitor_;
  std::unique_ptr<archive, EndArchive> tar_;
  std::vector<char> buffer_ = std::vector<char>(k_folder_piece);
  std::uint64_t entries_ = 0, content_ = 0;
};

}  // namespace

bool is_folder(std::string_view start) {
  return start.starts_with(wire::k_folder_mark);
}

Result<void> read_folder(const Fd& file, const Limits& limits, Visitor& visitor) {
  return FolderReader(file, limits, visitor).read();
}

}  // namespace glidepod::store
