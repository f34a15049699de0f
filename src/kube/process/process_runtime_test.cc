// Real processes through the runtime, as root and as nobody: whatever this machine permits.
#include "kube/process/process_runtime.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/pod_store.h"
#include "kube/process/process_testing.h"
#include "kube/process/shim_launcher.h"

namespace swell::process {
namespace {

TEST_F(ProcessRuntimeTest, RunsACommandAndReportsItsExit) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "echo hello $GREETING; echo oops >&2; exit 7");
  spec.env = {{"GREETING", "first"}, {"GREETING", "world"}};
  ContainerExit exit = Run(spec);
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_FALSE(exit.oom_killed);
  EXPECT_GE(exit.finished, exit.started);
  std::string log = Log(spec.ref);
  EXPECT_NE(log.find("hello world\n"), std::string::npos);
  EXPECT_NE(log.find("oops\n"), std::string::npos);
  EXPECT_NE(exit.log_tail.find("hello world"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, LogFilesAreInCriFormat) {
  Create(Sandbox("pod-a"));
  Run(Shell("pod-a", "printf 'one\\ntwo'"));
  auto raw = ReadFile(PodDir("pod-a") + "/logs/main/0.log");
  ASSERT_TRUE(raw.ok());
  std::vector<std::string_view> lines = Split(*raw, '\n');
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0].substr(30), " stdout F one");
  EXPECT_EQ(lines[1].substr(30), " stdout P two");
  EXPECT_EQ(lines[0][29], 'Z');
}

TEST_F(ProcessRuntimeTest, ALogHasNoNewlineThatTheProgramDidNotWrite) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "printf 'one\\ntwo'; exit 1");
  EXPECT_EQ(Run(spec).log_tail, "one\ntwo");
  EXPECT_EQ(Log(spec.ref), "one\ntwo");
}

TEST_F(ProcessRuntimeTest, TailAndTimestampsAndLimits) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "for i in 1 2 3 4 5; do echo line $i; done");
  Run(spec);
  EXPECT_EQ(Log(spec.ref, {.tail_lines = 2}), "line 4\nline 5\n");
  EXPECT_EQ(Log(spec.ref, {.tail_lines = 0}), "");
  EXPECT_EQ(Log(spec.ref, {.tail_lines = 100}).size(), 35u);
  EXPECT_EQ(Log(spec.ref, {.limit_bytes = 6}), "line 1");
  EXPECT_EQ(Log(spec.ref, {.timestamps = true, .tail_lines = 1}).substr(29), "Z line 5\n");
  EXPECT_EQ(Log(spec.ref, {.since = RealClock().Now() + std::chrono::hours(1)}), "");
}

TEST_F(ProcessRuntimeTest, FollowsALogToTheContainersEnd) {
  Create(Sandbox("pod-a"));
  // Writes a line each time it is told to, so the test decides when.
  ContainerSpec spec = Shell("pod-a",
                             "trap 'echo told' USR1; echo up; while :; do wait; "
                             "[ -e \"$SWELL_NOTICE_FILE\" ] && exit 0; sleep 0.01 & done");
  ASSERT_TRUE(Start(spec).ok());
  std::string text;
  bool ended = false;
  auto stream = runtime_->ReadLog(spec.ref, {.follow = true},
                                  {[&](const api::Chunk& chunk) {
                                     text += *chunk;
                                     return true;
                                   },
                                   [&](const Status&) { ended = true; }});
  ASSERT_TRUE(Until([&] { return text == "up\n"; })) << text;
  runtime_->Signal(spec.ref, SIGUSR1);
  ASSERT_TRUE(Until([&] { return text.find("told\n") != std::string::npos; })) << text;
  EXPECT_FALSE(ended);
  runtime_->WriteNotice("pod-a", "{}");
  EXPECT_TRUE(Until([&] { return ended; }));
  EXPECT_EQ(Wait().code, 0);
}

