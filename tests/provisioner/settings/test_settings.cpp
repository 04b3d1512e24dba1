#include "provisioner/settings/settings.hpp"

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "provisioner/settings/shown.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Result<LoadedSettings> load(std::string_view text) {
  Ini ini;
  TRY(ini.read(text, "f"));
  return parse_settings(ini);
}

// All that is told of a file, wherever that is.
std::string told(std::string_view text) {
  const std::vector<File> files{{"f", std::string(text)}};
  std::string result;
  if (const auto loaded = settings_of(files); !loaded) {
    result += loaded.error().message();
  } else {
    const auto lines = changes({}, *loaded);
    result += fmt::format("{}\n", fmt::join(lines, "\n"));
    for (const auto& warning : loaded->warnings) result += warning.text + "\n";
  }
  const auto checked = check_settings(files);
  result += fmt::format("\n{}\n{}\n", fmt::join(checked.problems, "\n"), fmt::join(checked.notes, "\n"));
  const auto shown = settings_in_force(files, {});
  return result + (shown ? *shown : shown.error().message());
}

std::string failure(std::string_view text) {
  const auto loaded = load(text);
  return loaded ? "" : loaded.error().message();
}

}  // namespace

TEST_CASE("settings: every PRP default") {
  const auto s = load("").value().settings;
  CHECK(s.sleep_time == Seconds(120));
  CHECK(s.htcondor.schedd_whitelist_regexp == ".*");
  CHECK(s.htcondor.force_namespace_matching == NamespaceMatching::name);
  CHECK(s.kubernetes.app_name == "prp-wn");
  CHECK(s.kubernetes.domain == "optiputer.net");
  CHECK(s.kubernetes.force_namespace_matching == "yes");
  CHECK(s.kubernetes.job_ttl == Seconds(86400));
  CHECK(s.kubernetes.use_large_limit);
  CHECK(s.kubernetes.storage_mbs == 20000);
  CHECK(s.kubernetes.max_pods_per_cluster == 20);
  CHECK(s.kubernetes.max_submit_pods_per_cluster == 1000);
  CHECK(s.lancium.app_name == "lancium-wn");
  CHECK(s.lancium.max_pods_per_cluster == 20);
  CHECK(s.lancium.max_submit_pods_per_cluster == 400);
}

TEST_CASE("settings: every PRP key is read") {
  const auto loaded = load(R"([DEFAULT]
sleep_time=60
app_name=wn1
[htcondor]
namespace=ns
condor_host=cm
k8s_domain=d
schedd_whitelist_regexp=(login.*\.osgconnect\.net)|(.*\.jlab\.org)
force_k8s_namespace_matching=no
additional_requirements=(ProjectName =!= undefined)
[k8s]
namespace=ns
condor_host=cm
k8s_domain=d
force_k8s_namespace_matching=no
additional_requirements=true
k8s_image=img:1
k8s_image_pull_policy=IfNotPresent
priority_class=p
priority_class_cpu=pc
priority_class_gpu=pg
service_account_name=sa
k8s_job_ttl=10
request_fuse=no
storage_mbs=
use_large_limit=no
resources_dict=a/b:1
labels_dict=l:1
annotations_dict=an:1
envs_dict=E:x&comma;y
tolerations_list=t1,t2
node_selectors_dict=n:1
node_affinity_dict=^k:a|b
pvc_volumes_dict=v:!/mnt
config_volumes_dict=c:/etc/c.conf
max_pods_per_cluster=5
max_submit_pods_per_cluster=50
)");
  REQUIRE(loaded.ok());
  CHECK(loaded->warnings.empty());
  const auto& s = loaded->settings;
  CHECK(s.sleep_time == Seconds(60));
  CHECK(s.htcondor.additional_requirements == "(ProjectName =!= undefined)");
  CHECK(s.htcondor.force_namespace_matching == NamespaceMatching::no);
  CHECK(s.htcondor.schedd_whitelist_regexp == R"((login.*\.osgconnect\.net)|(.*\.jlab\.org))");
  const auto& k = s.kubernetes;
  CHECK(k.app_name == "wn1");
  CHECK(s.lancium.app_name == "wn1");
  CHECK(k.name_space == "ns");
  CHECK(k.condor_host == "cm");
  CHECK(k.domain == "d");
  CHECK(k.force_namespace_matching == "no");
  CHECK(k.additional_requirements == "true");
  CHECK(k.image == "img:1");
  CHECK(k.image_pull_policy == PullPolicy::if_not_present);
  CHECK(k.priority_class == "p");
  CHECK(k.priority_class_cpu == "pc");
  CHECK(k.priority_class_gpu == "pg");
  CHECK(k.service_account_name == "sa");
  CHECK(k.job_ttl == Seconds(10));
  CHECK(k.request_fuse == false);
  CHECK(k.storage_mbs == -1);
  CHECK_FALSE(k.use_large_limit);
  CHECK(k.resources == Dict{{"a/b", "1"}});
  CHECK(k.labels == Dict{{"l", "1"}});
  CHECK(k.annotations == Dict{{"an", "1"}});
  CHECK(k.envs == Dict{{"E", "x,y"}});
  CHECK(k.tolerations == List{"t1", "t2"});
  CHECK(k.node_selectors == Dict{{"n", "1"}});
  CHECK(k.node_affinity == Dict{{"^k", "a|b"}});
  CHECK(k.pvc_volumes == Dict{{"v", "!/mnt"}});
  CHECK(k.config_volumes == Dict{{"c", "/etc/c.conf"}});
  CHECK(k.max_pods_per_cluster == 5);
  CHECK(k.max_submit_pods_per_cluster == 50);
}

