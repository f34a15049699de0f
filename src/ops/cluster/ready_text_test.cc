// What a user reads when the cluster answers.
#include "ops/cluster/ready_text.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

constexpr char kServer[] = "https://127.0.0.1:6443";

TEST(ReadyTextTest, ItSaysWhereTheClusterIsAndHowToReachIt) {
  const TempDir folder;
  const DataDir dir{folder.path()};
  const std::string reach = StrCat("\n  export KUBECONFIG=", dir.Kubeconfig(), "\n");
  EXPECT_EQ(ReadyText(dir, "simulated", {kServer, ""}, kServer),
            StrCat("The cluster answers at ", kServer, "\n", reach));
  EXPECT_EQ(ReadyText(dir, "simulated", {kServer, "http://127.0.0.1:8080"}, kServer),
            StrCat("The cluster answers at ", kServer,
                   "\nPages: http://127.0.0.1:8080 (swell ui opens them)\n", reach));
}

TEST(ReadyTextTest, ItSaysWhenTheServerHasMoved) {
  const TempDir folder;
  const std::string text =
      ReadyText({folder.path()}, "simulated", {kServer, ""}, "https://127.0.0.1:7443");
  EXPECT_NE(text.find(MovedText("https://127.0.0.1:7443", kServer)), std::string::npos) << text;
}

TEST(ClusterUrlsTest, TheyAreReadAsTheyWerePrinted) {
  for (const char* pages : {"", "http://127.0.0.1:8080"}) {
    const ClusterUrls urls = ClusterUrls::Parse(ClusterUrls{kServer, pages}.Print());
    EXPECT_EQ(urls.server, kServer);
    EXPECT_EQ(urls.pages, pages);
  }
}

}  // namespace
}  // namespace swell::ops
