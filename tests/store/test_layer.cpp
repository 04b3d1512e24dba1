#include "store/layer.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "store/compressor.hpp"
#include "store/digest.hpp"
#include "store/make.hpp"
#include "tests/store/image_writer.hpp"

using namespace glidepod;
using namespace glidepod::store;
using namespace glidepod::store::written;

namespace {

struct Written {
  Result<Layer> layer = error("nothing yet");
  std::string bytes;
};

Written layer_of(const std::string& file) {
  Written result;
  result.layer = write_layers(in_memory(file), {}, [&result](std::string_view bytes) -> Result<void> {
    result.bytes += bytes;
    return {};
  });
  return result;
}

// The layer's names, each with its kind, and what it leads to or holds.
std::vector<std::string> listing(const std::string& layer) {
  std::vector<std::string> result;
  archive* reader = archive_read_new();
  archive_read_support_filter_zstd(reader);
  archive_read_support_format_tar(reader);
  REQUIRE(archive_read_open_memory(reader, layer.data(), layer.size()) == ARCHIVE_OK);
  archive_entry* entry = nullptr;
  for (int code = 0; (code = archive_read_next_header(reader, &entry)) != ARCHIVE_EOF;) {
    REQUIRE(code >= ARCHIVE_WARN);
    std::string line = archive_entry_pathname(entry);
    if (const char* same = archive_entry_hardlink(entry))
      line += std::string(" = ") + same;
    else if (const char* target = archive_entry_symlink(entry))
      line += std::string(" -> ") + target;
    else if (archive_entry_filetype(entry) == AE_IFIFO)
      line += " fifo";
    std::string text(static_cast<std::size_t>(archive_entry_size(entry)), '\0');
    if (archive_read_data(reader, text.data(), text.size()) > 0) line += " " + text.substr(0, 20);
    result.push_back(line);
  }
  archive_read_free(reader);
  return result;
}

}  // namespace

TEST_CASE("layer: what is in the image is in the layer") {
  const auto tool = a_file("tool");
  tool->names = 2;
  const std::string long_name(200, 'n');
  const auto written = layer_of(Sif{}.around(Squashfs::of(
      a_folder({{".singularity.d", a_folder({{"runscript", a_file("#!/bin/sh")}})},
                {"a", tool},
                {"b", a_folder({{"again", tool}, {long_name, a_folder({{long_name, a_file("deep")}})}})},
                {"l", a_link("../../etc/passwd")},
                {"n\xff", a_special(fifo)}}))));
  REQUIRE_MESSAGE(written.layer, (written.layer ? "" : written.layer.error().message()));
  CHECK(listing(written.bytes) == std::vector<std::string>{".singularity.d/",
                                                           ".singularity.d/runscript #!/bin/sh", "a tool",
                                                           "b/", "b/again = a", "b/" + long_name + "/",
                                                           "b/" + long_name + "/" + long_name + " deep",
                                                           "l -> ../../etc/passwd", "n\xff fifo"});
  CHECK(written.layer->runscript);
  CHECK(written.layer->architecture == "amd64");
  CHECK(written.layer->entries == 9);
  CHECK(written.layer->left_out == 0);
}

TEST_CASE("layer: devices, sockets and what would remove other files are left out") {
  const auto hidden = a_file("hidden");
  hidden->names = 2;
  const auto written = layer_of(Squashfs::of(a_folder({{".wh..wh..opq", a_file("")},
                                                       {".wh.bin", hidden},
                                                       {"bin", a_folder({{"same", hidden}})},
                                                       {"null", a_special(device)},
                                                       {"sda", a_special(block_device)},
                                                       {"socket", a_special(store::written::socket)}})));
  REQUIRE(written.layer);
  CHECK(listing(written.bytes) == std::vector<std::string>{"bin/"});
  CHECK(written.layer->left_out == 6);
  CHECK_FALSE(written.layer->runscript);
}