TEST_CASE("settings: the published Lancium file") {
  const auto loaded = load(
      "[DEFAULT]\napp_name=lancium-wn\n\n[lancium]\nlancium_image=prp-osgvo-pilot-22062218\n"
      "envs_dict=GLIDEIN_Site:Lancium,GLIDEIN_ResourceName:Lancium-PEP,ACCEPT_JOBS_FOR_HOURS:48\n\n[htcondor]"
      "\n"
      "schedd_whitelist_regexp=(login.*\\.osgconnect\\.net)|(.*\\.jlab\\.org)|(.*\\.amnh\\.org)\n");
  REQUIRE(loaded.ok());
  CHECK(loaded->warnings.empty());
  CHECK(loaded->settings.lancium.image == "prp-osgvo-pilot-22062218");
  CHECK(loaded->settings.lancium.envs.size() == 3);
}

TEST_CASE("settings: unknown keys and sections are warnings by name") {
  const auto loaded = load("[k8s]\nk8s_imagee = x\n[other]\na = 1\n[DEFAULT]\nq = 1\n");
  REQUIRE(loaded.ok());
  REQUIRE(loaded->warnings.size() == 3);
  CHECK(loaded->warnings[0].text == "unknown key 'q' in [default] is ignored");
  CHECK(loaded->warnings[1].text == "unknown key 'k8s_imagee' in [k8s] is ignored");
  CHECK(loaded->warnings[2].text == "unknown section [other] is ignored");
}

