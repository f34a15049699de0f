// Which Python of a machine the catalogue's images run.
#include "ops/nodes/python_choice.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

class PythonChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareDataDir(dir_).ok()); }

  // A program of the name python3 that does this when it is asked for torch.
  std::string Fake(const std::string& name, const std::string& does) {
    const std::string bin = temp_.File(name) + "/bin", path = bin + "/python3";
    EXPECT_TRUE(MakeDirs(bin).ok());
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + does + "\n", 0755).ok());
    return path;
  }
  // A program, not a script.
  std::string Binary(const std::string& name) {
    const std::string bin = temp_.File(name) + "/bin", path = bin + "/python3";
    EXPECT_TRUE(MakeDirs(bin).ok());
    std::filesystem::create_symlink("/bin/true", path);
    return path;
  }

  const TempDir temp_;
  const DataDir dir_{temp_.File("cluster")};
};

TEST_F(PythonChoiceTest, TheFirstEnvironmentWithTorchIsTaken) {
  const std::string has = Fake("has", "exit 0"), has_too = Fake("has-too", "exit 0"),
                    lacks = Fake("lacks", "exit 1"), fallback = Fake("fallback", "exit 1");
  PythonPlaces places;
  places.fallback = fallback;
  places.environments = {has, has_too};
  EXPECT_EQ(FindPython(places), has);
  places.environments = {temp_.File("none/bin/python3"), lacks, has_too};
  EXPECT_EQ(FindPython(places), has_too);
  places.environments = {lacks};
  EXPECT_EQ(FindPython(places), fallback) << "an environment without torch displaces nothing";
}

TEST_F(PythonChoiceTest, ItIsAskedForTorchWithoutTheUsersVariables) {
  const std::string said = temp_.File("said");
  const std::string python =
      Fake("env", "echo \"$1 $2 ${3##*find_spec}; HOME is ${HOME-not set}\" > " + said);
  PythonPlaces places;
  places.environments = {python};
  EXPECT_EQ(FindPython(places), python);
  EXPECT_EQ(ReadFile(said).value(), "-I -c ('torch') is None); HOME is not set\n");
}

TEST_F(PythonChoiceTest, NothingIsRunWhereThereIsNoEnvironment) {
  const std::string ran = temp_.File("ran");
  PythonPlaces places;
  places.fallback = Fake("fallback", "touch " + ran);
  EXPECT_EQ(FindPython(places), places.fallback);
  EXPECT_FALSE(FileExists(ran));
}

TEST_F(PythonChoiceTest, OneThatDoesNotAnswerIsPassedOver) {
  PythonPlaces places;
  places.limit = std::chrono::milliseconds(20);
  places.environments = {Fake("hangs", "sleep 600")};
  places.fallback = Fake("fallback", "exit 1");
  EXPECT_EQ(FindPython(places), places.fallback);
}

TEST_F(PythonChoiceTest, ThePathIsSearchedWhereTheDefaultIsMissing) {
  PythonPlaces places;
  places.fallback = temp_.File("none");
  EXPECT_EQ(FindPython(places), places.fallback);
  Fake("shims", "exit 0");
  const std::string python = Binary("opt");
  places.programs = temp_.File("shims/bin") + "::" + temp_.File("opt/bin");
  EXPECT_EQ(FindPython(places), python);
}

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_F(PythonChoiceTest, TheActiveEnvironmentComesFirst) {
  const Variable venv("VIRTUAL_ENV", "/srv/venv"), conda("CONDA_PREFIX", "/srv/conda/envs/train");
  const std::vector<std::string> found = PythonPlacesHere().environments;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "/srv/venv/bin/python3");
  EXPECT_EQ(found[1], "/srv/conda/envs/train/bin/python3");
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "python3";
  EXPECT_EQ(found[2], beside.string());
}

TEST_F(PythonChoiceTest, AVariableThatIsNotSetNamesNoPlace) {
  const Variable venv("VIRTUAL_ENV", ""), conda("CONDA_PREFIX", "");
  EXPECT_EQ(PythonPlacesHere().environments.size(), 1u) << "the one beside this program";
}

TEST_F(PythonChoiceTest, TheFlagIsRemembered) {
  const std::string first = Binary("first"), second = Binary("second");
  EXPECT_EQ(TakePython(dir_, first).value(), first);
  EXPECT_EQ(TakePython(dir_, "").value(), first);
  EXPECT_EQ(TakePython(dir_, second).value(), second);
  EXPECT_EQ(TakePython(dir_, "").value(), second);
  ASSERT_TRUE(RemoveTree(temp_.File("second")).ok());
  const auto gone = TakePython(dir_, "");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(
      gone.status().message(),
      dir_.path + "/python: " + second +
          " is not an executable file; expected an interpreter, such as /opt/venv/bin/python3; "
          "name one with --python, or remove the file " +
          dir_.path + "/python");
}

TEST_F(PythonChoiceTest, OnlyWhatIsNotUsualIsTold) {
  EXPECT_EQ(PythonIfNotDefault(dir_, "process"), "");
  const std::string bin = dir_.path + "/catalogue/bin";
  ASSERT_TRUE(MakeDirs(bin).ok());
  std::filesystem::create_symlink("/opt/venv/bin/python3", bin + "/python3");
  EXPECT_EQ(PythonIfNotDefault(dir_, "process"), "/opt/venv/bin/python3");
  EXPECT_EQ(PythonIfNotDefault(dir_, "simulated"), "") << "the link is from another start";
}

TEST_F(PythonChoiceTest, TheFlagNamesAnInterpreterByItsOwnPath) {
  std::string none;
  EXPECT_TRUE(CheckPython(none).ok());
  EXPECT_EQ(none, "");
  const std::string python = Binary("venv");
  std::string file = std::filesystem::relative(temp_.File("venv/lib/../bin/python3")).string();
  ASSERT_TRUE(CheckPython(file).ok());
  EXPECT_EQ(file, python) << "the link is kept";
  for (std::string wrong : {temp_.File("missing"), temp_.path(), Fake("shims", "exit 0")}) {
    const std::string before = wrong;
    const Status status = CheckPython(wrong);
    EXPECT_TRUE(cli::IsMisuse(status)) << before;
    EXPECT_TRUE(status.message().starts_with("--python " + before + " is ")) << status.message();
  }
}

}  // namespace
}  // namespace swell::ops
