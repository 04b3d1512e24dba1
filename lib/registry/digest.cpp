#include "lib/registry/digest.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace glidepod::registry {
namespace {
constexpr std::string_view k_digest_prefix = "sha256:";
}

struct Digest::State {
  // Without its configuration file, which the process that reads images could not open.
  State() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr), context.reset(EVP_MD_CTX_new()); }
  struct Release {
    void operator()(EVP_MD_CTX* unused) const { EVP_MD_CTX_free(unused); }
  };
  std::unique_ptr<EVP_MD_CTX, Release> context;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::string_view bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string Digest::text() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(state_->context.get(), bytes.data(), &size);
  std::string result(k_digest_prefix);
  for (unsigned i = 0; i < size; ++i) result += fmt::format("{:02x}", bytes.at(i));
  return result;
}

}  // namespace glidepod::registry
