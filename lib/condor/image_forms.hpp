#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glidepod::condor {

// What a job's image is by its name, as HTCondor's condor_submit and starter take it.
enum class ImageForm : std::uint8_t {
  registry,  // the node pulls it, or a rule makes such a name of it
  file,      // HTCondor has put it into the job's folder: "app.sif", "/home/x/app.sif", "osdf:///x/app.sif"
  folder,    // so too: "app/", "/home/x/app"
};
ImageForm image_form(std::string_view image);

// Its last part, which is what it is called in the job's folder; empty: it has none.
std::string image_file_name(std::string_view image);

// The names of files and of folders as patterns (PCRE), which images/pilot/config.d/51-image-files.config has
// too: a test holds it to these.
std::string image_file_pattern();
std::string image_folder_pattern();

}  // namespace glidepod::condor
