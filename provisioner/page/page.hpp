#pragma once

#include <string_view>

namespace glidepod::provisioner {

// A file of the page, as it was when this was compiled.
struct PageFile {
  std::string_view path;  // "/", "/page.js"
  std::string_view type;
  std::string_view text;
};

// Nothing where there is no such file.
const PageFile* find_page_file(std::string_view path);

// What a browser is allowed to do with it: files and answers of this very server, no foreign ones, nothing
// inline, and no text that becomes markup.
inline constexpr std::string_view k_page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";

}  // namespace glidepod::provisioner
