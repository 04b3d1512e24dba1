#pragma once

#include <string>

#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// A settings file: its name and its text.
struct File {
  std::string name, text;
};

// Each at most 1 MiB.
Result<std::vector<File>> read_settings_files(const List& files);

// As load_settings, of texts: what is wrong, and `written`, have FILE:LINE and never the value of a secret,
// nor of a key that is not known.
Result<LoadedSettings> settings_of(const std::vector<File>& files);

// Each key with the value that is in force, its default, and where it comes from; the values of secrets are
// hidden. names: only these keys; empty: all. An Error where the files cannot be used, or where there is no
// such key.
Result<std::string> settings_in_force(const std::vector<File>& files, const List& names);

struct Checked {
  List problems;  // a line each: FILE:LINE, what is wrong, what to do
  List notes;     // what is taken for PRP's files and means nothing here
};
Checked check_settings(const std::vector<File>& files);

// docs/settings-provisioner.md, whole.
std::string settings_page();

}  // namespace glidepod::provisioner
