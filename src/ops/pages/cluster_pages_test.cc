#include "ops/pages/cluster_pages.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "cli/flags.h"
#include "kube/net/reactor/reactor.h"
#include "ops/pages/controller_pages.h"
#include "ops/pages/pages_certificate.h"

namespace swell::ops {
namespace {

// The pages listen before anything is asked.
class NobodyAsks final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink>) override {
    ADD_FAILURE() << request.path;
    return nullptr;
  }
};

class ClusterPagesTest : public ::testing::Test {
 protected:
  std::unique_ptr<ClusterPages> Make() {
    auto server = std::make_shared<NobodyAsks>();
    return std::make_unique<ClusterPages>(core_, clock_,
                                          PagesSources{.server = server, .callers = server}, "");
  }
  // Those of `swell up` without flags.
  PagesOptions Kept() const {
    return {.port_file = folder_.File("pages-port"),
            .programs_address = "",
            .programs_port_file = folder_.File("programs-port")};
  }

  TempDir folder_;
  net::Reactor core_;
  RealClock clock_;
  Random random_{7};
};

TEST_F(ClusterPagesTest, ARestartKeepsBothPorts) {
  auto first = Make();
  ASSERT_TRUE(first->Listen(Kept(), random_).ok());
  const std::string port = ReadFile(Kept().port_file, 16).value();
  const std::string programs = ReadFile(Kept().programs_port_file, 16).value();
  EXPECT_EQ(first->url(), StrCat("http://127.0.0.1:", port, "/"));
  EXPECT_NE(port, programs);
  first.reset();
  auto second = Make();
  ASSERT_TRUE(second->Listen(Kept(), random_).ok());
  EXPECT_EQ(second->url(), StrCat("http://127.0.0.1:", port, "/"));
  EXPECT_EQ(ReadFile(Kept().programs_port_file, 16).value(), programs);
}

TEST_F(ClusterPagesTest, APortThatIsTakenGivesWay) {
  auto first = Make();
  ASSERT_TRUE(first->Listen(Kept(), random_).ok());
  auto second = Make();
  ASSERT_TRUE(second->Listen(Kept(), random_).ok());
  EXPECT_NE(first->url(), second->url());
}

TEST_F(ClusterPagesTest, ANamedAddressThatIsTakenIsAnErrorThatNamesTheFlag) {
  auto first = Make();
  ASSERT_TRUE(first->Listen(Kept(), random_).ok());
  const std::string address = StrCat("127.0.0.1:", ReadFile(Kept().port_file, 16).value());
  const Status taken = Make()->Listen({.address = address}, random_);
  EXPECT_TRUE(taken.message().starts_with(StrCat("--ui-address ", address))) << taken.message();
}

TEST_F(ClusterPagesTest, OtherMachinesComeByTls) {
  const auto pair = PagesCertificate({}, "swell-system", clock_).value();
  auto pages = Make();
  const Status listening = pages->Listen(
      {.address = "0.0.0.0:0", .cert_pem = pair.cert_pem, .key_pem = pair.key_pem}, random_);
  ASSERT_TRUE(listening.ok()) << listening.ToString();
  EXPECT_TRUE(pages->url().starts_with("https://127.0.0.1:")) << pages->url();
  EXPECT_FALSE(Make()->Listen({.address = "0.0.0.0:0"}, random_).ok()) << "without a certificate";
}

TEST_F(ClusterPagesTest, ACodeIsGivenOnce) {
  auto pages = Make();
  ASSERT_TRUE(pages->Listen(Kept(), random_).ok());
  const json::Value first = pages->MakeCode({});
  const json::Value second = pages->MakeCode({});
  EXPECT_EQ(json::GetString(first, {"url"}), pages->url());
  EXPECT_NE(json::GetString(first, {"code"}), json::GetString(second, {"code"}));
}

TEST(PagesAddressesTest, BrowsersReachBothPortsAlike) {
  EXPECT_TRUE(CheckPagesAddresses("", "").ok());
  EXPECT_TRUE(CheckPagesAddresses("off", "").ok());
  EXPECT_TRUE(CheckPagesAddresses("0.0.0.0:8080", "off").ok());
  EXPECT_TRUE(CheckPagesAddresses("", "127.0.0.1:8081").ok());
  EXPECT_TRUE(CheckPagesAddresses("10.0.0.1:8080", "0.0.0.0:8081").ok());
  EXPECT_EQ(CheckPagesAddresses("8080", "").message(),
            "--ui-address \"8080\": expected HOST:PORT or off, such as 127.0.0.1:8080; HOST is "
            "localhost or an IP address, IPv6 in brackets");
  EXPECT_EQ(CheckPagesAddresses("", "8081").message(),
            "--ui-programs-address \"8081\": expected HOST:PORT or off, such as 127.0.0.1:8081; "
            "HOST is localhost or an IP address, IPv6 in brackets");
  const Status apart = CheckPagesAddresses("", "0.0.0.0:8081");
  EXPECT_TRUE(cli::IsMisuse(apart));
  EXPECT_NE(apart.message().find("as they reach --ui-address, which is 127.0.0.1"),
            std::string::npos)
      << apart.message();
}

TEST(ControllerPagesTest, WhatBelongsToThePagesNeedsThem) {
  const auto check = [](const std::function<void(ControllerPagesOptions&)>& change) {
    ControllerPagesOptions options;
    change(options);
    return CheckControllerPages(options);
  };
  EXPECT_TRUE(check([](auto&) {}).ok());
  EXPECT_TRUE(check([](auto& options) { options.address = ""; }).ok());
  EXPECT_TRUE(check([](auto& options) {
                options.address = "127.0.0.1:0";
                options.history_file = "h";
              }).ok());
  EXPECT_NE(
      check([](auto& options) { options.history_file = "h"; }).message().find("need --ui-address"),
      std::string::npos);
  EXPECT_NE(check([](auto& options) { options.programs_address = "127.0.0.1:0"; })
                .message()
                .find("need --ui-address"),
            std::string::npos);
  EXPECT_EQ(check([](auto& options) {
              options.address = "127.0.0.1:0";
              options.certificate.cert = "x";
            }).message(),
            "--ui-cert-file and --ui-key-file belong together: give both");
}

TEST(PagesCertificateTest, IsOfTheFilesOrMade) {
  const RealClock clock;
  const auto made = PagesCertificate({}, "gpu-system", clock);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(net::DescribeCertificate(made->cert_pem)->common_name, "swell-pages");
  TempDir folder;
  const CertificateFiles files{folder.File("tls.crt"), folder.File("tls.key")};
  EXPECT_FALSE(PagesCertificate(files, "gpu-system", clock).ok());
  ASSERT_TRUE(WriteFileAtomically(files.cert, made->cert_pem, 0644).ok());
  ASSERT_TRUE(WriteFileAtomically(files.key, made->key_pem, 0600).ok());
  EXPECT_EQ(PagesCertificate(files, "gpu-system", clock)->cert_pem, made->cert_pem);
}

}  // namespace
}  // namespace swell::ops
