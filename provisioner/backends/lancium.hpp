#pragma once

#include <map>
#include <memory>

#include "lib/condor/command.hpp"
#include "provisioner/backends/backend.hpp"

namespace glidepod::provisioner {

// Pilots as Lancium jobs, through the program lcli. Its jobs come in fixed shapes; a pilot is partitionable
// and serves many jobs.
class Lancium : public Backend {
 public:
  // Fails where a value cannot be put on lcli's command line: it has blanks, commas or control characters, or
  // is empty. The runner must outlive it.
  static Result<std::unique_ptr<Lancium>> create(condor::CommandRunner& runner, LanciumSettings settings);

  void look(Time now, std::function<void(Seen)> done) override;
  // Each group goes to the smallest shape that holds one of its jobs.
  Demand fit(Demand demand, Capacity& capacity) const override;
  void create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) override;
  void remove(const std::string& name, std::function<void(Result<void>)> done) override;
  const std::string& image() const override { return settings_.image; }
  std::string slot_constraint() const override;
  std::string slot_pod_attribute() const override { return "LanciumJobName"; }

  // The command that makes a pilot.
  std::vector<std::string> run_command(const Group& shape, const std::string& name) const;

 private:
  struct Known {
    std::string id;
    PodState state;
    Time since;  // lcli tells no times: when the state was first seen
  };
  Lancium(condor::CommandRunner& runner, LanciumSettings settings);
  Seen read_jobs(std::string_view csv, Time now);
  void run(std::vector<std::string> argv, std::function<void(Result<std::string>)> done);

  condor::CommandRunner& runner_;
  LanciumSettings settings_;
  std::vector<Group> shapes_;  // the cheapest first
  std::map<std::string, Known> known_;
};

// A row of lcli's list that is one of our pilots.
struct LanciumJob {
  std::string id, name, status;
  Group group;
};

// The jobs of this application among the rows; problems tell of rows that are ours but cannot be read. Fails
// where the columns id, name and status are not there.
Result<std::vector<LanciumJob>> parse_lancium_jobs(std::string_view csv, std::string_view app_name,
                                                   std::vector<std::string>& problems);

}  // namespace glidepod::provisioner
