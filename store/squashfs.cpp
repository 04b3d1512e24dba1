#include "store/squashfs.hpp"

#include <sqfs/compressor.h>
#include <sqfs/data_reader.h>
#include <sqfs/dir.h>
#include <sqfs/error.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/meta_reader.h>
#include <sqfs/super.h>
#include <sqfs/xattr.h>
#include <sqfs/xattr_reader.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "store/inflate.hpp"

namespace glidepod::store {
namespace {

constexpr std::uint32_t k_no_attributes = 0xffffffff;
constexpr std::uint64_t k_no_table = ~std::uint64_t{0};
constexpr std::size_t k_piece = std::size_t{1} << 20;  // of a file, at a time

struct Release {
  void operator()(void* object) const { sqfs_destroy(object); }
};
struct Free {
  void operator()(void* memory) const { sqfs_free(memory); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, Release>;
using Inode = std::unique_ptr<sqfs_inode_generic_t, Free>;

Error damaged(std::string_view what, int code) {
  switch (code) {
    case SQFS_ERROR_ALLOC:
      return error("{}: to read it takes more memory than an image may take", what);
    case SQFS_ERROR_IO:
      return error("{}: the file cannot be read", what);
    case SQFS_ERROR_UNSUPPORTED:
      return error("{}: of a kind that is not read here", what);
    default:
      return error("the image is damaged: {} cannot be read ({})", what, code);
  }
}

Result<void> check(std::string_view what, int code) {
  if (code == 0) return {};
  return damaged(what, code);
}

// The part of a file that is the squashfs, as libsquashfs reads it.
struct Part {
  sqfs_file_t base{};
  int fd = -1;
  Root root;

  Part(int file, Root where) : fd(file), root(std::move(where)) {
    base.read_at = [](sqfs_file_t* file_base, sqfs_u64 offset, void* buffer, std::size_t size) {
      return reinterpret_cast<Part*>(file_base)->read(offset, static_cast<char*>(buffer), size);
    };
    base.get_size = [](const sqfs_file_t* file_base) -> sqfs_u64 {
      return reinterpret_cast<const Part*>(file_base)->root.size;
    };
    base.write_at = [](sqfs_file_t*, sqfs_u64, const void*, std::size_t) -> int { return SQFS_ERROR_IO; };
    base.truncate = [](sqfs_file_t*, sqfs_u64) -> int { return SQFS_ERROR_IO; };
    base.base.destroy = [](sqfs_object_t*) {};  // its owner does
  }
  int read(std::uint64_t offset, char* buffer, std::size_t size) const {
    if (offset > root.size || size > root.size - offset) return SQFS_ERROR_OUT_OF_BOUNDS;
    while (size > 0) {
      const auto got = ::pread(fd, buffer, size, static_cast<off_t>(root.offset + offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 ? SQFS_ERROR_IO : SQFS_ERROR_OUT_OF_BOUNDS;
      offset += static_cast<std::uint64_t>(got);
      buffer += got;
      size -= static_cast<std::size_t>(got);
    }
    return 0;
  }
};
static_assert(offsetof(Part, base) == 0);

struct Name {
  std::string text;
  std::uint64_t inode = 0;  // libsquashfs' reference
};

// Of one file that has several.
struct Names {
  std::string first;
  std::uint32_t left = 0;  // that were not seen yet
};

class Reader {
 public:
  Reader(Part& part, const Limits& limits, Visitor& visitor)
      : part_(part), limits_(limits), visitor_(visitor) {}

  Result<void> read() {
    TRY(open());
    most_content_ = std::min(limits_.content, limits_.free_content + part_.root.size * limits_.ratio);
    return folder(super_.root_inode_ref, "", 0);
  }

 private:
  Result<void> open() {
    sqfs_file_t* file = &part_.base;
    TRY(check("its squashfs", sqfs_super_read(&super_, file)));
    sqfs_compressor_config_t config{};
    const auto id = static_cast<SQFS_COMPRESSOR>(super_.compression_id);
    TRY(check("its compression",
              sqfs_compressor_config_init(&config, id, super_.block_size, SQFS_COMP_FLAG_UNCOMPRESS)));
    sqfs_compressor_t* compressor = id == SQFS_COMP_GZIP ? make_inflate() : nullptr;
    if (compressor == nullptr && sqfs_compressor_create(&config, &compressor) != 0) {
      const char* name = sqfs_compressor_name_from_id(id);
      return error("the image is compressed with {}, which is not read here: build it with gzip or zstd",
                   name != nullptr ? name : "what is not known");
    }
    compressor_.reset(compressor);
    ids_.reset(sqfs_id_table_create(0));
    const std::uint64_t end =
        std::min({super_.id_table_start, super_.fragment_table_start, super_.export_table_start});
    inodes_.reset(
        sqfs_meta_reader_create(file, compressor, super_.inode_table_start, super_.directory_table_start));
    folders_.reset(sqfs_meta_reader_create(file, compressor, super_.directory_table_start, end));
    data_.reset(sqfs_data_reader_create(file, super_.block_size, compressor, 0));
    if (!ids_ || !inodes_ || !folders_ || !data_) return damaged("its tables", SQFS_ERROR_ALLOC);
    TRY(check("its table of owners", sqfs_id_table_read(ids_.get(), file, &super_, compressor)));
    TRY(check("its table of fragments", sqfs_data_reader_load_fragment_table(data_.get(), &super_)));
    if ((super_.flags & SQFS_FLAG_NO_XATTRS) == 0 && super_.xattr_id_table_start != k_no_table) {
      attributes_.reset(sqfs_xattr_reader_create(0));
      if (!attributes_) return damaged("its table of attributes", SQFS_ERROR_ALLOC);
      TRY(check("its table of attributes",
                sqfs_xattr_reader_load(attributes_.get(), &super_, file, compressor)));
    }
    return {};
  }

  Result<Inode> inode(std::uint64_t reference) {
    sqfs_inode_generic_t* inode = nullptr;
    TRY(check("one of its files", sqfs_meta_reader_read_inode(inodes_.get(), &super_, reference >> 16,
                                                              reference & 0xffff, &inode)));
    return Inode(inode);
  }

  // In the order of names. A name that stands twice would let one entry be written through another.
  Result<std::vector<Name>> names(const sqfs_inode_generic_t& inode, std::string_view path) {
    sqfs_readdir_state_t state{};
    TRY(check("a folder", sqfs_readdir_state_init(&state, &super_, &inode)));
    std::vector<Name> result;
    for (;;) {
      sqfs_dir_entry_t* found = nullptr;
      Name name;
      const int code = sqfs_meta_reader_readdir(folders_.get(), &state, &found, nullptr, &name.inode);
      if (code > 0) break;
      TRY(check("a folder", code));
      const std::unique_ptr<sqfs_dir_entry_t, Free> entry(found);
      name.text.assign(reinterpret_cast<const char*>(entry->name), std::size_t{entry->size} + 1);
      if (name.text == "." || name.text == ".." || name.text.find('/') != std::string::npos ||
          name.text.find('\0') != std::string::npos)
        return error("the image has a name that leads out of its folder, in '/{}'", path);
      if (++entries_ > limits_.entries) return error("the image has more than {} files", limits_.entries);
      result.push_back(std::move(name));
    }
    std::ranges::sort(result, {}, &Name::text);
    const auto twice = std::ranges::adjacent_find(result, {}, &Name::text);
    if (twice != result.end()) return error("the image has a name twice in its folder '/{}'", path);
    return result;
  }

  Result<void> folder(std::uint64_t reference, const std::string& path, std::size_t depth) {
    if (depth > limits_.depth)
      return error("the image has folders in each other, more than {}", limits_.depth);
    for (const Name& name : TRY(names(*TRY(inode(reference)), path))) {
      const std::string full = path.empty() ? name.text : path + "/" + name.text;
      if (full.size() > limits_.path)
        return error("the image has a name of more than {} bytes", limits_.path);
      TRY(one(name.inode, full, depth));
    }
    return {};
  }

  static Result<Entry::Kind> kind_of(const sqfs_inode_generic_t& inode) {
    switch (inode.base.type) {
      case SQFS_INODE_DIR:
      case SQFS_INODE_EXT_DIR:
        return Entry::Kind::folder;
      case SQFS_INODE_FILE:
      case SQFS_INODE_EXT_FILE:
        return Entry::Kind::file;
      case SQFS_INODE_SLINK:
      case SQFS_INODE_EXT_SLINK:
        return Entry::Kind::link;
      case SQFS_INODE_FIFO:
      case SQFS_INODE_EXT_FIFO:
        return Entry::Kind::fifo;
      case SQFS_INODE_SOCKET:
      case SQFS_INODE_EXT_SOCKET:
        return Entry::Kind::socket;
      case SQFS_INODE_BDEV:
      case SQFS_INODE_CDEV:
      case SQFS_INODE_EXT_BDEV:
      case SQFS_INODE_EXT_CDEV:
        return Entry::Kind::device;
      default:
        return error("the image is damaged: one of its files is of kind {}", inode.base.type);
    }
  }

  static std::string target_of(const sqfs_inode_generic_t& inode) {
    const auto* text = reinterpret_cast<const char*>(inode.extra);
    const std::size_t size =
        inode.base.type == SQFS_INODE_SLINK ? inode.data.slink.target_size : inode.data.slink_ext.target_size;
    return std::string(text, std::min<std::size_t>(size, inode.payload_bytes_available));
  }

  Result<void> read_attributes(const sqfs_inode_generic_t& inode, Entry& entry) {
    std::uint32_t index = k_no_attributes;
    if (!attributes_ || sqfs_inode_get_xattr_index(&inode, &index) != 0 || index == k_no_attributes)
      return {};
    sqfs_xattr_id_t all{};
    TRY(check("a file's attributes", sqfs_xattr_reader_get_desc(attributes_.get(), index, &all)));
    TRY(check("a file's attributes", sqfs_xattr_reader_seek_kv(attributes_.get(), &all)));
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < all.count; ++i) {
      sqfs_xattr_entry_t* key = nullptr;
      TRY(check("a file's attributes", sqfs_xattr_reader_read_key(attributes_.get(), &key)));
      const std::unique_ptr<sqfs_xattr_entry_t, Free> name(key);
      sqfs_xattr_value_t* found = nullptr;
      TRY(check("a file's attributes", sqfs_xattr_reader_read_value(attributes_.get(), key, &found)));
      const std::unique_ptr<sqfs_xattr_value_t, Free> value(found);
      std::string text(reinterpret_cast<const char*>(key->key));  // the whole name, with its prefix
      bytes += text.size() + value->size;
      if (bytes > limits_.attributes)
        return error("the image has a file with more than {} bytes of attributes", limits_.attributes);
      entry.attributes[std::move(text)].assign(reinterpret_cast<const char*>(value->value), value->size);
    }
    return {};
  }

  Result<void> one(std::uint64_t reference, const std::string& path, std::size_t depth) {
    const Inode node = TRY(inode(reference));
    Entry entry;
    entry.kind = TRY(kind_of(*node));
    entry.path = path;
    entry.mode = node->base.mode & 07777;
    entry.time = node->base.mod_time;
    entry.apart = names_.empty();
    TRY(check("a file's owner", sqfs_id_table_index_to_id(ids_.get(), node->base.uid_idx, &entry.user)));
    TRY(check("a file's group", sqfs_id_table_index_to_id(ids_.get(), node->base.gid_idx, &entry.group)));
    if (entry.kind == Entry::Kind::link) {
      entry.target = target_of(*node);
      if (entry.target.empty() || entry.target.size() > limits_.path ||
          entry.target.find('\0') != std::string::npos)
        return error("the image is damaged: the link '/{}' leads nowhere", path);
    }
    if (entry.kind == Entry::Kind::file) {
      TRY(check("a file's size", sqfs_inode_get_file_size(node.get(), &entry.size)));
      if (node->base.type == SQFS_INODE_EXT_FILE && node->data.file_ext.nlink > 1)
        entry.same_as = first_name(reference, path, node->data.file_ext.nlink);
    }
    if (entry.same_as.empty()) TRY(read_attributes(*node, entry));
    TRY(visitor_.entry(entry));
    if (entry.kind == Entry::Kind::folder) return folder(reference, path, depth + 1);
    if (entry.kind == Entry::Kind::file && entry.same_as.empty()) return content(*node, entry.size);
    return {};
  }

  // The earlier path of the same file; empty where this is the first. Of more names than it says it has, the
  // next one is of a file of its own.
  std::string first_name(std::uint64_t reference, const std::string& path, std::uint32_t all) {
    const auto [found, first] = names_.try_emplace(reference, Names{path, all - 1});
    if (first) return {};
    std::string result = found->second.first;
    if (--found->second.left == 0) names_.erase(found);
    return result;
  }

  Result<void> content(const sqfs_inode_generic_t& inode, std::uint64_t size) {
    if (size > most_content_ - content_) {
      if (most_content_ == limits_.content)
        return error("the image has more than {} MiB of content", limits_.content >> 20);
      return error(
          "the image has more than {} MiB of content, which is more than a file of its size may have",
          most_content_ >> 20);
    }
    content_ += size;
    buffer_.resize(k_piece);
    for (std::uint64_t done = 0; done < size;) {
      const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(k_piece, size - done));
      const auto got = sqfs_data_reader_read(data_.get(), &inode, done, buffer_.data(), wanted);
      if (got < 0) return damaged("a file's content", got);
      if (got == 0 || static_cast<std::uint32_t>(got) > wanted)
        return error("the image is damaged: a file has less content than it says");
      TRY(visitor_.content(std::string_view(buffer_.data(), static_cast<std::size_t>(got))));
      done += static_cast<std::uint32_t>(got);
    }
    return {};
  }

  Part& part_;
  const Limits& limits_;
  Visitor& visitor_;
  sqfs_super_t super_{};
  Owned<sqfs_compressor_t> compressor_;
  Owned<sqfs_id_table_t> ids_;
  Owned<sqfs_meta_reader_t> inodes_, folders_;
  Owned<sqfs_data_reader_t> data_;
  Owned<sqfs_xattr_reader_t> attributes_;
  std::unordered_map<std::uint64_t, Names> names_;  // of files of which more names must come, by their inode
  std::vector<char> buffer_;
  std::uint64_t entries_ = 0, content_ = 0, most_content_ = 0;
};

}  // namespace

Result<void> read_squashfs(const Fd& file, const Root& root, const Limits& limits, Visitor& visitor) {
  Part part(file.get(), root);
  return Reader(part, limits, visitor).read();
}

}  // namespace glidepod::store
