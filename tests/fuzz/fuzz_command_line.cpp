#include <cstdint>
#include <cstdlib>

#include "lib/base/text.hpp"
#include "pilot-agent/apptainer/environment.hpp"
#include "pilot-agent/apptainer/request.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {
void require(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

// The input is arguments, an empty line, then variables, one a line. A job chooses both: its arguments follow
// the image, its environment comes with every call.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find('\0') != std::string_view::npos) return 0;  // no argument and no variable has one
  const auto middle = text.find("\n\n");
  const auto arguments = split(text.substr(0, middle), '\n');
  const auto environment = split(middle == std::string_view::npos ? "" : text.substr(middle + 2), '\n');
  (void)read_environment_text(text, "fuzz");

  const auto line = parse_command_line(arguments);
  if (!line) {
    require(!line.error().message().empty());
    return 0;
  }
  if (line->action != CommandLine::Action::run_verb) return 0;
  // The job's words stay as they are, at the end.
  require(line->argv.size() < arguments.size());
  require(std::equal(line->argv.rbegin(), line->argv.rend(), arguments.rbegin()));
  // No file of this machine plays a part.
  if (line->image.find("://") == std::string::npos || !line->environment_files.empty()) return 0;

  const auto request = make_request(line.value(), {.environment = environment, .cwd = "/"});
  if (!request) return 0;
  const auto& bind = request->bind;
  require(bind.cwd.starts_with('/') && bind.home.starts_with('/'));
  require(bind.launched_marker.empty() || bind.launched_marker.starts_with('/'));
  require(find_variable(bind.environment, "HOME") == bind.home);
  for (std::size_t i = 0; i < bind.environment.size(); ++i) {
    const auto at = bind.environment[i].find('=');
    require(at != 0 && at != std::string::npos);
    for (std::size_t j = 0; j < i; ++j)
      require(!bind.environment[j].starts_with(bind.environment[i].substr(0, at + 1)));
  }
  return 0;
}
