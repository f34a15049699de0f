// Which files containers see of a Python that is not Debian's.
#include "kube/process/files/program_files.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

using Paths = std::vector<std::string>;

class ProgramFilesTest : public ::testing::Test {
 protected:
  std::string Home(const std::string& name) const { return home_ + "/" + name; }
  void Write(const std::string& path, const std::string& text = "") {
    ASSERT_TRUE(MakeDirs(std::filesystem::path(path).parent_path().string()).ok());
    ASSERT_TRUE(ReplaceFile(path, text, 0755).ok());
  }
  void Link(const std::string& path, const std::string& to) {
    ASSERT_TRUE(MakeDirs(std::filesystem::path(path).parent_path().string()).ok());
    std::filesystem::create_symlink(to, path);
  }
  // As conda, pyenv and uv lay one out.
  void Install(const std::string& prefix) {
    Write(prefix + "/bin/python3");
    Write(prefix + "/lib/python3.11/os.py");
  }

  const TempDir temp_;
  const std::string home_ = std::filesystem::canonical(temp_.path()).string();
};

TEST_F(ProgramFilesTest, WhatIsBelowUsrIsSeenAnyway) {
  for (const char* program : {"/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"}) {
    EXPECT_EQ(FilesOf(program).paths, Paths{}) << program;
    EXPECT_EQ(FilesOf(program).user_base, "") << program;
  }
}

TEST_F(ProgramFilesTest, AnInstallationIsOneDirectory) {
  const std::string conda = Home("miniconda3/envs/train");
  Install(conda);
  EXPECT_EQ(FilesOf(conda + "/bin/python3").paths, Paths{conda});
  EXPECT_EQ(FilesOf(conda + "/bin/python3").user_base, "");
}

TEST_F(ProgramFilesTest, AVirtualEnvironmentComesWithItsBase) {
  const std::string base = Home("pyenv/versions/3.11.7"), venv = Home("project/.venv");
  Install(base);
  Link(venv + "/bin/python3", base + "/bin/python3");
  Write(venv + "/pyvenv.cfg", "home = " + base + "/bin\nversion = 3.11.7\n");
  EXPECT_EQ(FilesOf(venv + "/bin/python3").paths, (Paths{venv, base}));
}

TEST_F(ProgramFilesTest, TheBaseOfACopiedPythonIsKnownByTheConfiguration) {
  const std::string base = Home("base"), venv = Home("venv");
  Install(base);
  Write(venv + "/bin/python3");
  Write(venv + "/pyvenv.cfg", "include-system-site-packages = false\nhome=" + base + "/bin\n");
  EXPECT_EQ(FilesOf(venv + "/bin/python3").paths, (Paths{venv, base}));
}

// Tools name their versions by links, and the path of the link is what is read.
TEST_F(ProgramFilesTest, ABaseBehindALinkIsSeenByBothNames) {
  const std::string real = Home("python/3.12.11"), link = Home("python/3.12"), venv = Home("venv");
  Install(real);
  Link(link, real);
  Link(venv + "/bin/python3", link + "/bin/python3");
  Write(venv + "/pyvenv.cfg", "home = " + link + "/bin\n");
  EXPECT_EQ(FilesOf(venv + "/bin/python3").paths, (Paths{venv, link, real}));
}

TEST_F(ProgramFilesTest, AVirtualEnvironmentOnDebiansPythonIsAlone) {
  const std::string venv = Home("venv");
  Link(venv + "/bin/python3", "/usr/bin/python3");
  Write(venv + "/pyvenv.cfg", "home = /usr/bin\n");
  EXPECT_EQ(FilesOf(venv + "/bin/python3").paths, Paths{venv});
}

TEST_F(ProgramFilesTest, WhatElseIsInAHomeStaysThere) {
  Write(Home(".local/bin/tensorboard"));
  Write(Home(".local/lib/python3.11/site-packages/torch.py"));
  Write(Home(".local/share/secret"));
  const ProgramFiles files = FilesOf(Home(".local/bin/tensorboard"));
  EXPECT_EQ(files.paths, (Paths{Home(".local/bin"), Home(".local/lib")}));
  EXPECT_EQ(files.user_base, Home(".local"));
}

}  // namespace
}  // namespace swell::process
