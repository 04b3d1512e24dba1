#include "pilot-agent/apptainer/command_line.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/base/text.hpp"

namespace glidepod::apptainer {

namespace {

enum class Where : std::uint8_t { anywhere, verb };
enum class Takes : std::uint8_t { nothing, value };
enum class Meaning : std::uint8_t {
  none,
  bind,
  clean_environment,
  contain,
  contain_all,
  compatible,
  cwd,
  environment,
  environment_file,
  help,
  home,
  no_umask,
  scratch,
  version,
  work_directory,
};

struct Option {
  std::string_view name;
  char letter;
  Where where;
  Takes takes;
  Meaning meaning;
};

// The first group is apptainer's global options, the second those of exec, run and test. Missing on purpose,
// since nothing here keeps their promise: --overlay, --fakeroot, --net, --hostname, --security, --add-caps,
// --memory and the other cgroup limits, --app, --mount, --fusemount, --vm.
constexpr Option k_options[] = {
    {"debug", 'd', Where::anywhere, Takes::nothing, Meaning::none},
    {"help", 'h', Where::anywhere, Takes::nothing, Meaning::help},
    {"nocolor", 0, Where::anywhere, Takes::nothing, Meaning::none},
    {"quiet", 'q', Where::anywhere, Takes::nothing, Meaning::none},
    {"silent", 's', Where::anywhere, Takes::nothing, Meaning::none},
    {"verbose", 'v', Where::anywhere, Takes::nothing, Meaning::none},
    {"version", 0, Where::anywhere, Takes::nothing, Meaning::version},

    {"bind", 'B', Where::verb, Takes::value, Meaning::bind},
    {"cleanenv", 'e', Where::verb, Takes::nothing, Meaning::clean_environment},
    {"compat", 0, Where::verb, Takes::nothing, Meaning::compatible},
    {"contain", 'c', Where::verb, Takes::nothing, Meaning::contain},
    {"containall", 'C', Where::verb, Takes::nothing, Meaning::contain_all},
    {"cwd", 0, Where::verb, Takes::value, Meaning::cwd},
    {"disable-cache", 0, Where::verb, Takes::nothing, Meaning::none},
    {"drop-caps", 0, Where::verb, Takes::value, Meaning::none},
    {"env", 0, Where::verb, Takes::value, Meaning::environment},
    {"env-file", 0, Where::verb, Takes::value, Meaning::environment_file},
    {"home", 'H', Where::verb, Takes::value, Meaning::home},
    {"ipc", 'i', Where::verb, Takes::nothing, Meaning::none},
    {"no-eval", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-home", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-init", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-mount", 0, Where::verb, Takes::value, Meaning::none},
    {"no-nv", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-privs", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-rocm", 0, Where::verb, Takes::nothing, Meaning::none},
    {"no-umask", 0, Where::verb, Takes::nothing, Meaning::no_umask},
    {"nv", 0, Where::verb, Takes::nothing, Meaning::none},
    {"nvccli", 0, Where::verb, Takes::nothing, Meaning::none},
    {"pid", 'p', Where::verb, Takes::nothing, Meaning::none},
    {"pwd", 0, Where::verb, Takes::value, Meaning::cwd},
    {"rocm", 0, Where::verb, Takes::nothing, Meaning::none},
    {"scratch", 'S', Where::verb, Takes::value, Meaning::scratch},
    {"tmpdir", 0, Where::verb, Takes::value, Meaning::none},
    {"underlay", 0, Where::verb, Takes::nothing, Meaning::none},
    {"unsquash", 0, Where::verb, Takes::nothing, Meaning::none},
    {"userns", 'u', Where::verb, Takes::nothing, Meaning::none},
    {"uts", 0, Where::verb, Takes::nothing, Meaning::none},
    {"workdir", 'W', Where::verb, Takes::value, Meaning::work_directory},
    {"writable", 'w', Where::verb, Takes::nothing, Meaning::none},
    {"writable-tmpfs", 0, Where::verb, Takes::nothing, Meaning::none},
};

std::optional<wire::Verb> verb_of(std::string_view word) {
  if (word == "exec") return wire::Verb::exec;
  if (word == "run") return wire::Verb::run;
  if (word == "test") return wire::Verb::test;
  return std::nullopt;
}

// The words for true and false are those of Go's strconv.ParseBool.
Result<bool> parse_bool(std::string_view option, std::string_view value) {
  for (const std::string_view word : {"1", "t", "T", "TRUE", "true", "True"})
    if (value == word) return true;
  for (const std::string_view word : {"0", "f", "F", "FALSE", "false", "False"})
    if (value == word) return false;
  return error("option {}: '{}' is neither true nor false", option, value);
}

// A comma that belongs to a path is written "\,".
void add_binds(std::string_view list, std::vector<std::string>& binds) {
  std::string bind;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '\\' && i + 1 < list.size() && list[i + 1] == ',') {
      bind += list[++i];
    } else if (i < list.size() && list[i] != ',') {
      bind += list[i];
    } else if (!bind.empty()) {
      binds.push_back(std::exchange(bind, {}));
    }
  }
}

// As pflag reads a map: one "=" makes the whole text one variable, commas and all; with more of them the text
// is a comma list.
Result<void> add_environment(std::string_view text, std::vector<std::string>& environment) {
  const auto equals = std::count(text.begin(), text.end(), '=');
  for (const std::string& variable :
       equals == 1 ? std::vector<std::string>{std::string(text)} : split(text, ',')) {
    const auto at = variable.find('=');
    if (at == std::string::npos || at == 0)
      return error("option --env: '{}' is not of the form NAME=VALUE", variable);
    environment.push_back(variable);
  }
  return {};
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Result<CommandLine> parse() {
    TRY(options(Where::anywhere));
    if (line_.action != CommandLine::Action::run_verb) return line_;
    if (next_ == arguments_.size()) return error("no command given; there are exec, run, test and version");
    const std::string& word = arguments_[next_++];
    if (word == "version" || word == "help") {
      line_.action = word == "version" ? CommandLine::Action::show_version : CommandLine::Action::show_help;
      return line_;
    }
    const auto verb = verb_of(word);
    if (!verb) return error("unknown command '{}'; there are exec, run, test and version", word);
    line_.verb = *verb;
    TRY(options(Where::verb));
    if (line_.action != CommandLine::Action::run_verb) return line_;
    if (next_ == arguments_.size()) return error("{}: no image given", word);
    line_.image = arguments_[next_++];
    line_.argv.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(next_), arguments_.end());
    if (line_.image.empty()) return error("{}: the image's name is empty", word);
    if (*verb == wire::Verb::exec && line_.argv.empty())
      return error("exec {}: no command to run in the image", line_.image);
    return line_;
  }

