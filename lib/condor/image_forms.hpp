#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glidepod::condor {

// What a job's image is by its name, as HTCondor's condor_submit and starter take it.
enum class ImageForm : std::uint8_t {
  registry,  // the node pulls it, or a rule makes such a name of it
  file,      // HTCondor has put it into the job's folder: "app.sif", "/home/x/app.sif", "osdf:///x/app.sif"
  folder,    // so too: "app", "/home/x/app"
  artifact,  // a registry has it as a file: "oras://registry.example/app:1"
};
ImageForm image_form(std::string_view image);

// Its last part, which is what it is called in the job's folder; empty: it has none.
std::string image_file_name(std::string_view image);

// The names of all but the first as a pattern (PCRE), which images/pilot/config.d/51-image-files.config has
// too: a test holds it to this.
std::string image_file_pattern();

}  // namespace glidepod::condor
