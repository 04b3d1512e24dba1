#pragma once

#include "glue/users.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What the image lends its jobs: /tmp, /var/tmp, a name, and the variables of Apptainer's own files. Its own
// links are followed, within its own file system only, and only before the first job: what is used later is
// held from then on.
class Image {
 public:
  void prepare(const wire::Launch& launch);

 private:
  bool prepared_ = false;
  Accounts accounts_;
};

}  // namespace glidepod::glue
