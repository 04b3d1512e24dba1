#include "pilot-agent/settings.hpp"

#include <algorithm>

#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (const std::string& word : split(text, ' '))
    if (!trim(word).empty()) result.emplace_back(trim(word));
  return result;
}

}  // namespace

void Settings::declare(Config& config) {
  const auto truth = [&config](const char* name, bool* target, const char* about) -> Config::Key& {
    return config.choice(name, target, {{"false", false}, {"true", true}}, about);
  };
  config.text("exec_socket", &exec_socket, "where apptainer connects");
  config.text("agent_socket", &agent_socket,
              "where glue connects, on the volume shared with the payload containers");
  truth("pilot_jobs", &pilot_jobs,
        "true: a job with GlidepodPilot = True has its own jobs run in the pod's other payload containers")
      .from("0.2.0");
  config.text("pilot_socket", &pilot_socket, "where the apptainer of such jobs connects, beside agent_socket")
      .from("0.2.0");
  config.text("scratch", &scratch, "the folder of the job sandboxes, the same in every container");
  config.text("service_account", &service_account,
              "folder with api.sock, or with token and ca.crt; and namespace");
  config.text("pod_name", &pod_name, "this pod's name; empty: the host name");
  config.text("namespace", &pod_namespace, "this pod's namespace; empty: as the service account says");
  config.text(
      "payload_containers", &payload_containers,
      "their names, or their number N for payload-0 to payload-(N-1); empty: the pod's containers after the "
      "first whose command is glue");
  config.list("image_rule", &image_rules, "the image that stands for a path: PATH/{path} -> NAME/{path}",
              [](std::string_view rule) -> Result<void> {
                const auto parsed = ImageRule::parse(rule);
                return parsed ? Result<void>() : parsed.error();
              });
  config.list("shared_path", &shared_paths,
              "a path that is the same in payload containers; a bind of it is ignored");
  config.choice("reuse", &policy.reuse, {{"owner", Policy::Reuse::owner}, {"never", Policy::Reuse::never}},
                "who may use a container after a job: its owner's next job, or nobody");
  config.duration("bind_deadline", &policy.bind_deadline, "the longest time from a request to its launch");
  config.duration("pull_patience", &policy.pull_patience,
                  "with an image that cannot be pulled for a passing reason");
  config.duration("reservation", &policy.reservation, "how long a container is kept after `apptainer test`");
  config.duration("status_patience", &policy.status_patience,
                  "with a pod status that has yet to tell what happened");
  config
      .duration("calm", &policy.calm,
                "without a change, after which the kubelet has acted on all that it was told")
      .from("0.2.0");
  config.duration("beat", &policy.beat, "between two questions to a glue that has a job").from("0.2.0");
  config.duration("beat_patience", &policy.beat_patience, "with a glue that does not answer").from("0.2.0");
  config
      .duration("ending_patience", &policy.ending_patience,
                "from a job's end, or the order to kill it, until glue has nothing left of it")
      .from("0.2.0");
  config
      .choice("first", &policy.first, {{"prove", Policy::First::prove}, {"use", Policy::First::use}},
              "prove: a test switch of a payload container comes before the command is started")
      .from("0.2.0");
  config
      .integer("give_up_after", &policy.give_up_after, 0, 1000,
               "failures of the infrastructure in a row, after which the pilot takes no more jobs; 0: never")
      .from("0.2.0");
  config
      .integer("spares", &policy.spares, 0, 1000,
               "payload containers beyond the jobs at a time, made ready for images that are likely to be "
               "asked for")
      .from("0.2.0");
  truth("pullers", &policy.pullers,
        "true: images that may not be on the node are pulled beside the pod, by the provisioner")
      .from("0.2.0");
  config
      .duration("puller_answer", &policy.puller_answer,
                "until the provisioner says that it is at it; then a payload container pulls")
      .from("0.2.0");
  truth("resize", &policy.resize,
        "true: a payload container gets the CPUs and memory of its job's slot, where the cluster serves "
        "pods/resize")
      .from("0.2.0");
  config
      .duration("resize_patience", &policy.resize_patience,
                "until the kubelet has done so; then the job begins in what the container has")
      .from("0.2.0");
  config.duration("vacate_patience", &vacate_patience,
                  "until a starter that was asked to give its job back is killed");
  config.text("hold_command", &hold_command, "has a starter hold its job: ADDRESS_FILE CODE SUBCODE REASON")
      .from("0.2.0");
  config.text("starter_address", &starter_address, "where a starter writes its address; its number follows")
      .from("0.2.0");
  config.text("registry_auth", &registry_auth,
              "docker config.json for what `apptainer run` asks of registries; need not exist");
  config.text("insecure_registries", &insecure_registries,
              "HOST[:PORT] ... that it speaks to by plain HTTP; all others by HTTPS");
  config.text("command", &command, "what to run and watch over; none: nothing");
  config.duration("start_wait", &start_wait,
                  "for a first payload container and its test switch, before the pilot fails");
  config.duration("shutdown_grace", &shutdown_grace,
                  "from SIGTERM to the command to SIGQUIT; 5 s later SIGKILL; 0: 10 s less than the pod has");
  config.text("trusted_user", &trusted_user, "besides root, whose .job.ad is believed");
  config.text("termination_log", &termination_log, "file for the reason why the pilot ended");
  config.text("failure_file", &failure_file, "where the command may say why it failed");
  config.text("status_file", &status_file, "where `pilot-agent status` finds what it shows; empty: nowhere")
      .from("0.2.0");
  config
      .text("slots_file", &slots_file,
            "the same for the slots' ads, whence HTCondor takes it; empty: nowhere")
      .from("0.2.0");
  config
      .text("trouble_config", &trouble_config,
            "file for HTCondor's configuration once the pilot takes no more jobs or ends; empty: none")
      .from("0.2.0");
}