TEST_F(ProcessRuntimeTest, SignalsReachTheCommand) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a",
                             "trap 'echo saving; exit 143' TERM; echo up; "
                             "while :; do sleep 0.05; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  ContainerExit exit = Wait();
  EXPECT_EQ(exit.code, 143);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_NE(Log(spec.ref).find("saving"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, ACommandThatHandlesTheSignalGetsItAlone) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec =
      Shell("pod-a",
            "sh -c 'trap \"echo told\" TERM; echo up; while :; do sleep 0.02; done' "
            "& trap 'sleep 0.3; echo saved; exit 0' TERM; while :; do sleep 0.02; "
            "done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  EXPECT_EQ(Wait().code, 0);
  EXPECT_NE(Log(spec.ref).find("saved\n"), std::string::npos);
  EXPECT_EQ(Log(spec.ref).find("told"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, AShellInBetweenDoesNotCutItsChildShort) {
  Create(Sandbox("pod-a"));
  // The outer shell dies of SIGTERM at once; its child is still saving.
  ContainerSpec spec = Shell("pod-a",
                             "sh -c 'trap \"sleep 0.2; echo saved; exit 0\" TERM; echo up; "
                             "while :; do sleep 0.02; done'; echo never");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  ContainerExit exit = Wait();
  EXPECT_EQ(exit.code, 143);
  EXPECT_EQ(exit.signal, SIGTERM);
  EXPECT_NE(Log(spec.ref).find("saved\n"), std::string::npos);
  EXPECT_EQ(Log(spec.ref).find("never"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, ASessionOfItsOwnDoesNotOutliveTheCommand) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "setsid sleep 1000 & echo up; sleep 1000; echo never");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  EXPECT_EQ(Wait().signal, SIGTERM);
}

TEST_F(ProcessRuntimeTest, KillEndsEverythingOfTheContainer) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a",
                             "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & "
                             "echo up; while :; do sleep 1; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGTERM);
  runtime_->Signal(spec.ref, SIGKILL);
  ContainerExit exit = Wait();
  EXPECT_EQ(exit.code, 137);
  EXPECT_EQ(exit.signal, SIGKILL);
}

TEST_F(ProcessRuntimeTest, ADebugContainerIsAmongTheProcessesOfItsTarget) {
  Create(Sandbox("pod-a"));
  ContainerSpec main = Shell("pod-a", "echo up; while :; do sleep 0.05; done");
  ASSERT_TRUE(Start(main).ok());
  ASSERT_TRUE(AwaitLog(main.ref, "up\n"));
  ContainerSpec missing = Shell("pod-a", "true", "lost");
  missing.target = "gone";
  ContainerSpec debug =
      Shell("pod-a",
            "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & "
            "tr '\\0' ' ' </proc/2/cmdline; echo; echo ready; while :; do sleep 1; done",
            "debug");
  debug.target = "main";
  if (runtime_->support().isolation != Isolation::kFull) {
    // Only root may enter another's processes: it has its own.
    EXPECT_TRUE(Start(debug).ok());
    return;
  }
  EXPECT_EQ(Start(missing).status().message(), "the target container \"gone\" does not run");
  ASSERT_TRUE(Start(debug).ok());
  // The first process is the target's own init, the second its command.
  ASSERT_TRUE(AwaitLog(debug.ref, "/bin/sh -c echo up; while :; do sleep 0.05; done \nready\n"));
  // Its end is all of its own, and nothing of the target's.
  runtime_->Signal(debug.ref, SIGTERM);
  runtime_->Signal(debug.ref, SIGKILL);
  EXPECT_EQ(Wait("debug").code, 137);
  EXPECT_FALSE(observer_->exits.contains("main"));
  ContainerSpec look = Shell("pod-a", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo", "look");
  look.target = "main";
  ASSERT_TRUE(Start(look).ok());
  EXPECT_EQ(Wait("look").code, 0);
  EXPECT_EQ(Log(look.ref).find("trap ''"), std::string::npos) << Log(look.ref);
  // With its target ends what looks at it.
  ContainerSpec last = Shell("pod-a", "echo up; while :; do sleep 1; done", "last");
  last.target = "main";
  ASSERT_TRUE(Start(last).ok());
  ASSERT_TRUE(AwaitLog(last.ref, "up\n"));
  runtime_->Signal(main.ref, SIGKILL);
  EXPECT_EQ(Wait("main").code, 137);
  EXPECT_EQ(Wait("last").code, 137);
}

TEST_F(ProcessRuntimeTest, SaysThatTheProgramOfAScriptsFirstLineIsMissing) {
  if (!isolated()) return;
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec code{.name = "code", .kind = VolumeSpec::Kind::kFiles};
  code.files = {{"run.sh", "#! /bin/sh\r\necho hi\r\n", 0755}};
  sandbox.volumes = {code};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a", "");
  spec.mounts = {{"code", "/code", "", true}};
  spec.command = {"/code/run.sh"};
  const auto started = Start(spec);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(
      started.status().message(),
      "exec: \"/code/run.sh\": its first line names a program that is not there: '/bin/sh\\r'");
}

TEST_F(ProcessRuntimeTest, SaysWhyACommandCannotStart) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "");
  spec.command = {"no-such-program"};
  auto started = Start(spec);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.status().code(), Code::kInvalid);
  EXPECT_EQ(
      started.status().message(),
      StrCat("there is no program no-such-program (executable file not found in $PATH; programs of "
             "this machine serve image ",
             spec.image, "; swell images pull ", spec.image, " gets its own)"));
  spec.command = {"slepe"};
  started = Start(spec);
  ASSERT_FALSE(started.ok());
  EXPECT_TRUE(started.status().message().starts_with(
      "there is no program slepe; did you mean sleep? (executable file not found in $PATH; "))
      << started.status().message();
  spec.ref.attempt = 1;
  spec.command.clear();
  spec.image = "registry.example.com/unknown:1";
  started = Start(spec);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.status().code(), Code::kNotFound);
  EXPECT_NE(started.status().message().find("images.yaml"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, MountsVolumesAndKeepsTheHostClean) {
  if (!isolated()) return;
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec code{.name = "code"};
  VolumeSpec files{.name = "config", .kind = VolumeSpec::Kind::kFiles};
  files.files = {{"a.txt", "alpha", 0644}, {"deep/b.txt", "beta", 0400}};
  VolumeSpec memory{.name = "memory", .kind = VolumeSpec::Kind::kMemory};
  VolumeSpec kept{.name = "kept", .kind = VolumeSpec::Kind::kDurable};
  kept.key = "default/claim";
  sandbox.volumes = {code, files, memory, kept};
  Create(sandbox);
  ContainerSpec first = Shell("pod-a",
                              "set -e; cat /etc/config/a.txt /etc/config/deep/b.txt; "
                              "echo one > /root/swell-test-code/x; echo two > /memory/y; "
                              "echo three > /kept/z; echo scribble > /swell-test-scribble; "
                              "! touch /etc/config/ro",
                              "first");
  first.mounts = {{"code", "/root/swell-test-code", "", false},
                  {"config", "/etc/config", "", true},
                  {"memory", "/memory", "", false},
                  {"kept", "/kept", "", false}};
  ContainerExit exit = Run(first);
  EXPECT_EQ(exit.code, 0) << Log(first.ref);
  EXPECT_NE(Log(first.ref).find("alphabeta"), std::string::npos);
  ContainerSpec second = Shell("pod-a", "cat /code/x /memory/y /kept/z; ls /swell-test-scribble");
  second.mounts = first.mounts;
  second.mounts[0].container_path = "/code";
  exit = Run(second);
  EXPECT_NE(exit.code, 0);
  EXPECT_NE(Log(second.ref).find("one\ntwo\nthree\n"), std::string::npos);
  EXPECT_FALSE(FileExists("/root/swell-test-code"));
  EXPECT_FALSE(FileExists("/swell-test-scribble"));
  EXPECT_TRUE(FileExists(data_dir_ + "/volumes/default/claim/z"));
}

// A pod may leave a file there that gives the rights of its owner to other users.
TEST_F(ProcessRuntimeTest, OtherUsersOfTheMachineReachNoFileOfAPod) {
  if (!isolated()) GTEST_SKIP() << runtime_->Info().limits;
  const std::string dirs[] = {data_dir_ + "/pods", data_dir_ + "/volumes",
                              data_dir_ + "/checkpoints", data_dir_ + "/ready"};
  auto mode = [](const std::string& dir) -> unsigned {
    struct stat info {};
    return ::stat(dir.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  };
  for (const std::string& dir : dirs) {
    EXPECT_EQ(mode(dir), 0700U) << dir;
    ::chmod(dir.c_str(), 0755);
  }
  runtime_.reset();
  Open();
  for (const std::string& dir : dirs) EXPECT_EQ(mode(dir), 0700U) << dir << ", made earlier";
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec scratch{.name = "v", .kind = VolumeSpec::Kind::kEmptyDir};
  sandbox.volumes = {scratch};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a", "echo x > /v/f && cat /v/f");
  spec.mounts = {{"v", "/v", "", false}};
  if (::geteuid() == 0) spec.run_as_user = 1500;
  Run(spec);
  EXPECT_EQ(Log(spec.ref), "x\n");
}

// One container plants a link, the next one asks for what is behind it.
TEST_F(ProcessRuntimeTest, SubPathsDoNotLeaveTheirVolume) {
  if (!isolated()) return;
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "shared"}};
  Create(sandbox);
  ContainerSpec planter = Shell("pod-a",
                                "ln -s / /v/root; ln -s /.swell-old/etc /v/old; "
                                "ln -s ../../../../../../../../etc /v/up; mkdir /v/real; "
                                "ln -s real /v/fine",
                                "planter");
  planter.mounts = {{"shared", "/v", "", false}};
  ASSERT_EQ(Run(planter).code, 0) << Log(planter.ref);
  int number = 0;
  for (const char* path : {"root", "old", "up", "up/swell-test-made", "old/swell-test-made"}) {
    ContainerSpec thief = Shell("pod-a", "ls /stolen", StrCat("thief-", number++));
    thief.mounts = {{"shared", "/stolen", path, false}};
    const Status started = Start(thief).status();
    ASSERT_FALSE(started.ok()) << path;
    EXPECT_NE(started.message().find("leaves the volume"), std::string::npos)
        << path << ": " << started.message();
  }
  EXPECT_FALSE(FileExists("/etc/swell-test-made"));
  ContainerSpec inner = Shell("pod-a", "true", "inner");
  inner.mounts = {{"shared", "/v", "", false}, {"shared", "/v/old/swell-test-made", "real", false}};
  EXPECT_FALSE(Start(inner).ok());
  EXPECT_FALSE(FileExists("/etc/swell-test-made"));
  ContainerSpec honest = Shell("pod-a", "echo here > /mine/x", "honest");
  honest.mounts = {{"shared", "/mine", "fine", false}};
  EXPECT_EQ(Run(honest).code, 0) << Log(honest.ref);
}

