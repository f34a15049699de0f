// Programs: how they are found and started.
#include "base/programs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"

namespace swell {
namespace {

using Strings = std::vector<std::string>;

TEST(ProgramsTest, TheyAreFoundInTheOrderOfThePath) {
  const TempDir folder;
  const std::string a = folder.File("a"), b = folder.File("b"), c = folder.File("c");
  for (const std::string& dir : {a, b, c}) ASSERT_TRUE(MakeDirs(dir).ok());
  for (const std::string& dir : {b, c}) {
    ASSERT_TRUE(WriteFileAtomically(dir + "/tool", "#!/bin/sh\n", 0755).ok());
  }
  const std::string path = StrCat("bin:", a, ":", c, ":", b, "::");
  EXPECT_EQ(FindPrograms("tool", path), (Strings{c + "/tool", b + "/tool"}));
  EXPECT_EQ(FindPrograms("other", path), Strings{});
  EXPECT_EQ(FindPrograms("tool", ""), Strings{});
}

TEST(ProgramsTest, NeitherDirectoriesNorOtherFilesArePrograms) {
  const TempDir folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("text"), "x", 0644).ok());
  EXPECT_FALSE(IsProgram(folder.File("text")));
  EXPECT_FALSE(IsProgram(folder.path()));
  EXPECT_FALSE(IsProgram(folder.File("none")));
  EXPECT_TRUE(IsProgram("/bin/sh"));
}

// What the plan's program writes to its standard output.
std::string OutputOf(SpawnPlan plan) {
  PipeEnds pipe = MakePipe().value();
  plan.files.emplace_back(pipe.write.get(), STDOUT_FILENO);
  const Spawned spawned = Spawn(std::move(plan));
  EXPECT_EQ(spawned.error, 0);
  pipe.write.Reset();
  std::string output;
  char buffer[256];
  ssize_t count;
  while ((count = ::read(pipe.read.get(), buffer, sizeof buffer)) > 0) {
    output.append(buffer, static_cast<size_t>(count));
  }
  EXPECT_EQ(::waitpid(spawned.pid, nullptr, 0), spawned.pid);
  return output;
}

TEST(SpawnTest, AProgramHasTheEnvironmentOfItsPlan) {
  const Strings command{"/bin/sh", "-c", "echo ${SWELL_A-none} ${SWELL_B-none}"};
  ASSERT_EQ(::setenv("SWELL_A", "1", 1), 0);
  EXPECT_EQ(OutputOf({.command = command}), "1 none\n");
  EXPECT_EQ(OutputOf({.command = command, .environment = Strings{"SWELL_B=2"}}), "none 2\n");
  ::unsetenv("SWELL_A");
}

TEST(SpawnTest, NothingIsReadFromTheNullDevice) {
  EXPECT_EQ(OutputOf({.command = {"cat"}, .files = {{-1, STDIN_FILENO}}}), "");
}

TEST(SpawnTest, AGroupOfItsOwnEndsWhole) {
  const Spawned spawned = Spawn({.command = {"sleep", "1000"}, .own_group = true});
  ASSERT_EQ(spawned.error, 0);
  EXPECT_EQ(::getpgid(spawned.pid), spawned.pid);
  EXPECT_EQ(::kill(-spawned.pid, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(spawned.pid, &status, 0), spawned.pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(SpawnTest, AnErrorIsTheReasonWhyItDidNotStart) {
  const TempDir folder;
  EXPECT_EQ(Spawn({.command = {folder.File("none")}}).error, ENOENT);
  ASSERT_TRUE(WriteFileAtomically(folder.File("text"), "x", 0755).ok());
  const Spawned spawned = Spawn({.command = {folder.File("text")}});
  EXPECT_EQ(spawned.error, ENOEXEC);
  EXPECT_EQ(spawned.pid, -1);
}

}  // namespace
}  // namespace swell
