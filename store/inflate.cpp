#include "store/inflate.hpp"

#include <libdeflate.h>
#include <sqfs/error.h>

#include <cstddef>
#include <memory>
#include <new>

namespace glidepod::store {
namespace {

struct Inflate {
  struct Free {
    void operator()(libdeflate_decompressor* unused) const { libdeflate_free_decompressor(unused); }
  };
  sqfs_compressor_t base{};
  std::unique_ptr<libdeflate_decompressor, Free> reader{libdeflate_alloc_decompressor()};

  Inflate() {
    base.base.destroy = [](sqfs_object_t* object) { delete reinterpret_cast<Inflate*>(object); };
    base.get_configuration = [](const sqfs_compressor_t*, sqfs_compressor_config_t* configuration) {
      *configuration = {};
      configuration->id = SQFS_COMP_GZIP;
      configuration->flags = SQFS_COMP_FLAG_UNCOMPRESS;
    };
    base.write_options = [](sqfs_compressor_t*, sqfs_file_t*) -> int { return SQFS_ERROR_UNSUPPORTED; };
    base.read_options = [](sqfs_compressor_t*, sqfs_file_t*) -> int { return 0; };  // they are the packer's
    base.do_block = [](sqfs_compressor_t* self, const sqfs_u8* from, sqfs_u32 size, sqfs_u8* to,
                       sqfs_u32 room) -> sqfs_s32 {
      std::size_t written = 0;
      switch (libdeflate_zlib_decompress(reinterpret_cast<Inflate*>(self)->reader.get(), from, size, to, room,
                                         &written)) {
        case LIBDEFLATE_SUCCESS:
          return static_cast<sqfs_s32>(written);
        case LIBDEFLATE_INSUFFICIENT_SPACE:
          return 0;  // as libsquashfs wants to be told
        default:
          return SQFS_ERROR_COMPRESSOR;
      }
    };
  }
};
static_assert(offsetof(Inflate, base) == 0);

}  // namespace

sqfs_compressor_t* make_inflate() {
  std::unique_ptr<Inflate> made(new (std::nothrow) Inflate);
  return made && made->reader ? &made.release()->base : nullptr;
}

}  // namespace glidepod::store
