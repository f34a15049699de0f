// Containers of real images, made here of a static busybox, and of git-sync's stand-in.
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/images/image_service.h"
#include "kube/images/reference.h"
#include "kube/images/tar_test_util.h"
#include "kube/net/tls/sha256.h"
#include "kube/process/process_testing.h"

namespace swell::process {
namespace {

using images::TarEnd;
using images::TarItem;

constexpr char kBusybox[] = "/bin/busybox";

class ProcessImagesTest : public ProcessRuntimeTest {
 protected:
  void SetUp() override {
    ProcessRuntimeTest::SetUp();
    if (!isolated()) GTEST_SKIP() << "images need namespaces";
    auto busybox = ReadFile(kBusybox);
    if (!busybox.ok()) GTEST_SKIP() << "needs a static busybox";
    std::string base = TarItem("bin/", '5', "", "", 0755) +
                       TarItem("bin/busybox", '0', *busybox, "", 0755) +
                       TarItem("removed", '0', "x") + TarItem("etc/", '5', "", "", 0755) +
                       TarItem("etc/passwd", '0',
                               "root:x:0:0::/root:/bin/sh\napp:x:1000:1001::"
                               "/home/app:/bin/sh\n") +
                       TarItem("etc/group", '0', "app:x:1001:\nextra:x:44:app\n");
    for (const char* tool : {"sh", "id", "cat", "ls", "pwd", "env", "sleep", "touch", "mkdir"}) {
      base += TarItem(StrCat("bin/", tool), '2', "", "/bin/busybox");
    }
    layers_ = {base + TarEnd(), TarItem(".wh.removed") + TarItem("added", '0', "y") + TarEnd()};
  }

  static std::string DigestOf(std::string_view bytes) {
    net::Sha256 hash;
    hash.Add(bytes);
    return StrCat("sha256:", hash.Hex());
  }
  std::string AddBlob(const std::string& bytes) {
    const std::string dir = data_dir_ + "/layout/blobs/sha256", digest = DigestOf(bytes);
    EXPECT_TRUE(MakeDirs(dir).ok());
    EXPECT_TRUE(WriteFileAtomically(StrCat(dir, "/", images::DigestHex(digest)), bytes).ok());
    return StrCat(R"({"digest":")", digest, R"(","size":)", bytes.size(), "}");
  }

  // Imports an image with this config; what StartContainer takes for it.
  std::string Import(const std::string& config) {
    std::string list, ids;
    for (const std::string& layer : layers_) {
      list += StrCat(list.empty() ? "" : ",", AddBlob(layer));
      ids += StrCat(ids.empty() ? "" : ",", "\"", DigestOf(layer), "\"");
    }
    const std::string manifest =
        StrCat(R"({"config":)",
               AddBlob(StrCat(R"({"config":)", config, R"(,"rootfs":{"diff_ids":[)", ids, "]}}")),
               R"(,"layers":[)", list, "]}");
    EXPECT_TRUE(WriteFileAtomically(data_dir_ + "/layout/index.json",
                                    StrCat(R"({"manifests":[)", AddBlob(manifest), "]}"))
                    .ok());
    const images::ImageStore store(data_dir_ + "/images");
    images::PullProgress progress;
    auto image = images::ImportImage(store, data_dir_ + "/layout", "test/app:1", progress, cancel_);
    EXPECT_TRUE(image.ok()) << image.status().message();
    std::optional<Result<node::ImageReady>> ready;
    runtime_->EnsureImage(
        {.image = "test/app:1"}, [] {},
        [&](Result<node::ImageReady> result) { ready = std::move(result); });
    EXPECT_TRUE(Until([&] { return ready.has_value(); }));
    EXPECT_TRUE(ready->ok()) << ready->status().message();
    EXPECT_EQ((*ready)->id, "docker.io/test/app@" + image->digest);
    return (*ready)->handle;
  }

  // The log of a container that runs to its end.
  std::string LogOf(const std::string& handle,
                    const std::function<void(ContainerSpec&)>& change = {}) {
    const std::string uid = StrCat("pod-", ++pods_);
    Create(Sandbox(uid));
    ContainerSpec spec;
    spec.ref = {uid, "main", 0};
    spec.image = "test/app:1";
    spec.image_handle = handle;
    if (change) change(spec);
    observer_->exits.clear();
    last_ = Run(spec);
    return Log(spec.ref);
  }

  // Why a container does not start.
  std::string Refusal(const std::string& handle,
                      const std::function<void(ContainerSpec&)>& change = {}) {
    const std::string uid = StrCat("pod-", ++pods_);
    Create(Sandbox(uid));
    ContainerSpec spec = Shell(uid, "true");
    spec.image_handle = handle;
    if (change) change(spec);
    auto started = Start(spec);
    return started.ok() ? "started" : started.status().message();
  }

