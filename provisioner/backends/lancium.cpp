#include "provisioner/backends/lancium.hpp"

#include <algorithm>
#include <optional>

#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::provisioner {

namespace {

// One job shown by lcli is below 200 bytes; this is a hundred thousand of them.
constexpr std::size_t k_longest_list = std::size_t{20} << 20;

std::optional<PodState> state_of(std::string_view status) {
  // "created" waits like the others: PRP does not count it, and so submits again while Lancium is slow.
  for (const std::string_view waits : {"created", "submitted", "queued"})
    if (status == waits) return PodState::unschedulable;
  if (status == "running") return PodState::unregistered;
  if (status == "finished") return PodState::succeeded;
  if (status == "error") return PodState::failed;
  return {};
}

// The values go side by side into one string, and names come back in a comma-separated list.
Result<void> check_word(std::string_view what, std::string_view value) {
  if (value.empty()) return error("{} is empty: lcli cannot be given an empty value", what);
  const auto bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == ',' || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), bad))
    return error("{} = '{}': lcli cannot be given a value with blanks or commas", what, one_line(value, 200));
  return {};
}

std::string unquoted(std::string_view field) {
  field = trim(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    field = field.substr(1, field.size() - 2);
  return std::string(field);
}

Result<LanciumJob> parse_name(std::string_view label) {
  LanciumJob job;
  for (const auto& part : split(label, ' ')) {
    const auto colon = part.find(':');
    if (colon == std::string::npos) continue;
    const auto key = part.substr(0, colon), value = part.substr(colon + 1);
    if (key == "lancium-job") job.name = value;
    const std::pair<const char*, std::int64_t Group::*> sizes[] = {{"PodCPUs", &Group::cpus},
                                                                   {"PodGPUs", &Group::gpus},
                                                                   {"PodMemory", &Group::memory_mb},
                                                                   {"PodDisk", &Group::disk_kb}};
    for (const auto& [name, field] : sizes)
      if (key == name) job.group.*field = TRY(parse_integer(value).in(name));
  }
  if (job.name.empty()) return error("no name in '{}'", one_line(label, 200));
  return job;
}

// PRP's order: a GPU is dearer than any number of cores.
std::int64_t price(const Group& shape) {
  return shape.gpus * 1000 + shape.cpus;
}

}  // namespace

Result<std::vector<LanciumJob>> parse_lancium_jobs(std::string_view csv, std::string_view app_name,
                                                   std::vector<std::string>& problems) {
  std::vector<LanciumJob> jobs;
  std::optional<std::size_t> columns, id, name, status;
  const auto ours = fmt::format("lancium-app:{} ", app_name);
  for (const auto& line : split(csv, '\n')) {
    if (trim(line).empty()) continue;
    auto fields = split(line, ',');
    for (auto& field : fields) field = unquoted(field);
    if (!columns) {
      columns = fields.size();
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i] == "id") id = i;
        if (fields[i] == "name") name = i;
        if (fields[i] == "status") status = i;
      }
      if (!id || !name || !status)
        return error("lcli's list has no columns id, name and status: '{}'", one_line(line, 200));
      continue;
    }
    if (fields.size() != *columns) {
      // Someone else's job may have a comma in its name.
      if (line.find(ours) != std::string::npos)
        problems.push_back(fmt::format("cannot read '{}'", one_line(line, 200)));
      continue;
    }
    if (!fields[*name].starts_with(ours)) continue;
    auto job = parse_name(fields[*name]);
    if (!job) {
      problems.push_back(job.error().in(fields[*id]).message());
      continue;
    }
    job->id = fields[*id];
    job->status = fields[*status];
    jobs.push_back(std::move(*job));
  }
  // Not even the line with the columns' names: an lcli that says nothing knows nothing.
  if (!columns) return error("lcli's list is empty");
  return jobs;
}

Lancium::Lancium(condor::CommandRunner& runner, LanciumSettings settings)
    : runner_(runner), settings_(std::move(settings)) {
  for (const auto& text : settings_.shapes) {
    const auto parts = split(text, '/');
    Group shape;
    shape.cpus = parse_integer(parts[0]).value();
    shape.gpus = parse_integer(parts[1]).value();
    shape.memory_mb = shape.cpus * settings_.megabytes_per_core;
    shapes_.push_back(shape);
  }
  std::sort(shapes_.begin(), shapes_.end(),
            [](const Group& a, const Group& b) { return price(a) < price(b); });
}

Result<std::unique_ptr<Lancium>> Lancium::create(condor::CommandRunner& runner, LanciumSettings settings) {
  TRY(check_word("[lancium] app_name", settings.app_name));
  TRY(check_word("[lancium] condor_host", settings.condor_host));
  TRY(check_word("[lancium] lancium_image", settings.image));
  TRY(check_word("[lancium] gpu_model", settings.gpu_model));
  TRY(check_word("[lancium] startup_command", settings.startup_command));
  if (!settings.additional_requirements.empty())
    TRY(check_word("[lancium] additional_requirements", settings.additional_requirements));
  for (const auto& [key, value] : settings.envs) {
    TRY(check_word("[lancium] envs_dict: a name", key));
    TRY(check_word(fmt::format("[lancium] envs_dict: {}", key), value));
  }
  return std::unique_ptr<Lancium>(new Lancium(runner, std::move(settings)));
}

