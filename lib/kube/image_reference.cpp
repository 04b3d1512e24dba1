#include "lib/kube/image_reference.hpp"

#include <algorithm>

namespace glidepod::kube {
namespace {

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool word(char c) {
  return lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}
bool hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Whether the text is lower-case letters and digits, separated by one dot, one or two underscores, or any
// number of dashes.
bool valid_component(std::string_view text) {
  for (;;) {
    const auto letters =
        static_cast<std::size_t>(std::ranges::find_if_not(text, lower_or_digit) - text.begin());
    if (letters == 0) return false;
    text.remove_prefix(letters);
    if (text.empty()) return true;
    const char separator = text.front();
    const std::size_t length = std::min(text.find_first_not_of(separator), text.size());
    if (separator == '.' ? length > 1 : separator == '_' ? length > 2 : separator != '-') return false;
    text.remove_prefix(length);
  }
}

bool valid_registry(std::string_view text) {
  if (text.starts_with('[')) {  // an IPv6 address
    const auto close = text.find(']');
    if (close == std::string_view::npos) return false;
    text.remove_prefix(close + 1);
    return text.empty() || (text.front() == ':' && text.size() > 1);
  }
  const auto colon = text.find(':');
  const auto host = text.substr(0, colon);
  if (host.empty() || host.front() == '-' || host.back() == '-') return false;
  if (!std::ranges::all_of(host, [](char c) { return (word(c) && c != '_') || c == '.' || c == '-'; }))
    return false;
  if (colon == std::string_view::npos) return true;
  const auto port = text.substr(colon + 1);
  return !port.empty() && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
}

bool names_registry(std::string_view first) {
  return first == "localhost" || first.find_first_of(".:[") != std::string_view::npos ||
         std::ranges::any_of(first, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool valid_repository(std::string_view text) {
  const auto slash = text.find('/');
  if (slash != std::string_view::npos && names_registry(text.substr(0, slash))) {
    if (!valid_registry(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  if (text.size() > 255) return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    if (!valid_component(text.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

Result<ImageReference> ImageReference::parse(std::string_view text) {
  const Error invalid("invalid reference format");
  ImageReference reference;
  std::string_view rest = text;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    const auto digest = rest.substr(at + 1);
    if (!digest.starts_with("sha256:") || digest.size() != 71 ||
        !std::ranges::all_of(digest.substr(7), hexadecimal)) {
      return invalid;
    }
    reference.digest = digest;
    rest = rest.substr(0, at);
  }
  const auto last = rest.rfind('/') + 1;  // where the last part begins
  if (const auto colon = rest.find(':', last); colon != std::string_view::npos) {
    const auto tag = rest.substr(colon + 1);
    if (tag.empty() || tag.size() > 128 || !std::ranges::all_of(tag.substr(0, 1), word)) return invalid;
    if (!std::ranges::all_of(tag, [](char c) { return word(c) || c == '.' || c == '-'; })) return invalid;
    reference.tag = tag;
    rest = rest.substr(0, colon);
  }
  if (!valid_repository(rest)) return invalid;
  reference.repository = rest;
  return reference;
}

std::string ImageReference::local_name() const {
  if (!digest.empty()) return repository + "@" + digest;
  return repository + ":" + (tag.empty() ? "latest" : tag);
}

std::string ImageReference::full_repository() const {
  std::string_view path = repository;
  if (const auto slash = path.find('/'); slash != std::string_view::npos) {
    const auto first = path.substr(0, slash);
    if (names_registry(first) && first != "docker.io" && first != "index.docker.io") return repository;
    if (names_registry(first)) path.remove_prefix(slash + 1);
  }
  // Docker Hub keeps its own images in "library", also if the name begins with docker.io.
  const bool own = path.find('/') == std::string_view::npos;
  return (own ? "docker.io/library/" : "docker.io/") + std::string(path);
}

std::string ImageReference::full_name() const {
  if (!digest.empty()) return full_repository() + "@" + digest;
  return full_repository() + ":" + (tag.empty() ? "latest" : tag);
}

bool is_by_id(std::string_view name) {
  if (!name.starts_with("sha256:")) return false;
  const auto digits = name.substr(k_id_prefix);
  return digits.size() >= k_least_id_digits && digits.size() <= k_id_digits &&
         std::ranges::all_of(digits, hexadecimal);
}

bool is_digest(std::string_view text) {
  return is_by_id(text) && text.size() == k_id_prefix + k_id_digits;
}

bool keeps_tag(const std::string& written, const std::string& admitted) {
  const auto asked = ImageReference::parse(written), got = ImageReference::parse(admitted);
  return asked && got && asked->tag == got->tag;
}

std::string full_name_of(const std::string& image) {
  const auto reference = ImageReference::parse(image);
  return reference ? reference->full_name() : image;
}

}  // namespace glidepod::kube
