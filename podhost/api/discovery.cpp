#include "podhost/api/api.hpp"

namespace glidepod::podhost {

namespace {
#if defined(__aarch64__)
constexpr const char* k_platform = "linux/arm64";
#else
constexpr const char* k_platform = "linux/amd64";
#endif
}  // namespace

Json discovery(const std::string& path) {
  if (path == "/version") {
    // The oldest Kubernetes whose pods podhost was written for; clients compare it with their own.
    return {{"major", "1"},
            {"minor", "28"},
            {"gitVersion", "v1.28.0+podhost." GLIDEPOD_VERSION},
            {"platform", k_platform}};
  }
  if (path == "/api") {
    return {{"kind", "APIVersions"}, {"versions", {"v1"}}, {"serverAddressByClientCIDRs", Json::array()}};
  }
  if (path == "/apis") return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", Json::array()}};
  if (path == "/api/v1") {
    return {{"kind", "APIResourceList"},
            {"groupVersion", "v1"},
            {"resources",
             {{{"name", "pods"},
               {"singularName", "pod"},
               {"namespaced", true},
               {"kind", "Pod"},
               {"verbs", {"create", "delete", "get", "list", "patch", "update", "watch"}},
               {"shortNames", {"po"}},
               {"categories", {"all"}}},
              {{"name", "pods/log"},
               {"singularName", ""},
               {"namespaced", true},
               {"kind", "Pod"},
               {"verbs", {"get"}}},
              {{"name", "pods/resize"},
               {"singularName", ""},
               {"namespaced", true},
               {"kind", "Pod"},
               {"verbs", {"patch", "update"}}},
              {{"name", "namespaces"},
               {"singularName", "namespace"},
               {"namespaced", false},
               {"kind", "Namespace"},
               {"verbs", {"get"}},
               {"shortNames", {"ns"}}}}}};
  }
  // No schema: clients that would check a manifest against it leave that to the server.
  if (path == "/openapi/v2") {
    return {{"swagger", "2.0"},
            {"info", {{"title", "podhost"}, {"version", GLIDEPOD_VERSION}}},
            {"paths", Json::object()}};
  }
  return nullptr;
}

}  // namespace glidepod::podhost
