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
  config.text("exec_socket", &exec_socket, "where apptainer connects");
  config.text("agent_socket", &agent_socket,
              "where glue connects, on the volume shared with the payload containers");
  config.choice(
      "pilot_jobs", &pilot_jobs, {"false", "true"},
      "true: a job with GlidepodPilot = True has its own jobs run in the pod's other payload containers");
  config.text("pilot_socket", &pilot_socket,
              "where the apptainer of such jobs connects, beside agent_socket");
  config.text("scratch", &scratch, "the folder of the job sandboxes, the same in every container");
  config.text("service_account", &service_account,
              "folder with api.sock, or with token and ca.crt; and namespace");
  config.text("pod_name", &pod_name, "this pod's name; empty: the host name");
  config.text("namespace", &pod_namespace, "this pod's namespace; empty: as the service account says");
  config.text(
      "payload_containers", &payload_containers,
      "their names, or their number N for payload-0 to payload-(N-1); empty: the pod's containers after the "
      "first whose command is glue");
  config.list("image_rule", &image_rules, "the image that stands for a path: PATH/{path} -> NAME/{path}");
  config.list("shared_path", &shared_paths,
              "a path that is the same in payload containers; a bind of it is ignored");
  config.choice("reuse", &reuse, {"owner", "never"},
                "who may use a container after a job: its owner's next job, or nobody");
  config.duration("bind_deadline", &bind_deadline, "the longest time from a request to its launch");
  config.duration("pull_patience", &pull_patience,
                  "with an image that cannot be pulled for a passing reason");
  config.duration("reservation", &reservation, "how long a container is kept after `apptainer test`");
  config.duration("status_patience", &status_patience,
                  "with a pod status that has yet to tell what happened");
  config.duration("calm", &calm,
                  "without a change, after which the kubelet has acted on all that it was told");
  config.duration("beat", &beat, "between two questions to a glue that has a job");
  config.duration("beat_patience", &beat_patience, "with a glue that does not answer");
  config.duration("ending_patience", &ending_patience,
                  "from a job's end, or the order to kill it, until glue has nothing left of it");
  config.choice("first", &first, {"prove", "use"},
                "prove: a test switch of a payload container comes before the command is started");
  config.integer(
      "give_up_after", &give_up_after, 0, 1000,
      "failures of the infrastructure in a row, after which the pilot takes no more jobs; 0: never");
  config.integer("spares", &spares, 0, 1000,
                 "payload containers beyond the jobs at a time, made ready for images that are likely to be "
                 "asked for");
  config.choice("pullers", &pullers, {"false", "true"},
                "true: images that may not be on the node are pulled beside the pod, by the provisioner");
  config.duration("puller_answer", &puller_answer,
                  "until the provisioner says that it is at it; then a payload container pulls");
  config.choice(
      "resize", &resize, {"false", "true"},
      "true: a payload container gets the CPUs and memory of its job's slot, where the cluster serves "
      "pods/resize");
  config.duration("resize_patience", &resize_patience,
                  "until the kubelet has done so; then the job begins in what the container has");
  config.duration("vacate_patience", &vacate_patience,
                  "until a starter that was asked to give its job back is killed");
  config.text("hold_command", &hold_command, "has a starter hold its job: ADDRESS_FILE CODE SUBCODE REASON");
  config.text("starter_address", &starter_address, "where a starter writes its address; its number follows");
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
  config.text("status_file", &status_file, "where `pilot-agent status` finds what it shows; empty: nowhere");
  config.text("slots_file", &slots_file,
              "the same for the slots' ads, whence HTCondor takes it; empty: nowhere");
  config.text("trouble_config", &trouble_config,
              "file for HTCondor's configuration once the pilot takes no more jobs or ends; empty: none");
}

Policy Settings::policy() const {
  Policy policy;
  policy.reuse = reuse == 0 ? Policy::Reuse::owner : Policy::Reuse::never;
  policy.bind_deadline = bind_deadline;
  policy.pull_patience = pull_patience;
  policy.reservation = reservation;
  policy.status_patience = status_patience;
  policy.calm = calm;
  policy.beat = beat;
  policy.beat_patience = beat_patience;
  policy.ending_patience = ending_patience;
  policy.spares = static_cast<int>(spares);
  policy.pullers = pullers == 1;
  policy.puller_answer = puller_answer;
  policy.resize = resize == 1;
  policy.resize_patience = resize_patience;
  policy.give_up_after = static_cast<int>(give_up_after);
  policy.first = first == 0 ? Policy::First::prove : Policy::First::use;
  return policy;
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