TEST_F(ProcessRuntimeTest, FilesOfARunningPodAreReplacedWhole) {
  if (!isolated()) return;
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec files{.name = "config", .kind = VolumeSpec::Kind::kFiles};
  files.files = {{"a", "old", 0644}, {"gone", "x", 0644}};
  sandbox.volumes = {files};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a",
                             "echo up; until [ \"$(cat /config/a)\" = new ]; do "
                             "sleep 0.02; done; ls /config");
  spec.mounts = {{"config", "/config", "", true}};
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  files.files = {{"a", "new", 0644}};
  runtime_->UpdateVolume("pod-a", files);
  EXPECT_EQ(Wait().code, 0);
  EXPECT_EQ(Log(spec.ref), "up\na\n");
}

// A pod that can write among the files which the agent keeps for it.
TEST_F(ProcessRuntimeTest, LinksAmongAPodsFilesLeadTheAgentNowhere) {
  if (!isolated()) return;
  ASSERT_TRUE(MakeDirs(data_dir_ + "/victim/deep").ok());
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec files{.name = "config", .kind = VolumeSpec::Kind::kFiles};
  files.files = {{"a", "old", 0644}};
  sandbox.volumes = {files};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a",
                             "cd /config; rm ..data; ln -s ../../../../victim ..data; "
                             "for n in 1 2 3; do ln -s ../../../../victim ..data-$n; done");
  spec.mounts = {{"config", "/config", "", false}};
  ASSERT_EQ(Run(spec).code, 0) << Log(spec.ref);
  files.files = {{"a", "new", 0644}};
  runtime_->UpdateVolume("pod-a", files);
  ContainerSpec reader = Shell("pod-a", "cat /config/a", "reader");
  reader.mounts = {{"config", "/config", "", true}};
  ASSERT_EQ(Run(reader).code, 0) << Log(reader.ref);
  EXPECT_EQ(Log(reader.ref), "new");
  EXPECT_TRUE(FileExists(data_dir_ + "/victim/deep"));
  EXPECT_FALSE(FileExists(data_dir_ + "/victim/a"));
}

