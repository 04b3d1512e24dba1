#include "store/compressor.hpp"

namespace glidepod::store {
namespace {

constexpr int k_level = 1;  // the time of a conversion counts, not a tenth of its size

}  // namespace

Compressor::Compressor(const Sink& sink)
    : sink_(sink), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
  if (context_) ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, k_level);
}

Result<void> Compressor::run(std::string_view bytes, ZSTD_EndDirective how) {
  if (!context_) return error("no memory to compress");
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const auto left = ZSTD_compressStream2(context_.get(), &out, &in, how);
    if (ZSTD_isError(left)) return error("compress: {}", ZSTD_getErrorName(left));
    if (out.pos > 0) TRY(sink_(std::string_view(out_.data(), out.pos)));
    if (how == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
  }
}

}  // namespace glidepod::store
