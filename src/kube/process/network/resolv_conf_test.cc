#include "kube/process/network/resolv_conf.h"

#include <gtest/gtest.h>

namespace swell::process {
namespace {

TEST(OnlyNameServers, KeepsTheRestOfTheFile) {
  const char kFile[] =
      "# ours\nsearch example.com\nnameserver 10.0.0.53\nnameserver\t10.0.0.1 \noptions ndots:2\n";
  EXPECT_EQ(OnlyNameServers(kFile, {"10.0.0.1"}),
            "# ours\nsearch example.com\nnameserver\t10.0.0.1 \noptions ndots:2\n");
  EXPECT_EQ(OnlyNameServers(kFile, {}), "# ours\nsearch example.com\noptions ndots:2\n");
  EXPECT_EQ(OnlyNameServers("", {}), "");
}

TEST(WithShortWaits, AsksTwiceForASecond) {
  EXPECT_EQ(WithShortWaits("nameserver 10.0.0.53"),
            "nameserver 10.0.0.53\noptions timeout:1 attempts:2\n");
  for (const char* file :
       {"nameserver 10.0.0.53\noptions timeout:9\n",
        "nameserver 10.0.0.53\noptions ndots:2 attempts:5\n", "search example.com\n", ""}) {
    EXPECT_EQ(WithShortWaits(file), file);
  }
}

TEST(WithPodsDns, LeavesTheFileOfAPodThatSaysNothing) {
  const char kFile[] = "# ours\nsearch example.com\n";
  EXPECT_EQ(WithPodsDns(kFile, {}), kFile);
}

TEST(WithPodsDns, AddsWhatThePodSays) {
  const char kFile[] =
      "# ours\ndomain old\nsearch a.example  b.example\nnameserver 10.0.0.53\n"
      "options ndots:2 rotate\n";
  node::DnsSpec dns;
  dns.servers = {"10.0.0.53", "1.2.3.4"};
  dns.searches = {"b.example", "c.example"};
  dns.options = {{"ndots", "5"}, {"edns0", ""}};
  EXPECT_EQ(WithPodsDns(kFile, dns),
            "search a.example b.example c.example\nnameserver 10.0.0.53\nnameserver 1.2.3.4\n"
            "options ndots:5 rotate edns0\n");
}

TEST(WithPodsDns, WordsCannotBeginALineOfTheirOwn) {
  node::DnsSpec dns;
  dns.searches = {"fine"};
  dns.options = {{"ndots", "1\nnameserver 6.6.6.6"}, {"a b", ""}, {"timeout", "2"}};
  EXPECT_EQ(WithPodsDns("", dns), "search fine\noptions timeout:2\n");
}

}  // namespace
}  // namespace swell::process
