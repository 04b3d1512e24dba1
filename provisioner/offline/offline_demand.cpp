#include "provisioner/offline/offline_demand.hpp"

#include <algorithm>

#include "lib/condor/job_ad.hpp"
#include "provisioner/demand/trust.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using condor::Value;

// Of one cycle: each is a whole pilot's ad of some 10 kB, and the collector takes them one by one.
constexpr std::size_t k_most_ads = 2000;

std::int64_t started(const Ad& ad) {
  const auto value = ad.evaluate("DaemonStartTime");
  return value.is(Value::Type::integer) ? value.integer : 0;
}
bool has_gpus(const Ad& ad) {
  const auto value = ad.evaluate("TotalSlotGPUs");
  return value.is(Value::Type::integer) && value.integer > 0;
}

}  // namespace

// The questions of one fetch, asked at the same time; a pilot's whole ad once it is known which. The offers
// after the cycles: else a cycle that ends in between has matched none of what was read before it.
struct OfflineDemand::Look {
  Demand demand;
  Negotiation seen;
  struct Newest {
    std::string name;
    std::int64_t started = 0;
    bool copy = false;
  } newest[2];
  std::string failure;
  int missing = 4;
  std::function<void(Demand)> done;
};

OfflineDemand::OfflineDemand(DemandSource& query, condor::CommandRunner& runner,
                             const HtcondorSettings& htcondor, Settings settings)
    : query_(query),
      pool_(runner, htcondor.pool, std::chrono::duration_cast<Milliseconds>(htcondor.schedd_time_limit)),
      settings_(std::move(settings)) {}

void OfflineDemand::fetch(std::function<void(Demand)> done) {
  auto look = std::make_shared<Look>();
  look->done = std::move(done);
  const auto ended = [this, look](const char* what) {
    return [this, look, what](const Result<void>& end) {
      if (!end) look->failure = end.error().in(what).message();
      finish(look);
    };
  };
  const auto ignore = [](const std::string&) {};
  query_.fetch([this, look](Demand demand) {
    look->demand = std::move(demand);
    finish(look);
  });
  const auto read_offers = [this, look, ignore, ended] {
    pool_.slots(fmt::format("({}) && ({} =?= true)", settings_.pilots, k_offline_mark), offer_attributes(),
                {[look](const Ad& ad) { read_offer(ad, look->seen.board); }, ignore, ended("offline ads")});
  };
  pool_.cycles({[look](const Ad& ad) {
                  const auto at = ad.evaluate("LastUpdate");
                  if (!at.is(Value::Type::integer)) return;
                  const Time time{Seconds(at.integer)};
                  look->seen.cycle = std::max(look->seen.cycle.value_or(time), time);
                  const auto heard = ad.evaluate("LastHeardFrom");
                  if (heard.is(Value::Type::integer))
                    look->seen.over = std::max(look->seen.over, Time(Seconds(heard.integer)));
                },
                ignore,
                [read_offers, over = ended("accounting ads")](const Result<void>& end) {
                  read_offers();
                  over(end);
                }});
  read_pilots(look);
}

// A pilot that has not looked for its containers yet has no ad to copy. Copies do, where the pilot has gone.
void OfflineDemand::read_pilots(const std::shared_ptr<Look>& look) {
  const auto constraint = fmt::format(
      "({}) && (PartitionableSlot =?= true) && (GlidepodPayloadContainers =?= undefined || HasSingularity "
      "=?= "
      "true) && (DaemonStartTime > ifThenElse((TotalSlotGPUs > 0) =?= true, {}, {}))",
      settings_.pilots, pilots_[true].started, pilots_[false].started);
  const auto identities = settings_pattern(settings_.startd_identity_regexp);
  pool_.slots(constraint,
              {"Name", "DaemonStartTime", "TotalSlotGPUs", "AuthenticatedIdentity", k_offline_mark},
              {[look, identities](const Ad& ad) {
                 const auto copy = ad.evaluate(k_offline_mark).boolean;
                 if (!copy && !identities.surely_matches(ad.text("AuthenticatedIdentity"))) return;
                 auto& newest = look->newest[has_gpus(ad)];
                 // Of the same age: the pilot itself.
                 if (std::pair(started(ad), !copy) > std::pair(newest.started, !newest.copy))
                   newest = {ad.text("Name"), started(ad), copy};
               },
               [](const std::string&) {},
               [this, look](const Result<void>& end) {
                 if (!end) look->failure = end.error().in("pilots").message();
                 for (const bool gpus : {false, true})
                   if (const auto& newest = look->newest[gpus]; end && !newest.name.empty()) {
                     ++look->missing;
                     read_pilot(look, gpus, newest.name);
                   }
                 finish(look);
               }});
}

void OfflineDemand::read_pilot(const std::shared_ptr<Look>& look, bool gpus, const std::string& name) {
  pool_.slots("Name == " + condor::quote(name), {},
              {[this, gpus](const Ad& ad) {
                 if (has_gpus(ad) == gpus) pilots_[gpus] = {ad, started(ad)};
               },
               [](const std::string&) {},
               [this, look](const Result<void>& end) {
                 if (!end) look->failure = end.error().in("a pilot's ad").message();
                 finish(look);
               }});
}

void OfflineDemand::finish(const std::shared_ptr<Look>& look) {
  if (--look->missing > 0) return;
  auto& demand = look->demand;
  for (const bool gpus : {false, true}) look->seen.pilots[gpus] = pilots_[gpus].started != 0;
  queried_.clear();
  for (const auto& [group, jobs] : demand.groups)
    queried_[group] = {.idle = jobs.idle, .owners = jobs.owners};
  seen_ = look->seen;
  if (!not_put_.empty()) demand.problems.push_back("offline ads: " + not_put_);
  if (look->failure.empty()) {
    if (!seen_.cycle && !demand.groups.empty())
      demand.problems.emplace_back(
          "offline ads: the pool has no accounting ads, by which negotiation cycles are known "
          "(NEGOTIATOR_ADVERTISE_ACCOUNTING)");
    add_offers(demand, seen_, settings_.offering);
  } else if (settings_.offering == Offering::decides && !demand.blind) {
    demand.blind = look->failure;
  } else {
    demand.problems.push_back(look->failure);
  }
  if (!look->failure.empty()) queried_.clear();
  const auto done = std::move(look->done);
  done(std::move(demand));
}

void OfflineDemand::follow_up(Time now) {
  std::string text;
  for (const auto& [group, number] :
       missing_offers(queried_, seen_, settings_.most, settings_.lifetime, now, k_most_ads)) {
    const auto& pilot = pilots_[group.gpus > 0];
    if (pilot.started != 0) text += offline_ad(pilot.ad, group, number, settings_.lifetime);
  }
  if (text.empty()) return;
  pool_.advertise_slots(std::move(text), [this](const Result<void>& end) {
    not_put_ =
        end ? std::string() : end.error().in("the collector does not take them (ADVERTISE_STARTD)").message();
  });
}

}  // namespace glidepod::provisioner
