#include "lib/registry/access.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::registry;
using Scheme = Challenge::Scheme;

TEST_CASE("access: challenges") {
  struct Row {
    const char* header;
    Scheme scheme;
    const char *realm, *service, *scope;
  };
  for (const Row& row : {
           Row{R"(Bearer realm="https://auth.example/token",service="reg",scope="repository:a/b:pull")",
               Scheme::bearer, "https://auth.example/token", "reg", "repository:a/b:pull"},
           Row{R"(bearer Realm = "https://a/t" , error="x\"y")", Scheme::bearer, "https://a/t", "", ""},
           Row{R"(Basic realm="Registry Realm")", Scheme::basic, "Registry Realm", "", ""},
           Row{R"(Basic realm="b", Bearer realm="https://a/t")", Scheme::bearer, "https://a/t", "", ""},
           Row{R"(Bearer realm="https://a/t", Basic realm="b")", Scheme::bearer, "https://a/t", "", ""},
           Row{R"(Negotiate, Basic realm=b)", Scheme::basic, "b", "", ""},
           Row{R"(Digest realm="x", nonce="y")", Scheme::none, "", "", ""},
           Row{R"(Bearer scope="a,b c",realm=https://a/t)", Scheme::bearer, "https://a/t", "", "a,b c"},
           Row{"", Scheme::none, "", "", ""},
           Row{R"(Bearer)", Scheme::bearer, "", "", ""},
           Row{R"(Bearer realm="never ends)", Scheme::bearer, "never ends", "", ""},
           Row{R"(=====,,,"""" Bearer = = realm)", Scheme::none, "", "", ""},
       }) {
    CAPTURE(row.header);
    const Challenge challenge = parse_challenge(row.header);
    CHECK(challenge.scheme == row.scheme);
    CHECK(challenge.realm == row.realm);
    CHECK(challenge.service == row.service);
    CHECK(challenge.scope == row.scope);
  }
}

TEST_CASE("access: the credentials for a registry") {
  const std::string config = R"({"auths":{
    "https://index.docker.io/v1/":{"auth":"aHVi"},
    "reg.example":{"auth":"cmVn"},
    "reg.example/team":{"auth":"dGVhbQ=="},
    "other.example:5000":{"username":"user","password":"pass word"},
    "empty.example":{},
    "odd.example":7,
    "bad.example":{"auth":"a\r\nX-Injected: 1"}},
    "credsStore":"desktop"})";
  struct Row {
    const char *image, *secret;
  };
  for (const Row& row :
       {Row{"alpine", "aHVi"}, Row{"reg.example/x", "cmVn"}, Row{"reg.example/team/x", "dGVhbQ=="},
        Row{"reg.example/team", "dGVhbQ=="}, Row{"reg.example/teamster/x", "cmVn"},
        Row{"other.example:5000/x", "dXNlcjpwYXNzIHdvcmQ="}, Row{"other.example/x", ""},
        Row{"reg.example.org/x", ""}, Row{"reg.example:5000/x", ""}, Row{"empty.example/x", ""},
        Row{"odd.example/x", ""}}) {
    CAPTURE(row.image);
    const auto secret = basic_credentials(config, ImageLocation::parse(row.image).value());
    REQUIRE(secret.ok());
    CHECK(secret.value() == row.secret);
  }
  CHECK_FALSE(basic_credentials(config, ImageLocation::parse("bad.example/x").value()).ok());
  const ImageLocation any = ImageLocation::parse("x").value();
  for (const char* bad : {"", "[]", "{", R"({"auths":[]})"}) CHECK_FALSE(basic_credentials(bad, any).ok());
  CHECK(basic_credentials("{}", any).value().empty());
}

TEST_CASE("access: tokens") {
  CHECK(parse_token(R"({"token":"abc.DEF-1"})").value() == "abc.DEF-1");
  CHECK(parse_token(R"({"access_token":"abc"})").value() == "abc");
  for (const char* bad :
       {"", "{}", "[]", R"({"token":7})", R"({"token":"a b"})", R"({"token":"a\r\nX: y"})"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_token(bad).ok());
  }
  CHECK_FALSE(parse_token(R"({"token":")" + std::string(100'000, 'x') + R"("})").ok());
}
