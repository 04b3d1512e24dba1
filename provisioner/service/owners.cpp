#include "provisioner/service/owners.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <memory>
#include <unordered_map>

#include "lib/base/file.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_least_key = 16;      // bytes
constexpr std::size_t k_most_known = 10000;  // owners whose pseudonyms are kept

std::string pseudonym(const std::string& key, const std::string& owner) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(owner.data()), owner.size(), sum.data(), nullptr);
  return fmt::format("owner-{:02x}{:02x}{:02x}{:02x}", sum[0], sum[1], sum[2], sum[3]);
}

}  // namespace

Result<OwnerNaming> owner_naming(const PolicySettings& settings, const std::string& key) {
  if (!settings.hide_owners) return OwnerNaming();
  auto used = key;
  if (const auto& file = settings.owner_key_file; !file.empty()) {
    used = TRY(read_file(file, std::size_t{64} << 10));
    if (used.size() < k_least_key)
      return error("{} has less than {} bytes, which are too few for a secret", file, k_least_key);
  }
  const auto known = std::make_shared<std::unordered_map<std::string, std::string>>();
  return OwnerNaming([used, known](const std::string& owner) {
    if (owner.empty()) return owner;
    if (known->size() > k_most_known) known->clear();
    auto& name = (*known)[owner];
    if (name.empty()) name = pseudonym(used, owner);
    return name;
  });
}

}  // namespace glidepod::provisioner
