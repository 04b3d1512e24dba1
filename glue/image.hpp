#pragma once

#include "glue/users.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What a job needs in the image: /tmp, /var/tmp, a name for its user, and the variables of Apptainer's own
// files. The image's own links are followed only within its own file system, and only before the first job.
// What is needed later is held from then on.
class Image {
 public:
  void prepare(const wire::Launch& launch);

 private:
  bool prepared_ = false;
  Accounts accounts_;
};

}  // namespace glidepod::glue
