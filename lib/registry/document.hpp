#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::registry {

// What an image runs by itself.
struct ImageCommand {
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  friend bool operator==(const ImageCommand&, const ImageCommand&) = default;
};

// The command line when the image runs with these arguments, which take the place of CMD. Empty if there is
// nothing to run.
std::vector<std::string> command_line(const ImageCommand& image, const std::vector<std::string>& arguments);

// A document that another one names.
struct Descriptor {
  std::string digest;  // "sha256:" and 64 hexadecimal digits
  std::size_t size = 0;
  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

// A node's platform, in the words of images.
struct Platform {
  std::string architecture;  // "amd64"
  std::string variant;       // "v8", or empty
  // The platform of a machine by uname's word for it. An unknown word is kept as it is.
  static Platform of_machine(std::string_view machine);
};

// The next document that a manifest, or an index, leads to.
struct Manifest {
  Descriptor next;
  bool index = false;  // true: `next` is a manifest; false: it is the image's configuration
};

// All Errors of the parsers are the image's fault, and their words are meant for its user.
//
// Parses an OCI or Docker manifest or index. From an index it takes the entry for the platform. It refuses
// digests other than SHA-256, and documents that are both a manifest and an index, or neither.
Result<Manifest> parse_manifest(std::string_view text, const Platform& platform);
// Parses an OCI or Docker image configuration.
Result<ImageCommand> parse_config(std::string_view text);
// Parses the manifest of an image that is a file, a SIF as `apptainer push` leaves it: which blob the file
// is.
Result<Descriptor> parse_file_manifest(std::string_view text);
// The words of a registry's error in one line: "MANIFEST_UNKNOWN: manifest unknown".
std::string error_words(std::string_view text);

// The digest "sha256:..." of a text.
std::string digest_of(std::string_view text);
// Checks that a text has the digest of a descriptor, and also its size unless that is 0.
Result<void> verify(std::string_view text, const Descriptor& expected);

}  // namespace glidepod::registry