Demand Lancium::fit(Demand demand, Capacity& capacity) const {
  auto groups = std::exchange(demand.groups, {});
  for (auto& [group, jobs] : groups) {
    const auto holds = [&group = group](const Group& shape) {
      return group.cpus <= shape.cpus && group.gpus <= shape.gpus && group.memory_mb <= shape.memory_mb;
    };
    const auto shape = std::find_if(shapes_.begin(), shapes_.end(), holds);
    if (shape == shapes_.end()) capacity.unservable[group] = "larger than every shape";
    auto& sum = demand.groups[shape == shapes_.end() ? group : *shape];
    sum.idle += jobs.idle;
    sum.unmaterialized += jobs.unmaterialized;
    for (const auto& [owner, idle] : jobs.owners) sum.owners[owner] += idle;
  }
  return demand;
}

void Lancium::run(std::vector<std::string> argv, std::function<void(Result<std::string>)> done) {
  argv.insert(argv.begin(), settings_.lcli);
  auto output = std::make_shared<std::string>();
  runner_.run(
      {std::move(argv), std::chrono::duration_cast<Milliseconds>(settings_.call_time_limit)},
      [output](std::string_view piece) {
        if (output->size() <= k_longest_list) output->append(piece);
      },
      [output, done = std::move(done)](const condor::CommandEnd& end) {
        if (!end) return done(end.error());
        if (output->size() > k_longest_list) return done(error("lcli: its answer is too long"));
        done(std::move(*output));
      });
}

void Lancium::look(Time now, std::function<void(Seen)> done) {
  run({"job", "show", "-f", "csv"}, [this, now, done = std::move(done)](Result<std::string> output) {
    if (output) return done(read_jobs(output.value(), now));
    Seen seen;
    seen.blind = output.error().in("list of Lancium jobs").message();
    done(std::move(seen));
  });
}

Seen Lancium::read_jobs(std::string_view csv, Time now) {
  Seen seen;
  auto jobs = parse_lancium_jobs(csv, settings_.app_name, seen.problems);
  if (!jobs) {
    seen.blind = jobs.error().message();
    return seen;
  }
  std::map<std::string, Known> known;
  for (auto& job : jobs.value()) {
    if (job.status == "delete pending") continue;  // ended, and told so already
    const auto state = state_of(job.status);
    if (!state)
      seen.problems.push_back(fmt::format("{}: unknown status '{}'", job.name, one_line(job.status, 50)));
    const Known fresh{job.id, state.value_or(PodState::unknown), now};
    const auto before = known_.find(job.name);
    const bool same = before != known_.end() && before->second.state == fresh.state;
    const auto& entry = known[job.name] = same ? before->second : fresh;
    seen.pods.push_back({job.name, job.group, settings_.image, entry.state, entry.since});
  }
  known_ = std::move(known);
  return seen;
}

std::vector<std::string> Lancium::run_command(const Group& shape, const std::string& name) const {
  const auto& s = settings_;
  const auto label = fmt::format(
      "lancium-app:{} lancium-job:{} prp-htcondor-portal:wn PodCPUs:{} PodGPUs:{} PodMemory:{} PodDisk:{}",
      s.app_name, name, shape.cpus, shape.gpus, shape.memory_mb, shape.disk_kb);
  Dict environment = {{"LANCIUM_PROVISIONER_TYPE", "PRPHTCondorProvisioner"},
                      {"LANCIUM_PROVISIONER_NAME", s.app_name},
                      {"LANCIUM_JOB_NAME", name},
                      {"CONDOR_HOST", s.condor_host},
                      {"STARTD_NOCLAIM_SHUTDOWN", "1200"},
                      {"NUM_CPUS", std::to_string(shape.cpus)},
                      {"NUM_GPUS", std::to_string(shape.gpus)},
                      {"MEMORY", std::to_string(shape.memory_mb)},
                      {"DISK", std::to_string(shape.disk_kb)}};
  if (!s.additional_requirements.empty())
    environment.emplace_back("ADDITIONAL_REQUIREMENTS", s.additional_requirements);
  environment.insert(environment.end(), s.envs.begin(), s.envs.end());
  auto command = s.startup_command;
  for (const auto& [key, value] : environment) command += fmt::format(" {} {}", key, value);

  std::vector<std::string> argv = {"job", "run", "--name", label, "--command", command, "--image", s.image};
  for (const auto& volume : s.pvc_volumes) argv.insert(argv.end(), {"--input-file", volume.second});
  if (!s.token_file.empty()) argv.insert(argv.end(), {"--input-file", s.token_file});
  argv.insert(argv.end(), {"--mem", std::to_string((shape.memory_mb + 1023) / 1024), "--cores",
                           std::to_string(shape.cpus)});
  if (shape.gpus > 0)
    argv.insert(argv.end(), {"--gpu-count", std::to_string(shape.gpus), "--gpu", s.gpu_model});
  return argv;
}

void Lancium::create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) {
  run(run_command(group, name), [done = std::move(done)](const Result<std::string>& output) {
    done(output ? Result<void>() : Result<void>(output.error()));
  });
}

void Lancium::remove(const std::string& name, std::function<void(Result<void>)> done) {
  const auto known = known_.find(name);
  // Its id is gone with it; asked all the same, so that the handler is not called from here.
  run({"job", "delete", known == known_.end() ? name : known->second.id},
      [done = std::move(done)](const Result<std::string>& output) {
        done(output ? Result<void>() : Result<void>(output.error()));
      });
}

std::string Lancium::slot_constraint() const {
  return fmt::format(
      "(LanciumProvisionerType =?= \"PRPHTCondorProvisioner\") && (LanciumProvisionerName =?= {})",
      condor::quote(settings_.app_name));
}

}  // namespace glidepod::provisioner
