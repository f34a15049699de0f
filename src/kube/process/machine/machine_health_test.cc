// The checks of this machine, and scripts as checks.
#include "kube/process/machine/machine_health.h"

#include <sys/stat.h>

#include <optional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/net/reactor/reactor.h"
#include "kube/process/machine/machine_checks.h"

namespace swell::process {
namespace {

using node::HealthReport;
using node::Verdict;
using std::chrono::seconds;

// "DiskHealthy False DiskFull: …".
std::string Text(const HealthReport& report) {
  const char* status = report.verdict == Verdict::kGood  ? "True"
                       : report.verdict == Verdict::kBad ? "False"
                                                         : "Unknown";
  return StrCat(report.type, " ", status, " ", report.reason, ": ", report.message);
}

TEST(DiskCheck, AWritableDirectoryWithRoomIsGood) {
  const TempDir dir;
  EXPECT_EQ(DiskCheck(dir.path()).Run().type, "DiskHealthy");
  EXPECT_EQ(ListDir(dir.path())->size(), 0U) << "it leaves nothing behind";
  EXPECT_EQ(DiskCheck(dir.File("gone")).Run().reason, "NotReadable");
  // Not even root writes there.
  EXPECT_EQ(DiskCheck("/proc").Run().reason, "NotWritable");
}

TEST(DiskCheck, FullAndReadOnlyFileSystemsAreBad) {
  constexpr uint64_t kGib = 1 << 30;
  const auto fault = [](const DiskCheck::Room& room) {
    const auto found = DiskCheck::FaultOf(room, "/data");
    return found ? Text(*found) : "none";
  };
  EXPECT_EQ(fault({.bytes = 100 * kGib, .bytes_free = 2 * kGib}), "none");
  EXPECT_EQ(fault({.bytes = 4 * kGib, .bytes_free = kGib / 8}), "none") << "small ones need less";
  EXPECT_EQ(fault({.bytes = 100 * kGib, .bytes_free = kGib / 4}),
            "DiskHealthy False DiskFull: the file system of /data has less than 512 MiB left of "
            "102400 MiB");
  EXPECT_EQ(fault({.read_only = true}),
            "DiskHealthy False ReadOnly: /data is on a file system that is read-only");
  EXPECT_EQ(fault({.files = 1000, .files_free = 3}),
            "DiskHealthy False InodesFull: the file system of /data has less than 2 % of its "
            "inodes left");
}

TEST(MemoryCheck, ReadsWhatTheKernelSays) {
  const TempDir dir;
  const auto check = [&dir](int available_kib, const std::string& pressure) {
    EXPECT_TRUE(MakeDirs(dir.File("pressure")).ok());
    EXPECT_TRUE(WriteFileAtomically(dir.File("meminfo"),
                                    StrCat("MemTotal:       16000000 kB\nMemFree: 1 kB\n"
                                           "MemAvailable:   ",
                                           available_kib, " kB\n"))
                    .ok());
    EXPECT_TRUE(WriteFileAtomically(dir.File("pressure/memory"), pressure).ok());
    return Text(MemoryCheck(dir.path()).Run());
  };
  const std::string calm =
      "some avg10=0.00 avg60=99.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=1.50 avg300=0.00\n";
  EXPECT_EQ(check(900'000, calm),
            "MemoryHealthy True CheckPassed: the machine has memory available");
  EXPECT_EQ(check(100'000, calm),
            "MemoryHealthy False OutOfMemory: less than 256 MiB of memory are available");
  EXPECT_EQ(check(900'000, "full avg10=0.00 avg60=71.20 avg300=0.00 total=1\n"),
            "MemoryHealthy False MemoryStalls: for most of the last minute no process could run "
            "for lack of memory");
  EXPECT_EQ(MemoryCheck(dir.File("gone")).Run().verdict, Verdict::kUnknown);
}

TEST(ClockCheck, AStepIsToldForFiveMinutes) {
  ClockCheck::Times now{WallTime{1'700'000'000'000'000'000}, SteadyTime{1'000}};
  ClockCheck check([&now] { return now; });
  const auto after = [&](Duration passed, Duration set) {
    now = {now.wall + passed + set, now.boot + passed};
    return Text(check.Run());
  };
  const std::string good = "ClockHealthy True CheckPassed: the clock was not set lately";
  EXPECT_EQ(after(seconds(0), seconds(0)), good);
  EXPECT_EQ(after(seconds(30), seconds(2)), good) << "slow corrections are usual";
  EXPECT_EQ(after(seconds(30), seconds(-75)),
            "ClockHealthy False ClockStepped: the clock was set back by 75 s");
  EXPECT_EQ(after(seconds(290), seconds(0)),
            "ClockHealthy False ClockStepped: the clock was set back by 75 s");
  EXPECT_EQ(after(seconds(30), seconds(0)), good);
}

class ScriptsTest : public ::testing::Test {
 protected:
  void Script(const std::string& name, const std::string& text, mode_t mode = 0755) {
    ASSERT_TRUE(WriteFileAtomically(dir_.File(name), StrCat("#!/bin/sh\n", text, "\n")).ok());
    ASSERT_EQ(::chmod(dir_.File(name).c_str(), mode), 0);
  }
  std::vector<std::string> Run(Duration limit = seconds(20)) {
    std::vector<std::string> texts;
    ScriptChecks checks(dir_.path(), "/data", limit);
    for (const HealthReport& one : checks.Run("node-7")) {
      texts.push_back(Text(one));
      for (const node::GpuFault& gpu : one.gpus) texts.back() += StrCat(" [GPU ", gpu.index, "]");
    }
    return texts;
  }
  const TempDir dir_;
};

TEST_F(ScriptsTest, ExitCodesAreVerdictsAndTheFirstLineIsTheMessage) {
  Script("a-good.sh", "echo \"$NODE_NAME uses $SWELL_DATA_DIR\"; echo more; exit 0");
  Script("b_bad", "echo 'cable unplugged'; exit 1");
  Script("c-unknown.sh", "echo 'no tool'; exit 2");
  Script("d.killed", "kill -TERM $$");
  Script("e-silent.sh", "exit 1");
  Script("gpu.sh", "echo 'GPU 3: too hot'; exit 1");
  Script("not-run.txt", "exit 1", 0644);
  Script("open.sh", "exit 1", 0777);
  EXPECT_EQ(Run(), (std::vector<std::string>{
                       "AGoodHealthy True CheckPassed: node-7 uses /data",
                       "BBadHealthy False CheckFailed: cable unplugged",
                       "CUnknownHealthy Unknown CheckUnknown: c-unknown.sh exited with 2: no tool",
                       "DHealthy Unknown CheckUnknown: it was ended by signal 15",
                       "ESilentHealthy False CheckFailed: e-silent.sh exited with 1",
                       "CheckGpuHealthy False GpuUnhealthy: GPU 3: too hot [GPU 3]",
                       "OpenHealthy Unknown CheckUnsafe: open.sh is not run: every user of the "
                       "machine may write to it; take that away: chmod o-w open.sh"}));
}

TEST_F(ScriptsTest, ProgramsThatCannotRunSayWhatToDo) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("a-bare.sh"), "exit 0\n").ok());
  ASSERT_EQ(::chmod(dir_.File("a-bare.sh").c_str(), 0755), 0);
  ASSERT_TRUE(WriteFileAtomically(dir_.File("b-lost.sh"), "#!/no/such/shell\nexit 0\n").ok());
  ASSERT_EQ(::chmod(dir_.File("b-lost.sh").c_str(), 0755), 0);
  Script("good.py", "exit 0");
  Script("good.sh", "exit 1");
  EXPECT_EQ(Run(),
            (std::vector<std::string>{
                "ABareHealthy Unknown CheckNotRun: a-bare.sh is not run: it does not begin with "
                "the line of an interpreter, such as #!/bin/sh",
                "BLostHealthy Unknown CheckNotRun: b-lost.sh is not run: the interpreter that its "
                "first line names does not exist",
                "GoodHealthy True CheckPassed: good.py finds no fault",
                "GoodShHealthy Unknown CheckNotRun: good.sh is not run: another file has the "
                "condition GoodHealthy already; give one of them another name"}));
}

TEST_F(ScriptsTest, TimeAndOutputAreBounded) {
  Script("long.sh", "exec cat /dev/zero");
  EXPECT_EQ(Run(std::chrono::milliseconds(100)),
            std::vector<std::string>{StrCat("LongHealthy Unknown CheckUnknown: it did not end "
                                            "within 0 s: ",
                                            std::string(ScriptChecks::kLineMax, '?'))});
  // One that leaves a process behind, which keeps the output open, is not waited for.
  Script("long.sh", "echo fine; sleep 1000 & exit 0");
  EXPECT_EQ(Run(), std::vector<std::string>{"LongHealthy True CheckPassed: fine"});
}

TEST_F(ScriptsTest, NamesBecomeConditionTypes) {
  EXPECT_EQ(ScriptChecks::TypeOf("ib-port_1.sh"), "IbPort1Healthy");
  EXPECT_EQ(ScriptChecks::TypeOf("disk"), "CheckDiskHealthy");
  EXPECT_EQ(ScriptChecks::TypeOf(".hidden"), "");
}

TEST_F(ScriptsTest, TheSourceRunsMachineChecksOnceAndScriptsForEachNode) {
  Script("where.sh", "echo $NODE_NAME");
  net::Reactor core;
  MachineHealth health(core, {.data_dir = dir_.path(), .scripts_dir = dir_.path()});
  std::vector<std::string> found;
  int answers = 0;
  for (const char* node : {"node-1", "node-2"}) {
    health.Check(node, [&](const std::vector<HealthReport>& reports) {
      ++answers;
      for (const HealthReport& one : reports) found.push_back(StrCat(one.type, " ", one.message));
    });
  }
  ASSERT_TRUE(core.RunUntil([&] { return answers == 2; }, seconds(60)));
  ASSERT_EQ(found.size(), 8U);
  EXPECT_TRUE(found[0].starts_with("DiskHealthy"));
  EXPECT_TRUE(found[1].starts_with("MemoryHealthy"));
  EXPECT_TRUE(found[2].starts_with("ClockHealthy"));
  EXPECT_EQ(found[3], "WhereHealthy node-1");
  EXPECT_EQ(found[7], "WhereHealthy node-2");
}

}  // namespace
}  // namespace swell::process
