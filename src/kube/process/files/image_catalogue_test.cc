#include "kube/process/files/image_catalogue.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

class ImageCatalogueTest : public ::testing::Test {
 protected:
  Result<ImageCatalogue> Load(const std::string& yaml = "") {
    if (!yaml.empty()) {
      EXPECT_TRUE(ReplaceFile(dir_ + "/images.yaml", yaml).ok());
    }
    return ImageCatalogue::Load(
        {.config_dir = dir_, .tools_dir = dir_ + "/tools", .sdk_dir = "/opt/sdk"});
  }
  const TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST_F(ImageCatalogueTest, KubedlsImagesRunTheExampleUnderTheLauncher) {
  ASSERT_TRUE(MakeDirs(dir_ + "/examples/imagenet").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/sdk/python").ok());
  ASSERT_TRUE(ReplaceFile(dir_ + "/examples/imagenet/main.py", "").ok());
  auto catalogue = ImageCatalogue::Load(
      {.config_dir = dir_, .tools_dir = dir_ + "/tools", .sdk_dir = dir_ + "/sdk/python"});
  ASSERT_TRUE(catalogue.ok());
  auto imagenet = catalogue->Find("wanziyu/imagenet:1.1");
  ASSERT_TRUE(imagenet.ok());
  EXPECT_EQ(imagenet->entrypoint, (std::vector<std::string>{"python3", "-m", "swell.launch"}));
  EXPECT_TRUE(std::any_of(imagenet->files.begin(), imagenet->files.end(),
                          [](const auto& file) { return file.path == "/workspace/examples"; }));
  auto master = catalogue->Find("kubedl/pytorch-dist-example");
  ASSERT_TRUE(master.ok());
  EXPECT_EQ(master->entrypoint.back(), "/workspace/examples/imagenet/master.py");
}

TEST_F(ImageCatalogueTest, PatternsMatchNamesWithAndWithoutTags) {
  EXPECT_TRUE(ImageMatches("python", "python:3.11"));
  EXPECT_TRUE(ImageMatches("python:3.11", "python:3.11"));
  EXPECT_FALSE(ImageMatches("python:3.11", "python:3.12"));
  EXPECT_TRUE(ImageMatches("*/etcd", "k8s.gcr.io/etcd:3.5.1-0"));
  EXPECT_TRUE(ImageMatches("registry:5000/*", "registry:5000/team/x:1"));
  EXPECT_TRUE(ImageMatches("a/b", "a/b@sha256:1234"));
  EXPECT_FALSE(ImageMatches("etcd", "etcd-browser"));
}

TEST_F(ImageCatalogueTest, KnowsTheImagesOfTheWalkthroughs) {
  auto catalogue = Load();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  auto torch = catalogue->Find(
      "registry.cn-beijing.aliyuncs.com/ai-samples/pytorch-with-tensorboard:1.5.1-cuda10.1-"
      "cudnn7-runtime");
  ASSERT_TRUE(torch.ok());
  ASSERT_FALSE(torch->path.empty());
  EXPECT_TRUE(FileExists(torch->path[0] + "/python"));
  for (const char* launcher :
       {"horovod/horovod:0.28.1", "deepspeed/deepspeed", "deepspeed/deepspeed:v072_torch112_cu117",
        "registry.cn-beijing.aliyuncs.com/acs/deepspeed:v072_base"}) {
    auto found = catalogue->Find(launcher);
    ASSERT_TRUE(found.ok()) << launcher;
    EXPECT_EQ(found->path, torch->path) << launcher;
  }
  auto git = catalogue->Find("registry.cn-zhangjiakou.aliyuncs.com/acs/git-sync:v3.3.5");
  ASSERT_TRUE(git.ok());
  EXPECT_TRUE(git->host_network);
  auto etcd = catalogue->Find("k8s.gcr.io/etcd:3.5.1-0");
  ASSERT_TRUE(etcd.ok());
  EXPECT_EQ(etcd->entrypoint[0], "/usr/bin/etcd");
  EXPECT_EQ(catalogue->Find("wanziyu/imagenet:1.1")->args[0], "python3");
  EXPECT_EQ(catalogue->Find("busybox")->args[0], "/bin/sh");
  auto notebook = catalogue->Find("jupyter/tensorflow-notebook");
  ASSERT_TRUE(notebook.ok());
  EXPECT_TRUE(notebook->entrypoint[0].ends_with("/start-notebook.sh"));
  EXPECT_TRUE(FileExists(notebook->entrypoint[0]));
}

TEST_F(ImageCatalogueTest, BuiltInNamesAreRepositoriesOfAnyRegistry) {
  auto catalogue = Load();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  for (const char* image :
       {"pytorch/pytorch", "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "python:3.11",
        "docker.io/library/python:3.12-slim", "docker.io/pytorch/pytorch@sha256:12",
        "nvcr.io/nvidia/pytorch:24.07-py3", "localhost:5000/pytorch/pytorch",
        "public.ecr.aws/docker/library/busybox:1", "quay.io/jupyter/scipy-notebook",
        "gcr.io/elasticdl/elasticdl:dev", "elasticdl:dev", "registry.example.com/git-sync:v3",
        "horovod/horovod", "mpioperator/mpi-pi:openmpi", "quay.io/coreos/etcd:v3.5"}) {
    EXPECT_TRUE(catalogue->Find(image).ok()) << image;
  }
  for (const char* image :
       {"pytroch/pytorch", "pytorch/pytroch:2", "pytorch/torchserve", "team/pytorch-trainer",
        "team/python", "docker.io/team/python", "pythn:3", "jupyter/scipy-notebok", "elasticdlx",
        "my-notebook", "torch", "busyboxx", "kubedl/anything", "team/library/python"}) {
    EXPECT_FALSE(catalogue->Find(image).ok()) << image;
  }
}

TEST_F(ImageCatalogueTest, StandsInForNamesThatAreAlike) {
  auto catalogue = Load();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  for (const char* image :
       {"python:3", "team/pytorch-trainer:v3", "registry.example.com/team/python", "kubedl/mnist",
        "me/elasticdl_train", "my-notebook", "registry.example.com/base/ubuntu:22.04"}) {
    EXPECT_TRUE(catalogue->StandInFor(image).ok()) << image;
  }
  const auto notebook = catalogue->StandInFor("my-notebook");
  EXPECT_EQ(notebook->entrypoint, catalogue->Find("jupyter/scipy-notebook")->entrypoint);
  // Nobody knows what the image runs by itself.
  const auto trainer = catalogue->StandInFor("team/pytorch-trainer");
  ASSERT_EQ(trainer->entrypoint.size(), 1u);
  EXPECT_TRUE(FileExists(trainer->entrypoint[0])) << trainer->entrypoint[0];
  EXPECT_TRUE(trainer->args.empty());
  for (const char* image : {"nginx", "team/app", "pythn:3"}) {
    EXPECT_FALSE(catalogue->StandInFor(image).ok()) << image;
  }
}

TEST_F(ImageCatalogueTest, AMisspeltNameHasANearestOne) {
  auto catalogue = Load("images:\n- match: [registry.example.com/team/trainer, 'lab/*']\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  EXPECT_EQ(catalogue->Nearest("pytroch/pytorch:2.8.0"), "pytorch/pytorch");
  EXPECT_EQ(catalogue->Nearest("docker.io/pytorch/pytroch"), "pytorch/pytorch");
  EXPECT_EQ(catalogue->Nearest("pythn:3"), "python");
  EXPECT_EQ(catalogue->Nearest("team/python"), "python");
  EXPECT_EQ(catalogue->Nearest("registry.example.com/team/trianer:1"),
            "registry.example.com/team/trainer");
  EXPECT_EQ(catalogue->Nearest("nginx:1.27"), "");
  EXPECT_EQ(catalogue->Nearest("nobody/knows:1"), "");
}

TEST_F(ImageCatalogueTest, BusyboxAddsProgramsThatTheMachineLacks) {
  const std::string programs = dir_ + "/programs";
  ASSERT_TRUE(MakeDirs(programs).ok());
  for (const char* name : {"/busybox", "/wget"}) {
    ASSERT_TRUE(ReplaceFile(programs + name, "#!/bin/sh\n", 0755).ok());
  }
  const char* path = ::getenv("PATH");
  const std::string before = path == nullptr ? "/usr/bin:/bin" : path;
  ::setenv("PATH", programs.c_str(), 1);
  auto catalogue = Load();
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  const auto shell = catalogue->Find("busybox:1.36");
  ASSERT_TRUE(shell.ok());
  ASSERT_EQ(shell->files.size(), 1u);
  EXPECT_EQ(shell->path, std::vector<std::string>{shell->files[0].path});
  const std::string host = shell->files[0].host;
  EXPECT_TRUE(FileExists(host + "/nslookup"));
  EXPECT_TRUE(FileExists(host + "/vi"));
  EXPECT_FALSE(FileExists(host + "/wget")) << "the machine's own comes first";
}

TEST_F(ImageCatalogueTest, AnEntryStartsFromItsBase) {
  auto catalogue = Load("images:\n- match: [trainer]\n  base: python\n  env: {SAMPLES: '9'}\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  auto trainer = catalogue->Find("trainer:1");
  ASSERT_TRUE(trainer.ok());
  EXPECT_TRUE(trainer->entrypoint.empty());
  EXPECT_EQ(trainer->args, std::vector<std::string>{"python3"});
  EXPECT_EQ(trainer->env.back(), (std::pair<std::string, std::string>("SAMPLES", "9")));
  EXPECT_GT(trainer->env.size(), 1u);
  auto script = Load("images:\n- match: [x]\n  base: python\n  entrypoint: [python3, /x.py]\n");
  ASSERT_TRUE(script.ok());
  EXPECT_TRUE(script->Find("x")->args.empty());
  auto wrong = Load("images:\n- match: [x]\n  base: nothing-we-know\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("images[0]: base"), std::string::npos);
}

TEST_F(ImageCatalogueTest, TensorboardComesWithTheFilesThatItNeeds) {
  auto load = [this](const std::string& root) {
    EXPECT_TRUE(MakeDirs(root + "/bin").ok());
    EXPECT_TRUE(MakeDirs(root + "/lib").ok());
    EXPECT_TRUE(ReplaceFile(root + "/bin/tensorboard", "#!/bin/sh\n", 0755).ok());
    auto catalogue = ImageCatalogue::Load({.config_dir = dir_,
                                           .tools_dir = dir_ + "/tools",
                                           .sdk_dir = "/opt/sdk",
                                           .programs = "/none::" + root + "/bin"});
    return *catalogue->Find("tensorboard");
  };
  auto has = [](const ImageEntry& entry, const std::string& path) {
    return std::any_of(entry.files.begin(), entry.files.end(), [&](const ImageFile& file) {
      return file.host == path && file.path == path && file.read_only;
    });
  };
  const std::string real = std::filesystem::canonical(dir_).string();
  const std::string home = real + "/home/.local";
  const ImageEntry user = load(home);
  EXPECT_EQ(user.path.back(), home + "/bin");
  EXPECT_TRUE(has(user, home + "/bin"));
  EXPECT_TRUE(has(user, home + "/lib"));
  EXPECT_FALSE(has(user, home)) << "what else is in a home stays there";
  EXPECT_EQ(user.env.back(), (std::pair<std::string, std::string>("PYTHONUSERBASE", home)));
  const std::string venv = real + "/venv";
  ASSERT_TRUE(MakeDirs(venv).ok());
  ASSERT_TRUE(ReplaceFile(venv + "/pyvenv.cfg", "").ok());
  EXPECT_TRUE(has(load(venv), venv));
  auto without =
      ImageCatalogue::Load({.config_dir = dir_, .tools_dir = dir_ + "/tools", .programs = "/none"});
  EXPECT_EQ(without->Find("tensorboard")->args, std::vector<std::string>{"python3"});
}

TEST_F(ImageCatalogueTest, PythonImagesRunTheEnvironmentThatIsChosen) {
  const std::string venv = std::filesystem::canonical(dir_).string() + "/venv";
  const std::string chosen = venv + "/bin/python3";
  ASSERT_TRUE(MakeDirs(venv + "/bin").ok());
  ASSERT_TRUE(ReplaceFile(venv + "/pyvenv.cfg", "home = /usr/bin\n").ok());
  std::filesystem::create_symlink("/usr/bin/python3", chosen);
  ImageCatalogue::Options options{.config_dir = dir_, .tools_dir = dir_ + "/tools"};
  EXPECT_EQ(ImageCatalogue::Load(options)->Find("python")->python, kDefaultPython);
  options.python = chosen;
  ASSERT_TRUE(
      ReplaceFile(dir_ + "/images.yaml", "images:\n- match: [trainer]\n  base: python\n").ok());
  const auto started = ImageCatalogue::Load(options);
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  for (const char* image : {"python:3.12", "pytorch/pytorch", "elasticdl", "trainer"}) {
    const auto entry = started->Find(image);
    ASSERT_TRUE(entry.ok()) << image;
    EXPECT_EQ(entry->python, chosen) << image;
    EXPECT_EQ(entry->path, (std::vector<std::string>{venv + "/bin", dir_ + "/tools/bin"})) << image;
    EXPECT_TRUE(std::any_of(entry->files.begin(), entry->files.end(), [&](const ImageFile& file) {
      return file.host == venv && file.path == venv && file.read_only;
    })) << image;
  }
  EXPECT_EQ(started->Find("busybox")->python, "");
  // Commands that only read say what the last start has chosen.
  options.python.clear();
  options.writes_tools = false;
  EXPECT_EQ(ImageCatalogue::Load(options)->Find("python")->python, chosen);
}

TEST_F(ImageCatalogueTest, OneOfSeveralVersionsInADirectoryIsPython3) {
  const std::string bin = dir_ + "/several/bin";
  ASSERT_TRUE(MakeDirs(bin).ok());
  std::filesystem::create_symlink("/bin/true", bin + "/python3");
  std::filesystem::create_symlink("/bin/sh", bin + "/python3.12");
  const auto catalogue =
      ImageCatalogue::Load({.tools_dir = dir_ + "/tools", .python = bin + "/python3.12"});
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  EXPECT_EQ(catalogue->Find("python")->path, (std::vector<std::string>{dir_ + "/tools/bin", bin}));
  EXPECT_EQ(std::filesystem::read_symlink(dir_ + "/tools/bin/python3"), bin + "/python3.12");
}

TEST_F(ImageCatalogueTest, UnknownImagesAreNotFound) {
  auto catalogue = Load();
  ASSERT_TRUE(catalogue.ok());
  auto missing = catalogue->Find("nobody/knows:1");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find(dir_ + "/images.yaml"), std::string::npos);
}

TEST_F(ImageCatalogueTest, TheFileComesFirstAndErrorsNameTheEntry) {
  auto catalogue = Load(
      "images:\n- match: [python]\n  entrypoint: [/opt/python]\n"
      "  env: {A: \"1\"}\n  files: [{host: /srv/x, path: /x, readOnly: false}]\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status().ToString();
  auto entry = catalogue->Find("python:3");
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->entrypoint[0], "/opt/python");
  EXPECT_FALSE(entry->files[0].read_only);
  auto bad = Load("images:\n- match: [a]\n- entrypoint: [b]\n");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("images[1]"), std::string::npos);
}

}  // namespace
}  // namespace swell::process
