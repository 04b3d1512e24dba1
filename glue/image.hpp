#pragma once

#include <string>

#include "glue/users.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What a job needs in the image: /tmp, /var/tmp, a name for its user, and the variables of Apptainer's own
// files. The image's own links are followed only within its own file system, and only before the first job.
// What is needed later is held from then on.
class Image {
 public:
  void prepare(const wire::Launch& launch);
  // As the image's own scripts want it, once it is prepared.
  wire::Launch by_its_scripts(const wire::Launch& launch) const;

 private:
  void lend_scripts(const Fd& root);
  bool prepared_ = false;
  std::string shell_;  // that reads its scripts; empty: none is needed, or there is none
  Accounts accounts_;
};

}  // namespace glidepod::glue
