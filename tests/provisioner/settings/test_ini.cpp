#include "provisioner/settings/ini.hpp"

#include <doctest/doctest.h>

#include "provisioner/settings/entries.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

std::string value(std::string_view text, std::string_view section, std::string_view key) {
  Ini ini;
  const auto done = ini.read(text, "f");
  if (!done) return "read: " + done.error().message();
  const auto found = ini.get(section, key);
  if (!found) return "get: " + found.error().message();
  return found->value_or("(none)");
}

std::string failure(std::string_view text) {
  Ini ini;
  const auto done = ini.read(text, "f");
  return done ? "" : done.error().message();
}

}  // namespace

TEST_CASE("ini: keys and sections have no case, both separators work") {
  CHECK(value("[HTCondor]\nApp_Name = x \n", "htcondor", "app_name") == "x");
  CHECK(value("[htcondor]\napp_name:x=y\n", "htcondor", "app_name") == "x=y");
  CHECK(value("[k8s]\r\na = b\r\n", "k8s", "a") == "b");
  CHECK(value("[k8s]\na =\n", "k8s", "a").empty());
  CHECK(value("[k8s]\na = b", "k8s", "c") == "(none)");
}

TEST_CASE("ini: DEFAULT shows through every section, also one that is missing") {
  const auto* text = "[DEFAULT]\na = 1\nb = 2\n[k8s]\nb = 3\n";
  CHECK(value(text, "k8s", "a") == "1");
  CHECK(value(text, "k8s", "b") == "3");
  CHECK(value(text, "htcondor", "b") == "2");
}

TEST_CASE("ini: [HTCondor] and [htcondor] are one section, a later file wins") {
  Ini ini;
  REQUIRE(ini.read("[HTCondor]\na = 1\nb = 1\n", "f").ok());
  REQUIRE(ini.read("[htcondor]\nb = 2\n", "g").ok());
  CHECK(ini.get("htcondor", "a").value().value() == "1");
  CHECK(ini.get("htcondor", "b").value().value() == "2");
}

TEST_CASE("ini: values go on over indented lines and over backslashes") {
  CHECK(value("[s]\na = x\n  y\n\tz\nb = 1\n", "s", "a") == "x\ny\nz");
  CHECK(value("[s]\na = x\n\n  y\n\n\nb = 1\n", "s", "a") == "x\n\ny");
  CHECK(value("[s]\na = x\n# note\n  y\n  ; note\n", "s", "a") == "x\ny");
  CHECK(value("[s]\na = \\\n  x && \\\n  y\nb = 1\n", "s", "a") == "x && y");
  CHECK(failure("[s]\na = x \\\ny\nb = 1\n") ==
        "f:3: not of the form key = value; what goes on the value above it is indented");
  for (const auto* text :
       {"[s]\na = x && \\\n  y \\\n[t]\nb = 1\n", "[t]\na = x \\\nb = 1\n[s]\na = x && \\\n y \\\n"}) {
    CHECK(value(text, "s", "a") == "x && y");
    CHECK(value(text, "t", "b") == "1");
  }
  CHECK(value("[s]\na = x \\\n\nb = 1\n", "s", "b") == "1");
  CHECK(value("[s]\n  a = x\n  b = y\n", "s", "b") == "y");
}

TEST_CASE("ini: the published example keeps its expression") {
  const auto* text =
      "[HTCondor]\n"
      "additional_requirements= \\\n"
      "    ((DESIRED_Sites is undefined)|| \\\n"
      "        stringListMember(\"SDSC-PRP\",DESIRED_Sites,\",\"))&& \\\n"
      "        ((UNDESIRED_Sites is undefined)|| \\\n"
      "        !stringListMember(\"SDSC-PRP\",UNDESIRED_Sites,\",\"))&& \\\n"
      "        (!isUndefined(ProjectName))&& \\\n"
      "        (!isUndefined(SingularityImage))\n"
      "[k8s]\n"
      "node_affinity_dict=^nautilus.io/low-power:true\n";
  CHECK(value(text, "htcondor", "additional_requirements") ==
        "((DESIRED_Sites is undefined)|| stringListMember(\"SDSC-PRP\",DESIRED_Sites,\",\"))&& "
        "((UNDESIRED_Sites is undefined)|| !stringListMember(\"SDSC-PRP\",UNDESIRED_Sites,\",\"))&& "
        "(!isUndefined(ProjectName))&& (!isUndefined(SingularityImage))");
  CHECK(value(text, "k8s", "node_affinity_dict") == "^nautilus.io/low-power:true");
}

