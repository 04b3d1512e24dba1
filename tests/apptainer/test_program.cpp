#include "pilot-agent/apptainer/program.hpp"

#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

// A directory image with what a program can and cannot be.
struct Image {
  TemporaryFolder folder;
  const std::string& path = folder.path;
  Image() {
    put("static", elf(PT_LOAD), 0755);
    put("dynamic", elf(PT_INTERP), 0755);
    put("script", "#!/bin/sh\n", 0755);
    put("data", elf(PT_LOAD), 0644);
    put("short", elf(PT_LOAD).substr(0, 70), 0755);
    put("empty", "", 0755);
    std::filesystem::create_directory(path + "/bin");
    REQUIRE(::symlink("/static", (path + "/bin/absolute").c_str()) == 0);
    REQUIRE(::symlink("../../../../../static", (path + "/bin/upwards").c_str()) == 0);
    REQUIRE(::mkfifo((path + "/pipe").c_str(), 0777) == 0);
  }
  void put(const std::string& name, const std::string& data, unsigned mode) {
    const Fd fd = open_file(path + "/" + name, O_WRONLY | O_CREAT, mode).value();
    REQUIRE(write_all(fd, data).ok());
    REQUIRE(::fchmod(fd.get(), mode) == 0);
  }
  static std::string elf(unsigned part_type) {
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Elf64_Phdr parts[2]{};
    parts[0].p_type = PT_LOAD;
    parts[1].p_type = part_type;
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
           std::string(reinterpret_cast<const char*>(parts), sizeof parts);
  }
};

}  // namespace

TEST_CASE("program: only a directory that is there is a directory image") {
  const Image image;
  CHECK(is_directory_image(image.path));
  CHECK_FALSE(is_directory_image("docker://" + image.path));
  CHECK_FALSE(is_directory_image(image.path + "/static"));
  CHECK_FALSE(is_directory_image(image.path + "/none"));
}

TEST_CASE("program: a static program is opened, and nothing outside of the image") {
  const Image image;
  for (const char* name : {"/static", "/bin/absolute", "/bin/upwards", "bin/../static", "/../../static"}) {
    const auto program = open_program(image.path, name);
    CHECK_MESSAGE(program.ok(), name << (program.ok() ? "" : program.error().message()));
  }
  struct Row {
    const char* name;
    const char* why;
  };
  for (const Row& row : {Row{"/dynamic", "(/dynamic is not a statically linked program)"},
                         Row{"/script", "(/script is not a statically linked program)"},
                         Row{"/short", "(/short is not a statically linked program)"},
                         Row{"/empty", "(/empty is not a statically linked program)"},
                         Row{"/data", "(/data is not a program)"}, Row{"/bin", "(/bin is not a program)"},
                         Row{"/pipe", "(/pipe is not a program)"}, Row{"static", "(static is not a path)"},
                         Row{"", "( is not a path)"}, Row{"/none", "open /none: No such file or directory"},
                         Row{"/bin/sh", "open /bin/sh: No such file or directory"}}) {
    const auto program = open_program(image.path, row.name);
    REQUIRE_FALSE(program.ok());
    CHECK(program.error().message().starts_with(image.path + ": "));
    CHECK_MESSAGE(program.error().message().find(row.why) != std::string::npos, program.error().message());
  }
}
