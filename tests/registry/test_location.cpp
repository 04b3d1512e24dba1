#include "lib/registry/location.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>

#include <cstring>

using namespace glidepod;
using namespace glidepod::registry;

TEST_CASE("location: names as Docker fills them in") {
  struct Row {
    const char *image, *host, *repository, *reference, *api;
  };
  const std::string digest = "sha256:" + std::string(64, 'a');
  const std::string with_digest = "reg.example/x:1@" + digest;
  for (const Row& row : {
           Row{"alpine", "docker.io", "library/alpine", "latest", "registry-1.docker.io"},
           Row{"alpine:3.19", "docker.io", "library/alpine", "3.19", "registry-1.docker.io"},
           Row{"docker.io/alpine", "docker.io", "library/alpine", "latest", "registry-1.docker.io"},
           Row{"index.docker.io/alpine", "docker.io", "library/alpine", "latest", "registry-1.docker.io"},
           Row{"a/b:1", "docker.io", "a/b", "1", "registry-1.docker.io"},
           Row{"reg.example/a/b/c:1", "reg.example", "a/b/c", "1", "reg.example"},
           Row{"localhost/x", "localhost", "x", "latest", "localhost"},
           Row{"10.0.0.1:5000/x:1", "10.0.0.1:5000", "x", "1", "10.0.0.1:5000"},
           Row{"[::1]:5000/x:1", "[::1]:5000", "x", "1", "[::1]:5000"},
           Row{with_digest.c_str(), "reg.example", "x", digest.c_str(), "reg.example"},
       }) {
    CAPTURE(row.image);
    const auto location = ImageLocation::parse(row.image);
    REQUIRE(location.ok());
    CHECK(location->host == row.host);
    CHECK(location->repository == row.repository);
    CHECK(location->reference == row.reference);
    CHECK(location->api_host() == row.api);
    CHECK(location->by_digest == (std::string(row.image).find('@') != std::string::npos));
  }
}

TEST_CASE("location: what is not the name of a registry is refused") {
  for (const char* image : {"", "UPPER", "reg.example:0/x", "reg.example:99999/x", "reg.example:5000x/x",
                            "[x?y]/x", "[::1#]/x", "[::1]:/x", "[::1]x/y", "a@b.example/x", "..//x",
                            "reg.example/../x", "reg.example/x?y", "reg.example/x y", "x@sha256:abc"}) {
    CAPTURE(image);
    CHECK_FALSE(ImageLocation::parse(image).ok());
  }
}

TEST_CASE("location: link-local and metadata addresses, however written") {
  struct Row {
    const char* address;
    bool metadata;
  };
  for (const Row& row : {Row{"169.254.169.254", true},
                         Row{"169.254.0.1", true},
                         Row{"169.253.255.255", false},
                         Row{"169.255.0.0", false},
                         Row{"127.0.0.1", false},
                         Row{"10.0.0.1", false},
                         Row{"fe80::1", true},
                         Row{"febf::1", true},
                         Row{"fec0::1", false},
                         Row{"::1", false},
                         Row{"2001:db8::1", false},
                         Row{"::ffff:169.254.169.254", true},
                         Row{"::169.254.169.254", true},
                         Row{"::ffff:10.0.0.1", false},
                         Row{"64:ff9b::169.254.169.254", true},
                         Row{"2002:a9fe:a9fe::1", true},
                         Row{"fd00:ec2::254", true},
                         Row{"fd00:ec2::253", false},
                         Row{"fd00:ec2::23", true},
                         Row{"fd20:ce::254", true},
                         Row{"fd00:c1::a9fe:a9fe", true},
                         Row{"fd00:100::100:200", true},
                         Row{"fd00:42::42", true},
                         Row{"fd00:a9fe:a9fe::1", true},
                         Row{"168.63.129.16", true},
                         Row{"168.63.129.17", false},
                         Row{"100.100.100.200", true},
                         Row{"::ffff:100.100.100.200", true},
                         Row{"100.96.0.96", true},
                         Row{"100.80.80.80", true},
                         Row{"192.0.0.192", true},
                         Row{"192.0.0.193", false}}) {
    CAPTURE(row.address);
    sockaddr_storage storage{};
    in_addr four{};
    in6_addr six{};
    if (::inet_pton(AF_INET, row.address, &four) == 1) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr = four;
      std::memcpy(&storage, &address, sizeof address);
    } else {
      REQUIRE(::inet_pton(AF_INET6, row.address, &six) == 1);
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_addr = six;
      std::memcpy(&storage, &address, sizeof address);
    }
    CHECK(is_metadata_address(reinterpret_cast<const sockaddr&>(storage)) == row.metadata);
  }
}