 private:
  // Consumes options up to the first argument that is none.
  Result<void> options(Where where) {
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_];
      if (argument.size() < 2 || argument[0] != '-') return {};
      ++next_;
      if (argument == "--") return {};
      TRY(argument[1] == '-' ? long_option(argument, where) : short_options(argument, where));
    }
    return {};
  }

  Result<void> long_option(std::string_view argument, Where where) {
    const auto equals = argument.find('=');
    const std::string_view shown = argument.substr(0, equals);
    const auto found = std::ranges::find_if(k_options, [&](const Option& option) {
      return option.name == shown.substr(2) && allowed(option, where);
    });
    if (found == std::end(k_options)) return unknown(shown, where);
    if (equals != std::string_view::npos) return apply(*found, shown, argument.substr(equals + 1));
    if (found->takes == Takes::nothing) return apply(*found, shown, "true");
    return apply(*found, shown, TRY(next_value(shown)));
  }

  Result<void> short_options(std::string_view argument, Where where) {
    for (argument.remove_prefix(1); !argument.empty();) {
      const std::string shown = {'-', argument[0]};
      const auto found = std::ranges::find_if(k_options, [&](const Option& option) {
        return option.letter == argument[0] && allowed(option, where);
      });
      if (found == std::end(k_options)) return unknown(shown, where);
      argument.remove_prefix(1);
      if (argument.size() > 1 && argument[0] == '=') return apply(*found, shown, argument.substr(1));
      if (found->takes == Takes::value)
        return apply(*found, shown, argument.empty() ? TRY(next_value(shown)) : argument);
      TRY(apply(*found, shown, "true"));
    }
    return {};
  }

  static bool allowed(const Option& option, Where where) {
    return option.where == Where::anywhere || where == Where::verb;
  }

  Error unknown(std::string_view shown, Where where) const {
    return error("option {} is not supported{}; these are: {}", shown,
                 where == Where::verb ? "" : " before the command", understood_options());
  }

  Result<std::string_view> next_value(std::string_view shown) {
    if (next_ == arguments_.size()) return error("option {} needs a value", shown);
    return std::string_view(arguments_[next_++]);
  }

  Result<void> apply(const Option& option, std::string_view shown, std::string_view value) {
    const bool on = option.takes == Takes::value || TRY(parse_bool(shown, value));
    switch (option.meaning) {
      case Meaning::none:
        break;
      case Meaning::bind:
        add_binds(value, line_.binds);
        break;
      case Meaning::clean_environment:
        line_.clean_environment = on;
        break;
      case Meaning::contain:
        line_.contain = on;
        break;
      case Meaning::contain_all:
        line_.contain = line_.clean_environment = on;
        break;
      case Meaning::compatible:
        line_.contain = line_.clean_environment = on;
        line_.own_umask = !on;
        break;
      case Meaning::cwd:
        line_.cwd = value;
        break;
      case Meaning::environment:
        return add_environment(value, line_.environment);
      case Meaning::environment_file:
        line_.environment_files.emplace_back(value);
        break;
      case Meaning::help:
        if (on) line_.action = CommandLine::Action::show_help;
        break;
      case Meaning::home:
        line_.home = value;
        break;
      case Meaning::no_umask:
        line_.own_umask = !on;
        break;
      case Meaning::scratch:
        // These every container has, and glue empties them after each job.
        if (value != "/tmp" && value != "/var/tmp")
          return error("{} {}: a payload container has no scratch folders but /tmp and /var/tmp", shown,
                       value);
        break;
      case Meaning::version:
        if (on) line_.action = CommandLine::Action::show_version;
        break;
      case Meaning::work_directory:
        line_.work_directory = value;
        break;
    }
    return {};
  }

  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  CommandLine line_;
};

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  return Parser(arguments).parse();
}

bool asks_for_test(const std::vector<std::string>& arguments) {
  const auto word =
      std::ranges::find_if(arguments, [](const std::string& argument) { return !argument.starts_with('-'); });
  return word != arguments.end() && *word == "test";
}

std::string understood_options() {
  std::string text;
  for (const Option& option : k_options) {
    if (!text.empty()) text += ' ';
    if (option.letter != 0) text += {'-', option.letter, '/'};
    text += "--";
    text += option.name;
  }
  return text;
}

}  // namespace glidepod::apptainer
