#include "kube/client/kubeconfig.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"

namespace swell::client {
namespace {

class KubeconfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory = ::testing::TempDir() + "/kubeconfig-" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_TRUE(RemoveTree(directory).ok());
    ASSERT_TRUE(MakeDirs(directory).ok());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(directory).ok()); }

  void Write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(directory + "/" + name, text).ok());
  }
  // One context "here" of a cluster and a user given as YAML flow maps.
  Result<ClusterAccess> Load(std::string_view cluster, std::string_view user) {
    Write("config", StrCat("current-context: here\ncontexts:\n"
                           "- {name: here, context: {cluster: c, user: u, namespace: team-a}}\n"
                           "clusters:\n- {name: c, cluster: ",
                           cluster, "}\nusers:\n- {name: u, user: ", user, "}\n"));
    return LoadKubeconfig(directory + "/config");
  }
  // The error without the file's path before it.
  std::string Error(std::string_view cluster, std::string_view user) {
    auto access = Load(cluster, user);
    if (access.ok()) return "no error";
    return access.status().message().substr(directory.size() + std::string("/config: ").size());
  }

  std::string directory;
};

constexpr std::string_view kServer = "{server: 'https://example.com:6443'}";

TEST_F(KubeconfigTest, ReadsATokenAndTheNamespace) {
  auto access = Load(kServer, "{token: secret}");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->server, "https://example.com:6443");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->ns, "team-a");
}

TEST_F(KubeconfigTest, ReadsFilesBesideItself) {
  Write("ca.crt", "CA");
  Write("me.crt", "CERT");
  Write("me.key", "KEY");
  auto access = Load("{server: 'https://x', certificate-authority: ca.crt}",
                     "{client-certificate: me.crt, client-key: me.key}");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->client_cert_pem, "CERT");
  EXPECT_EQ(access->client_key_pem, "KEY");
}

TEST_F(KubeconfigTest, ATokenFileIsRememberedBecauseItChanges) {
  Write("token", " first\n");
  auto access = Load(kServer, "{tokenFile: token}");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->token, "first");
  EXPECT_EQ(access->token_file, directory + "/token");
}

TEST_F(KubeconfigTest, ReadsAnExecPlugin) {
  auto access = Load(kServer,
                     "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./login, "
                     "args: [token, --quiet], env: [{name: REALM, value: r}], "
                     "provideClusterInfo: true, installHint: get it}}");
  ASSERT_TRUE(access.ok()) << access.status().message();
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(std::filesystem::path(access->exec->command).lexically_normal(), directory + "/login");
  EXPECT_EQ(access->exec->args, (std::vector<std::string>{"token", "--quiet"}));
  EXPECT_EQ(access->exec->env[0], (std::pair<std::string, std::string>{"REALM", "r"}));
  EXPECT_TRUE(access->exec->provide_cluster_info);
  EXPECT_EQ(access->exec->install_hint, "get it");
}

TEST_F(KubeconfigTest, SaysWhatItDoesNotSupport) {
  EXPECT_EQ(Error("{server: 'https://x', proxy-url: 'http://p'}", "{token: t}"),
            "cluster \"c\": proxy-url: proxies are not supported");
  EXPECT_EQ(Error("{server: 'https://x', insecure-skip-tls-verify: true, "
                  "certificate-authority-data: QQ==}",
                  "{token: t}"),
            "cluster \"c\": certificate-authority and insecure-skip-tls-verify exclude each other");
  EXPECT_EQ(Error(kServer, "{username: me, password: p}"),
            "user \"u\": API servers take no username and password any more; use a token, a client "
            "certificate or an exec plugin");
  EXPECT_EQ(Error(kServer, "{auth-provider: {name: gcp}}"),
            "user \"u\": auth-provider is gone from Kubernetes; use an exec plugin");
  EXPECT_EQ(Error(kServer,
                  "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, "
                  "command: x}}"),
            "user \"u\": exec.apiVersion: \"client.authentication.k8s.io/v1alpha1\" is not "
            "supported; use client.authentication.k8s.io/v1 or v1beta1");
  EXPECT_EQ(Error(kServer, "{exec: {apiVersion: client.authentication.k8s.io/v1}}"),
            "user \"u\": exec.command is not set");
  EXPECT_EQ(Error(kServer, "{client-certificate-data: QQ==}"),
            "user \"u\": a client certificate and its key belong together");
}

