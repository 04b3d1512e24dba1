#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/wire/folder_mark.hpp"

// Writes tars as agents make them of folders, and such as no agent would.
namespace glidepod::store::written {

struct Said {
  char type = '0';
  std::string path, text = {}, target = {};
  std::uint64_t size = ~std::uint64_t{0};  // what it says; else the truth
};

inline std::string block(const Said& said) {
  std::string bytes(512, '\0');
  const auto put = [&bytes](std::size_t at, const std::string& text) {
    bytes.replace(at, text.size(), text);
  };
  put(0, said.path.substr(0, 100));
  put(100, "0000755");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", said.size == ~std::uint64_t{0} ? said.text.size() : said.size));
  put(136, "00000000000");
  put(148, "        ");
  bytes[156] = said.type;
  put(157, said.target.substr(0, 100));
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char byte : bytes) sum += static_cast<unsigned char>(byte);
  put(148, fmt::format("{:06o}", sum));
  bytes[154] = '\0';
  std::string text = said.text;
  text.resize((text.size() + 511) / 512 * 512);
  return bytes + text;
}

inline std::string tar(const std::vector<Said>& all) {
  std::string bytes = block({'g', std::string(wire::k_folder_mark), "20 comment=an image\n"});
  for (const auto& said : all) bytes += block(said);
  return bytes + std::string(1024, '\0');
}

}  // namespace glidepod::store::written