TEST_CASE("settings: a wrong value names the key, the value and what is allowed") {
  CHECK(failure("[DEFAULT]\nsleep_time = soon\n") ==
        "[default] sleep_time = 'soon': must be a whole number of seconds");
  CHECK(failure("[k8s]\nmax_pods_per_cluster = -1\n") ==
        "[k8s] max_pods_per_cluster = '-1': must be a whole number from 0 to 1000000000");
  CHECK(failure("[k8s]\nk8s_image_pull_policy = always\n") ==
        "[k8s] k8s_image_pull_policy = 'always': must be one of: Always, IfNotPresent, Never");
  CHECK(failure("[k8s]\nleast_fill = 101\n") ==
        "[k8s] least_fill = '101': must be a whole number from 0 to 100");
  for (const std::string image :
       {"a:1", "oras://a:1", "Docker://a", "docker://", "docker://a\"b", "/cvmfs/other/a"})
    CHECK(failure("[k8s]\ndefault_image = " + image + "\n") ==
          "[k8s] default_image = '" + image +
              "': must be docker://NAME or a path below /cvmfs/singularity.opensciencegrid.org/ or "
              "/cvmfs/unpacked.cern.ch/, or empty");
  CHECK(load("[k8s]\ndefault_image = docker://r.example:5000/a/b:1@sha256:00\n").ok());
  CHECK(load("[k8s]\ndefault_image =\n").ok());
  for (const std::string url :
       {"http://s:1", "s:1", "https://", "https://user@s:1", "/run/image-store/socket"})
    CHECK(failure("[k8s]\nimage_store = " + url + "\n") ==
          "[k8s] image_store = '" + url + "': must be https://HOST:PORT, or empty");
  CHECK(load("[k8s]\nimage_store = https://s.example:8443\n").ok());
  CHECK(failure("[k8s]\nrequest_fuse = maybe\n") == "[k8s] request_fuse = 'maybe': must be one of: yes, no");
  CHECK(failure("[htcondor]\ndemand = negotiator\n") ==
        "[htcondor] demand = 'negotiator': must be one of: query, offline, both");
  CHECK(failure("[htcondor]\nschedd_whitelist_regexp = (\n")
            .starts_with("[htcondor] schedd_whitelist_regexp = '(': must be a regular expression"));
  CHECK(failure("[lancium]\nshapes = 16\n") ==
        "[lancium] shapes = '16': must be cores/GPUs such as 16/0,12/4");
  CHECK(failure("[glidepod]\ncpu_buckets = 4,2\n") ==
        "[glidepod] cpu_buckets = '4,2': must be rising whole numbers such as 4096,8192");
  CHECK(failure("[k8s]\nlabels_dict = a\n").starts_with("[k8s] labels_dict = 'a': must be a dictionary"));
}

TEST_CASE("settings: every key is described with its default") {
  const auto text = describe_settings();
  CHECK(text.find("max_submit_pods_per_cluster") != std::string::npos);
  CHECK(text.find("[DEFAULT]\n  sleep_time") != std::string::npos);
}

TEST_CASE("settings: what changed between two readings") {
  const auto before = load("[k8s]\nnamespace = a\napp_name = x\n").value();
  const auto after = load("[k8s]\nnamespace = b\napp_name = x\npriority_class = low\n").value();
  CHECK(changes(before, after) ==
        List{"- [k8s] namespace = a", "+ [k8s] namespace = b", "+ [k8s] priority_class = low"});
  CHECK(changes(after, after).empty());
  const auto secret = load("[k8s]\nenvs_dict = A:token\n").value();
  const auto other = load("[k8s]\nenvs_dict = A:nekot\n").value();
  CHECK(changes(secret, other).size() == 2);
  CHECK(secret.written[0].find("token") == std::string::npos);
}

TEST_CASE("settings: what is accepted and not used is told, with what is used") {
  Ini ini;
  REQUIRE(ini.read("[DEFAULT]\napp_name = x\n[htcondor]\nnamespace = a\ncondor_host = b\nk8s_domain = "
                   "d\n[k8s]\nk8s_domain = d\n"
                   "[lancium]\nlancium_job_ttl = 5\napp_name = y\n",
                   "f")
              .ok());
  const auto loaded = parse_settings(ini);
  REQUIRE(loaded.ok());
  std::string texts;
  for (const auto& warning : loaded->warnings) texts += warning.text + "\n";
  CHECK(texts ==
        "'condor_host' in [htcondor] is not used: pool is\n"
        "'namespace' in [htcondor] is not used: that of [k8s] is\n"
        "'lancium_job_ttl' in [lancium] is not used: sightings_before_removal is\n");
}

