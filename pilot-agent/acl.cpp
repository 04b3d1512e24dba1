#include "pilot-agent/acl.hpp"

#include <endian.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstring>

#include "lib/base/file.hpp"

namespace glidepod::agent {
namespace {

constexpr std::uint32_t k_version = 2;
constexpr std::size_t k_header = 4, k_entry = 8, k_most_entries = 1024;

std::string path_of(const Fd& held) {
  return fmt::format("/proc/self/fd/{}", held.get());
}

const char* name_of(Acl::Kind kind) {
  return kind == Acl::Kind::access ? "system.posix_acl_access" : "system.posix_acl_default";
}

}  // namespace

Acl Acl::from_mode(mode_t mode) {
  Acl acl;
  for (const auto& [tag, shift] :
       {std::pair(Tag::owner, 6), std::pair(Tag::group_owner, 3), std::pair(Tag::other, 0)})
    acl.entries_.push_back({tag, static_cast<std::uint16_t>((mode >> shift) & 7), k_no_id});
  return acl;
}

Result<Acl> Acl::of(const Fd& held, mode_t mode) {
  char data[k_header + k_entry * k_most_entries];
  const ssize_t got = ::getxattr(path_of(held).c_str(), name_of(Kind::access), data, sizeof data);
  if (got < 0 && errno == ENODATA) return from_mode(mode);
  if (got < 0) return Error::system("read an access control list");
  Acl acl;
  for (std::size_t at = k_header; at + k_entry <= static_cast<std::size_t>(got); at += k_entry) {
    std::uint16_t tag = 0, rights = 0;
    std::uint32_t id = 0;
    std::memcpy(&tag, data + at, sizeof tag);
    std::memcpy(&rights, data + at + 2, sizeof rights);
    std::memcpy(&id, data + at + 4, sizeof id);
    acl.entries_.push_back({static_cast<Tag>(le16toh(tag)), le16toh(rights), le32toh(id)});
  }
  return acl;
}

void Acl::grant(Tag tag, std::uint32_t id, unsigned rights) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.tag == tag && entry.id == id; });
  if (found == entries_.end())
    entries_.push_back({tag, static_cast<std::uint16_t>(rights), id});
  else
    found->rights = static_cast<std::uint16_t>(found->rights | rights);
}

unsigned Acl::rights(Tag tag) const {
  const auto found = std::ranges::find(entries_, tag, &Entry::tag);
  return found == entries_.end() ? 0 : found->rights;
}

void Acl::close_to_others() {
  for (Entry& entry : entries_)
    if (entry.tag == Tag::other || entry.tag == Tag::group_owner) entry.rights = 0;
}

Result<void> Acl::write(const Fd& held, Kind kind) const {
  std::vector<Entry> entries = entries_;
  std::erase_if(entries, [](const Entry& entry) { return entry.tag == Tag::mask; });
  std::uint16_t all = 0;
  for (const Entry& entry : entries)
    if (entry.tag != Tag::owner && entry.tag != Tag::other)
      all = static_cast<std::uint16_t>(all | entry.rights);
  entries.push_back({Tag::mask, all, k_no_id});
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.tag, entry.id); });
  std::string data(k_header + k_entry * entries.size(), '\0');
  const std::uint32_t version = htole32(k_version);
  std::memcpy(data.data(), &version, sizeof version);
  char* at = data.data() + k_header;
  for (const Entry& entry : entries) {
    const std::uint16_t tag = htole16(static_cast<std::uint16_t>(entry.tag)), rights = htole16(entry.rights);
    const std::uint32_t id = htole32(entry.id);
    std::memcpy(at, &tag, sizeof tag);
    std::memcpy(at + 2, &rights, sizeof rights);
    std::memcpy(at + 4, &id, sizeof id);
    at += k_entry;
  }
  if (::setxattr(path_of(held).c_str(), name_of(kind), data.data(), data.size(), 0) != 0)
    return Error::system("set an access control list");
  return {};
}

Result<void> open_to(const std::string& path, const std::vector<uid_t>& users) {
  const Fd held = TRY(open_file(path, O_PATH | O_NOFOLLOW));
  Acl acl = Acl::from_mode(0600);
  for (const uid_t user : users) acl.grant(Acl::Tag::user, user, Acl::k_read | Acl::k_write);
  return acl.write(held, Acl::Kind::access).in(path);
}

}  // namespace glidepod::agent