// What a pod puts in a report's place neither shows it files of others nor keeps the agent waiting.
TEST_F(ProcessRuntimeTest, ReportsAreFilesOfThePodItself) {
  if (!isolated()) return;
  ASSERT_TRUE(WriteFileAtomically(data_dir_ + "/secret", "{\"step\": 1}").ok());
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell(
      "pod-a", StrCat("cd $(dirname $SWELL_REPORT_FILE); ln -s /etc/hostname report.json; "
                      "rm report.json; ln -s ",
                      data_dir_,
                      "/secret report.json; rm report.json; mkfifo report.json; rm report.json; "
                      "echo '{\"step\": 2}' > x; mv x report.json"));
  ASSERT_EQ(Run(spec).code, 0) << Log(spec.ref);
  ASSERT_TRUE(Until([&] {
    return !observer_->reports.empty() && observer_->reports.back() == "{\"step\": 2}\n";
  }));
  for (const std::string& report : observer_->reports) EXPECT_EQ(report, "{\"step\": 2}\n");
}

TEST_F(ProcessRuntimeTest, HostPathsAreChecked) {
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec missing{.name = "missing", .kind = VolumeSpec::Kind::kHostPath};
  missing.host_path = "/no/such/directory";
  missing.host_path_type = "Directory";
  sandbox.volumes = {missing};
  std::optional<Result<node::SandboxInfo>> made;
  runtime_->CreateSandbox(sandbox, observer_,
                          [&](Result<node::SandboxInfo> r) { made = std::move(r); });
  ASSERT_TRUE(Until([&] { return made.has_value(); }));
  ASSERT_FALSE(made->ok());
  EXPECT_NE(made->status().message().find("host path /no/such/directory does not exist"),
            std::string::npos)
      << made->status().ToString();
}

