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

constexpr const char* k_number = "a whole number from 0 to 1000";
constexpr const char* k_warm = "auto, off, or a whole number from 0 to 1000";

Result<int> spares_in(std::string_view value, const char* allowed) {
  const auto number = parse_integer(value);
  if (number && number.value() >= 0 && number.value() <= 1000) return static_cast<int>(number.value());
  return error("must be {}", allowed);
}

}  // namespace

void Settings::declare(Config& config) {
  const auto truth = [&config](const char* name, bool* target, const char* about) -> Config::Key& {
    return config.choice(name, target, {{"false", false}, {"true", true}}, about);
  };
  config.text("exec_socket", &exec_socket,
              "socket that apptainer connects to, which knows the default alone");
  config.text("agent_socket", &agent_socket,
              "socket that glue connects to, on the volume shared with the payload containers");
  truth("pilot_jobs", &pilot_jobs,
        "true: a job with GlidepodPilot = True has its own jobs run in the pod's other payload containers")
      .from("0.2.0");
  config
      .text("pilot_socket", &pilot_socket,
            "socket that the apptainer of such jobs connects to, beside agent_socket")
      .from("0.2.0");
  config.text("scratch", &scratch, "the folder of the job sandboxes, the same in every container");
  config.text("service_account", &service_account,
              "folder that has the file namespace, and api.sock or token and ca.crt");
  config
      .text("drained_file", &drained_file,
            "file that says why an operator has drained the pod, by an annotation of it; need not exist")
      .from("0.2.0");
  config.text("pod_name", &pod_name, "this pod's name; empty: the host name");
  config.text("namespace", &pod_namespace, "this pod's namespace; empty: that of service_account");
  config.text(
      "payload_containers", &payload_containers,
      "names of the payload containers, or their number N for payload-0 to payload-(N-1); empty: the pod's "
      "containers after the first whose command is glue");
  config.list("image_rule", &image_rules, "the image that stands for a path: PATH/{path} -> NAME/{path}",
              [](std::string_view rule) -> Result<void> {
                const auto parsed = ImageRule::parse(rule);
                return parsed ? Result<void>() : parsed.error();
              });
  config
      .text("image_store", &image_store,
            "where image-store is, which makes images of the image files that jobs bring: its socket, or "
            "https://HOST:PORT; empty: such jobs are refused")
      .from("0.2.0");
  config
      .text("image_store_repository", &image_store_repository,
            "what image-store calls its images; a job that names one of them itself is refused")
      .from("0.2.0");
  config
      .text("image_store_token", &image_store_token,
            "file with the pilot's token for an image-store with a URL: a service account's, made for it")
      .from("0.2.0");
  config
      .text("image_store_ca", &image_store_ca,
            "PEM file of the authorities of such an image-store's certificate; empty: the system's")
      .from("0.2.0");
  config
      .text("image_spool", &image_spool,
            "folder, on a disk, for what the image store gets of an image that is a folder, or an "
            "artifact of a registry; at most 20 GiB for each slot, without a name")
      .from("0.2.0");
  truth("cvmfs_images", &cvmfs_images,
        "true: CVMFS is mounted in the pilot container; folders and image files in it that no image_rule "
        "covers are given to the image store")
      .from("0.2.0");
  config.list("shared_path", &shared_paths,
              "a path that is the same in payload containers; a bind of it is ignored");
  config.choice("reuse", &policy.reuse, {{"owner", Policy::Reuse::owner}, {"never", Policy::Reuse::never}},
                "who may use a container after a job: its owner's next job, or nobody");
  config.duration("bind_deadline", &policy.bind_deadline,
                  "how long a job may wait from its request for a container to its launch");
  config.duration("pull_patience", &policy.pull_patience,
                  "how long the agent waits for an image that cannot be pulled for a passing reason");
  config.duration("reservation", &policy.reservation, "how long a container is kept after `apptainer test`");
  config.duration("status_patience", &policy.status_patience,
                  "how long the pod's status may take to tell what has happened to a container");
  config
      .duration(
          "calm", &policy.calm,
          "time without a change of a container after which the kubelet has surely acted on all patches")
      .from("0.2.0");
  config
      .duration("beat", &policy.beat,
                "time between two questions to the glue of a running job whether it still answers")
      .from("0.2.0");
  config.duration("beat_patience", &policy.beat_patience, "how long that glue may leave them unanswered")
      .from("0.2.0");
  config
      .duration("ending_patience", &policy.ending_patience,
                "how long glue may take to remove all that a job left, from its end or the order to kill it")
      .from("0.2.0");
  config
      .choice("first", &policy.first, {{"prove", Policy::First::prove}, {"use", Policy::First::use}},
              "prove: the command starts once a payload container's image was switched as a test; use: "
              "without it")
      .from("0.2.0");
  config
      .integer("give_up_after", &policy.give_up_after, 0, 1000,
               "failures of the infrastructure in a row, after which the pilot takes no more jobs; 0: never")
      .from("0.2.0");
  config
      .add("warm", "auto", k_warm,
           "payload containers beyond the jobs at a time, made ready for images that are likely to be asked "
           "for; auto: as many as the provisioner has added, which sets this variable to their number; else "
           "none",
           [this](std::string_view value) -> Result<void> {
             warm = value == "auto" ? std::nullopt
                                    : std::optional(TRY(spares_in(value == "off" ? "0" : value, k_warm)));
             policy.spares = warm.value_or(spares.value_or(0));
             return {};
           })
      .from("0.2.0");
  config
      .add("spares", "", k_number,
           "the old name of warm; where that says a number or off, this one counts for nothing",
           [this](std::string_view value) -> Result<void> {
             spares = TRY(spares_in(value, k_number));
             policy.spares = warm.value_or(*spares);
             return {};
           })
      .from("0.2.0");
  truth("pullers", &policy.pullers,
        "true: the provisioner pulls images that may not be on the node, beside the pod")
      .from("0.2.0");
  config
      .duration("puller_answer", &policy.puller_answer,
                "how long the provisioner may take to say that it pulls; then a payload container does")
      .from("0.2.0");
  truth("resize", &policy.resize,
        "true: a payload container gets the CPUs and memory of its job's slot, where the cluster serves "
        "pods/resize")
      .from("0.2.0");
  config
      .duration("resize_patience", &policy.resize_patience,
                "how long the kubelet may take to resize; then the job begins with what the container has")
      .from("0.2.0");
  config.duration("vacate_patience", &vacate_patience,
                  "how long a starter may take to give its job back; then it is killed");
  config
      .text("hold_command", &hold_command,
            "program that has a starter hold its job; called with ADDRESS_FILE CODE SUBCODE REASON")
      .from("0.2.0");
  config
      .text("starter_address", &starter_address,
            "file to which a starter writes its address; the starter's process number comes behind this name")
      .from("0.2.0");
  config.text(
      "registry_auth", &registry_auth,
      "docker config.json with the credentials for asking registries what images run; need not exist");
  config.text("insecure_registries", &insecure_registries,
              "registries, HOST[:PORT] ..., that are asked by plain HTTP; all others by HTTPS");
  config.text("command", &command, "command that the agent starts and watches over; none: no command");
  config.duration("start_wait", &start_wait,
                  "how long a first payload container and its test switch may take; then the pilot fails");
  config.duration(
      "shutdown_grace", &shutdown_grace,
      "time from the command's SIGTERM to its SIGQUIT, 5 s before SIGKILL; 0: 10 s less than the pod has");
  config.text("trusted_user", &trusted_user, "user whose .job.ad is believed, besides root");
  config.text("termination_log", &termination_log, "file to which the agent writes why the pilot ended");
  config.text("failure_file", &failure_file, "file to which the command may write why it failed");
  config.text("status_file", &status_file, "file that `pilot-agent status` shows; empty: none").from("0.2.0");
  config
      .text("slots_file", &slots_file,
            "file with what the agent says of the slots, for their ads in the pool; empty: none")
      .from("0.2.0");
  config
      .text("trouble_config", &trouble_config,
            "file of HTCondor's configuration that is written once the pilot takes no more jobs or ends; "
            "empty: none")
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
         "and where it comes from. `pilot-agent settings --check FILE` tells all that is wrong in a file. "
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

namespace {
std::string refusing(std::string_view attribute, std::string_view reason) {
  // A macro's $ and a string's quotes would mean something to HTCondor.
  std::string text = one_line(reason, 500);
  std::erase(text, '$');
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace(text, '\\', '/');
  return fmt::format("START = False\n{0} = \"{1}\"\nSTARTD_ATTRS = $(STARTD_ATTRS) {0}\n", attribute, text);
}
}  // namespace

std::string trouble_configuration(std::string_view reason) {
  return refusing("GlidepodTrouble", reason);
}

std::string drained_configuration(std::string_view reason) {
  return refusing("GlidepodDrained", reason);
}

}  // namespace glidepod::agent
