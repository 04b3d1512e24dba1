#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/terminal.hpp"
#include "lib/base/text.hpp"
#include "provisioner/service/drain_command.hpp"
#include "provisioner/service/overview.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/service/service.hpp"
#include "provisioner/settings/shown.hpp"
#include "provisioner/simulate/judge.hpp"
#include "provisioner/simulate/plot.hpp"
#include "provisioner/why/why.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

// What the program says with its exit code; --help lists them.
enum ExitCode : int {
  k_done = 0,
  k_failed = 1,
  k_usage = 2,
  k_blind = 3,
  k_stale = 4,
  k_stopped = 5,
  k_no_job = 6
};

struct Arguments {
  ServiceOptions service;
  WhyOptions why;
  DrainOptions drain;
  std::string backend{backend_kinds().front().name};
  bool json = false, watch = false;
  std::string status_file = PolicySettings{}.status_file;
  std::string scenario, csv, svg;
  std::size_t rows = 48;
  List keys, checked;  // of settings
  bool markdown = false;
};

int fail(const Error& error) {
  std::fprintf(stderr, "provisioner: %s\n", error.message().c_str());
  return k_failed;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// A table's lines as they fit the terminal; what others have said in them is harmless.
std::string fitted(const std::string& text, std::size_t width) {
  std::string result;
  for (const auto& line : split(text, '\n')) {
    const auto shown = harmless(line);
    result += (width == 0 ? shown : shown.substr(0, width)) + '\n';
  }
  result.pop_back();
  return result;
}

int print_report(const Json& report, bool as_json) {
  const auto text = as_json ? Result<std::string>(json_text(report, 2) + "\n") : table(report);
  if (!text) return fail(text.error());
  print(as_json ? text.value() : fitted(text.value(), Terminal::of(STDOUT_FILENO).width));
  return report.value("blind", "").empty() ? k_done : k_blind;
}

int plan(const Arguments& arguments) {
  const auto report = plan_once(arguments.service);
  return report ? print_report(report.value(), arguments.json) : fail(report.error());
}

// The last cycle, and what runs; the longer of them where there is no room for all.
Result<std::string> status_text(const Json& report, const Arguments& arguments, Time now) {
  if (arguments.json) return json_text(report, 2) + "\n";
  auto terminal = Terminal::of(STDOUT_FILENO);
  auto cycle = fitted(TRY(table(report)), terminal.width) + '\n';
  const auto taken = static_cast<std::size_t>(std::count(cycle.begin(), cycle.end(), '\n')) + 1;
  if (!arguments.watch) terminal.height = 0;
  if (terminal.height != 0) terminal.height = terminal.height > taken ? terminal.height - taken : 1;
  return cycle + overview(report, terminal, now);
}

int show_status(const Arguments& arguments) {
  const auto text = read_file(arguments.status_file);
  if (!text) return fail(text.error().in("no provisioner has run here"));
  const auto report = json_from(text.value());
  if (!report.is_object()) return fail(error("{} is not a provisioner's status", arguments.status_file));
  const auto now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  const auto shown = status_text(report, arguments, now);
  if (!shown) return fail(shown.error());
  if (arguments.watch && ::isatty(STDOUT_FILENO) != 0) print("\x1b[H\x1b[J");
  print(shown.value());
  std::fflush(stdout);
  const auto age = long_past(report, now);
  if (!age) return report.value("blind", "").empty() ? k_done : k_blind;
  std::fprintf(stderr, "provisioner: the last cycle was %lld s ago: no instance is running\n",
               static_cast<long long>(age->count()));
  return k_stale;
}

int status(const Arguments& arguments) {
  if (!arguments.watch) return show_status(arguments);
  constexpr timespec k_pause{2, 0};
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  do {
    if (const auto code = show_status(arguments); code == k_failed) return code;
  } while (::sigtimedwait(&ends, nullptr, &k_pause) < 0);
  return k_done;
}

int why(const Arguments& arguments) {
  const auto answer = why_once(arguments.service, arguments.why);
  if (!answer) return fail(answer.error());
  const auto json = json_text(*answer, 2) + "\n";
  print(arguments.json ? json : why_text(answer.value()));
  const auto& first = answer->at("findings").at(0);
  if (first["key"] == "blind") return k_blind;
  if (first["key"] == "no-such-job") return k_no_job;
  return first["weight"] == "stops" ? k_stopped : k_done;
}

int drain(const Arguments& arguments) {
  const auto& what = arguments.drain;
  const auto targets = std::ranges::count_if(std::array{&what.group, &what.node, &what.place},
                                             [](const auto* name) { return !name->empty(); });
  if (targets != (what.list ? 0 : 1)) {
    std::fprintf(stderr, "provisioner: one of --group, --node and --place says what; see --help\n");
    return k_usage;
  }
  const auto done = drain_once(arguments.service, arguments.drain);
  return done ? (print(*done), k_done) : fail(done.error());
}

int check(const List& files) {
  const auto texts = read_settings_files(files);
  if (!texts) return fail(texts.error());
  const auto checked = check_settings(*texts);
  for (const auto& problem : checked.problems) print(harmless(problem) + "\n");
  for (const auto& note : checked.notes) print("note: " + harmless(note) + "\n");
  if (checked.problems.empty()) print("nothing is wrong\n");
  return checked.problems.empty() ? k_done : k_failed;
}

int show_settings(const Arguments& arguments) {
  if (arguments.markdown) return print(settings_page()), k_done;
  if (!arguments.checked.empty()) return check(arguments.checked);
  List files = arguments.service.files;
  if (files.empty())
    for (auto& file : default_files(*arguments.service.backend))
      if (::access(file.c_str(), F_OK) == 0) files.push_back(std::move(file));
  const auto texts = read_settings_files(files);
  if (!texts) return fail(texts.error());
  const auto shown = settings_in_force(*texts, arguments.keys);
  return shown ? (print(*shown), k_done) : fail(shown.error());
}

Result<void> run_simulation(const Arguments& arguments) {
  Ini ini;
  TRY(ini.read(TRY(read_file(arguments.scenario)), arguments.scenario));
  const auto scenario = TRY(parse_scenario(ini).in(arguments.scenario));
  Judge judge(scenario);
  const auto samples = simulate(scenario, std::ref(judge));
  if (!arguments.csv.empty()) TRY(replace_file(arguments.csv, to_csv(samples), 0644));
  if (!arguments.svg.empty()) TRY(replace_file(arguments.svg, to_svg(samples), 0644));
  print(to_table(samples, arguments.rows) + to_text(judge.judgement(samples)));
  return {};
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& kind : backend_kinds()) names.emplace_back(kind.name);
  return names;
}