TEST_CASE("layer: the same file gives the same bytes") {
  const auto file = Squashfs::of(a_folder({{"a", a_file(std::string(500'000, 'a'))}, {"b", a_link("a")}}));
  const auto once = layer_of(file), again = layer_of(file);
  CHECK(once.bytes == again.bytes);
  CHECK(once.layer->diff_id == again.layer->diff_id);
}

namespace {

// The layers of a file of which the first may have so many bytes.
struct Several {
  std::vector<std::string> tars = {""}, diff_ids;
  explicit Several(const std::string& file, std::uint64_t most) {
    Limits limits;
    limits.layer = most;
    std::uint64_t all = 0;
    const auto layer = write_layers(
        in_memory(file), limits,
        [&](std::string_view bytes) -> Result<void> {
          tars.back() += bytes;
          all += bytes.size();
          return {};
        },
        [&](const LayerEnd& end) -> Result<void> {
          CHECK(end.at == all);
          diff_ids.push_back(end.diff_id);
          tars.emplace_back();
          return {};
        });
    REQUIRE(layer);
    diff_ids.push_back(layer->diff_id);
  }
};

}  // namespace

TEST_CASE("layer: a large image has several, each with the folders that its files are in") {
  const std::string text(3000, 'x'), shown(20, 'x');
  const auto in = a_folder({{"1", a_file(text)}, {"2", a_file(text)}, {"3", a_file(text)}});
  in->mode = 0700;
  const auto file =
      Squashfs::of(a_folder({{"a", a_folder({{"b", in}})}, {"c", a_file(text)}, {"d", a_folder({})}}));
  const Several layers(file, 9000);
  REQUIRE(layers.tars.size() == 2);
  // The second one has room for twice as much: it takes the rest.
  CHECK(listing(layers.tars[0]) ==
        std::vector<std::string>{"a/", "a/b/", "a/b/1 " + shown, "a/b/2 " + shown});
  CHECK(listing(layers.tars[1]) ==
        std::vector<std::string>{"a/", "a/b/", "a/b/3 " + shown, "c " + shown, "d/"});
  for (std::size_t i = 0; i < 2; ++i) {
    Digest digest;
    digest.add(layers.tars[i]);
    CHECK(digest.text() == layers.diff_ids[i]);
  }
  CHECK(Several(file, 1 << 20).tars.size() == 1);
  CHECK(layer_of(file).layer->entries == 7);
}

TEST_CASE("layer: all names of a file are in one") {
  const std::string text(3000, 'x'), shown(20, 'x');
  const auto same = a_file(text);
  same->names = 3;
  const Several layers(
      Squashfs::of(
          a_folder({{"a", same}, {"b", a_file(text)}, {"c", same}, {"d", same}, {"e", a_file(text)}})),
      1000);
  REQUIRE(layers.tars.size() == 2);
  CHECK(listing(layers.tars[0]) == std::vector<std::string>{"a " + shown, "b " + shown, "c = a", "d = a"});
  CHECK(listing(layers.tars[1]) == std::vector<std::string>{"e " + shown});
}

TEST_CASE("layer: whose fault it is") {
  const auto bad = layer_of("no image");
  REQUIRE_FALSE(bad.layer);
  CHECK(bad.layer.error().fact<BadImage>() != nullptr);
  const auto file = in_memory(Squashfs::of(a_folder({{"a", a_file(std::string(1 << 20, 'a'))}})));
  const auto full =
      write_layers(file, {}, [](std::string_view) -> Result<void> { return Error("full", ENOSPC); });
  REQUIRE_FALSE(full);
  CHECK(full.error().fact<BadImage>() == nullptr);
  CHECK(full.error().code() == ENOSPC);
}

TEST_CASE("layer: its line comes back as it was, and nothing odd does") {
  const Layer layer{"sha256:" + std::string(64, 'a'), "amd64", true, 3, 1, 77};
  const auto back = Layer::from_line(layer.to_line());
  REQUIRE(back);
  CHECK(back->to_line() == layer.to_line());
  for (const char* line : {"", "{}", "[1]", R"({"diff_id": "sha256:x"})"})
    CHECK_FALSE(Layer::from_line(line));
  CHECK_FALSE(Layer::from_line(Layer{layer.diff_id, "amd64\", \"x"}.to_line()));
  CHECK_FALSE(Layer::from_line(Layer{"sha256:" + std::string(64, 'G')}.to_line()));
  const auto end = LayerEnd::from_line(LayerEnd{layer.diff_id, 77}.to_line());
  REQUIRE(end);
  CHECK(end->at == 77);
  CHECK(end->diff_id == layer.diff_id);
  CHECK_FALSE(LayerEnd::from_line(layer.to_line()));
  CHECK_FALSE(LayerEnd::from_line(LayerEnd{"sha256:x", 77}.to_line()));
}

TEST_CASE("digest: of pieces as of the whole") {
  Digest digest;
  digest.add("ab");
  digest.add("c");
  const auto text = digest.text();
  CHECK(text == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(is_digest(text));
  CHECK_FALSE(is_digest(text + "0"));
  CHECK_FALSE(is_digest("sha256:" + std::string(64, 'A')));
}

TEST_CASE("make: the documents of an image") {
  const Layer layer{"sha256:" + std::string(64, 'a'), "arm64", true};
  const auto config = json_from(image_config(layer, "amd64"));
  CHECK(config["architecture"] == "arm64");
  CHECK(config["os"] == "linux");
  CHECK(config["config"]["Entrypoint"] == nlohmann::json({"/.singularity.d/runscript"}));
  CHECK(config["rootfs"]["diff_ids"] == nlohmann::json({layer.diff_id}));
  const auto plain = json_from(image_config({layer.diff_id}, "amd64"));
  CHECK(plain["architecture"] == "amd64");
  CHECK_FALSE(plain["config"].contains("Entrypoint"));
  const auto manifest = json_from(image_manifest({"sha256:1", 10}, {{"sha256:2", 20}}));
  CHECK(manifest["config"]["digest"] == "sha256:1");
  CHECK(manifest["layers"].size() == 1);
  CHECK(manifest["layers"][0]["size"] == 20);
  auto upper = layer;
  upper.below = {"sha256:" + std::string(64, 'b')};
  CHECK(json_from(image_config(upper, "amd64"))["rootfs"]["diff_ids"] ==
        nlohmann::json({upper.below[0], layer.diff_id}));
  const auto two = json_from(image_manifest({"sha256:1", 10}, {{"sha256:2", 20}, {"sha256:3", 30}}));
  CHECK(two["layers"][1]["digest"] == "sha256:3");
}

TEST_CASE("layer: compressed it is the same when it is unpacked, however it comes") {
  const std::string all = "one two " + std::string(300'000, 'x') + " three";
  const auto compressed = [](const std::vector<std::string_view>& parts) {
    std::string bytes;
    const Sink sink = [&bytes](std::string_view more) -> Result<void> {
      bytes += more;
      return {};
    };
    Compressor compressor(sink);
    for (const auto part : parts) CHECK(compressor.add(part));
    CHECK(compressor.end());
    return bytes;
  };
  const auto whole = compressed({all});
  std::string back(2 * all.size(), '\0');
  back.resize(ZSTD_decompress(back.data(), back.size(), whole.data(), whole.size()));
  CHECK(back == all);
  CHECK(whole.size() < 1000);
  const std::string_view text = all;
  const auto pieces = compressed({text.substr(0, 3), "", text.substr(3)});
  back.assign(2 * all.size(), '\0');
  back.resize(ZSTD_decompress(back.data(), back.size(), pieces.data(), pieces.size()));
  CHECK(back == all);
  const Sink full = [](std::string_view) -> Result<void> { return Error("full", ENOSPC); };
  Compressor refused(full);
  CHECK(refused.add("little"));
  CHECK(refused.end().error().code() == ENOSPC);
}
