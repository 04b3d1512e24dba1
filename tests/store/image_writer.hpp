#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"

// Writes small squashfs and SIF files by their formats, so that a test can write one that no program would.
namespace glidepod::store::written {

enum Type : std::uint16_t {
  folder = 1,
  file = 9,
  link = 3,
  block_device = 4,
  device = 5,
  fifo = 6,
  socket = 7
};

struct Node {
  Type type = folder;
  std::vector<std::pair<std::string, std::shared_ptr<Node>>> children = {};  // in the order of the listing
  std::string text = {};                                                     // content, or a link's target
  std::uint16_t mode = 0755;
  std::uint32_t names = 1;
  std::uint64_t said_size = ~std::uint64_t{0};  // what a file says of its size; else the truth
};
using NodePtr = std::shared_ptr<Node>;

inline NodePtr a_file(std::string text) {
  return std::make_shared<Node>(Node{file, {}, std::move(text), 0644});
}
inline NodePtr a_link(std::string target) {
  return std::make_shared<Node>(Node{link, {}, std::move(target), 0777});
}
inline NodePtr a_special(Type type) {
  return std::make_shared<Node>(Node{type});
}
inline NodePtr a_folder(std::vector<std::pair<std::string, NodePtr>> children) {
  return std::make_shared<Node>(Node{folder, std::move(children)});
}

template <typename Number>
void put(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A squashfs whose tables are not compressed. Each table must fit into one block of 8 KiB.
class Squashfs {
 public:
  static std::string of(const NodePtr& root, std::uint16_t compression = 1) {
    Squashfs writer;
    writer.place(root);
    for (const auto& node : writer.order_) writer.write(*node);
    return writer.whole(*root, compression);
  }

 private:
  static constexpr std::uint32_t k_block = 131072, k_stored = 1 << 24;
  static constexpr std::size_t k_super = 96;

  static std::size_t blocks(const Node& node) {
    const auto size = node.said_size == ~std::uint64_t{0} ? node.text.size() : node.said_size;
    return std::min<std::size_t>((size + k_block - 1) / k_block, 64);
  }
  static std::size_t inode_size(const Node& node) {
    switch (node.type) {
      case folder:
        return 32;
      case file:
        return 56 + 4 * blocks(node);
      case link:
        return 24 + node.text.size();
      case block_device:
      case device:
        return 24;
      default:
        return 20;
    }
  }
  // Each node gets its place before any is written, so that a folder may be in itself.
  void place(const NodePtr& node) {
    if (!places_.try_emplace(node.get(), next_).second) return;
    next_ += inode_size(*node);
    order_.push_back(node);
    for (const auto& [name, child] : node->children) place(child);
  }
  void write(const Node& node) {
    put<std::uint16_t>(inodes_, node.type);
    put<std::uint16_t>(inodes_, node.mode);
    put<std::uint32_t>(inodes_, 0);  // both owners
    put<std::uint32_t>(inodes_, 1'600'000'000);
    put<std::uint32_t>(inodes_, ++number_);
    if (node.type == folder) return write_folder(node);
    if (node.type == file) return write_file(node);
    put<std::uint32_t>(inodes_, node.names);
    if (node.type == link) put<std::uint32_t>(inodes_, static_cast<std::uint32_t>(node.text.size()));
    if (node.type == link) inodes_ += node.text;
    if (node.type == device || node.type == block_device) put<std::uint32_t>(inodes_, 0x103);
  }
  void write_folder(const Node& node) {
    const auto at = folders_.size();
    if (!node.children.empty()) {
      put<std::uint32_t>(folders_, static_cast<std::uint32_t>(node.children.size() - 1));
      put<std::uint32_t>(folders_, 0);
      put<std::uint32_t>(folders_, 1);
    }
    for (const auto& [name, child] : node.children) {
      put<std::uint16_t>(folders_, static_cast<std::uint16_t>(places_.at(child.get())));
      put<std::uint16_t>(folders_, 0);
      put<std::uint16_t>(folders_, child->type == file ? 2 : child->type);
      put<std::uint16_t>(folders_, static_cast<std::uint16_t>(name.size() - 1));
      folders_ += name;
    }
    put<std::uint32_t>(inodes_, 0);
    put<std::uint32_t>(inodes_, 2);
    put<std::uint16_t>(inodes_, static_cast<std::uint16_t>(folders_.size() - at + 3));
    put<std::uint16_t>(inodes_, static_cast<std::uint16_t>(at));
    put<std::uint32_t>(inodes_, 1);
  }
  void write_file(const Node& node) {
    put<std::uint64_t>(inodes_, k_super + data_.size());
    put<std::uint64_t>(inodes_, node.said_size == ~std::uint64_t{0} ? node.text.size() : node.said_size);
    put<std::uint64_t>(inodes_, 0);
    put<std::uint32_t>(inodes_, node.names);
    for (const std::uint32_t none : {~0U, 0U, ~0U})
      put<std::uint32_t>(inodes_, none);  // fragment, attributes
    data_ += node.text;
    for (std::size_t i = 0, at = 0; i < blocks(node); ++i, at += k_block) {
      const auto left = at < node.text.size() ? node.text.size() - at : 0;
      // No bytes: a hole.
      put<std::uint32_t>(
          inodes_,
          left == 0 ? 0 : static_cast<std::uint32_t>(std::min<std::size_t>(left, k_block)) | k_stored);
    }
  }
  static std::string table(const std::string& bytes) {
    std::string result;
    put<std::uint16_t>(result, static_cast<std::uint16_t>(bytes.size() | 0x8000));
    return result + bytes;
  }
  std::string whole(const Node& root, std::uint16_t compression) const {
    const auto inodes_at = k_super + data_.size();
    const auto folders_at = inodes_at + table(inodes_).size();
    const auto owners_at = folders_at + table(folders_).size();
    std::string tables = table(inodes_) + table(folders_) + table(std::string(4, '\0'));
    const auto end = k_super + data_.size() + tables.size();
    put<std::uint64_t>(tables, owners_at);
    std::string super = "hsqs";
    put<std::uint32_t>(super, number_);
    put<std::uint32_t>(super, 1'600'000'000);
    put<std::uint32_t>(super, k_block);
    put<std::uint32_t>(super, 0);
    put<std::uint16_t>(super, compression);
    put<std::uint16_t>(super, 17);
    put<std::uint16_t>(super, 0x0a1b);  // nothing is compressed, no fragments, no attributes
    put<std::uint16_t>(super, 1);
    put<std::uint16_t>(super, 4);
    put<std::uint16_t>(super, 0);
    put<std::uint64_t>(super, places_.at(&root));
    put<std::uint64_t>(super, end + 8);
    for (const auto at :
         {end, ~std::uint64_t{0}, inodes_at, folders_at, ~std::uint64_t{0}, ~std::uint64_t{0}})
      put<std::uint64_t>(super, at);
    return super + data_ + tables;
  }

  std::map<const Node*, std::size_t> places_;
  std::vector<NodePtr> order_;
  std::size_t next_ = 0;
  std::uint32_t number_ = 0;
  std::string inodes_, folders_, data_;
};

struct Sif {
  std::int32_t type = 0x4004;    // of the one descriptor
  std::int32_t file_system = 1;  // squashfs
  std::int32_t partition = 2;    // the primary system
  std::string architecture = "02";
  std::uint64_t descriptors = 1;  // that the header says
  std::uint64_t table = 128;
  std::uint64_t offset = 1024;
  std::uint64_t size = ~std::uint64_t{0};  // else the truth
  char used = 1;

  std::string around(const std::string& partition_bytes) const {
    std::string header("#!/usr/bin/env run-singularity\n", 31);
    header.resize(32);
    header += std::string("SIF_MAGIC\0", 10) + std::string("01\0", 3) + architecture +
              std::string(1 + 16 + 16, '\0');
    for (const std::uint64_t value :
         {std::uint64_t{47}, descriptors, table, std::uint64_t{585}, offset, std::uint64_t{0}})
      put(header, value);
    std::string one;
    put(one, type);
    one += used;
    for (const std::uint32_t id : {1U, 0xf0000001U, 0U}) put(one, id);
    put(one, offset);
    put<std::uint64_t>(one, size == ~std::uint64_t{0} ? partition_bytes.size() : size);
    one.resize(201);
    put(one, file_system);
    put(one, partition);
    one += architecture;
    one.resize(585);
    std::string whole = header + one;
    whole.resize(1024);
    return whole + partition_bytes;
  }
};

// A file with these bytes, at its beginning.
inline Fd in_memory(const std::string& bytes) {
  Fd fd(::memfd_create("image", MFD_CLOEXEC));
  for (std::size_t done = 0; done < bytes.size();) {
    const auto got = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got <= 0) return {};
    done += static_cast<std::size_t>(got);
  }
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

}  // namespace glidepod::store::written
