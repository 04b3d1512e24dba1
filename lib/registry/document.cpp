#include "lib/registry/document.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace glidepod::registry {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_most_parts = 20'000;
constexpr int k_deepest = 32;
constexpr std::size_t k_most_words = 1000;
constexpr std::size_t k_longest_command = std::size_t{32} << 10;
constexpr std::size_t k_largest_file = std::size_t{1} << 50;  // whoever fetches it has a limit
constexpr std::size_t k_largest_document = std::size_t{4} << 20;

// Refuses a document with too many parts, or with parts nested too deeply, before memory is spent on it. A
// malicious document could take fifty times its own size.
class Limits : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return one_more(); }
  bool boolean(bool) override { return one_more(); }
  bool number_integer(number_integer_t) override { return one_more(); }
  bool number_unsigned(number_unsigned_t) override { return one_more(); }
  bool number_float(number_float_t, const string_t&) override { return one_more(); }
  bool string(string_t&) override { return one_more(); }
  bool binary(binary_t&) override { return one_more(); }
  bool key(string_t&) override { return one_more(); }
  bool start_object(std::size_t) override { return ++depth_ <= k_deepest && one_more(); }
  bool start_array(std::size_t) override { return ++depth_ <= k_deepest && one_more(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool one_more() { return ++parts_ <= k_most_parts; }
  std::size_t parts_ = 0;
  int depth_ = 0;
};

Result<Json> parse(std::string_view text) {
  Limits limits;
  if (!Json::sax_parse(text, &limits)) return error("it is malformed JSON, or has too many parts");
  Json json = json_from(text);
  if (!json.is_object()) return error("it is no JSON object");
  return json;
}

bool is_sha256(std::string_view digest) {
  constexpr std::string_view k_prefix = "sha256:";
  constexpr std::size_t k_digits = std::size_t{2} * SHA256_DIGEST_LENGTH;
  return digest.size() == k_prefix.size() + k_digits && digest.starts_with(k_prefix) &&
         digest.find_first_not_of("0123456789abcdef", k_prefix.size()) == std::string_view::npos;
}

Result<Descriptor> descriptor(const Json& json, std::size_t largest = k_largest_document) {
  Descriptor result;
  result.digest = text_of(json, "digest");
  if (!is_sha256(result.digest))
    return error("the digest '{}' is not of SHA-256", one_line(result.digest, 100));
  const Json& size = member(json, "size");
  const std::int64_t bytes = size.is_number_integer() ? size.get<std::int64_t>() : 0;
  if (bytes < 1) return error("a descriptor has no size");
  result.size = static_cast<std::size_t>(bytes);
  if (result.size > largest) return error("a document of it is larger than {} bytes", largest);
  return result;
}

std::string platform_name(const Json& platform) {
  std::string name = text_of(platform, "os") + "/" + text_of(platform, "architecture");
  const std::string variant = text_of(platform, "variant");
  return one_line(variant.empty() ? name : name + "/" + variant, 60);
}

// How well an entry fits the platform. 0: not at all.
int fitness(const Json& entry, const Platform& wanted) {
  const Json& platform = member(entry, "platform");
  if (text_of(platform, "os") != "linux" || text_of(platform, "architecture") != wanted.architecture)
    return 0;
  const std::string variant = text_of(platform, "variant");
  return variant == wanted.variant ? 3 : variant.empty() ? 2 : 1;
}

Result<Manifest> choose(const Json& entries, const Platform& wanted) {
  if (!entries.is_array()) return error("its list of manifests is no list");
  const Json* best = nullptr;
  std::string others;
  std::size_t more = 0;
  for (const Json& entry : entries) {
    if (fitness(entry, wanted) > (best ? fitness(*best, wanted) : 0)) best = &entry;
    const std::string name = platform_name(member(entry, "platform"));
    if (name == "/" || name == "unknown/unknown") continue;  // this is the entry of an attestation
    if (others.size() > 200) {
      ++more;
      continue;
    }
    others += (others.empty() ? "" : ", ") + name;
  }
  // A platform may be left out where there is no choice.
  if (!best && entries.size() == 1 && member(entries[0], "platform").is_null()) best = &entries[0];
  if (best) return Manifest{TRY(descriptor(*best)), true};
  if (more > 0) others += fmt::format(" and {} more", more);
  return error("it has no linux/{}{}{} variant; what it has: {}", wanted.architecture,
               wanted.variant.empty() ? "" : "/", wanted.variant, others.empty() ? "none" : others);
}

Result<std::vector<std::string>> words(const Json& list, std::string_view name) {
  std::vector<std::string> result;
  if (list.is_null()) return result;
  if (!list.is_array()) return error("its {} is no list", name);
  if (list.size() > k_most_words) return error("its {} has more than {} words", name, k_most_words);
  std::size_t length = 0;
  for (const Json& word : list) {
    if (!word.is_string()) return error("its {} is no list of strings", name);
    result.push_back(word.get<std::string>());
    length += result.back().size() + 1;
    if (result.back().find('\0') != std::string::npos) return error("its {} has a NUL byte", name);
  }
  if (length > k_longest_command) return error("its {} is longer than {} bytes", name, k_longest_command);
  return result;
}

}  // namespace

