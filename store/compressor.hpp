#pragma once

#include <zstd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "store/layer.hpp"

namespace glidepod::store {

// Compresses what it gets by zstd, and hands it on. The same bytes give the same bytes.
class Compressor {
 public:
  explicit Compressor(const Sink& sink);
  Result<void> add(std::string_view bytes) { return run(bytes, ZSTD_e_continue); }
  Result<void> end() { return run({}, ZSTD_e_end); }

 private:
  struct Release {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  Result<void> run(std::string_view bytes, ZSTD_EndDirective how);

  const Sink& sink_;
  std::unique_ptr<ZSTD_CCtx, Release> context_;
  std::vector<char> out_;
};

}  // namespace glidepod::store