std::string settings_page() {
  Settings settings;
  Config config("GLIDEPOD_");
  settings.declare(config);
  return "# The pilot agent's settings\n\n"
         "The agent reads lines `key = value` of `/etc/glidepod/agent.conf`; an environment variable "
         "`GLIDEPOD_KEY`, "
         "with the key in capitals, wins. In a pilot, `pilot-agent settings` shows each key with the value "
         "in force, "
         "and whence it is. `pilot-agent settings --check FILE` tells all that is wrong in a file. "
         "[README](../README.md#configuration) has those that an operator may want to change.\n\n"
         "This page is what `pilot-agent settings --markdown` prints.\n\n" +
         config.markdown();
}

Result<std::vector<ImageRule>> Settings::rules() const {
  std::vector<ImageRule> result;
  for (const std::string& text : image_rules) result.push_back(TRY(ImageRule::parse(text)));
  return result;
}

std::vector<std::string> Settings::container_names() const {
  auto names = words(payload_containers);
  const auto number = parse_integer(payload_containers);
  if (!number || number.value() < 0 || number.value() > 1000) return names;
  names.clear();
  for (std::int64_t i = 0; i < number.value(); ++i) names.push_back(fmt::format("payload-{}", i));
  return names;
}

std::vector<std::string> Settings::insecure_hosts() const {
  return words(insecure_registries);
}

std::chrono::seconds Settings::command_grace(std::chrono::seconds pod_grace) const {
  // To kill what is left and to end takes some of it.
  constexpr std::chrono::seconds k_rest{10}, k_least{2};
  return shutdown_grace.count() > 0 ? shutdown_grace : std::max(pod_grace - k_rest, k_least);
}

std::vector<std::string> Settings::command_words() const {
  return trim(command) == "none" ? std::vector<std::string>() : words(command);
}

std::vector<std::string> command_environment(const char* const* own, std::size_t jobs) {
  constexpr std::string_view k_count = "GLIDEPOD_PAYLOAD_CONTAINERS=";
  std::vector<std::string> result;
  for (; *own != nullptr; ++own)
    if (!std::string_view(*own).starts_with(k_count)) result.emplace_back(*own);
  if (jobs > 0) result.push_back(fmt::format("{}{}", k_count, jobs));
  return result;
}

std::string trouble_configuration(std::string_view reason) {
  // A macro's $ and a string's quotes would mean something to HTCondor.
  std::string text = one_line(reason, 500);
  std::erase(text, '$');
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace(text, '\\', '/');
  return fmt::format(
      "START = False\nGlidepodTrouble = \"{}\"\nSTARTD_ATTRS = $(STARTD_ATTRS) GlidepodTrouble\n", text);
}

}  // namespace glidepod::agent
