// Has a starter put its job on hold: README.md beside this file.

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/hold_job/cedar.hpp"

using namespace glidepod;

namespace {

// HTCondor's condor_commands.h and condor_auth.h.
constexpr std::int32_t k_authenticate = 60010;
constexpr std::int32_t k_hold_job = 1500;
constexpr std::int32_t k_file_system = 4;  // the authentication method FS
constexpr int k_step_seconds = 5;
constexpr unsigned k_all_seconds = 20;

std::string quoted_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

// What will be asked, and on what terms: proven by FS, nothing encrypted, for it stays on this machine. A
// method of encryption must be named all the same, and AES would always be used.
cedar::Message opening(std::string_view version) {
  cedar::Message message;
  message.number(k_authenticate)
      .ad({{"Command", std::to_string(k_hold_job)},
           {"RemoteVersion", quoted_string(version)},
           {"Subsystem", quoted_string("TOOL")},
           {"NewSession", quoted_string("YES")},
           {"Enact", quoted_string("NO")},
           {"OutgoingNegotiation", quoted_string("REQUIRED")},
           {"Authentication", quoted_string("REQUIRED")},
           {"Encryption", quoted_string("NEVER")},
           {"Integrity", quoted_string("NEVER")},
           {"AuthMethods", quoted_string("FS")},
           {"AuthMethodsList", quoted_string("FS")},
           {"CryptoMethods", quoted_string("3DES,BLOWFISH")},
           {"CryptoMethodsList", quoted_string("3DES,BLOWFISH")}});
  return message;
}

// HTCondor's method FS: the starter names a folder in /tmp, we make it, and it looks who owns it. This is
// root, and whoever took the port of a starter that has ended may name anything: nothing but such a folder is
// made, and that only where nothing has the name yet.
Result<void> authenticate(cedar::Connection& connection, const cedar::Address& starter) {
  TRY(connection.send(cedar::Message().number(k_file_system)));
  if (TRY(TRY(connection.receive()).number()) != k_file_system)
    return error("the starter does not accept the authentication method FS");
  const auto folder = cedar::proof_folder(TRY(TRY(connection.receive()).text()), starter);
  if (!folder) {
    (void)connection.send(cedar::Message().number(-1));
    return folder.error();
  }
  const bool made = ::mkdir(folder->path.c_str(), 0700) == 0;
  const Error failure = Error::system("make {}", folder->path);
  cedar::Message answer;
  answer.number(made ? 0 : -1);
  if (!folder->added.empty()) answer.text(folder->added);
  const auto told = connection.send(answer);
  const auto verdict = [&]() -> Result<std::int32_t> {
    TRY(told);
    return TRY(connection.receive()).number();
  }();
  if (made) ::rmdir(folder->path.c_str());
  if (!made) return failure;
  if (TRY(verdict) != 0) return error("the starter does not accept the folder {} as proof", folder->path);
  // A key for the session, which ends with this connection and is not used.
  if (TRY(TRY(connection.receive()).number()) != 0) TRY(connection.receive());
  return {};
}

Result<void> hold(const std::string& file, std::int32_t code, std::int32_t subcode,
                  const std::string& reason) {
  const auto lines = split(TRY(read_file(file, 4096)), '\n');
  const auto starter = TRY(cedar::parse_address(lines.front()));
  auto connection = TRY(cedar::Connection::open(starter, k_step_seconds));
  TRY(connection.send(opening(lines.size() > 1 ? lines[1] : "")));
  TRY(TRY(connection.receive()).ad());  // its terms: authentication
  TRY(authenticate(connection, starter).in("authenticate"));
  const auto session = TRY(TRY(connection.receive()).ad());
  const auto verdict = session.find("ReturnCode");
  if (verdict == session.end() || verdict->second != "\"AUTHORIZED\"")
    return error("the starter refuses to hold the job: {}",
                 verdict == session.end() ? "no reason given" : verdict->second);
  // Not softly: the job is over, or is to be.
  TRY(connection.send(cedar::Message().text(reason).number(code).number(subcode).number(0)));
  if (TRY(TRY(connection.receive()).number()) != 1) return error("the starter did not put the job on hold");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version")
    return ::puts("hold-job " GLIDEPOD_VERSION) < 0 ? 1 : 0;
  if (argc != 5) {
    ::fputs("usage: hold-job ADDRESS_FILE CODE SUBCODE REASON, or --version\n", stderr);
    return 2;
  }
  ::alarm(k_all_seconds);
  const auto done = [&]() -> Result<void> {
    const auto code = TRY(parse_integer(argv[2]));
    const auto subcode = TRY(parse_integer(argv[3]));
    return hold(argv[1], static_cast<std::int32_t>(code), static_cast<std::int32_t>(subcode),
                one_line(argv[4]));
  }();
  if (done) return 0;
  ::fprintf(stderr, "hold-job: %s\n", done.error().message().c_str());
  return 1;
}