TEST_F(ProcessRuntimeTest, PodsResolveAndReachEachOther) {
  if (!isolated()) return;
  std::string server_ip = Create(Sandbox("server"));
  SandboxSpec client = Sandbox("client");
  Create(client);
  ContainerSpec serve = Shell("server", "", "serve");
  serve.command = {"/usr/bin/python3", "-c",
                   "import socket; s = socket.create_server(('0.0.0.0', 23471)); "
                   "print('up', flush=True); c, _ = s.accept(); c.sendall(b'hi'); c.close()"};
  ASSERT_TRUE(Start(serve).ok());
  ASSERT_TRUE(AwaitLog(serve.ref, "up\n")) << Log(serve.ref);
  ContainerSpec ask = Shell("client", "", "ask");
  // The name is not known yet when it starts: hosts files change under running pods.
  ask.command = {"/usr/bin/python3", "-c",
                 "import socket, time\n"
                 "print('up', flush=True)\n"
                 "for _ in range(1000):\n"
                 "  try:\n"
                 "    c = socket.create_connection(('resnet-master-0', 23471), 5); break\n"
                 "  except socket.gaierror: time.sleep(0.02)\n"
                 "print(c.recv(10).decode(), socket.gethostname())"};
  ASSERT_TRUE(Start(ask).ok());
  ASSERT_TRUE(AwaitLog(ask.ref, "up\n")) << Log(ask.ref);
  runtime_->UpdateHosts("client", {{server_ip, {"resnet-master-0", "resnet-master-0.default"}}});
  EXPECT_EQ(Wait("ask").code, 0) << Log(ask.ref);
  EXPECT_EQ(Log(ask.ref), "up\nhi client\n");
  EXPECT_EQ(Wait("serve").code, 0);
}

TEST_F(ProcessRuntimeTest, ProbesAndCommandsRunForReal) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "");
  spec.command = {"/usr/bin/python3", "-c",
                  "import http.server as h\n"
                  "class H(h.BaseHTTPRequestHandler):\n"
                  "  def do_GET(self):\n"
                  "    self.send_response(200 if self.path == '/ok' else 503)\n"
                  "    self.end_headers()\n"
                  "s = h.HTTPServer(('0.0.0.0', 23472), H)\n"
                  "print('up', flush=True)\n"
                  "s.serve_forever()"};
  spec.env = {{"COLOUR", "blue"}};
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n")) << Log(spec.ref);
  auto probe = [&](bool http, uint16_t port, const std::string& path) {
    std::optional<node::ProbeResult> result;
    runtime_->Probe(
        "pod-a",
        {.protocol = http ? node::ProbeSpec::Protocol::kHttp : node::ProbeSpec::Protocol::kTcp,
         .host = "",
         .port = port,
         .path = path,
         .headers = {},
         .service = "",
         .timeout = kLimit},
        [&](const node::ProbeResult& r) { result = r; });
    EXPECT_TRUE(Until([&] { return result.has_value(); }));
    return *result;
  };
  EXPECT_TRUE(probe(false, 23472, "/").ok);
  EXPECT_TRUE(probe(true, 23472, "/ok").ok);
  EXPECT_EQ(probe(true, 23472, "/no").message, "HTTP probe failed with statuscode: 503");
  EXPECT_FALSE(probe(false, 23473, "/").ok);
  auto exec = [&](std::vector<std::string> argv, Duration timeout) {
    std::optional<Result<node::ExecResult>> result;
    runtime_->Exec(spec.ref, {.argv = std::move(argv), .timeout = timeout},
                   [&](Result<node::ExecResult> r) { result = std::move(r); });
    EXPECT_TRUE(Until([&] { return result.has_value(); }));
    EXPECT_TRUE(result->ok()) << result->status().ToString();
    return result->ok() ? **result : node::ExecResult();
  };
  node::ExecResult result = exec({"/bin/sh", "-c", "echo $COLOUR; exit 3"}, kLimit);
  EXPECT_EQ(result.output, "blue\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(exec({"sleep", "100"}, std::chrono::milliseconds(100)).timed_out);
  // What a command prints without end keeps nobody waiting, and neither does what it leaves behind.
  EXPECT_TRUE(exec({"yes"}, std::chrono::milliseconds(100)).timed_out);
  EXPECT_EQ(exec({"/bin/sh", "-c", "yes & exit 5"}, kLimit).code, 5);
}

