#include "store/inflate.hpp"

#include <doctest/doctest.h>
#include <sqfs/error.h>

#include <string>

using namespace glidepod;
using namespace glidepod::store;

namespace {

const std::string k_hello("\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15", 13);  // as zlib writes it

// What comes of a block where there is room for so many bytes.
sqfs_s32 inflated(const std::string& block, std::string& to) {
  auto* inflate = make_inflate();
  REQUIRE(inflate);
  const auto written = inflate->do_block(
      inflate, reinterpret_cast<const sqfs_u8*>(block.data()), static_cast<sqfs_u32>(block.size()),
      reinterpret_cast<sqfs_u8*>(to.data()), static_cast<sqfs_u32>(to.size()));
  sqfs_destroy(inflate);
  return written;
}

}  // namespace

TEST_CASE("inflate: a block comes back as it was") {
  std::string to(8, '-');
  CHECK(inflated(k_hello, to) == 5);
  CHECK(to == "hello---");
}

TEST_CASE("inflate: libsquashfs is told what is too long, and what is damaged") {
  std::string small(4, '-');
  CHECK(inflated(k_hello, small) == 0);
  std::string to(8, '-');
  for (std::size_t size = 0; size < k_hello.size(); ++size)
    CHECK(inflated(k_hello.substr(0, size), to) == SQFS_ERROR_COMPRESSOR);
  auto wrong = k_hello;
  wrong.back() = '\0';  // its checksum
  CHECK(inflated(wrong, to) == SQFS_ERROR_COMPRESSOR);
}