void add_service_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--backend", arguments.backend, "where pods run")
      ->check(CLI::IsMember(backend_names()))
      ->capture_default_str();
  command
      .add_option(
          "--config", arguments.service.files,
          "settings, in PRP's form; may stand several times, later files win (default: those that exist "
          "here, of pod.conf, osg_provisioner.conf or lancium_provisioner.conf, provisioner.conf, site.conf)")
      // Each --config takes one file: a word behind it is, for why, the job.
      ->allow_extra_args(false);
}

void add_api_options(CLI::App& command, Arguments& arguments) {
  auto& api = arguments.service.api;
  command.add_option("--api-url", api.url, "the Kubernetes API (default: as a pod finds it)");
  command.add_option("--api-socket", api.unix_socket, "the same on a Unix socket, such as podhost's");
  command.add_option("--api-token-file", api.token_file, "a bearer token for it");
  command.add_option("--api-ca-file", api.ca_file,
                     "file with the authorities that sign its certificate (default: the system's)");
}

// drain, kill and undrain.
CLI::App* add_drain_command(CLI::App& app, const char* name, const char* about,
                            std::optional<Drained::Mode> mode, Arguments& arguments) {
  auto* command = app.add_subcommand(name, about);
  auto& what = arguments.drain;
  command->add_option("--group", what.group, "a group, by its group_hash, or its name as the log has it");
  command->add_option("--node", what.node, "a node; PLACE/NODE where there are several places");
  command->add_option("--place", what.place, "a place, NAME of [k8s:NAME]");
  if (mode == Drained::Mode::drain)
    command->add_flag("--list", what.list, "print what is drained now, and do nothing");
  if (mode) command->add_option("--reason", what.reason, "said in each pod, in plan, status and why");
  command->add_flag("--yes", what.yes,
                    "do it; without it only shows which pods are concerned, and what would happen");
  command->add_option("--lease", arguments.service.lease,
                      "the instances' Lease, which keeps what is drained");
  add_service_options(*command, arguments);
  add_api_options(*command, arguments);
  command->callback([&arguments, mode] { arguments.drain.mode = mode; });
  return command;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Makes pilots for HTCondor jobs that wait.", "provisioner");
  app.set_version_flag("--version", "provisioner " GLIDEPOD_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 an error, told on stderr; 2 wrong usage; 3 done, but the pool or the backend "
      "could not be\n"
      "seen, so nothing was decided; 4 (status) the last cycle is long past; 5 (why) something stands "
      "between the\n"
      "job and a pilot; 6 (why) there is no such job. SIGHUP makes a running instance read its settings "
      "again, as\n"
      "does a change of their files; SIGTERM and SIGINT end it.");

  auto* plan_command =
      app.add_subcommand("plan", "print what the next cycle would do, and why; touches nothing");
  add_service_options(*plan_command, arguments);
  add_api_options(*plan_command, arguments);
  plan_command->add_flag("--json", arguments.json, "as JSON instead of a table");
  plan_command->add_option("--lease", arguments.service.lease,
                           "the instances' Lease: the plan goes on from what its holder remembers (default: "
                           "from what status_file has)");
  auto* run_command = app.add_subcommand("run", "make and remove pods, cycle after cycle");
  add_service_options(*run_command, arguments);
  add_api_options(*run_command, arguments);
  run_command->add_option("--listen", arguments.service.listen,
                          "HOST:PORT or :PORT to serve /healthz, /readyz and /metrics on (default: nowhere)");
  run_command->add_flag(
      "--serve-status", arguments.service.serve_status,
      "serve a page there too, /, with /status.json, to whoever can reach it: whose jobs run where, in which "
      "image");
  run_command->add_option(
      "--lease", arguments.service.lease,
      "NAME or NAMESPACE/NAME of a Lease: of the instances that share it, one makes pods (default: this one "
      "makes pods)");
  run_command->add_option(
      "--tokens", arguments.service.tokens,
      "a folder with the pool's tokens that this user does not own, such as a mounted Secret");
  run_command->add_option("--token-copies", arguments.service.token_copies,
                          "folder to which these tokens are copied for HTCondor's tools "
                          "(SEC_TOKEN_DIRECTORY), at the start and whenever they change");
  auto* status_command =
      app.add_subcommand("status", "print the last cycle of a running instance, and what runs where");
  status_command->add_option("--file", arguments.status_file, "status_file of the running instance")
      ->capture_default_str();
  status_command->add_flag("--json", arguments.json, "as JSON instead of a table");
  status_command->add_flag("--watch", arguments.watch, "print it again every 2 seconds, until Ctrl-C");
  auto* why_command =
      app.add_subcommand("why", "say what stands between one job and a pilot, and who can change it");
  why_command->add_option("job", arguments.why.job, "CLUSTER.PROC, as condor_q prints it")->required();
  add_service_options(*why_command, arguments);
  add_api_options(*why_command, arguments);
  why_command->add_option("--schedd", arguments.why.schedd,
                          "the job's access point (default: all are asked)");
  why_command->add_option("--file", arguments.why.status_file,
                          "status_file of the running instance (default: as the settings say)");
  why_command->add_option("--lease", arguments.service.lease,
                          "the instances' Lease: says whether one leads, and which");
  why_command->add_flag("--json", arguments.json, "as JSON instead of text");
  const auto* drain_command = add_drain_command(
      app, "drain",
      "have the pods of a group, node or place end after their last jobs, and make no more there",
      Drained::Mode::drain, arguments);
  const auto* kill_command = add_drain_command(
      app, "kill", "remove them at once, so that their jobs run elsewhere, and make no more there",
      Drained::Mode::kill, arguments);
  const auto* undrain_command =
      add_drain_command(app, "undrain", "have pods made there again", std::nullopt, arguments);
  auto* settings_command = app.add_subcommand(
      "settings", "print every key with the value in force, its default, and where the value comes from");
  settings_command->add_option("key", arguments.keys, "only these keys");
  add_service_options(*settings_command, arguments);
  settings_command
      ->add_option(
          "--check", arguments.checked,
          "tell all that is wrong in this file, with its line and what to do; may stand several times. Exit "
          "code 1 if anything is")
      ->allow_extra_args(false);
  settings_command->add_flag("--markdown", arguments.markdown, "print the reference page instead");
  settings_command->footer("Keys:\n" + describe_settings());
  auto* simulate_command = app.add_subcommand("simulate", "try the decisions on a scenario");
  simulate_command->add_option("scenario", arguments.scenario, "a file; its keys are below")->required();
  simulate_command->add_option("--csv", arguments.csv, "write every cycle to this file");
  simulate_command->add_option("--svg", arguments.svg, "draw demand, pods and waste into this file");
  simulate_command->add_option("--rows", arguments.rows, "rows of the table")->capture_default_str();
  simulate_command->footer(describe_scenario());

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? k_done : k_usage;
  }
  auto& api = arguments.service.api;
  if (api.url.empty() && !api.unix_socket.empty()) api.url = "http://localhost";
  arguments.service.backend = find_backend(arguments.backend);
  if (plan_command->parsed()) return plan(arguments);
  if (status_command->parsed()) return status(arguments);
  if (why_command->parsed()) return why(arguments);
  if (drain_command->parsed() || kill_command->parsed() || undrain_command->parsed()) return drain(arguments);
  if (settings_command->parsed()) return show_settings(arguments);
  const auto done = run_command->parsed() ? serve(arguments.service) : run_simulation(arguments);
  return done ? k_done : fail(done.error());
}

}  // namespace

}  // namespace glidepod::provisioner

int main(int argc, char** argv) try {
  glidepod::start_log("provisioner");
  return glidepod::provisioner::run(argc, argv);
} catch (const std::exception& problem) {
  ::fprintf(stderr, "provisioner: %s\n", problem.what());
  return 1;
}