TEST_F(ProcessRuntimeTest, NoticeReportCheckpointAndTerminationMessage) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec =
      Shell("pod-a",
            "trap 'cat $SWELL_NOTICE_FILE; echo bye > $SWELL_TERMINATION_LOG; exit 143' TERM; "
            "echo 17 > $SWELL_CHECKPOINT_DIR/step; "
            "echo '{\"step\": 17}' > $SWELL_REPORT_FILE.new; "
            "mv $SWELL_REPORT_FILE.new $SWELL_REPORT_FILE; echo up; "
            "while :; do sleep 0.02; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(Until([&] { return !observer_->reports.empty(); }));
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  EXPECT_EQ(observer_->reports.back(), "{\"step\": 17}\n");
  auto step = ReadFile(data_dir_ + "/checkpoints/default/job/step");
  struct stat info {};
  ASSERT_EQ(::stat((data_dir_ + "/checkpoints/default").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0711U) << "tells users of this machine of others";
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(*step, "17\n");
  runtime_->WriteNotice("pod-a", "{\"by\":\"someone\"}");
  runtime_->Signal(spec.ref, SIGTERM);
  ContainerExit exit = Wait();
  EXPECT_EQ(exit.code, 143);
  EXPECT_EQ(exit.termination_message, "bye\n");
  EXPECT_NE(Log(spec.ref).find("{\"by\":\"someone\"}"), std::string::npos);
}

// On a busy machine the command starts late, and its root may stand before it has joined its
// groups.
class BusyProcessors {
 public:
  BusyProcessors() {
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
      threads_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyProcessors() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

TEST_F(ProcessRuntimeTest, MemoryLimitsAreEnforcedHoweverBusyTheMachine) {
  if (runtime_->support().cgroups.memory_dir.empty()) return;
  const BusyProcessors busy;
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "");
  spec.command = {"/usr/bin/python3", "-c", "x = bytearray(400 << 20); print(len(x))"};
  spec.memory_limit_bytes = 64 << 20;
  ContainerExit exit = Run(spec);
  EXPECT_EQ(exit.code, 137);
  EXPECT_TRUE(exit.oom_killed);
}

TEST_F(ProcessRuntimeTest, GroupsOfKnownPodsStayThoughNobodyIsInThem) {
  CgroupSupport groups;
  groups.memory_dir = groups.cpu_dir = data_dir_ + "/groups";
  for (const char* name : {"pod-a.main.0", "pod-b.main.0", "pod-c/pod-c.main.0"}) {
    ASSERT_TRUE(MakeDirs(StrCat(groups.memory_dir, "/", name)).ok());
  }
  CleanCgroups(groups, [](const std::string& uid) { return uid == "pod-a"; });
  auto left = ListDir(groups.memory_dir);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, std::vector<std::string>{"pod-a.main.0"});
}

TEST_F(ProcessRuntimeTest, AShimJoinsItsGroupBeforeItHasAContainer) {
  const std::string group = data_dir_ + "/shims";
  ASSERT_TRUE(MakeDirs(group).ok());
  ASSERT_TRUE(WriteFileAtomically(group + "/cgroup.procs", "").ok());
  ShimLauncher launcher(core_, {SWELL_TEST_SHIM}, 1, group);
  launcher.Refill();
  std::optional<Result<pid_t>> answer;
  ASSERT_TRUE(
      launcher.Launch("pod-a", data_dir_ + "/none", [&](auto told) { answer = told; }).ok());
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  EXPECT_FALSE(answer->ok()) << "there is no such container";
  EXPECT_EQ(ReadFile(group + "/cgroup.procs").value(), "0");
  launcher.EndReady();
}

TEST_F(ProcessRuntimeTest, APodOutlivesTheRuntimeAndIsAdopted) {
  std::string ip = Create(Sandbox("pod-a"));
  Create(Sandbox("pod-b"));
  ContainerSpec stays = Shell("pod-a",
                              "trap 'echo bye; exit 9' TERM; echo up; "
                              "while :; do sleep 0.02; done");
  ContainerSpec ends = Shell("pod-b",
                             "until [ -e $SWELL_CHECKPOINT_DIR/go ]; do sleep 0.02; done; "
                             "exit 4",
                             "brief");
  ASSERT_TRUE(Start(stays).ok());
  ASSERT_TRUE(Start(ends).ok());
  ASSERT_TRUE(AwaitLog(stays.ref, "up\n"));
  runtime_.reset();
  EXPECT_TRUE(observer_->exits.empty());
  // One of them ends while nobody looks; its exit file says so.
  {
    std::string dir = PodDir("pod-b") + "/containers/brief/0";
    auto files = FileWatch::Create(core_);
    ASSERT_TRUE(files.ok());
    auto watch = (*files)->Add(dir, [](const std::string&) {});
    ASSERT_TRUE(watch.ok());
    ASSERT_TRUE(ReplaceFile(data_dir_ + "/checkpoints/default/job/go", "").ok());
    ASSERT_TRUE(Until([&] { return FileExists(dir + "/exit.json"); }));
    // The other requests something of its job.
    ASSERT_TRUE(ReplaceFile(PodDir("pod-a") + "/run/report/request.json", "{}").ok());
  }
  Open();
  std::optional<Result<std::vector<node::FoundPod>>> found;
  runtime_->List("node-0", [&](Result<std::vector<node::FoundPod>> r) { found = std::move(r); });
  ASSERT_TRUE(Until([&] { return found.has_value(); }));
  ASSERT_EQ((*found)->size(), 2u);
  const node::FoundPod& a = (**found)[0];
  const node::FoundPod& b = (**found)[1];
  EXPECT_EQ(a.pod_uid, "pod-a");
  EXPECT_EQ(a.sandbox.ip, ip);
  ASSERT_EQ(a.containers.size(), 1u);
  EXPECT_FALSE(a.containers[0].exit.has_value());
  ASSERT_EQ(b.containers.size(), 1u);
  if (b.containers[0].exit) {
    EXPECT_EQ(b.containers[0].exit->code, 4);
  }
  runtime_->Adopt(a, observer_);
  ASSERT_TRUE(Until([&] { return !observer_->reports.empty(); }));
  EXPECT_EQ(observer_->reports.back(), "{}");
  runtime_->Signal(stays.ref, SIGTERM);
  EXPECT_EQ(Wait().code, 9);
  EXPECT_NE(Log(stays.ref).find("bye\n"), std::string::npos);
}

TEST_F(ProcessRuntimeTest, AKilledShimTakesItsContainerAlong) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "echo up; while :; do sleep 1; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  auto text = ReadFile(PodDir("pod-a") + "/containers/main/0/state.json");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(RunningPods(data_dir_), std::vector<std::string>{"default/pod-a"});
  auto state = ShimState::FromJson(*json::Parse(*text));
  ASSERT_TRUE(state.ok());
  ::kill(state->shim_pid, SIGKILL);
  ContainerExit exit = Wait();
  EXPECT_EQ(exit.code, 137);
  EXPECT_EQ(exit.reason, "ContainerStatusUnknown");
  EXPECT_TRUE(RunningPods(data_dir_).empty());
}

