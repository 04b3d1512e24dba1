#include "store/sif.hpp"

#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "store/folder.hpp"

namespace glidepod::store {
namespace {

// Of https://github.com/apptainer/sif, pkg/sif: little-endian and without padding.
constexpr std::string_view k_magic{"SIF_MAGIC\0", 10};
constexpr std::size_t k_magic_at = 32, k_architecture_at = 45, k_total_at = 88, k_descriptors_at = 96;
constexpr std::size_t k_header = 128, k_descriptor = 585;
constexpr std::size_t k_used_at = 4, k_offset_at = 17, k_size_at = 25, k_extra_at = 201;
constexpr std::int32_t k_partition = 0x4004, k_oci_index = 0x400a;
constexpr std::int32_t k_primary_system = 2;
constexpr std::uint64_t k_most_descriptors = 1024;  // Apptainer makes room for 48
enum FileSystem : std::int32_t { squashfs = 1, ext3, archive, raw, encrypted, gocryptfs };

constexpr std::string_view k_squashfs_magic = "hsqs";
constexpr std::string_view k_launcher = "singularity";  // in the first line of an older image
constexpr std::size_t k_longest_launcher = 2048;

constexpr std::array<std::pair<std::string_view, const char*>, 13> k_architectures = {{{"01", "386"},
                                                                                       {"02", "amd64"},
                                                                                       {"03", "arm"},
                                                                                       {"04", "arm64"},
                                                                                       {"05", "ppc64"},
                                                                                       {"06", "ppc64le"},
                                                                                       {"07", "mips"},
                                                                                       {"08", "mipsle"},
                                                                                       {"09", "mips64"},
                                                                                       {"10", "mips64le"},
                                                                                       {"11", "s390x"},
                                                                                       {"12", "riscv64"},
                                                                                       {"13", "loong64"}}};

template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);  // both of ours are little-endian
  return value;
}

// As many bytes as there are, up to length.
Result<std::string> read_at(const Fd& file, std::uint64_t offset, std::size_t length) {
  std::string bytes(length, '\0');
  std::size_t done = 0;
  while (done < length) {
    const auto got =
        ::pread(file.get(), bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("read the image file");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::string architecture_of(std::string_view code) {
  for (const auto& [number, name] : k_architectures)
    if (code.starts_with(number)) return name;
  return {};
}

Error not_squashfs(std::int32_t kind) {
  if (kind == encrypted || kind == gocryptfs)
    return error("the image is encrypted, and its key is not known here: build it without --encrypt");
  return error("the image's file system is {}, not squashfs: build it again with a current Apptainer",
               kind == ext3      ? "ext3"
               : kind == archive ? "an archive"
               : kind == raw     ? "raw data"
                                 : "of a kind that is not known");
}

Result<Root> root_of_sif(const Fd& file, std::uint64_t size, std::string_view header) {
  const auto total = number_at<std::uint64_t>(header, k_total_at);
  const auto table = number_at<std::uint64_t>(header, k_descriptors_at);
  if (total > k_most_descriptors || table > size || total * k_descriptor > size - table)
    return error("the image file is damaged: its table of {} descriptors does not fit into it", total);
  const std::string descriptors = TRY(read_at(file, table, total * k_descriptor));
  if (descriptors.size() != total * k_descriptor)
    return error("the image file is damaged: its table of descriptors is cut off");
  bool oci = false;
  for (std::size_t i = 0; i < total; ++i) {
    const auto one = std::string_view(descriptors).substr(i * k_descriptor, k_descriptor);
    const auto type = number_at<std::int32_t>(one, 0);
    if (one[k_used_at] == 0) continue;
    oci = oci || type == k_oci_index;
    if (type != k_partition || number_at<std::int32_t>(one, k_extra_at + 4) != k_primary_system) continue;
    const auto kind = number_at<std::int32_t>(one, k_extra_at);
    if (kind != squashfs) return not_squashfs(kind);
    Root root{number_at<std::uint64_t>(one, k_offset_at), number_at<std::uint64_t>(one, k_size_at), false,
              architecture_of(one.substr(k_extra_at + 8, 2))};
    if (root.architecture.empty()) root.architecture = architecture_of(header.substr(k_architecture_at, 2));
    if (root.offset > size || root.size > size - root.offset)
      return error("the image file is cut off: its file system would end at byte {}, the file at {}",
                   static_cast<unsigned __int128>(root.offset) + root.size > UINT64_MAX
                       ? UINT64_MAX
                       : root.offset + root.size,
                   size);
    return root;
  }
  if (oci) return error("the image is an OCI-SIF, which Apptainer does not run: build it without --oci");
  return error("the image file has no system partition, so there is nothing to run in it");
}

}  // namespace

Result<Root> find_root(const Fd& file, std::uint64_t size) {
  const std::string start = TRY(read_at(file, 0, k_longest_launcher));
  const std::string_view bytes = start;
  if (bytes.size() >= k_header && bytes.substr(k_magic_at, k_magic.size()) == k_magic)
    return root_of_sif(file, size, bytes.substr(0, k_header));
  if (is_folder(bytes)) return Root{0, size, true};
  std::size_t offset = 0;
  if (bytes.starts_with("#!")) {
    const auto end = bytes.find('\n');
    if (end != std::string_view::npos && bytes.substr(0, end).find(k_launcher) != std::string_view::npos)
      offset = end + 1;
  }
  if (bytes.substr(offset).starts_with(k_squashfs_magic)) return Root{offset, size - offset};
  return error("the file is no image: it is neither a SIF nor a squashfs");
}

}  // namespace glidepod::store
