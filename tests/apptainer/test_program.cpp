#include "pilot-agent/apptainer/program.hpp"

#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

// A directory image with what a program can and cannot be.
struct Image {
  std::string path = (std::filesystem::temp_directory_path() / "apptainer-XXXXXX").string();
  Image() {
    REQUIRE(::mkdtemp(path.data()) != nullptr);
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
    put("image.sif", "x", 0644);
    put("image.tar", "x", 0644);
  }
  ~Image() { std::filesystem::remove_all(path); }
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

TEST_CASE("program: an image is a registry's or a directory; a file is refused with the reason") {
  const Image image;
  CHECK(kind_of_image("docker://alpine").value() == ImageKind::registry);
  CHECK(kind_of_image("oras://r/a").value() == ImageKind::registry);
  CHECK(kind_of_image(image.path).value() == ImageKind::directory);
  const std::string file = image.path + "/image.sif";
  CHECK(kind_of_image(file).error().message() ==
        file + ": SIF images are not supported here; name an image of a registry, as docker://NAME");
  CHECK(kind_of_image(image.path + "/image.tar").error().message().find(": image files are not supported") !=
        std::string::npos);
  CHECK(kind_of_image("alpine:3.19").error().message() ==
        "alpine:3.19: not a registry's image (docker://NAME), and as a file: No such file or directory");
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
