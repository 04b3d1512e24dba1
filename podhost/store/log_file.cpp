#include "podhost/store/log_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "lib/base/file.hpp"

namespace glidepod::podhost {

std::string LogReader::feed(std::string_view bytes) {
  rest_ += bytes;
  std::string text;
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    const std::string_view line = std::string_view(rest_).substr(begin, end - begin);
    begin = end + 1;
    const auto stream = line.find(' ');
    const auto flag = stream == std::string_view::npos ? stream : line.find(' ', stream + 1);
    if (flag == std::string_view::npos || flag + 1 >= line.size()) continue;
    const bool partial = line[flag + 1] == 'P';
    if (timestamps_ && !line_begun_) text += std::string(line.substr(0, stream)) + " ";
    text += line.substr(std::min(flag + 3, line.size()));
    if (!partial) text += '\n';
    line_begun_ = partial;
  }
  rest_.erase(0, begin);
  return text;
}

std::size_t tail_offset(std::string_view log, std::int64_t count) {
  std::size_t begin = log.size();
  while (begin > 0) {
    const auto line = begin >= 2 ? log.rfind('\n', begin - 2) : std::string_view::npos;
    const std::size_t start = line == std::string_view::npos ? 0 : line + 1;
    // A partial record belongs to the line that follows it.
    const auto stream = log.find(' ', start);
    const auto flag = stream == std::string_view::npos ? stream : log.find(' ', stream + 1);
    const bool full = flag == std::string_view::npos || flag + 1 >= log.size() || log[flag + 1] != 'P';
    if (full && count-- == 0) return begin;
    begin = start;
  }
  return 0;
}

std::string read_head(const std::string& path, std::size_t limit) {
  const auto file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return {};
  std::string text(limit, '\0');
  const ssize_t got = read(file.value().get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string read_tail(const std::string& log_path, int lines, std::size_t limit) {
  const auto log = read_file(log_path, std::size_t{64} << 20);
  if (!log) return {};
  const std::string_view bytes = log.value();
  std::string text = LogReader(false).feed(bytes.substr(tail_offset(bytes, lines)));
  if (text.size() > limit) text.erase(0, text.size() - limit);
  return text;
}

}  // namespace glidepod::podhost
