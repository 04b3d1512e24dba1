#include "pilot-agent/slot_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/time.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::agent {

using Json = nlohmann::json;

namespace {

constexpr std::size_t k_longest_value = 1000;  // of a value: HTCondor reads lines of at most 8 KiB
constexpr std::size_t k_longest_list = 6000;   // of names, without quotes among them
constexpr const char* k_nowhere = "SlotMergeConstraint = False\n";

std::string line(std::string_view name, const std::string& text) {
  return fmt::format("Glidepod{} = {}\n", name, text.empty() ? "undefined" : ad_string(text));
}

std::string end_of_block(std::string_view name) {
  return fmt::format("- {}\n", name);
}

std::string with(std::string text, const std::string& trouble) {
  if (!trouble.empty()) text += ": " + trouble;
  return text;
}

std::string waits_for(const Json& container, const std::string& state) {
  if (state == "switching") return with("its container to have the image", text_of(container, "trouble"));
  if (state == "asking") return "what the registry says of its image";
  if (state == "reserved") return "HTCondor to start it";
  return {};
}

// What stands for a job, wherever it is. An empty job: nothing.
std::string block(const Json& one, const std::string& state, const std::string& container,
                  const std::string& waits_for) {
  const std::string job = text_of(one, "job"), slot = text_of(one, "slot");
  if (job.empty()) return k_nowhere;
  // The slot's name tells jobs of two access points apart, and the job's number those of one slot.
  std::string result = fmt::format("SlotMergeConstraint = TARGET.JobId =?= {}", ad_string(job));
  if (!slot.empty()) result += fmt::format(" && TARGET.Name =?= {}", ad_string(slot));
  const bool has_image = state != "switching" && !container.empty();
  const auto since = parse_time(text_of(one, "since"));
  result += '\n' + line("Job", job) + line("State", state) + line("Container", container) +
            line("Image", text_of(one, state == "switching" ? "wanted" : "image")) +
            line("Digest", has_image ? text_of(one, "digest") : std::string()) +
            line("How", text_of(one, "how")) + line("WaitsFor", waits_for);
  result += since ? fmt::format("GlidepodSince = {}\n", std::chrono::system_clock::to_time_t(*since))
                  : line("Since", "");
  const auto bind = one.find("bind_s");
  result += bind != one.end() && bind->is_number()
                ? fmt::format("GlidepodBindTime = {:.3f}\n", bind->get<double>())
                : line("BindTime", "");
  return result;
}

// What is no name in a list is left out: its jobs are refused one by one.
std::string doubtful_images(const Json& status) {
  std::string names;
  const auto odd = [](unsigned char c) { return c <= ' ' || c == '"' || c == '\\' || c == 0x7f; };
  for (const Json& one : status.value("doubts", Json::array())) {
    const auto name = one.get<std::string>();
    if (std::ranges::any_of(name, odd) || names.size() + name.size() >= k_longest_list) continue;
    names += (names.empty() ? "" : " ") + name;
  }
  return "SlotMergeConstraint = True\nGlidepodDoubtfulImages = " +
         (names.empty() ? "undefined" : condor::quote(names)) + '\n' + end_of_block("images");
}

std::string binds(const Json& status) {
  const auto counted = status.value("binds", Json::object());
  return line("Binds", text_of(counted, "count")) + line("BindsWithin", text_of(counted, "within")) +
         fmt::format("GlidepodBindSeconds = {:.3f}\n", counted.value("took_s", 0.0));
}

}  // namespace

std::string ad_string(std::string_view text) {
  std::string tame(text.substr(0, k_longest_value));
  for (char& c : tame)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
    else if (c == '\\')
      c = '/';
  return condor::quote(tame);
}

std::string slot_attributes(const Json& status) {
  std::string result, containers;
  for (const Json& one : status.at("containers")) {
    const std::string name = text_of(one, "name"), state = text_of(one, "state");
    containers += fmt::format("{}{}={}", containers.empty() ? "" : " ", name, state);
    result += block(one, state, name, waits_for(one, state)) + end_of_block(name);
  }
  // HTCondor has no more slots than containers.
  const Json& waiting = status.at("waiting");
  for (std::size_t i = 0; i < status["containers"].size(); ++i) {
    std::string text = k_nowhere;
    if (i < waiting.size()) {
      const Json& one = waiting[i];
      const bool pulling = one.value("pulling", false);
      text = block(one, pulling ? "pulling" : "waiting", "",
                   pulling ? with("its image, pulled beside the pod", text_of(one, "trouble"))
                           : "a payload container");
    }
    result += text + end_of_block(fmt::format("waiting-{}", i));
  }
  result += doubtful_images(status);
  result += "SlotMergeConstraint = TARGET.DynamicSlot =!= True\n" + line("Containers", containers) +
            fmt::format("GlidepodFailures = {}\n", status.value("failures", 0)) +
            line("Held", text_of(status, "shortage")) + binds(status) + end_of_block("pod");
  return result;
}

}  // namespace glidepod::agent
