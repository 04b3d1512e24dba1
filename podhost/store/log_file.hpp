#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace glidepod::podhost {

struct LogOptions {
  std::optional<std::int64_t> tail_lines, limit_bytes;
  bool timestamps = false;
};

// Turns a container's log as conmon writes it ("TIME stdout F text") into what the container wrote.
class LogReader {
 public:
  explicit LogReader(bool timestamps) : timestamps_(timestamps) {}
  // Takes the next bytes of the file and returns the text of the lines completed by them.
  std::string feed(std::string_view bytes);

 private:
  bool timestamps_;
  bool line_begun_ = false;
  std::string rest_;
};

// Where in the file's bytes its last count lines begin.
std::size_t tail_offset(std::string_view log, std::int64_t count);

// The first bytes of a file; empty if it cannot be read. Never follows a link: the file is the container's.
std::string read_head(const std::string& path, std::size_t limit);
// The text of a log's last lines, at most limit bytes.
std::string read_tail(const std::string& log_path, int lines, std::size_t limit);

}  // namespace glidepod::podhost
