#pragma once

#include <string_view>

namespace glidepod::wire {

// The name of the first entry of the tar that an agent makes of an image that is a folder, by which
// image-store knows it. It is a global header of pax, so no file of the image has it.
inline constexpr std::string_view k_folder_mark = "glidepod-image-folder";

}  // namespace glidepod::wire
