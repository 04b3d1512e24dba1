#include "provisioner/kubernetes.hpp"

#include "lib/condor/classad.hpp"
#include "provisioner/pod_state.hpp"

namespace glidepod::provisioner {

namespace {

// A pod is some 10 kB of JSON.
constexpr int k_page = 250;
constexpr Seconds k_nodes_age{600};

std::string url_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos)
      result += c;
    else
      result += fmt::format("%{:02X}", byte);
  }
  return result;
}

Error failure_error(const kube::Failure& failure) {
  return error("{}", failure.to_string());
}

}  // namespace

struct Kubernetes::Look {
  Time now;
  Seen seen;
  std::map<std::string, std::string> uids;
  bool again = false;  // the list is read from its beginning for the second time
  std::function<void(Seen)> done;
};

std::string Kubernetes::pods_path(std::string_view name) const {
  return fmt::format("/api/v1/namespaces/{}/pods{}{}", settings_.name_space, name.empty() ? "" : "/", name);
}

void Kubernetes::look(Time now, std::function<void(Seen)> done) {
  auto look = std::make_shared<Look>();
  look->now = now;
  look->done = std::move(done);
  next_page(look, {});
}

void Kubernetes::next_page(const std::shared_ptr<Look>& look, const std::string& from) {
  auto path = fmt::format("{}?limit={}&labelSelector={}", pods_path(), k_page,
                          url_encoded(fmt::format("prp-htcondor-portal=wn,k8s-app={}", settings_.app_name)));
  if (!from.empty()) path += "&continue=" + url_encoded(from);
  api_.call({.path = std::move(path)}, [this, look](const ApiAnswer& answer) {
    if (const auto* body = std::get_if<std::string>(&answer)) return read_page(look, *body);
    const auto& failure = std::get<kube::Failure>(answer);
    // The rest of a list is kept for some minutes only.
    if (failure.status == 410 && !std::exchange(look->again, true)) {
      look->seen = {};
      look->uids.clear();
      return next_page(look, {});
    }
    look->seen.blind = fmt::format("list of pods: {}", failure.to_string());
    look->done(std::move(look->seen));
  });
}

void Kubernetes::read_page(const std::shared_ptr<Look>& look, const std::string& body) {
  const auto list = Json::parse(body, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array()) {
    look->seen.blind = "list of pods: the answer is no list";
    return look->done(std::move(look->seen));
  }
  for (const auto& item : list["items"]) {
    auto pod = read_pod(item);
    if (!pod) {
      look->seen.problems.push_back(pod.error().message());
      continue;
    }
    look->uids[pod->name] = item["metadata"].value("uid", "");
    look->seen.pods.push_back(std::move(pod).value());
  }
  const auto metadata = list.value("metadata", Json::object());
  if (const auto more = metadata.value("continue", std::string()); !more.empty())
    return next_page(look, more);
  uids_ = std::move(look->uids);
  read_quota(look);
}

void Kubernetes::read_quota(const std::shared_ptr<Look>& look) {
  const auto path = fmt::format("/api/v1/namespaces/{}/resourcequotas", settings_.name_space);
  api_.call({.path = path}, [this, look](const ApiAnswer& answer) {
    const auto* body = std::get_if<std::string>(&answer);
    if (!body) {
      const auto& failure = std::get<kube::Failure>(answer);
      if (failure.status != 403 && failure.status != 404)
        look->seen.problems.push_back("quotas: " + failure.to_string());
    } else if (const auto list = Json::parse(*body, nullptr, false); list.is_object()) {
      if (const auto quota = read_quotas(list)) {
        look->seen.capacity.quota = quota->hard;
        look->seen.capacity.quota_left = quota->left;
      }
    }
    read_node_sizes(look);
  });
}

void Kubernetes::read_node_sizes(const std::shared_ptr<Look>& look) {
  const auto finish = [this, look] {
    look->seen.capacity.nodes = nodes_;
    look->done(std::move(look->seen));
  };
  if (look->now - nodes_read_ < k_nodes_age) return finish();
  nodes_read_ = look->now;
  api_.call({.path = "/api/v1/nodes"}, [this, look, finish](const ApiAnswer& answer) {
    const auto* body = std::get_if<std::string>(&answer);
    const auto list = body ? Json::parse(*body, nullptr, false) : Json();
    // Kept where they cannot be read this time; never read where that is forbidden.
    if (list.is_object()) nodes_ = read_nodes(list);
    finish();
  });
}

Demand Kubernetes::fit(Demand demand, Capacity& capacity) const {
  for (const auto& entry : demand.groups) {
    const auto& group = entry.first;
    const auto pod = maker_.make(group, "any");
    const auto need = pod ? resources_of_pod(pod.value()) : Result<Resources>(pod.error());
    if (need)
      capacity.needs[group] = need.value();
    else
      capacity.unservable[group] = need.error().message();
  }
  return demand;
}

void Kubernetes::create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) {
  const auto pod = maker_.make(group, name);
  // fit() has tried it: an error comes from a change in between, and the handler from the loop all the same.
  if (!pod) {
    api_.loop().after(Milliseconds(0), [done = std::move(done), failure = pod.error()] { done(failure); });
    return;
  }
  const auto body = pod.value().dump(-1, ' ', false, Json::error_handler_t::replace);
  api_.call({.method = "POST", .path = pods_path(), .body = body},
            [done = std::move(done)](const ApiAnswer& answer) {
              const auto* failure = std::get_if<kube::Failure>(&answer);
              // Its name is made for this one creation: an attempt whose answer was lost has made it.
              if (!failure || (failure->status == 409 && failure->reason == "AlreadyExists")) return done({});
              done(failure_error(*failure));
            });
}

void Kubernetes::remove(const std::string& name, std::function<void(Result<void>)> done) {
  const auto uid = uids_.find(name);
  // Without the condition, another pod that got the name since could be hit.
  const Json options = {{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"preconditions", {{"uid", uid == uids_.end() ? "unknown" : uid->second}}}};
  api_.call({.method = "DELETE", .path = pods_path(name), .body = options.dump()},
            [done = std::move(done)](const ApiAnswer& answer) {
              const auto* failure = std::get_if<kube::Failure>(&answer);
              if (!failure || failure->status == 404) return done({});
              done(failure_error(*failure));
            });
}

std::string Kubernetes::slot_constraint() const {
  return fmt::format(
      "(K8SProvisionerType =?= \"PRPHTCondorProvisioner\") && (K8SProvisionerName =?= {}) && (K8SNamespace "
      "=?= {}) && "
      "(K8SDomain =?= {})",
      condor::quote(settings_.app_name), condor::quote(settings_.name_space),
      condor::quote(settings_.domain));
}

}  // namespace glidepod::provisioner