TEST_CASE("settings: places have what [k8s] says, and above it what they say themselves") {
  const auto loaded = load(R"([DEFAULT]
k8s_image=img:0
[k8s]
namespace=ns
max_pods_per_cluster=30
image_pull_secrets=a
[k8s:east]
server=https://east:6443
token_file=/tokens/east
ca_file=/ca/east
k8s_domain=east.example.org
weight=3
max_pods=200
[K8S:West-2]
namespace=other
image_pull_secrets=b
k8s_image=img:2
)");
  REQUIRE(loaded.ok());
  CHECK(loaded->warnings.empty());
  const auto& places = loaded->settings.places;
  REQUIRE(places.size() == 2);
  CHECK(places[0].place == "east");
  CHECK(places[0].server == "https://east:6443");
  CHECK(places[0].token_file == "/tokens/east");
  CHECK(places[0].ca_file == "/ca/east");
  CHECK(places[0].domain == "east.example.org");
  CHECK(places[0].weight == 3);
  CHECK(places[0].max_pods == 200);
  CHECK(places[0].name_space == "ns");
  CHECK(places[0].image == "img:0");
  CHECK(places[0].max_pods_per_cluster == 30);
  CHECK(places[0].image_pull_secrets == List{"a"});
  CHECK(places[0].app_name == "prp-wn");
  CHECK(places[1].place == "west-2");
  CHECK(places[1].name_space == "other");
  CHECK(places[1].image == "img:2");
  CHECK(places[1].image_pull_secrets == List{"b"});
  CHECK(places[1].weight == 1);
  CHECK(places[1].server.empty());
}

TEST_CASE("settings: a place may be empty, and none is none") {
  CHECK(load("[k8s]\nnamespace=ns\n")->settings.places.empty());
  CHECK(load("[k8s]\nnamespace=ns\n[k8s:local]\n")->settings.places.size() == 1);
}

TEST_CASE("settings: what is wrong with a place is told") {
  CHECK(failure("[k8s:a b]\n") == "[k8s:a b]: a place's name is up to 30 of a-z, 0-9 and -");
  CHECK(failure("[k8s:]\n").starts_with("[k8s:]"));
  CHECK(failure("[k8s:a]\nweight=-1\n").starts_with("[k8s:a] weight = '-1': must be"));
  const auto loaded = load("[k8s:a]\napp_name=x\nnosuch=1\n[k8s]\nserver=x\n");
  REQUIRE(loaded->warnings.size() == 3);
  CHECK(loaded->warnings[0].text == "'app_name' in [k8s:a] is not used: that of [k8s] is");
  CHECK(loaded->warnings[1].text == "unknown key 'server' in [k8s] is ignored");
  CHECK(loaded->warnings[2].text == "unknown key 'nosuch' in [k8s:a] is ignored");
}

TEST_CASE("settings: no value of a secret is told, whatever is wrong with it") {
  for (const std::string text : {
           "[k8s]\nenvs_dict = TOKEN:S3cr3t\n",
           "[k8s]\nenvs_dict = S3cr3t\n",
           "[k8s]\nenvs_dict = A:x:S3cr3t,S3cr3t\n",
           "[k8s]\nenvs_dict = S3cr3t:a,S3cr3t:b\n",
           "[k8s]\nenvs_dict = A:S3cr3t%(S3cr3t)s\n",
           "[k8s]\nenvs_dict = A:S3cr3t%\n",
           "[k8s]\nenvs_dict = A:x,\nS3cr3t\n",
           "[k8s]\nenvs_dict = A:x,\nS3cr3t:y\n",
           "[k8s]\nenvs_dict = A:x,\n[S3cr3t\n",
           "[k8s]\nenvs_dict = A:x,\n  # a comment\n  B:S3cr3t\n",
           "[DEFAULT]\nsecret=S3cr3t\n[k8s]\nenvs_dict = A:%(secret)s\n",
           "[DEFAULT]\nsecret=S3cr3t\n[k8s]\nlabels_dict = a:%(secret)s\n",
           "[DEFAULT]\nsecret=S3cr3t\n[k8s]\nlabels_dict = %(secret)s\n",
           "[DEFAULT]\nsecret=S3cr3t%\n",
           "[DEFAULT]\nenvs_dict=S3cr3t\n",
           "[DEFAULT]\nenvs_dict=A:S3cr3t\n",
           "[k8s]\nenvs_dict=A:S3cr3t\n[k8s:east]\nweight=2\n",
           "[k8s:east]\nenvs_dict=A:S3cr3t:\n",
           "[lancium]\nenvs_dict=A:S3cr3t\nenvs_dict=B:S3cr3t\n",
           "[nowhere]\nenvs_dict=A:S3cr3t\nother=S3cr3t\n",
       }) {
    const auto all = lower_case(told(text));
    CHECK_MESSAGE(all.find("s3cr3t") == std::string::npos, text, all);
    CHECK(all.size() > 2);
  }
}