TEST_CASE("ini: per cent signs") {
  CHECK(value("[s]\na = 100%%\n", "s", "a") == "100%");
  CHECK(value("[DEFAULT]\nsite = x\n[s]\na = %(SITE)s-%(site)s\n", "s", "a") == "x-x");
  CHECK(value("[s]\na = 100%\n", "s", "a") ==
        "get: [s] a: a '%' must be written '%%', or '%(key)s' for the value of another key");
  CHECK(value("[s]\na = %(b)s\n", "s", "a") ==
        "get: [s] a: its '%(key)s' names a key that is not there; a '%' must be written '%%'");
  CHECK(value("[s]\na = %(a)s\n", "s", "a") == "get: [s] a: %(...)s refers to itself");
  CHECK(value("[s]\na = %(b)s%(b)s%(b)s%(b)s\nb = %(c)s%(c)s%(c)s%(c)s\nc = %(d)s%(d)s%(d)s%(d)s\n"
              "d = %(e)s%(e)s%(e)s%(e)s\ne =\n",
              "s", "a")
            .ends_with("refers to itself"));
}

TEST_CASE("ini: what cannot be read names the line") {
  CHECK(failure("a = 1\n") == "f:1: a setting before the first [section]");
  CHECK(failure("[s]\n\nnonsense\n") ==
        "f:3: not of the form key = value; what goes on the value above it is indented");
  CHECK(failure("[s\n") == "f:1: not a section such as [k8s]");
  CHECK(failure("[s]\na = 1\nA = 2\n") == "f:3: a key that stands in [s] already");
}

TEST_CASE("ini: lists") {
  CHECK(parse_list("").value().empty());
  CHECK(parse_list("a, b&comma;c,\n d&colon;&amp;colon;").value() ==
        std::vector<std::string>{"a", "b,c", "d:&colon;"});
  CHECK(parse_list("a,,b").error().message() == "must be a list such as a,b without empty elements");
}

TEST_CASE("ini: dictionaries") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(parse_dict(" ").value().empty());
  CHECK(parse_dict("a:1,b:x&comma;y,\n c:").value() == Pairs{{"a", "1"}, {"b", "x,y"}, {"c", ""}});
  CHECK(parse_dict("^n/low-power:true").value() == Pairs{{"^n/low-power", "true"}});
  CHECK(parse_dict("a:1,b").error().message().starts_with(
      "must be a dictionary such as key:value,key:value; its element 2 is not"));
  CHECK_FALSE(parse_dict("a:b:c").ok());
  CHECK_FALSE(parse_dict(":b").ok());
  CHECK(parse_dict("a:1,a:2").error().message() == "must have each key once: elements 1 and 2 have the same");
}

TEST_CASE("ini: all lines that mean nothing are told, and the others are there with their places") {
  std::vector<std::string> problems;
  const auto all =
      entries("x = 1\n[s]\nA = 1\n  2\nhush\n  more\n[t\nb = 1\n[U]\na = 3\na = 4\n", "f", problems);
  CHECK(problems == std::vector<std::string>{
                        "f:1: a setting before the first [section]",
                        "f:5: not of the form key = value; what goes on the value above it is indented",
                        "f:7: not a section such as [k8s]", "f:11: a key that stands in [u] already"});
  REQUIRE(all.size() == 4);
  CHECK(all[1].section + all[1].key + "=" + all[1].value + "@" + all[1].where == "sa=1\n2@f:3");
  CHECK(all[2].section + all[2].key + "@" + all[2].where == "u@f:9");
}
