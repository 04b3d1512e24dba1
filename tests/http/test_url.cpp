#include "lib/http/url.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using http::Url;

TEST_CASE("url: their origins and where a redirect leads") {
  const Url base = Url::parse("https://Reg.Example:443/v2/x/").value();
  CHECK(base.authority() == "reg.example");
  CHECK(base.https());
  CHECK(base.resolve("/y?z=1#f")->text() == "https://Reg.Example:443/y?z=1");
  CHECK(base.resolve("manifests/1")->same_origin(base));
  CHECK(base.resolve("//cdn.example/blob")->authority() == "cdn.example");
  CHECK_FALSE(base.resolve("https://cdn.example/blob")->same_origin(base));
  CHECK_FALSE(base.resolve("http://reg.example/x")->same_origin(base));
  CHECK_FALSE(base.resolve("https://reg.example:8443/x")->same_origin(base));
  CHECK(Url::parse("http://[::1]:5000/")->authority() == "[::1]:5000");
  for (const char* bad :
       {"", "x", "file:///etc/passwd", "ftp://reg.example/x", "https://user:secret@reg.example/",
        "unix:///run/x.sock", "https://reg.example:99999/", "gopher://reg.example/"}) {
    CAPTURE(bad);
    CHECK_FALSE(Url::parse(bad).ok());
  }
  CHECK_FALSE(base.resolve("file:///etc/passwd").ok());
  CHECK_FALSE(base.resolve("https://user@reg.example/x").ok());
  CHECK(Url::parse("https://auth.example/token?a=b")
            ->with_query({{"service", "a registry"}, {"scope", "repository:x:pull&more=1"}})
            ->text() ==
        "https://auth.example/token?a=b&service=a%20registry&scope=repository%3ax%3apull%26more%3d1");
}

TEST_CASE("url: text is encoded but for what never needs it") {
  CHECK(http::url_encoded("aZ0-._~") == "aZ0-._~");
  CHECK(http::url_encoded("a=b, c/d\xff") == "a%3Db%2C%20c%2Fd%FF");
}
