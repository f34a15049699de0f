// Live streams of real processes: commands in containers, attaching, terminals, ports of pods.
// Which logs are kept.
#include <algorithm>
#include <csignal>

#include "kube/process/process_testing.h"

namespace swell::process {
namespace {

using node::StdioSession;
using node::StdioSpec;

// A command's (or attached container's) outcome, as it comes.
struct Talk {
  std::shared_ptr<StdioSession> session;
  std::string out, err;
  int open = 0;
  std::optional<Result<int>> code;

  void Begin(std::shared_ptr<StdioSession> opened) {
    session = std::move(opened);
    Read(session->io(), out);
    if (session->error()) Read(session->error(), err);
    session->OnExit([this](Result<int> result) { code = std::move(result); });
  }
  bool over() const { return code && open == 0; }
  void Say(const std::string& text) { session->io()->Write(api::MakeChunk(text)); }

 private:
  void Read(const api::DuplexPtr& stream, std::string& text) {
    ++open;
    stream->Start(
        {[&text](const api::Chunk& bytes) { text += *bytes; }, [this](const Status&) { --open; }});
  }
};

std::string Trimmed(const std::string& text) { return std::string(Trim(text)); }

template <class Base>
class StdioTest : public Base {
 protected:
  Status Open(Talk& talk, const ContainerSpec& container, const StdioSpec& spec) {
    std::optional<Result<std::shared_ptr<StdioSession>>> opened;
    this->runtime_->OpenStdio(container.ref, spec, [&](auto result) { opened = result; });
    EXPECT_TRUE(this->Until([&] { return opened.has_value(); }));
    if (opened->ok()) talk.Begin(**opened);
    return opened->status();
  }
  int Exec(const ContainerSpec& container, Talk& talk, std::vector<std::string> argv) {
    Status status = Open(talk, container, {.argv = std::move(argv), .output = true, .error = true});
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(this->Until([&] { return talk.over(); }));
    return talk.code->ok() ? **talk.code : -1;
  }
  ContainerSpec Idle(const std::string& uid = "pod-a") {
    this->Create(this->Sandbox(uid));
    ContainerSpec spec = this->Shell(uid, "trap 'exit 0' TERM; while :; do sleep 0.05; done");
    spec.env = {{"COLOUR", "blue"}};
    EXPECT_TRUE(this->Start(spec).ok());
    return spec;
  }
};

using ProcessStdioTest = StdioTest<ProcessRuntimeTest>;
using PlainStdioTest = StdioTest<PlainProcessTest>;

TEST_F(ProcessStdioTest, ACommandHasTheContainersWorldAndItsOwnStreams) {
  ContainerSpec container = Idle();
  Talk talk;
  EXPECT_EQ(Exec(container, talk, {"/bin/sh", "-c", "echo $COLOUR; hostname; echo no >&2; exit 3"}),
            3);
  EXPECT_EQ(talk.out, isolated() ? "blue\npod-a\n" : talk.out);
  EXPECT_EQ(talk.err, "no\n");
}

TEST_F(ProcessStdioTest, WhatCannotStartHasAShellsExitCodeAndWords) {
  ContainerSpec container = Idle();
  Talk missing, forbidden, path;
  EXPECT_EQ(Exec(container, missing, {"nosuch"}), 127);
  EXPECT_EQ(missing.err, "exec: \"nosuch\": executable file not found in $PATH\n");
  EXPECT_EQ(Exec(container, path, {"/no/such"}), 127);
  EXPECT_EQ(path.err, "exec: \"/no/such\": no such file or directory\n");
  EXPECT_EQ(Exec(container, forbidden, {"/etc/passwd"}), 126);
  EXPECT_EQ(forbidden.err, "exec: \"/etc/passwd\": permission denied\n");
  Talk killed;
  EXPECT_EQ(Exec(container, killed, {"/bin/sh", "-c", "kill -9 $$"}), 137);
}

TEST_F(ProcessStdioTest, AContainerRunsTwoHundredCommandsAtOnce) {
  ContainerSpec container = Idle();
  const StdioSpec sleep{.argv = {"sleep", "1000"}, .output = true};
  std::vector<std::unique_ptr<Talk>> talks;
  for (int i = 0; i < 200; ++i) {
    talks.push_back(std::make_unique<Talk>());
    ASSERT_TRUE(Open(*talks.back(), container, sleep).ok()) << i;
  }
  Talk more, cut;
  EXPECT_EQ(Open(more, container, sleep).code(), Code::kTooManyRequests);
  EXPECT_EQ(Open(cut, container, {.argv = {std::string("a\0b", 3)}, .output = true}).message(),
            "command[0]: has a zero byte");
  for (const auto& talk : talks) talk->session.reset();
  // They end a moment later, each by itself.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!Open(more, container, sleep).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
  }
}

TEST_F(ProcessStdioTest, InputArrivesWholeAndEnds) {
  ContainerSpec container = Idle();
  Talk talk;
  ASSERT_TRUE(
      Open(talk, container, {.argv = {"cat"}, .input = true, .output = true, .error = true}).ok());
  std::string sent;
  std::function<void()> feed = [&] {
    while (sent.size() < (8 << 20) && talk.session->io()->queued_bytes() < api::kDuplexHighWater) {
      std::string piece(50'000, static_cast<char>('a' + sent.size() % 23));
      sent += piece;
      talk.Say(piece);
    }
    if (sent.size() >= (8 << 20)) return talk.session->io()->CloseWrite();
    talk.session->io()->OnDrained(feed);
  };
  feed();
  ASSERT_TRUE(Until([&] { return talk.over(); }));
  EXPECT_TRUE(talk.out == sent) << talk.out.size() << " of " << sent.size();
  EXPECT_EQ(**talk.code, 0);
}

TEST_F(ProcessStdioTest, AReaderThatWaitsHoldsTheCommandBack) {
  ContainerSpec container = Idle();
  Talk talk;
  ASSERT_TRUE(
      Open(talk, container, {.argv = {"head", "-c", "20000000", "/dev/zero"}, .output = true})
          .ok());
  talk.session->io()->SetReading(false);
  // Another command has come and gone: what can be under way of the first one, is.
  Talk other;
  EXPECT_EQ(Exec(container, other, {"true"}), 0);
  EXPECT_FALSE(talk.code);
  EXPECT_LT(talk.out.size(), size_t{2} << 20);
  talk.session->io()->SetReading(true);
  ASSERT_TRUE(Until([&] { return talk.over(); }));
  EXPECT_EQ(talk.out.size(), 20'000'000u);
}

TEST_F(ProcessStdioTest, ATerminalIsTheContainersAndHasASize) {
  ContainerSpec container = Idle();
  Talk talk;
  ASSERT_TRUE(Open(talk, container,
                   {.argv = {"/bin/sh", "-c", "tty; read x; stty size; exit 4"},
                    .input = true,
                    .output = true,
                    .tty = true})
                  .ok());
  EXPECT_FALSE(talk.session->error());
  ASSERT_TRUE(Until([&] { return talk.out.find("/dev/pts/") != std::string::npos; }));
  talk.session->Resize({120, 40});
  talk.Say("go\n");
  ASSERT_TRUE(Until([&] { return talk.over(); }));
  EXPECT_NE(talk.out.find("40 120"), std::string::npos) << talk.out;
  EXPECT_EQ(**talk.code, 4);
}

TEST_F(ProcessStdioTest, WhatACommandLeavesBehindDoesNotKeepItOpen) {
  ContainerSpec container = Idle();
  Talk talk;
  EXPECT_EQ(Exec(container, talk, {"/bin/sh", "-c", "sleep 1000 & echo done"}), 0);
  EXPECT_EQ(talk.out, "done\n");
}

TEST_F(ProcessStdioTest, HangingUpEndsTheCommand) {
  ContainerSpec container = Idle();
  Talk talk;
  ASSERT_TRUE(
      Open(talk, container, {.argv = {"/bin/sh", "-c", "echo $$; exec sleep 1000"}, .output = true})
          .ok());
  ASSERT_TRUE(Until([&] { return !talk.out.empty(); }));
  talk.session.reset();
  // Asked from inside, again and again: the sleeping process goes away.
  int found = 0;
  for (int i = 0; i < 200 && found != 1; ++i) {
    Talk look;
    found =
        Exec(container, look, {"grep", "-qs", "sleep", "/proc/" + Trimmed(talk.out) + "/cmdline"});
    if (found == 2) found = 1;  // the file is gone
  }
  EXPECT_EQ(found, 1);
}

TEST_F(ProcessStdioTest, AttachingJoinsTheContainersStreams) {
  Create(Sandbox("pod-a"));
  ContainerSpec container =
      Shell("pod-a", "while read line; do echo got $line; echo e $line >&2; done; exit 5");
  container.open_stdin = true;
  container.stdin_once = true;
  ASSERT_TRUE(Start(container).ok());
  Talk first, second;
  ASSERT_TRUE(Open(second, container, {.output = true}).ok());
  ASSERT_TRUE(Open(first, container, {.input = true, .output = true, .error = true}).ok());
  first.Say("one\n");
  ASSERT_TRUE(Until([&] { return second.out == "got one\n" && first.err == "e one\n"; }));
  EXPECT_EQ(first.out, "got one\n");
  first.session->io()->CloseWrite();  // the first one's end is the container's
  EXPECT_EQ(Wait().code, 5);
  ASSERT_TRUE(Until([&] { return first.over() && second.over(); }));
  EXPECT_NE(Log(container.ref).find("got one\n"), std::string::npos);
}

TEST_F(ProcessStdioTest, AnOpenInputOutlivesThoseWhoAttach) {
  Create(Sandbox("pod-a"));
  ContainerSpec container = Shell("pod-a", "while read line; do echo got $line; done");
  container.open_stdin = true;
  ASSERT_TRUE(Start(container).ok());
  for (const std::string word : {"one", "two"}) {
    Talk talk;
    ASSERT_TRUE(Open(talk, container, {.input = true, .output = true}).ok());
    talk.Say(word + "\n");
    ASSERT_TRUE(Until([&] { return talk.out == StrCat("got ", word, "\n"); })) << talk.out;
  }
  EXPECT_FALSE(observer_->exits.contains("main"));
}

TEST_F(ProcessStdioTest, AContainersTerminalSurvivesTheRuntime) {
  Create(Sandbox("pod-a"));
  ContainerSpec container =
      Shell("pod-a", "tty >/dev/null && echo up; while read x; do stty size; done");
  container.open_stdin = true;
  container.tty = true;
  ASSERT_TRUE(Start(container).ok());
  ASSERT_TRUE(AwaitLog(container.ref, "up\r\n"));
  runtime_.reset();
  ProcessRuntimeTest::Open();
  Talk talk;
  ASSERT_TRUE(Open(talk, container, {.input = true, .output = true}).ok());
  talk.session->Resize({99, 33});
  talk.Say("\n");
  ASSERT_TRUE(Until([&] { return talk.out.find("33 99") != std::string::npos; })) << talk.out;
}

TEST_F(ProcessStdioTest, PortsOfAPodAreReachedFromItsOwnLoopback) {
  Create(Sandbox("pod-a"));
  ContainerSpec container = Shell("pod-a", "");
  container.command = {"/usr/bin/python3", "-c",
                       "import socket\n"
                       "s = socket.create_server(('127.0.0.1', 23475))\n"
                       "print('up', flush=True)\n"
                       "while True:\n"
                       "  c, _ = s.accept()\n"
                       "  text = b''\n"
                       "  while True:\n"
                       "    got = c.recv(65536)\n"
                       "    if not got: break\n"
                       "    text += got\n"
                       "  c.sendall(text.upper()); c.close()\n"};
  ASSERT_TRUE(Start(container).ok());
  ASSERT_TRUE(AwaitLog(container.ref, "up\n"));
  auto dial = [&](uint16_t port) {
    std::optional<Result<api::DuplexPtr>> dialed;
    runtime_->Dial("pod-a", port, [&](auto result) { dialed = result; });
    EXPECT_TRUE(Until([&] { return dialed.has_value(); }));
    return *dialed;
  };
  auto stream = dial(23475);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  std::string answer;
  bool ended = false;
  (*stream)->Start(
      {[&](const api::Chunk& bytes) { answer += *bytes; }, [&](const Status&) { ended = true; }});
  const std::string text(3'000'000, 'x');
  (*stream)->Write(api::MakeChunk(text));
  (*stream)->CloseWrite();
  ASSERT_TRUE(Until([&] { return ended; }));
  EXPECT_EQ(answer, std::string(3'000'000, 'X'));
  auto refused = dial(23476);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().message().starts_with(
      "failed to connect to localhost:23476 inside the pod: dial tcp 127.0.0.1:23476: connect: "
      "connection refused"))
      << refused.status().message();
}

TEST_F(ProcessStdioTest, AContainerThatDoesNotRunIsSaidSo) {
  Create(Sandbox("pod-a"));
  ContainerSpec container = Shell("pod-a", "true");
  Run(container);
  Talk talk;
  EXPECT_EQ(Open(talk, container, {.argv = {"ls"}, .output = true}).message(),
            "container \"main\" is not running");
}

// A container that fails again and again must not fill the disk.
TEST_F(ProcessStdioTest, LogsOfTheNewestFiveStartsAreKept) {
  Create(Sandbox("pod-a"));
  for (int start = 0; start < 7; ++start) {
    observer_->exits.clear();
    Run(Shell("pod-a", StrCat("echo ", start), "main", start));
  }
  auto logs = ListDir(PodDir("pod-a") + "/logs/main");
  ASSERT_TRUE(logs.ok());
  std::sort(logs->begin(), logs->end());
  EXPECT_EQ(*logs, (std::vector<std::string>{"2.log", "3.log", "4.log", "5.log", "6.log"}));
  EXPECT_EQ(Log({"pod-a", "main", 2}), "2\n");
  const auto starts = ListDir(PodDir("pod-a") + "/containers/main");
  EXPECT_EQ(starts.ok() ? starts->size() : 0u, 5u);
}

TEST_F(PlainStdioTest, EverythingWorksWithoutIsolation) {
  Create(Sandbox("pod-a"));
  ContainerSpec container = Shell("pod-a", "while read line; do echo got $line; done");
  container.open_stdin = true;
  ASSERT_TRUE(Start(container).ok());
  Talk attached, command, terminal;
  ASSERT_TRUE(Open(attached, container, {.input = true, .output = true}).ok());
  attached.Say("x\n");
  ASSERT_TRUE(Until([&] { return attached.out == "got x\n"; }));
  EXPECT_EQ(Exec(container, command, {"/bin/sh", "-c", "echo hi; exit 2"}), 2);
  EXPECT_EQ(command.out, "hi\n");
  ASSERT_TRUE(Open(terminal, container, {.argv = {"tty"}, .output = true, .tty = true}).ok());
  ASSERT_TRUE(Until([&] { return terminal.over(); }));
  EXPECT_TRUE(terminal.out.starts_with("/dev/pts/")) << terminal.out;
}

}  // namespace
}  // namespace swell::process