TEST_F(KubeconfigTest, SaysWhatIsMissing) {
  EXPECT_EQ(Error("{}", "{}"), "cluster \"c\": server is not set");
  ASSERT_TRUE(Load(kServer, "{}").ok());
  auto other = LoadKubeconfig(directory + "/config", "there");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().message(), directory + "/config: no context named \"there\"");
}

TEST_F(KubeconfigTest, ChoosesAContextByName) {
  Write("config",
        "current-context: a\n"
        "contexts:\n- {name: a, context: {cluster: a, user: u}}\n"
        "- {name: b, context: {cluster: b, user: u}}\n"
        "clusters:\n- {name: a, cluster: {server: 'https://a'}}\n"
        "- {name: b, cluster: {server: 'https://b', tls-server-name: b.internal}}\n"
        "users:\n- {name: u, user: {token: t}}\n");
  auto a = LoadKubeconfig(directory + "/config");
  auto b = LoadKubeconfig(directory + "/config", "b");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->server, "https://a");
  EXPECT_EQ(b->server, "https://b");
  EXPECT_EQ(b->tls_server_name, "b.internal");
}

TEST_F(KubeconfigTest, OfSeveralFilesTheFirstToNameSomethingCounts) {
  ASSERT_TRUE(MakeDirs(directory + "/second").ok());
  Write("config", "contexts:\n- {name: a, context: {cluster: shared, user: u}}\n");
  Write("second/token", "from-the-file");
  Write("second/config",
        "current-context: a\n"
        "contexts:\n- {name: a, context: {cluster: none, user: none}}\n"
        "clusters:\n- {name: shared, cluster: {server: 'https://second'}}\n"
        "users:\n- {name: u, user: {tokenFile: token}}\n");
  const std::string first = directory + "/config";
  const std::string second = directory + "/second/config";
  auto access = LoadKubeconfig(StrCat(directory, "/absent:", first, "::", second));
  ASSERT_TRUE(access.ok()) << access.status().ToString();
  EXPECT_EQ(access->server, "https://second");
  EXPECT_EQ(access->token, "from-the-file") << "beside the file that names it";
  EXPECT_EQ(LoadKubeconfig(first).status().message(),
            StrCat(first, ": current-context is not set"));
  EXPECT_EQ(LoadKubeconfig(directory + "/absent").status().code(), Code::kNotFound);
}

TEST_F(KubeconfigTest, FindsThePodsOwnServiceAccount) {
  std::map<std::string, std::string> environment;
  auto getenv = [&](const std::string& name) { return environment[name]; };
  EXPECT_FALSE(InClusterAccess(getenv, directory)) << "outside of a cluster";
  environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  environment["KUBERNETES_SERVICE_PORT"] = "443";
  auto none = InClusterAccess(getenv, directory);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->ok()) << "the token is missing";
  Write("token", "t\n");
  Write("ca.crt", "CA");
  Write("namespace", "swell-system");
  auto found = InClusterAccess(getenv, directory);
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ((*found)->server, "https://[fd00::1]:443");
  EXPECT_EQ((*found)->token, "t");
  EXPECT_EQ((*found)->token_file, directory + "/token");
  EXPECT_EQ((*found)->ca_pem, "CA");
  EXPECT_EQ((*found)->ns, "swell-system");
  EXPECT_EQ(InClusterNamespace(directory), "swell-system");
  Write("namespace", "\n");
  EXPECT_EQ(InClusterNamespace(directory), std::nullopt);
  EXPECT_EQ((*InClusterAccess(getenv, directory))->ns, "default");
}

}  // namespace
}  // namespace swell::client
