#include "store/layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace glidepod::store {
namespace {

Result<void> make_folder_at(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return Error::system("make {}", path);
  return {};
}

}  // namespace

Result<void> Layout::prepare() {
  for (const char* part : {"", "/blobs", "/blobs/sha256"}) TRY(make_folder_at(folder_ + part));
  return replace_file(folder_ + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})", 0644, Durable::no);
}

std::string Layout::path_of(const Blob& blob) const {
  return folder_ + "/blobs/sha256/" + blob.digest.substr(blob.digest.find(':') + 1);
}

Result<void> Layout::layer(std::string_view bytes) {
  if (!layer_) layer_ = TRY(open_file(folder_ + "/layer.new", O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return write_all(layer_, bytes).in("write the layer");
}

Result<void> Layout::layer_ended(const Blob& layer) {
  layer_.reset();
  if (::rename((folder_ + "/layer.new").c_str(), path_of(layer).c_str()) != 0)
    return Error::system("name the layer");
  return {};
}

Result<void> Layout::put(const Blob& blob, std::string_view bytes) {
  return replace_file(path_of(blob), bytes, 0644, Durable::no);
}

Result<void> Layout::finish(const Blob& manifest) {
  nlohmann::json image = {
      {"mediaType", k_manifest_type}, {"digest", manifest.digest}, {"size", manifest.size}};
  if (!name_.empty()) image["annotations"] = {{"org.opencontainers.image.ref.name", name_}};
  const nlohmann::json index = {{"schemaVersion", 2}, {"manifests", nlohmann::json::array({image})}};
  return replace_file(folder_ + "/index.json", json_text(index), 0644, Durable::no);
}

}  // namespace glidepod::store