TEST_CASE("settings: that a secret has changed is told, and nothing that others could compare") {
  const auto of = [](const std::string& text) { return settings_of({{"f", text}}).value(); };
  const auto one = of("[k8s]\nenvs_dict = A:first-of-this-test\n"), two = of("[k8s]\nenvs_dict = A:second\n");
  CHECK(changes(one, of("[k8s]\nenvs_dict = A:first-of-this-test\n")).empty());
  const auto lines = changes(one, two);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("- [k8s] envs_dict = (hidden, "));
  CHECK(lines[0].size() <= std::string("- [k8s] envs_dict = (hidden, 1234)").size());
}

TEST_CASE("settings: a check tells all that is wrong at once, with its line and what to do") {
  const auto checked =
      check_settings({{"f",
                       "[k8s]\nleast_fill = 101\nk8s_imagee = x\nnonsense\npod_events = maybe\n"
                       "labels_dict = a\n[htcondor]\nnamespace = x\n[k9s]\nx = 1\n"},
                      {"g", "[DEFAULT]\nsleep_time = soon\n[k8s:A B]\n[lancium]\nshapes = 16\n"}});
  const std::string dictionary =
      "f:6: [k8s] labels_dict = 'a': must be a dictionary such as key:value,key:value; its element 1 is not "
      "key:value (a ':' inside a value is written &colon;, a ',' &comma;)";
  CHECK(checked.problems ==
        List{"f:2: [k8s] least_fill = '101': must be a whole number from 0 to 100",
             "f:3: unknown key 'k8s_imagee' in [k8s] is ignored; 'k8s_image' is meant?",
             "f:4: not of the form key = value; what goes on the value above it is indented",
             "f:5: [k8s] pod_events = 'maybe': must be one of: yes, no", dictionary,
             "f:9: unknown section [k9s] is ignored",
             "g:2: [default] sleep_time = 'soon': must be a whole number of seconds",
             "g:3: [k8s:a b]: a place's name is up to 30 of a-z, 0-9 and -",
             "g:5: [lancium] shapes = '16': must be cores/GPUs such as 16/0,12/4"});
  CHECK(checked.notes == List{"f:8: 'namespace' in [htcondor] is not used: that of [k8s] is"});
  CHECK(check_settings({{"f", "[k8s]\nnamespace = x\n"}}).problems.empty());
}

TEST_CASE("settings: the values in force have their default and their place") {
  const std::vector<File> files{{"f", "[DEFAULT]\napp_name=x\n[k8s]\nnamespace=a\n[k8s:east]\nnamespace=b\n"},
                                {"g", "[k8s]\nleast_fill=5\n"}};
  CHECK(settings_in_force(files, {"namespace"}).value() ==
        "[k8s]\n  namespace = a\n      namespace of the pods; empty: the provisioner's own\n"
        "      from f:4; default: empty; since 0.1.0\n"
        "[k8s:east]\n  namespace = b\n      namespace of the pods; empty: the provisioner's own\n"
        "      from f:6; default: a; since 0.1.0\n");
  const auto names = settings_in_force(files, {"app_name", "least_fill"}).value();
  CHECK(names.find("[lancium]\n  app_name = x\n") != std::string::npos);
  CHECK(names.find("from f:2; default: lancium-wn;") != std::string::npos);
  CHECK(names.find("  least_fill = 5\n") != std::string::npos);
  CHECK(settings_in_force(files, {"nosuch"}).error().message() == "there is no key 'nosuch'");
  CHECK_FALSE(settings_in_force({{"f", "[k8s]\nleast_fill=x\n"}}, {}).ok());
}

