// Stands in for Lancium's lcli in tests: keeps its jobs in the folder $LCLI_STATE, refuses every argument
// that the real one does not know, and misbehaves as the file "mode" there says: "fail TEXT", "hang", "slow
// MILLISECONDS", "garbage". "lcli set ID STATUS" moves a job on.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Job {
  std::string id, name, status;
};

std::string state_file(const char* name) {
  const char* folder = std::getenv("LCLI_STATE");
  return std::string(folder ? folder : ".") + "/" + name;
}

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "lcli: %s\n", why.c_str());
  std::exit(2);
}

std::vector<Job> load() {
  std::vector<Job> jobs;
  std::ifstream file(state_file("jobs"));
  for (std::string id, name, status;
       std::getline(file, id) && std::getline(file, name) && std::getline(file, status);)
    jobs.push_back({id, name, status});
  return jobs;
}

void save(const std::vector<Job>& jobs) {
  std::ofstream file(state_file("jobs"), std::ios::trunc);
  for (const auto& job : jobs) file << job.id << '\n' << job.name << '\n' << job.status << '\n';
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ' ');) result.push_back(word);
  return result;
}

int positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1 || value > 10'000)
    refuse(option + ": '" + text + "' is no number");
  return static_cast<int>(value);
}

void misbehave() {
  std::ifstream file(state_file("mode"));
  std::string mode, text;
  file >> mode;
  std::getline(file, text);
  if (mode == "fail") refuse(text);
  if (mode == "garbage") {
    std::puts("<html>502 Bad Gateway</html>");
    std::exit(0);
  }
  if (mode == "hang") ::pause();
  if (mode == "slow") ::poll(nullptr, 0, std::atoi(text.c_str()));
}

void run(const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    static const std::set<std::string> known = {"--name", "--command", "--image", "--input-file",
                                                "--mem",  "--cores",   "--gpu",   "--gpu-count"};
    const auto& option = arguments[i];
    if (!known.contains(option)) refuse("unknown option " + option);
    if (i + 1 == arguments.size() || arguments[i + 1].empty()) refuse(option + " needs a value");
    if (!options.emplace(option, arguments[i + 1]).second && option != "--input-file")
      refuse(option + " twice");
  }
  for (const char* needed : {"--name", "--command", "--image", "--mem", "--cores"})
    if (!options.contains(needed)) refuse(std::string(needed) + " is missing");
  for (const char c : options["--name"])
    if (c == ',' || c == '\n' || c == '"') refuse("bad character in the name");
  const auto command = words(options["--command"]);
  if (command.empty() || command[0].front() != '/') refuse("the command is no path");
  if (command.size() % 2 == 0) refuse("the environment is not made of pairs");
  for (const auto& word : command)
    if (word.empty()) refuse("two blanks in the command");
  const int cores = positive("--cores", options["--cores"]);
  if (positive("--mem", options["--mem"]) != cores * 2) refuse("--mem and --cores do not fit");
  if (options.contains("--gpu") != options.contains("--gpu-count"))
    refuse("--gpu and --gpu-count go together");
  if (options.contains("--gpu")) {
    if (options["--gpu"] != "k80") refuse("unknown GPU " + options["--gpu"]);
    positive("--gpu-count", options["--gpu-count"]);
  }
  auto jobs = load();
  int next = 1;
  for (const auto& job : jobs) next = std::max(next, std::atoi(job.id.c_str()) + 1);
  jobs.push_back({std::to_string(next), options["--name"], "created"});
  save(jobs);
  std::printf("%d\n", next);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "set") {
    auto jobs = load();
    for (auto& job : jobs)
      if (job.id == arguments[1] || arguments[1] == "all") job.status = arguments[2];
    save(jobs);
    return 0;
  }
  std::ofstream(state_file("calls"), std::ios::app) << argc << '\n';
  misbehave();
  const int lock = ::open(state_file("lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0 || ::flock(lock, LOCK_EX) != 0) refuse("no state folder");
  if (arguments.size() < 2 || arguments[0] != "job") refuse("usage: lcli job show|run|delete");
  if (arguments == std::vector<std::string>{"job", "show", "-f", "csv"}) {
    std::puts("id,name,status");
    for (const auto& job : load())
      std::printf("%s,%s,%s\n", job.id.c_str(), job.name.c_str(), job.status.c_str());
  } else if (arguments[1] == "run") {
    run({arguments.begin() + 2, arguments.end()});
  } else if (arguments[1] == "delete" && arguments.size() == 3) {
    auto jobs = load();
    const auto job =
        std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.id == arguments[2]; });
    if (job == jobs.end()) refuse("no job " + arguments[2]);
    if (job->status != "finished" && job->status != "error") refuse("job " + job->id + " is " + job->status);
    job->status = "delete pending";
    save(jobs);
  } else {
    refuse("unknown command");
  }
  return 0;
}
