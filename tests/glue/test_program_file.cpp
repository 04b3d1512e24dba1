// What is read of a program that the kernel has not executed. The kernel itself says what it says of each.
#include "glue/program_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "lib/base/file.hpp"
#include "tests/glue/elf.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::testing;

namespace {

int kernel_says(const std::string& program) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<char*, 2> words{const_cast<char*>(program.c_str()), nullptr};
    ::execve(program.c_str(), words.data(), nullptr);
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(ends[1], &code, sizeof code);
    ::_exit(0);
  }
  ::close(ends[1]);
  int code = 0;
  if (::read(ends[0], &code, sizeof code) < 0) code = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return code;
}

}  // namespace

TEST_CASE("program file: what the kernel calls an I/O error, and is the file's own") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& name, const std::string& text) {
    REQUIRE(replace_file(folder.path + "/" + name, text, 0755));
    return folder.path + "/" + name;
  };
  const auto empty = put("empty", ""), short_loader = put("short",
                                                          "\x7f"
                                                          "ELF");
  const auto names = [&](const std::string& loader) {
    const std::string text = loader + '\0';
    return elf_with_loader(text, k_loader_at, text.size());
  };
  const auto beyond = put("beyond", elf_with_loader("", 1 << 20, 10));
  for (const auto& program :
       {beyond, put("cut", elf_with_loader("/lib", k_loader_at, 20)), put("no-loader", names(empty)),
        put("half-loader", names(short_loader)), put("script", "#!" + beyond + "\n"),
        put("script-of-script", "#! " + folder.path + "/script -e\n")}) {
    INFO(program);
    CHECK(kernel_says(program) == EIO);
    CHECK(is_cut_short(program.c_str()));
  }
}

TEST_CASE("program file: a file that is whole is not to blame") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& name, const std::string& text) {
    REQUIRE(replace_file(folder.path + "/" + name, text, 0755));
    return folder.path + "/" + name;
  };
  const std::string loader = std::string("/no/such/loader") + '\0';
  const auto whole = put("whole", elf_with_loader(loader, k_loader_at, loader.size()));
  CHECK(kernel_says(whole) == ENOENT);
  for (const auto& program :
       {whole, std::string("/proc/self/exe"), put("script", "#!" + whole + "\n"), put("text", "echo\n"),
        put("nothing", ""), put("itself", "#!" + folder.path + "/itself\n"),
        put("unended", elf_with_loader("/lib/x", k_loader_at, 6)), folder.path, folder.path + "/none"})
    CHECK_FALSE_MESSAGE(is_cut_short(program.c_str()), program);
}

TEST_CASE("program file: the interpreter of a first line") {
  const TemporaryFolder folder;
  const auto interpreter = [&](const std::string& text) {
    REQUIRE(replace_file(folder.path + "/script", text, 0755));
    std::array<char, 8> found{};
    read_interpreter((folder.path + "/script").c_str(), found);
    return std::string(found.data());
  };
  CHECK(interpreter("#!/bin/a\n") == "/bin/a");
  CHECK(interpreter("#! \t/bin/a -e\n") == "/bin/a");
  CHECK(interpreter("#!/bin/longer\n") == "/bin/lo");
  CHECK(interpreter("/bin/a\n").empty());
  CHECK(interpreter("").empty());
}