TEST_CASE("settings: jobs ask for the namespace unless no stands there, which pilots read in any case") {
  struct Row {
    const char* word;
    NamespaceMatching asked, of_pilots;
  };
  using enum NamespaceMatching;
  for (const Row& row :
       {Row{"no", no, no}, Row{"pattern", pattern, pattern}, Row{"yes", name, name}, Row{"force", name, name},
        Row{"", name, no}, Row{"No", name, no}, Row{"PATTERN", name, pattern}}) {
    CAPTURE(row.word);
    const auto s = load(fmt::format("[htcondor]\nforce_k8s_namespace_matching={0}\n[k8s]\n"
                                    "force_k8s_namespace_matching={0}\n",
                                    row.word))
                       .value()
                       .settings;
    CHECK(s.htcondor.force_namespace_matching == row.asked);
    CHECK(s.kubernetes.pilots_matching == row.of_pilots);
    CHECK(s.kubernetes.force_namespace_matching == row.word);
  }
}

TEST_CASE("settings: words of the other choices") {
  for (const auto& [word, policy] : {std::pair{"Always", PullPolicy::always},
                                     {"IfNotPresent", PullPolicy::if_not_present},
                                     {"Never", PullPolicy::never}}) {
    const auto s = load(fmt::format("[k8s]\nk8s_image_pull_policy={}\n", word)).value().settings;
    CHECK(s.kubernetes.image_pull_policy == policy);
    CHECK(to_string(policy) == std::string(word));
  }
  CHECK_FALSE(load("").value().settings.kubernetes.image_pull_policy);
  CHECK(failure("[k8s]\nk8s_image_pull_policy=\n").ends_with("must be one of: Always, IfNotPresent, Never"));
  for (const auto& [word, by] :
       {std::pair{"query", DemandBy::query}, {"offline", DemandBy::offline}, {"both", DemandBy::both}})
    CHECK(load(fmt::format("[htcondor]\ndemand={}\n", word)).value().settings.htcondor.demand == by);
  CHECK(failure("[htcondor]\ndemand=Query\n") ==
        "[htcondor] demand = 'Query': must be one of: query, offline, both");
}

TEST_CASE("settings: the reference page is what the table says") {
  const auto page = read_file(GLIDEPOD_SETTINGS_PAGE);
  REQUIRE(page.ok());
  CHECK(settings_page() == *page);  // else: provisioner settings --markdown > docs/settings-provisioner.md
}

TEST_CASE("settings: how many payload containers pods get beyond the template's") {
  CHECK_FALSE(load("").value().settings.kubernetes.warm);
  CHECK_FALSE(load("[k8s]\nwarm=auto\n").value().settings.kubernetes.warm);
  CHECK(load("[k8s]\nwarm=off\n").value().settings.kubernetes.warm == 0);
  CHECK(load("[k8s]\nwarm=0\n").value().settings.kubernetes.warm == 0);
  CHECK(load("[k8s]\nwarm=7\n").value().settings.kubernetes.warm == 7);
  for (const auto* value : {"-1", "101", "yes", "", "2.5"})
    CHECK(failure(fmt::format("[k8s]\nwarm={}\n", value)) ==
          fmt::format("[k8s] warm = '{}': must be auto, off, or a whole number from 0 to 100", value));
  const auto places = load("[k8s]\nwarm=2\n[k8s:a]\nwarm=off\n[k8s:b]\nmax_pods=1\n").value().settings.places;
  CHECK(places.at(0).warm == 0);
  CHECK(places.at(1).warm == 2);
}
