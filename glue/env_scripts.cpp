#include "glue/env_scripts.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/beneath.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

constexpr std::size_t k_most_scripts = 64, k_longest_script = std::size_t{64} * 1024;
constexpr int k_deepest = 8;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool begins_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}
bool in_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9');
}

// The variables as the scripts see them. Some are not exported (yet).
class Variables {
 public:
  explicit Variables(std::vector<std::string> environment) : environment_(std::move(environment)) {}

  std::optional<std::string> value(std::string_view name) const {
    if (const auto found = own_.find(name); found != own_.end()) return found->second.value;
    for (const std::string_view entry : environment_)
      if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
        return std::string(entry.substr(name.size() + 1));
    return std::nullopt;
  }
  // False where it is too much.
  bool set(const std::string& name, std::string value) {
    added_ += name.size() + value.size();
    if (added_ > k_most_added) return false;
    own_[name].value = std::move(value);
    return true;
  }
  void exported(const std::string& name) {
    if (const auto found = own_.find(name); found != own_.end()) found->second.exported = true;
  }
  std::vector<std::string> environment() && {
    for (auto& entry : environment_) {
      const auto found = own_.find(std::string_view(entry).substr(0, entry.find('=')));
      if (found == own_.end()) continue;
      entry = found->first + "=" + found->second.value;
      found->second.exported = false;  // it is there
    }
    for (const auto& [name, variable] : own_)
      if (variable.exported) environment_.push_back(name + "=" + variable.value);
    return std::move(environment_);
  }

 private:
  struct Variable {
    std::string value;
    bool exported = false;
  };

  std::vector<std::string> environment_;
  std::map<std::string, Variable, std::less<>> own_;
  std::size_t added_ = 0;
};

// A line of a script. What takes a shell to be understood is nothing.
class Line {
 public:
  Line(std::string_view text, const Variables& variables) : text_(text), variables_(variables) {}

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool over() const { return at_ == text_.size() || text_[at_] == '#'; }
  bool takes(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_blank() const { return at_ == text_.size() || is_blank(text_[at_]); }
  std::string name() {
    const auto from = at_;
    while (at_ < text_.size() && (at_ == from ? begins_name(text_[at_]) : in_name(text_[at_]))) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  // Up to the word's end.
  std::optional<std::string> word() { return text_until(End::word, false, 0); }

 private:
  enum class End { word, quote, brace };

  std::optional<std::string> text_until(End end, bool quoted, int depth) {
    std::string result;
    if (depth > k_deepest) return std::nullopt;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (end == End::word && is_blank(c)) return result;
      if ((end == End::quote && c == '"') || (end == End::brace && c == '}')) return result;
      if (c == '$' || c == '"' || (c == '\'' && !quoted)) {
        const auto part = c == '$' ? expansion(quoted, depth) : c == '"' ? in_quotes(depth) : as_it_is();
        if (!part || result.size() + part->size() > k_most_added) return std::nullopt;
        result += *part;
      } else if (c == '\\') {
        if (++at_ == text_.size()) return std::nullopt;
        const bool special = std::string_view("$`\"\\").find(text_[at_]) != std::string_view::npos;
        if (quoted && !special) result += '\\';
        result += text_[at_];
      } else if (c == '`' || (!quoted && std::string_view(";&|<>()~").find(c) != std::string_view::npos)) {
        return std::nullopt;
      } else {
        result += c;
      }
    }
    return end == End::word ? std::optional(result) : std::nullopt;
  }
  // These three begin at their first character and leave the place at their last one.
  std::optional<std::string> in_quotes(int depth) {
    ++at_;
    return text_until(End::quote, true, depth + 1);
  }
  std::optional<std::string> as_it_is() {
    const auto end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto from = std::exchange(at_, end) + 1;
    return std::string(text_.substr(from, end - from));
  }
  std::optional<std::string> expansion(bool quoted, int depth) {
    ++at_;
    const bool braces = takes('{');
    const auto variable = name();
    if (variable.empty()) return std::nullopt;
    const auto value = variables_.value(variable);
    if (!braces) {
      --at_;
      return value.value_or("");
    }
    if (at_ < text_.size() && text_[at_] == '}') return value.value_or("");
    const bool filled = takes(':');
    const bool there = value && !(filled && value->empty());
    const bool in_place = takes('-');
    if (!in_place && !takes('+')) return std::nullopt;
    auto other = text_until(End::brace, quoted, depth + 1);
    if (!other) return std::nullopt;
    if (in_place) return there ? value : other;
    return there ? other : std::optional<std::string>(std::string());
  }

  std::string_view text_;
  const Variables& variables_;
  std::size_t at_ = 0;
};

// False where the script is to be read no further.
bool take_line(std::string_view text, Variables& variables) {
  Line line(text, variables);
  line.skip_blanks();
  if (line.over()) return true;
  auto name = line.name();
  const bool exports = name == "export" && line.at_blank();
  if (exports) {
    line.skip_blanks();
    name = line.name();
  }
  for (;;) {
    if (name.empty()) return false;
    if (line.takes('=')) {
      const auto value = line.word();
      line.skip_blanks();
      if (!exports && !line.over()) return false;  // of the command that follows alone
      if (!value || !variables.set(name, *value)) return false;
    } else if (!exports || !line.at_blank()) {
      return false;
    }
    if (exports) variables.exported(name);
    line.skip_blanks();
    if (line.over()) return true;
    name = line.name();
  }
}

}  // namespace

FromScripts with_env_scripts(std::vector<std::string> environment, const std::vector<std::string>& scripts) {
  Variables variables(std::move(environment));
  bool whole = true;
  for (const auto& script : scripts)
    for (const auto& line : split(script, '\n'))
      if (line.find('\0') != std::string::npos || !take_line(line, variables)) {
        whole = false;
        break;
      }
  return {std::move(variables).environment(), whole};
}

std::vector<std::string> read_env_scripts(const Fd& root) {
  const Fd folder = open_beneath(root, ".singularity.d/env", O_RDONLY | O_DIRECTORY, Through::links);
  if (!folder) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)),
                                                    ::closedir);
  std::vector<std::string> names, scripts;
  while (const auto* entry = listing ? ::readdir(listing.get()) : nullptr)
    if (std::string_view(entry->d_name).ends_with(".sh") && names.size() < k_most_scripts)
      names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  for (const auto& name : names) {
    const Fd file = open_beneath(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, Through::links);
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::string text(k_longest_script, '\0');
    const auto got = ::pread(file.get(), text.data(), text.size(), 0);
    if (got <= 0 || static_cast<std::size_t>(got) == k_longest_script) continue;
    text.resize(static_cast<std::size_t>(got));
    scripts.push_back(std::move(text));
  }
  return scripts;
}

}  // namespace glidepod::glue
