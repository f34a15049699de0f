// The keys of an embedded cluster, and how its administrator reaches it.
#include "ops/data_dir.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "kube/client/kubeconfig.h"

namespace swell::ops {
namespace {

class DataDirTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareDataDir(dir).ok()); }

  TempDir temp;
  const DataDir dir{temp.File("cluster")};
  const RealClock clock{};
};

TEST_F(DataDirTest, TheServerIsCertifiedForWhateverItListensAt) {
  for (const char* host : {"10.0.0.1", "node-1.example.com", "fd00::1", "[fd00::1]"}) {
    const auto pki = LoadOrMakePki(dir, clock, {host});
    EXPECT_TRUE(pki.ok()) << pki.status().ToString();
  }
}

TEST_F(DataDirTest, TheAuthorityOutlivesARestart) {
  const auto first = LoadOrMakePki(dir, clock, {});
  const auto second = LoadOrMakePki(dir, clock, {"10.0.0.1"});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->ca.cert_pem, second->ca.cert_pem);
  EXPECT_EQ(first->admin.cert_pem, second->admin.cert_pem);
  EXPECT_NE(first->server.cert_pem, second->server.cert_pem);
}

TEST_F(DataDirTest, TheKubeconfigKeepsWhatPeopleAdded) {
  const Pki pki = LoadOrMakePki(dir, clock, {}).value();
  ASSERT_TRUE(WriteAdminKubeconfig(dir, pki, "https://127.0.0.1:6443").ok());
  auto access = client::LoadKubeconfig(dir.Kubeconfig());
  ASSERT_TRUE(access.ok()) << access.status().ToString();
  EXPECT_EQ(access->server, "https://127.0.0.1:6443");
  EXPECT_EQ(access->client_cert_pem, pki.admin.cert_pem);
  access->server = "https://gpu.example.com";
  const std::string more =
      client::MakeKubeconfig("other", *access, ReadFile(dir.Kubeconfig(), 1 << 20).value());
  ASSERT_TRUE(WriteFileAtomically(dir.Kubeconfig(), more, 0600).ok());
  ASSERT_TRUE(WriteAdminKubeconfig(dir, pki, "https://127.0.0.1:7443").ok());
  EXPECT_EQ(client::LoadKubeconfig(dir.Kubeconfig(), "swell")->server, "https://127.0.0.1:7443");
  EXPECT_EQ(client::LoadKubeconfig(dir.Kubeconfig(), "other")->server, "https://gpu.example.com");
}

TEST_F(DataDirTest, AStartAtAnotherAddressSaysWhatToDoWithCopiesOfTheKubeconfig) {
  const Pki pki = LoadOrMakePki(dir, clock, {}).value();
  EXPECT_EQ(ServerUrl(dir), "");
  EXPECT_EQ(MovedText(ServerUrl(dir), "https://127.0.0.1:6443"), "") << "the first start";
  ASSERT_TRUE(WriteAdminKubeconfig(dir, pki, "https://127.0.0.1:6443").ok());
  EXPECT_EQ(MovedText(ServerUrl(dir), "https://127.0.0.1:6443"), "");
  EXPECT_EQ(
      MovedText(ServerUrl(dir), "https://10.0.0.1:7443"),
      "The cluster was at https://127.0.0.1:6443 before. Copies of its kubeconfig still point "
      "there; for each of them:\n  kubectl config set-cluster swell "
      "--server=https://10.0.0.1:7443\n");
}

}  // namespace
}  // namespace swell::ops