  std::vector<std::string> layers_;
  images::Cancellation cancel_;
  int pods_ = 0;
  ContainerExit last_;
};

TEST_F(ProcessImagesTest, TheImageIsTheRootAndTheHostIsNotInIt) {
  const std::string handle = Import(R"({"Entrypoint":["/bin/ls"],"Cmd":["/"]})");
  EXPECT_EQ(LogOf(handle), "added\nbin\ndev\netc\nproc\nrun\nsys\n");
  EXPECT_EQ(LogOf(handle, [](ContainerSpec& spec) { spec.args = {"/etc"}; }),
            "group\nhostname\nhosts\npasswd\nresolv.conf\n");
  EXPECT_EQ(LogOf(handle, [](ContainerSpec& spec) { spec.command = {"/bin/cat", "/added"}; }), "y");
  // What a container writes is its own.
  auto write = [](ContainerSpec& spec) {
    spec.command = {"sh", "-c", "echo z >/added; ls /mine; mkdir /mine"};
  };
  LogOf(handle, write);
  EXPECT_EQ(last_.code, 0);
  LogOf(handle, write);
  EXPECT_EQ(last_.code, 0);
}

// As images made by Nix or for read-only systems have it.
TEST_F(ProcessImagesTest, EtcAndRunMayBeLinksWithinTheImage) {
  layers_.push_back(TarItem(".wh.etc") + TarEnd());
  layers_.push_back(TarItem("usr/etc/", '5', "", "", 0755) + TarItem("usr/etc/own", '0', "x") +
                    TarItem("etc", '2', "", "/usr/etc") + TarItem("var/run/", '5', "", "", 0755) +
                    TarItem("run", '2', "", "var/run") + TarEnd());
  const std::string handle = Import(R"({"Cmd":["ls","/etc/","/run/"]})");
  EXPECT_EQ(LogOf(handle), "/etc/:\nhostname\nhosts\nown\nresolv.conf\n\n/run/:\nswell\n");
  const std::string name = LogOf(handle, [](ContainerSpec& spec) {
    spec.command = {"cat", "/etc/hostname"};
  });
  EXPECT_EQ(name, StrCat("pod-", pods_, "\n"));
}

TEST_F(ProcessImagesTest, LinksOutOfTheContainerAreNoPlaceForItsFiles) {
  layers_.push_back(TarItem(".wh.etc") + TarEnd());
  layers_.push_back(TarItem("etc", '2', "", "/.swell-old/etc") + TarEnd());
  const std::string handle = Import(R"({"Cmd":["ls","/"]})");
  const std::string why = Refusal(handle);
  EXPECT_NE(why.find("leaves the container"), std::string::npos) << why;
}

TEST_F(ProcessImagesTest, EnvironmentUserAndDirectoryAreTheImages) {
  const std::string handle = Import(
      R"({"Cmd":["sh","-c","id; pwd; echo $HOME $A $B $PATH"],"Env":["A=1","B=2","PATH=/bin"],)"
      R"("User":"app","WorkingDir":"/made/here"})");
  EXPECT_EQ(LogOf(handle),
            "uid=1000(app) gid=1001(app) groups=44(extra)\n/made/here\n"
            "/home/app 1 2 /bin\n");
  EXPECT_EQ(LogOf(handle,
                  [](ContainerSpec& spec) {
                    spec.run_as_user = 7;
                    spec.env = {{"B", "pod"}};
                    spec.working_dir = "/bin";
                  }),
            "uid=7 gid=0\n/bin\n/ 1 pod /bin\n");
}

TEST_F(ProcessImagesTest, NonRootIsCheckedAgainstTheImage) {
  auto refusal = [&](const std::string& config) {
    return Refusal(Import(config), [](ContainerSpec& spec) { spec.run_as_non_root = true; });
  };
  EXPECT_TRUE(refusal("{}").starts_with("container has runAsNonRoot and image will run as root"))
      << refusal("{}");
  EXPECT_TRUE(refusal(R"({"User":"app"})")
                  .starts_with("container has runAsNonRoot and image has non-numeric user (app)"));
  EXPECT_EQ(refusal(R"({"User":"1000"})"), "started");
  EXPECT_NE(refusal(R"({"User":"nobody-knows"})").find("not in the image's /etc/passwd"),
            std::string::npos);
}

TEST_F(ProcessImagesTest, AUserBeyondThePodsIdsIsNamed) {
  const std::string handle = Import(R"({"User":"70000"})");
  const std::string why = Refusal(handle);
  EXPECT_NE(why.find("its user has the id 70000; a pod has 0 to 65535"), std::string::npos) << why;
  EXPECT_EQ(Refusal(handle, [](ContainerSpec& spec) { spec.run_as_user = 1000; }), "started");
}

TEST_F(ProcessImagesTest, VolumesStayWritableUnderAReadOnlyRoot) {
  const std::string handle = Import(R"({"Volumes":{"/data":{}}})");
  EXPECT_EQ(LogOf(handle,
                  [](ContainerSpec& spec) {
                    spec.read_only_root = true;
                    spec.command = {"sh", "-c",
                                    "touch /data/a && ls /data; touch /b 2>/dev/null "
                                    "|| echo refused"};
                  }),
            "a\nrefused\n");
}

TEST_F(ProcessImagesTest, TheStopSignalIsTheImages) {
  const std::string handle = Import(R"({"StopSignal":"SIGUSR1"})");
  Create(Sandbox("pod-a"));
  ContainerSpec spec =
      Shell("pod-a", "trap 'echo usr1; exit 3' USR1; echo up; while :; do sleep 0.05; done");
  spec.image_handle = handle;
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  EXPECT_EQ(Wait().code, 3);
}

TEST_F(ProcessImagesTest, ImagesThatDeceiveAreRefused) {
  const std::string honest = layers_[0].substr(0, layers_[0].size() - 1024);
  const std::string victim = data_dir_ + "/victim";
  auto start = [&](const std::string& entries, const std::string& config = "{}") {
    layers_ = {honest + entries + TarEnd()};
    const std::string handle = Import(config), uid = StrCat("pod-", ++pods_);
    SandboxSpec sandbox = Sandbox(uid);
    sandbox.volumes = {VolumeSpec{.name = "v"}};
    Create(sandbox);
    ContainerSpec spec = Shell(uid, "true");
    spec.image_handle = handle;
    spec.mounts = {{"v", "/way/in", "", false}};
    auto started = Start(spec);
    return started.ok();
  };
  EXPECT_FALSE(start(TarItem(".swell-old", '2', "", victim)));
  EXPECT_FALSE(start(TarItem("proc", '2', "", "/.swell-old" + victim)));
  EXPECT_FALSE(start(TarItem("way", '2', "", "/.swell-old" + data_dir_)));
  EXPECT_FALSE(start(TarItem("data", '2', "", "/.swell-old" + data_dir_),
                     R"({"Volumes":{"/data/victim":{}}})"));
  EXPECT_FALSE(FileExists(victim));
  EXPECT_FALSE(FileExists(data_dir_ + "/in"));
  EXPECT_TRUE(
      start(TarItem("way", '2', "", "/elsewhere") + TarItem("elsewhere/", '5', "", "", 0755)));
}

TEST_F(ProcessImagesTest, AnImageThatRunsCannotBeRemoved) {
  const std::string handle = Import("{}");
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "echo up; while :; do sleep 0.05; done");
  spec.image_handle = handle;
  ASSERT_TRUE(Start(spec).ok());
  const images::ImageStore store(data_dir_ + "/images");
  EXPECT_EQ(store.Remove("docker.io/test/app:1", false).code(), Code::kConflict);
  runtime_->Signal(spec.ref, SIGKILL);
  Wait();
  EXPECT_TRUE(store.Remove("docker.io/test/app:1", false).ok());
}

TEST_F(ProcessRuntimeTest, GitSyncClonesWhereTheHostsConfigurationLeads) {
  if (!isolated()) return;
  const TempDir temp;
  const std::string& dir = temp.path();
  ::chmod(dir.c_str(), 0755);
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {VolumeSpec{.name = "code"},
                     VolumeSpec{.name = "repo", .kind = VolumeSpec::Kind::kHostPath}};
  sandbox.volumes[1].host_path = dir;
  // Its repository is in a directory of the host's root.
  sandbox.security.host_users = true;
  Create(sandbox);
  ContainerSpec make =
      Shell("pod-a",
            "set -e; export HOME=/repo; cd /repo; git init -q mnist.git; cd mnist.git; "
            "echo 'print(1)' > mnist.py; git add .; "
            "git -c user.name=t -c user.email=t@t commit -q -m first",
            "make");
  make.mounts = {{"repo", "/repo", "", false}};
  ContainerExit exit = Run(make);
  ASSERT_EQ(exit.code, 0) << Log(make.ref);
  ContainerSpec sync;
  sync.ref = {"pod-a", "init-code", 0};
  sync.image = "registry.cn-zhangjiakou.aliyuncs.com/acs/git-sync:v3.3.5";
  sync.env = {{"GIT_SYNC_REPO", "https://code.example.com/team/mnist-pytorch.git"},
              {"GIT_SYNC_DEST", "mnist-pytorch"},
              {"GIT_SYNC_ROOT", "/code"},
              {"GIT_SYNC_ONE_TIME", "true"},
              {"GIT_CONFIG_GLOBAL", "/repo/config"}};
  sync.mounts = {{"code", "/code", "", false}, {"repo", "/repo", "", true}};
  ASSERT_TRUE(ReplaceFile(dir + "/config",
                          "[url \"/repo/mnist.git\"]\n\tinsteadOf = "
                          "https://code.example.com/team/mnist-pytorch.git\n")
                  .ok());
  exit = Run(sync);
  EXPECT_EQ(exit.code, 0) << Log(sync.ref);
  EXPECT_TRUE(FileExists(PodDir("pod-a") + "/volumes/code/mnist-pytorch/mnist.py"));
  // What git would tell two servers of the name and the password.
  sync.ref = {"pod-a", "ask", 0};
  sync.env[1].second = "private";
  sync.env.insert(sync.env.end(), {{"GIT_SYNC_USERNAME", "ada"}, {"GIT_SYNC_PASSWORD", "a\"b $c"}});
  ASSERT_TRUE(ReplaceFile(dir + "/config",
                          "[protocol \"ext\"]\n\tallow = always\n"
                          "[credential]\n\thelper = \"!echo username=machine; echo "
                          "password=machine; :\"\n"
                          "[url \"ext::sh /repo/ask \"]\n\tinsteadOf = "
                          "https://code.example.com/team/mnist-pytorch.git\n")
                  .ok());
  ASSERT_TRUE(ReplaceFile(dir + "/ask",
                          "for host in code.example.com other.example; do\n"
                          "  printf \"protocol=https\\nhost=$host\\n\\n\" | "
                          "git credential fill\n"
                          "done >/code/said\n"
                          "exit 1\n")
                  .ok());
  observer_->exits.clear();
  EXPECT_EQ(Run(sync).code, 1);
  const auto said = ReadFile(PodDir("pod-a") + "/volumes/code/said");
  ASSERT_TRUE(said.ok()) << Log(sync.ref);
  EXPECT_EQ(*said,
            "protocol=https\nhost=code.example.com\nusername=ada\npassword=a\"b $c\n"
            "protocol=https\nhost=other.example\nusername=machine\npassword=machine\n");
  // The address may have the name.
  sync.ref = {"pod-a", "ask", 1};
  sync.env[0].second = "https://bob@code.example.com/team/mnist-pytorch.git";
  sync.env[5].second = "";
  ASSERT_TRUE(ReplaceFile(dir + "/ask",
                          "printf 'protocol=https\nhost=code.example.com\nusername=bob\n\n' | "
                          "git credential fill >/code/said\n"
                          "exit 1\n")
                  .ok());
  ASSERT_TRUE(ReplaceFile(dir + "/config",
                          "[protocol \"ext\"]\n\tallow = always\n"
                          "[url \"ext::sh /repo/ask \"]\n\tinsteadOf = "
                          "https://bob@code.example.com/team/mnist-pytorch.git\n")
                  .ok());
  observer_->exits.clear();
  EXPECT_EQ(Run(sync).code, 1);
  EXPECT_EQ(ReadFile(PodDir("pod-a") + "/volumes/code/said").value(),
            "protocol=https\nhost=code.example.com\nusername=bob\npassword=a\"b $c\n");
  sync.ref = {"pod-a", "ask", 2};
  sync.env[0].second = "https://code.example.com/team/mnist-pytorch.git";
  observer_->exits.clear();
  exit = Run(sync);
  EXPECT_EQ(exit.code, 1);
  EXPECT_NE(exit.log_tail.find("GIT_SYNC_USERNAME is not"), std::string::npos) << exit.log_tail;
  sync.ref = {"pod-a", "init-code", 1};
  sync.env[0].second = "/no/such/repository";
  sync.env[1].second = "other";
  observer_->exits.clear();
  exit = Run(sync);
  EXPECT_EQ(exit.code, 1);
  EXPECT_NE(exit.log_tail.find("cannot sync /no/such/repository to /code/other: fatal: "),
            std::string::npos)
      << exit.log_tail;
  EXPECT_EQ(exit.log_tail.find("insteadOf"), std::string::npos)
      << "another address would not help: " << exit.log_tail;
}

}  // namespace
}  // namespace swell::process
