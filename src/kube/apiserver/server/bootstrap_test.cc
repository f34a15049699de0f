// Where clients inside the cluster find the server.
#include <gtest/gtest.h>

#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

struct Found {
  Status boot;
  std::string address;  // of the Endpoints
  std::string type;     // of the EndpointSlice
  std::string keys;     // URL of the keys that check tokens
};

Found Advertise(const std::string& address) {
  Options options;
  options.advertise_address = address;
  options.token_key = std::make_shared<TestTokenKey>();
  TestServer server(std::move(options));
  Found found;
  found.boot = server.Boot().boot;
  const std::string ns = "/namespaces/default/";
  const json::Value endpoints = server.Get("/api/v1" + ns + "endpoints/kubernetes").body;
  for (const json::Value& subset : json::GetArray(endpoints, {"subsets"})) {
    found.address = json::GetString(json::GetArray(subset, {"addresses"})[0], {"ip"});
  }
  found.type = server.Get("/apis/discovery.k8s.io/v1" + ns + "endpointslices/kubernetes")
                   .Str({"addressType"});
  found.keys = server.Get("/.well-known/openid-configuration").Str({"jwks_uri"});
  return found;
}

TEST(Bootstrap, TheServerIsFoundAtItsAddress) {
  const Found found = Advertise("10.0.0.1");
  ASSERT_TRUE(found.boot.ok()) << found.boot.ToString();
  EXPECT_EQ(found.address, "10.0.0.1");
  EXPECT_EQ(found.type, "IPv4");
  EXPECT_EQ(found.keys, "https://10.0.0.1:6443/openid/v1/jwks");
}

TEST(Bootstrap, TheAddressMayBeThisMachinesAlone) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const Found found = Advertise(address);
    ASSERT_TRUE(found.boot.ok()) << found.boot.ToString();
    EXPECT_EQ(found.address, address);
  }
}

TEST(Bootstrap, TheAddressMayBeOfIpv6) {
  const Found found = Advertise("fd00::1");
  ASSERT_TRUE(found.boot.ok()) << found.boot.ToString();
  EXPECT_EQ(found.address, "fd00::1");
  EXPECT_EQ(found.type, "IPv6");
  EXPECT_EQ(found.keys, "https://[fd00::1]:6443/openid/v1/jwks");
}

}  // namespace
}  // namespace swell::apiserver