TEST_F(ProcessRuntimeTest, RemoveKillsAndLeavesNothing) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "trap '' TERM; echo up; while :; do sleep 1; done");
  ASSERT_TRUE(Start(spec).ok());
  std::optional<Status> removed;
  runtime_->Remove("pod-a", [&](const Status& status) { removed = status; });
  ASSERT_TRUE(Until([&] { return removed.has_value(); }));
  EXPECT_TRUE(removed->ok()) << removed->ToString();
  EXPECT_FALSE(FileExists(PodDir("pod-a")));
}

TEST_F(ProcessRuntimeTest, StartIsFast) {
  Create(Sandbox("pod-a"));
  std::vector<int64_t> start_us, exit_us;
  for (int i = 0; i < 21; ++i) {
    observer_->exits.clear();
    ContainerSpec spec = Shell("pod-a", "read x < /proc/uptime", "main", i);
    int64_t before = RealClock().Steady().ns;
    auto started = Start(spec);
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    start_us.push_back((RealClock().Steady().ns - before) / 1000);
    ContainerExit exit = Wait();
    exit_us.push_back((RealClock().Now() - exit.finished).count() / 1000);
  }
  std::sort(start_us.begin(), start_us.end());
  std::sort(exit_us.begin(), exit_us.end());
  std::printf("isolation %s: start p50 %lld us, max %lld us; exit noticed p50 %lld us\n",
              std::string(IsolationName(runtime_->support().isolation)).c_str(),
              static_cast<long long>(start_us[10]), static_cast<long long>(start_us[20]),
              static_cast<long long>(exit_us[10]));
  EXPECT_LT(start_us[10], 10'000'000);
}

