// The scripts of MPIJobs, run with a kubectl, an ssh and a sleep of the test's own.
#include "jobs/kinds/mpi_scripts.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::jobs {
namespace {

class MpiScripts : public ::testing::Test {
 protected:
  MpiScripts() {
    std::filesystem::create_directories(dir_.File("image"));
    Write("hostfile", "pi-worker-0 slots=2\n");
    const std::string shell = InFolder(RemoteShellScript("pi", "", dir_.File("it's")));
    Write("ssh", shell);
    Write("kubexec.sh", shell);
    Write("discover_hosts.sh", InFolder(DiscoverHostsScript("pi", 2)));
    Write("kubectl", StrCat("#!/bin/sh\n[ ! -e ", folder(),
                            "/forbidden ] || exit 1\ncase $1 in\n"
                            "get) cat ",
                            folder(), "/phase ;;\nexec) echo \"$*\" ;;\nesac\n"));
    // Time passes: what comes later is there.
    Write("sleep", StrCat("#!/bin/sh\nrm -f ", folder(), "/down\n[ ! -e ", folder(),
                          "/later ] || mv ", folder(), "/later ", folder(), "/phase\n"));
    // The image's own. It prints its words, each in brackets.
    Write("image/ssh", StrCat("#!/bin/sh\nif [ -e ", folder(), "/down ]; then cat ", folder(),
                              "/down; exit 255; fi\nprintf '[%s]' \"$@\"\n"));
  }
  // What the API server says of the worker: now, and after the first wait.
  void Phase(std::string_view now, std::string_view later = {}) {
    Write("phase", now);
    if (!later.empty()) Write("later", later);
  }
  // Output and exit code.
  std::string Run(const std::string& words, std::string_view env = {}) {
    const std::string line =
        StrCat("PATH=", folder(), ":", dir_.File("image"), ":$PATH ", env, " ", words, " 2>&1");
    FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return "cannot run it";
    std::string out;
    char part[512];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, n);
    const int code = WEXITSTATUS(::pclose(pipe));
    return StrCat(out, code);
  }
  void Write(std::string_view name, std::string_view text) {
    const std::string path = dir_.File(name);
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  const std::string& folder() const { return dir_.path(); }

 private:
  std::string InFolder(std::string text) const {
    for (size_t at; (at = text.find(kMpiFolder)) != std::string::npos;) {
      text.replace(at, kMpiFolder.size(), dir_.path());
    }
    return text;
  }
  TempDir dir_;
};

// What goes before a host in a call of the image's ssh.
constexpr std::string_view kOptions =
    "[-o][StrictHostKeyChecking=no][-o][UserKnownHostsFile=/dev/null][-o][LogLevel=ERROR]"
    "[-o][BatchMode=yes][-o][ConnectTimeout=10]";

TEST_F(MpiScripts, AWorkerIsWaitedForAndAnyOtherNameIsRefusedAtOnce) {
  Phase("Running");
  const std::string runs = "exec pi-worker-0 -- /bin/sh -c hostname -s\n0";
  EXPECT_EQ(Run("ssh -o A=b -p 22 root@pi-worker-0.pi hostname -s"), runs);
  Phase("Pending", "Running");
  EXPECT_EQ(Run("ssh pi-worker-0 hostname -s"), runs);
  Phase("", "Running");
  EXPECT_EQ(Run("ssh pi-worker-0 hostname -s"), runs) << "the hostfile has it";
  // A worker that has come since: the hostfile of a running pod is behind.
  Phase("Pending", "Running");
  EXPECT_EQ(Run("ssh pi-worker-1 id"), "exec pi-worker-1 -- /bin/sh -c id\n0");
  Phase("Failed");
  EXPECT_EQ(Run("ssh pi-worker-0 id"),
            "kubexec.sh: worker pi-worker-0 does not run: its pod is Failed\n255");
  Phase("", "Running");
  for (const char* other : {"pi-worker-9", "pi-worker", "10.0.0.1", "pi.worker-0"}) {
    EXPECT_EQ(
        Run(StrCat("ssh -o A=b root@", other, " id")),
        StrCat("kubexec.sh: ", other, " is not a worker of the job pi; its workers are listed in ",
               folder(), "/hostfile\n255"));
  }
  EXPECT_EQ(Run("ssh pi-worker-0"), "kubexec.sh: usage: kubexec.sh WORKER COMMAND...\n255");
}

TEST_F(MpiScripts, WithoutTheRightToAskTheImagesSshReachesAWorker) {
  Write("forbidden", "");
  EXPECT_EQ(Run("ssh -x -o A=b root@pi-worker-0 -p 22 echo 'two  words'"),
            StrCat("[-x][-o][A=b][-p][22]", kOptions, "[root@pi-worker-0][echo][two  words]0"));
}

TEST_F(MpiScripts, OptionsAndThePathOfKeysMayHaveAnyCharacter) {
  std::filesystem::create_directories(folder() + "/it's");
  Write("it's/id_rsa", "");
  EXPECT_EQ(Run(R"(ssh -o 'A=it'\''s $1' pi-worker-0 id)", "MPI_BY_SSH=yes"),
            StrCat("[-o][A=it's $1]", kOptions, "[-i][", folder(), "/it's/id_rsa]",
                   "[pi-worker-0][id]0"));
}

TEST_F(MpiScripts, AWorkersSshServerIsWaitedForAndNotForEver) {
  const std::string runs = StrCat(kOptions, "[pi-worker-0][id]0");
  Write("down", "ssh: connect to host pi-worker-0 port 22: Connection refused");
  EXPECT_EQ(Run("kubexec.sh pi-worker-0 id", "MPI_BY_SSH=yes"), runs);
  Write("down", "ssh: connect to host pi-worker-0 port 22: Connection refused");
  EXPECT_EQ(Run("kubexec.sh pi-worker-0 id", "MPI_BY_SSH=yes MPI_SSH_SECONDS=0"),
            "kubexec.sh: worker pi-worker-0 cannot be reached by SSH: ssh: connect to host "
            "pi-worker-0 port 22: Connection refused\n255");
  Write("down", "root@pi-worker-0: Permission denied (publickey).");
  EXPECT_EQ(Run("kubexec.sh pi-worker-0 id", "MPI_BY_SSH=yes"),
            "kubexec.sh: worker pi-worker-0 cannot be reached by SSH: root@pi-worker-0: Permission "
            "denied (publickey).\n255")
      << "waiting does not help";
  Write("down", "ssh: Could not resolve hostname elsewhere\n");
  EXPECT_EQ(Run("kubexec.sh elsewhere id", "MPI_BY_SSH=yes"),
            "ssh: Could not resolve hostname elsewhere\n255");
}

TEST_F(MpiScripts, HostsAreTheRunningPodsOrThoseThatAnswer) {
  Write("hostfile", "pi-launcher slots=2\npi-worker-0 slots=2\n");
  Phase("pi-worker-0 \npi-worker-1 2026-01-01T00:00:00Z\npi-worker-2 \n");
  EXPECT_EQ(Run("discover_hosts.sh"), "pi-worker-0:2\npi-worker-2:2\n0");
  Write("forbidden", "");
  EXPECT_EQ(Run("discover_hosts.sh"), "pi-worker-0:2\n0");
  Write("down", "ssh: Connection refused");
  EXPECT_EQ(Run("discover_hosts.sh"), "discover_hosts.sh: no worker of pi answers\n1");
}

TEST_F(MpiScripts, AWorkerWithoutAServerThatStartsWaits) {
  auto run = [&](const std::string& server) {
    std::string line = "/bin/sh";
    const json::Array words = ServeOrWait({server, "-De"});
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string path = StrCat(folder(), "/word", i);
      std::ofstream(path) << json::View(words[i].get_string());
      line += StrCat(" \"$(cat ", path, ")\"");
    }
    return Run(line);
  };
  Write("id", "#!/bin/sh\necho 1000\n");  // not root: the machine's keys stay as they are
  Write("sleep", "#!/bin/sh\necho \"sleeps $1\"\n");
  EXPECT_EQ(run(folder() + "/none"), "sleeps 365d\n0");
  Write("sshd", "#!/bin/sh\n[ \"$2\" = -t ] || echo \"serves $*\"\n");
  EXPECT_EQ(run(folder() + "/sshd"), "serves -De\n0");
  Write("sshd", "#!/bin/sh\necho 'no hostkeys available -- exiting.'; exit 1\n");
  EXPECT_EQ(run(folder() + "/sshd"),
            StrCat("no hostkeys available -- exiting.\n", folder(),
                   "/sshd cannot start here: this "
                   "worker waits, and is reached by exec alone\nsleeps 365d\n0"));
}

}  // namespace
}  // namespace swell::jobs
