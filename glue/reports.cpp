#include "glue/reports.hpp"

#include <unistd.h>

namespace glidepod::glue {

// A record is far smaller than what a pipe writes in one piece.
Record read_record(const Fd& pipe, void* record, std::size_t size) {
  const ssize_t got = ::read(pipe.get(), record, size);
  if (got < 0) return Record::none;
  return got == static_cast<ssize_t>(size) ? Record::whole : Record::end;
}

}  // namespace glidepod::glue