TEST_F(ProcessRuntimeTest, RunsNobodyAsRootWhoIsNotToBe) {
  if (::geteuid() != 0) GTEST_SKIP() << "nobody is root here";
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "id -u");
  spec.run_as_non_root = true;
  const Status refused = Start(spec).status();
  EXPECT_EQ(refused.code(), Code::kForbidden);
  EXPECT_EQ(refused.message().find("container has runAsNonRoot and image will run as root"), 0u)
      << refused.message();
  spec.run_as_user = 0;
  EXPECT_EQ(Start(spec).status().message().find("container's runAsUser breaks non-root policy"),
            0u);
}

TEST_F(ProcessRuntimeTest, RunsAsTheUserAndGroupsThatAreAskedFor) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.fs_group = 1703;
  sandbox.volumes = {{.name = "scratch"}};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a",
                             "id -u; id -g; id -G; echo x >/scratch/f; stat -c %u:%g /scratch/f; "
                             "stat -c %g /scratch; cat /etc/shadow >/dev/null || echo kept");
  spec.run_as_user = 1701;
  spec.run_as_group = 1702;
  spec.supplemental_groups = {1704};
  spec.mounts = {{"scratch", "/scratch", "", false}};
  if (::geteuid() != 0) {
    const std::string why = Start(spec).status().message();
    EXPECT_NE(why.find("securityContext.runAsUser: 1701: this node was not started by root"),
              std::string::npos)
        << why;
    return;
  }
  EXPECT_EQ(Run(spec).code, 0);
  const std::string log = Log(spec.ref);
  const std::vector<std::string_view> lines = Split(log, '\n');
  ASSERT_GE(lines.size(), 6u) << log;
  EXPECT_EQ(lines[0], "1701");
  EXPECT_EQ(lines[1], "1702");
  std::vector<std::string_view> groups = Split(lines[2], ' ');
  std::sort(groups.begin(), groups.end());
  EXPECT_EQ(groups, (std::vector<std::string_view>{"1702", "1703", "1704"}));
  EXPECT_EQ(lines[3], "1701:1703");
  EXPECT_EQ(lines[4], "1703");
  EXPECT_NE(log.find("kept\n"), std::string::npos) << log;
}

TEST_F(ProcessRuntimeTest, TheNextAgentMeasuresVolumesOnDiskToo) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes.resize(2);
  sandbox.volumes[0].name = "disk";
  sandbox.volumes[0].kind = VolumeSpec::Kind::kEmptyDir;
  sandbox.volumes[1].name = "memory";
  sandbox.volumes[1].kind = VolumeSpec::Kind::kMemory;
  Create(sandbox);
  const std::string file = PodDir("pod-a") + "/volumes/disk/file";
  ASSERT_TRUE(WriteFileAtomically(file, std::string(100'000, 'x')).ok());
  runtime_.reset();
  Open();
  std::optional<node::DiskUse> use;
  runtime_->MeasureDisk("pod-a", [&use](node::DiskUse measured) { use = std::move(measured); });
  ASSERT_TRUE(Until([&] { return use.has_value(); }));
  ASSERT_EQ(use->volumes.size(), 1u);
  EXPECT_GE(use->volumes["disk"], 100'000);
}

TEST_F(PlainProcessTest, RunsAsAnotherUserWhereItMay) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "id -u");
  spec.run_as_user = 1701;
  if (::geteuid() != 0) {
    EXPECT_FALSE(Start(spec).ok());
    spec.run_as_user = ::geteuid();
  }
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(Log(spec.ref), StrCat(*spec.run_as_user, "\n"));
}

TEST_F(PlainProcessTest, RunsWithoutAnyIsolation) {
  ASSERT_FALSE(isolated());
  std::string ip = Create(Sandbox("pod-a"));
  EXPECT_TRUE(ip.starts_with("127."));
  ContainerSpec spec = Shell("pod-a",
                             "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & "
                             "echo up; while :; do sleep 1; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_->Signal(spec.ref, SIGKILL);
  EXPECT_EQ(Wait().code, 137);
  EXPECT_NE(runtime_->Info().limits.find("namespaces"), std::string::npos);
  EXPECT_FALSE(runtime_->Info().resolves_names);
  ContainerSpec mounts = Shell("pod-a", "true", "second");
  mounts.mounts = {{"code", "/code", "", false}};
  EXPECT_FALSE(Start(mounts).ok());
}

TEST_F(PlainProcessTest, ExitCodesAndAdoptionWorkWithoutIsolation) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "trap 'exit 9' TERM; echo up; while :; do sleep 0.02; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  runtime_.reset();
  Open();
  node::FoundPod found{"pod-a", "default", "pod-a", {}, {}};
  runtime_->Adopt(found, observer_);
  runtime_->Signal(spec.ref, SIGTERM);
  EXPECT_EQ(Wait().code, 9);
}

}  // namespace
}  // namespace swell::process