std::vector<std::string> command_line(const ImageCommand& image, const std::vector<std::string>& arguments) {
  std::vector<std::string> line = image.entrypoint;
  const auto& rest = arguments.empty() ? image.cmd : arguments;
  line.insert(line.end(), rest.begin(), rest.end());
  return line;
}

Platform Platform::of_machine(std::string_view machine) {
  if (machine == "x86_64") return {"amd64", {}};
  if (machine == "aarch64") return {"arm64", "v8"};
  if (machine == "armv7l") return {"arm", "v7"};
  if (machine == "armv6l") return {"arm", "v6"};
  if (machine == "i386" || machine == "i686") return {"386", {}};
  return {std::string(machine), {}};  // ppc64le, s390x, riscv64, loong64
}

Result<Manifest> parse_manifest(std::string_view text, const Platform& platform) {
  const Json json = TRY(parse(text));
  if (member(json, "schemaVersion") == 1) return error("its manifest is of the old version 1");
  const Json& entries = member(json, "manifests");
  const Json& config = member(json, "config");
  if (entries.is_null() == config.is_null())
    return error("its manifest is neither that of an image nor an index");
  if (!entries.is_null()) return choose(entries, platform);
  const std::string kind = text_of(config, "mediaType");
  if (kind != "application/vnd.oci.image.config.v1+json" &&
      kind != "application/vnd.docker.container.image.v1+json")
    return error("it is no container image but holds '{}'", one_line(kind, 100));
  return Manifest{TRY(descriptor(config)), false};
}

Result<Descriptor> parse_file_manifest(std::string_view text) {
  const Json json = TRY(parse(text));
  const Json& layers = member(json, "layers");
  if (!layers.is_array() || layers.size() != 1) return error("it is no SIF: it has not one layer");
  const std::string kind = text_of(layers[0], "mediaType");
  // The second is how early ones spelt it.
  if (kind != "application/vnd.sylabs.sif.layer.v1.sif" && kind != "appliciation/vnd.sylabs.sif.layer.tar")
    return error("it is no SIF but holds '{}'", one_line(kind, 100));
  return descriptor(layers[0], k_largest_file);
}

Result<ImageCommand> parse_config(std::string_view text) {
  const Json json = TRY(parse(text));
  const Json& config = member(json, "config");
  if (!config.is_null() && !config.is_object()) return error("its configuration is malformed");
  ImageCommand command;
  command.entrypoint = TRY(words(member(config, "Entrypoint"), "ENTRYPOINT"));
  command.cmd = TRY(words(member(config, "Cmd"), "CMD"));
  return command;
}

std::string error_words(std::string_view text) {
  // Docker Hub's tokens are refused with "details", others' with "message".
  const auto json = parse(text);
  if (!json) return one_line(text, 200);
  const Json& errors = member(json.value(), "errors");
  const Json& first = errors.is_array() && !errors.empty() ? errors[0] : json.value();
  const std::string code = text_of(first, "code");
  std::string message = text_of(first, "message");
  if (message.empty()) message = text_of(first, "details");
  return one_line(code.empty() || message.empty() ? code + message : code + ": " + message, 300);
}

std::string digest_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data());
  std::string result = "sha256:";
  for (const unsigned char byte : sum) result += fmt::format("{:02x}", byte);
  return result;
}

Result<void> verify(std::string_view text, const Descriptor& expected) {
  if (expected.size != 0 && text.size() != expected.size)
    return error("the registry sent {} bytes, not the {} bytes of {}", text.size(), expected.size,
                 expected.digest);
  if (const std::string digest = digest_of(text); digest != expected.digest)
    return error("the registry sent the content {}, not {}", digest, expected.digest);
  return {};
}

}  // namespace glidepod::registry
