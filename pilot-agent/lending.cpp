#include "pilot-agent/lending.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/acl.hpp"
#include "pilot-agent/bind_plan.hpp"

namespace glidepod::agent {
namespace {

constexpr int k_deepest = 256;
constexpr int k_most_entries = 2'000'000;

Result<Fd> hold(const Fd& folder, const std::string& name) {
  Fd fd = open_beneath(folder, name, O_PATH | O_NOFOLLOW);
  if (!fd) return Error::system("open {}", name);
  return fd;
}

Result<struct stat> look(const Fd& fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::system("stat");
  return info;
}

// Something in a folder, or that folder.
struct Found {
  const Fd& held;
  const struct stat& info;
  std::string_view name = {};
  int depth = 0;
};
using Visitor = std::function<Result<void>(const Found&)>;

// The starter's word for who the job is: in force for its next run in this folder, too.
bool is_ad(const Found& found) {
  return found.depth == 0 && (found.name == ".job.ad" || found.name == ".machine.ad");
}

// Everything in a folder, folders before what is in them. What is gone meanwhile is passed over.
Result<void> each_below(const Fd& folder, const Visitor& visit, int depth, int& entries) {
  if (depth > k_deepest) return error("folders are nested more than {} deep", k_deepest);
  Fd readable = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY);
  DIR* raw = readable ? ::fdopendir(readable.get()) : nullptr;
  if (raw == nullptr) return Error::system("read a folder");
  readable.release();  // closed with raw
  const std::unique_ptr<DIR, int (*)(DIR*)> list(raw, ::closedir);
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++entries > k_most_entries) return error("it holds more than {} files and folders", k_most_entries);
    const auto held = hold(folder, entry->d_name);
    if (!held) continue;
    const auto info = TRY(look(*held));
    TRY(visit({*held, info, name, depth}));
    if (S_ISDIR(info.st_mode)) TRY(each_below(*held, visit, depth + 1, entries));
  }
  return {};
}

// The folder; above is called with each on the way from the pilot job's sandbox on, that included.
Result<Fd> walk(const Lent& lent, const Visitor& above) {
  if (!inside(lent.sandbox, lent.scratch) || !inside(lent.folder, lent.sandbox))
    return error("'{}' is not inside the pilot job's folder {}", lent.folder, lent.sandbox);
  Fd folder = TRY(open_file(lent.scratch, O_PATH | O_DIRECTORY));
  std::string path = lent.scratch;
  for (const std::string& part : split(lent.folder.substr(lent.scratch.size()), '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return error("folder '{}' has a '..' in it", lent.folder);
    if (path.size() >= lent.sandbox.size()) {
      const auto info = TRY(look(folder));
      TRY(above({folder, info}));
    }
    folder = TRY(hold(folder, part).in(path));
    if (!S_ISDIR(TRY(look(folder)).st_mode)) return error("{} in {} is not a folder", part, path);
    path += "/" + part;
  }
  if (path == lent.sandbox) return error("the pilot job's own folder {} cannot be lent", lent.sandbox);
  return folder;
}

// Both may do with it what either may, but for the ads, which the borrower reads.
Result<void> share(const Lent& lent, const Found& found) {
  const bool is_folder = S_ISDIR(found.info.st_mode);
  // A file with a second name may be one that was never meant to be lent.
  if (found.info.st_uid != lent.owner ||
      (!is_folder && (!S_ISREG(found.info.st_mode) || found.info.st_nlink > 1)))
    return {};
  Acl acl = TRY(Acl::of(found.held, found.info.st_mode));
  const unsigned rights = Acl::k_read | Acl::k_write | (acl.rights(Acl::Tag::owner) & Acl::k_pass);
  acl.grant(Acl::Tag::user, lent.owner, rights);
  acl.grant(Acl::Tag::user, lent.borrower, is_ad(found) ? Acl::k_read : rights);
  TRY(acl.write(found.held, Acl::Kind::access));
  if (!is_folder) return {};
  Acl all = Acl::from_mode(0700);
  all.grant(Acl::Tag::user, lent.owner, 7);
  all.grant(Acl::Tag::user, lent.borrower, 7);
  return all.write(found.held, Acl::Kind::of_new);
}

}  // namespace

Result<void> lend(const Lent& lent) {
  const Fd folder = TRY(walk(lent, [&](const Found& found) -> Result<void> {
    if (std::ranges::find(lent.above, found.info.st_uid) == lent.above.end())
      return error("a folder above it belongs to user {}", found.info.st_uid);
    Acl acl = TRY(Acl::of(found.held, found.info.st_mode));
    acl.grant(Acl::Tag::group, lent.family, Acl::k_pass);
    return acl.write(found.held, Acl::Kind::access);
  }));
  const auto info = TRY(look(folder));
  if (info.st_uid != lent.owner) return error("{} belongs to user {}", lent.folder, info.st_uid);
  TRY(share(lent, {folder, info}));
  Acl acl = TRY(Acl::of(folder, info.st_mode));
  acl.close_to_others();
  TRY(acl.write(folder, Acl::Kind::access));
  int entries = 0;
  return each_below(
      folder, [&](const Found& found) { return share(lent, found); }, 0, entries);
}

Result<void> take_back(const Lent& lent) {
  const Fd folder = TRY(walk(lent, [](const Found&) -> Result<void> { return {}; }));
  int entries = 0;
  return each_below(
      folder,
      [&](const Found& found) -> Result<void> {
        if (found.info.st_uid != lent.borrower) return {};
        // Put in the place of the starter's: it stays what it is, and is not believed.
        if (is_ad(found) && !S_ISDIR(found.info.st_mode)) return {};
        return set_owner(found.held, lent.owner, lent.group);
      },
      0, entries);
}

}  // namespace glidepod::agent
