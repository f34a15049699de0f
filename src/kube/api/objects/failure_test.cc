#include "kube/api/objects/failure.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure_outlook.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

const WallTime kNow = *ParseTime("2026-01-01T12:10:00Z");

Failure UserError(int64_t code, std::string said) {
  Failure failure;
  failure.role = "container";
  failure.which = FailureClass::kUserError;
  failure.exit_code = code;
  failure.said = std::move(said);
  return failure;
}

TEST(FailureClass, TheTableDecides) {
  struct Case {
    ContainerEnd end;
    std::string_view expected;
  };
  for (const Case& one : std::initializer_list<Case>{
           {{1, "Error", ""}, "UserError"},
           {{2, "Error", "usage: train.py"}, "UserError"},
           {{3, "Error", "gave up"}, "Unknown"},
           {{126, "Error", ""}, "UserError"},
           {{127, "Error", ""}, "UserError"},
           {{128, "StartError", "exec: x"}, "UserError"},
           {{137, "OOMKilled", ""}, "HostOutOfMemory"},
           {{137, "Error", ""}, "Unknown"},
           {{1, "Error", "torch.cuda.OutOfMemoryError: CUDA out of memory."}, "GpuOutOfMemory"},
           {{1, "Error", "FloatingPointError: loss is NaN at step 3"}, "NotANumber"},
           {{1, "Error", "RuntimeError: Connection closed by peer [10.0.0.1]"}, "PeerLost"},
           {{134, "Error", "CUDA error: uncorrectable ECC error encountered"}, "Hardware"},
           {{3, "Error", "ValueError: NCCL error"}, "PeerLost"},
           {{6, "Error", "curl: (6) Could not resolve host: data.example"}, "Unknown"},
           {{1, "Error", "OSError: [Errno 101] Network is unreachable"}, "Unknown"},
           {{9, "Error", "ModuleNotFoundError: No module named 'x'"}, "UserError"}}) {
    EXPECT_EQ(FailureClassName(ClassifyEnd(one.end)), one.expected)
        << one.end.exit_code << " " << one.end.said;
  }
}

TEST(FailureClass, TheLastThingThatItSaidDecides) {
  const std::string nan = "step 7 loss: nan\nstep 8 loss: nan\n";
  const std::string trace = "Traceback (most recent call last):\n  File \"t.py\", line 3\n";
  struct Case {
    std::string said;
    std::string_view expected;
    int64_t code = 1;
  };
  for (const Case& one : std::initializer_list<Case>{
           // A NaN that training survived is not why it ended.
           {nan + trace + "    import x\nModuleNotFoundError: No module named 'x'\n", "UserError"},
           {nan + "python: can't open file 'next.py': [Errno 2] No such file or directory\n",
            "UserError", 2},
           {nan + trace + "RuntimeError: stack expects each tensor to be equal size\n",
            "UserError"},
           {nan + "bash: line 3: evaluate: command not found\n", "UserError", 127},
           {nan + trace + "RuntimeError: Connection reset by peer\n", "PeerLost"},
           {nan + "torch.cuda.OutOfMemoryError: CUDA out of memory.\n", "GpuOutOfMemory"},
           {nan, "Unknown", 139},
           {"WARNING: non-finite gradient, skipped\n" + trace + "KeyError: 'a'\n", "UserError"},
           // A NaN that ended it is.
           {nan + "the loss does not fall any more\n", "NotANumber"},
           {nan + "Loss is nan, stopping training\n", "NotANumber"},
           {nan + trace + "FloatingPointError: loss is NaN at step 9\n", "NotANumber"},
           {nan + trace + "    assert torch.isfinite(loss)\nAssertionError\n", "NotANumber"},
           {StrCat(trace,
                   "FloatingPointError: loss is NaN\n\nDuring handling of the above exception, "
                   "another exception occurred:\n\n",
                   trace, "ValueError: no checkpoint to go back to\n"),
            "NotANumber"},
           {"ValueError: a bad sample was left out\nLoss is NaN, aborting\n", "NotANumber"},
           // Every class gives way to what comes after it.
           {"connection refused, trying again\n" + trace + "ImportError: x\n", "UserError"},
           {"CUDA out of memory. Trying half the batch\n" + trace + "KeyError: 'a'\n", "UserError"},
           {"KeyError: 'a' was left out\n" + trace + "MemoryError\n", "HostOutOfMemory"},
           // But a lost peer is a consequence, and errors at the interpreter's end are, too.
           {"torch.cuda.OutOfMemoryError: CUDA out of memory.\nConnection reset by peer\n",
            "GpuOutOfMemory"},
           {"Loss is nan, stopping training\n" + trace + "RuntimeError: Connection reset by peer\n",
            "NotANumber"},
           {"KeyError: 'a' was left out\nRuntimeError: Connection reset by peer\n", "PeerLost"},
           {"torch.cuda.OutOfMemoryError: CUDA out of memory.\nException ignored in: <function "
            "P.__del__>\n" +
                trace + "TypeError: 'NoneType' object is not callable\n",
            "GpuOutOfMemory"}}) {
    EXPECT_EQ(FailureClassName(ClassifyEnd({one.code, "Error", one.said})), one.expected)
        << one.said;
  }
}

TEST(FailureClass, ErrorsThatPythonIgnoredAreNotItsLastWords) {
  EXPECT_EQ(LastWords("ValueError: bad shape\nException ignored in: <function P.__del__>\n"
                      "Traceback (most recent call last):\n  File \"x\"\nTypeError: late\n"),
            "ValueError: bad shape");
  EXPECT_EQ(LastWords("step 3\nException ignored in: <stdout>\nBrokenPipeError: [Errno 32]\n"),
            "BrokenPipeError: [Errno 32]")
      << "it is all that there is";
}

constexpr char kTorchrun[] = R"(step 2
Traceback (most recent call last):
  File "/p/bad.py", line 5, in <module>
KeyError: 'label 17 not in mapping'
Traceback (most recent call last):
  File "/p/bad.py", line 6, in <module>
RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.71.0.8]:37264
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: python
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 33, in <module>
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
/p/bad.py FAILED
)";

TEST(FailureClass, TorchrunsReportIsNotTheCause) {
  EXPECT_TRUE(HasLauncherReport(kTorchrun));
  const std::string before = BeforeLauncherReport(kTorchrun, 4096);
  EXPECT_EQ(before.find("/usr/bin/torchrun"), std::string::npos);
  for (const std::string& said : {std::string(kTorchrun), before}) {
    EXPECT_EQ(LastWords(said), "KeyError: 'label 17 not in mapping'");
    EXPECT_EQ(ClassifyEnd({1, "Error", said}), FailureClass::kUserError);
  }
  // At most so many bytes, from the beginning of a line on.
  EXPECT_TRUE(BeforeLauncherReport(kTorchrun, 100).starts_with("RuntimeError: "));
  // One process alone that lost its peers is not a user's error.
  const std::string alone =
      "RuntimeError: Connection closed by peer [10.71.0.8]:37264\n"
      "E1127 01:02:03 7 torch/distributed/elastic/multiprocessing/api.py:882] "
      "failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: python\n";
  EXPECT_EQ(ClassifyEnd({1, "Error", alone}), FailureClass::kPeerLost);
  EXPECT_EQ(LastWords(alone), "RuntimeError: Connection closed by peer [10.71.0.8]:37264");
}

TEST(FailureClass, ASignalThatTorchrunReportsIsTheCause) {
  const std::string report =
      "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 "
      "(pid: 4) of binary: /usr/bin/python3.11";
  for (const std::string& said : {StrCat("rank 1 of 2\n", report, "\n"), report}) {
    EXPECT_EQ(LaunchedSignal(said), SIGKILL);
    EXPECT_EQ(LastWords(said), report);
    EXPECT_EQ(ClassifyEnd({1, "Error", said}), FailureClass::kUnknown) << "not the program's error";
  }
  EXPECT_EQ(LaunchedSignal(kTorchrun), 0);
  EXPECT_EQ(LaunchedSignal("failed (exitcode: -9)"), 0) << "not torchrun's";
  std::string strange = report;
  strange.replace(strange.find("-9"), 2, "-9223372036854775807");
  EXPECT_EQ(LaunchedSignal(strange), 0) << "programs may write any number";
}

TEST(FailureClass, OfABarTheLastWritingIsLeft) {
  EXPECT_EQ(LastWords("start\r\n\r 1/9 [00:01]\r 2/9 [00:02]"), "2/9 [00:02]");
  EXPECT_EQ(LastWords("start\r\n\r 1/9 [00:01]\r"), "1/9 [00:01]");
}

TEST(FailureClass, AnErrorThatEndsInAColonGoesOn) {
  EXPECT_EQ(LastWords("RuntimeError: Error(s) in loading state_dict for Net:\n"
                      "\tsize mismatch for a: 8 from checkpoint.\n\tsize mismatch for b: 9.\n"),
            "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for a: 8 from "
            "checkpoint.");
}

TEST(FailureClass, AnErrorThatFollowsFromAnotherNamesIt) {
  const std::string link =
      "\nThe above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"x\"\n";
  const std::string worker =
      "RuntimeError: DataLoader worker (pid 3) is killed by signal: Bus error.\n" + link +
      "RuntimeError: DataLoader worker (pid(s) 3) exited\n";
  EXPECT_EQ(LastWords(worker),
            "RuntimeError: DataLoader worker (pid(s) 3) exited (caused by RuntimeError: DataLoader "
            "worker (pid 3) is killed by signal: Bus error.)");
  EXPECT_EQ(LastWords("OSError: a\n" + link + "KeyError: b\n" + link + "ValueError: c\n"),
            "ValueError: c (caused by OSError: a)");
  EXPECT_EQ(LastWords("OSError: a\n" + link + "KeyError: b\nretried\nValueError: c\n"),
            "ValueError: c");
  EXPECT_EQ(LastWords("OSError: a\n" + link + "KeyError: b\ncp: x: No space left on device\n"),
            "cp: x: No space left on device")
      << "what came later follows from neither";
}

TEST(FailureClass, PrefixesOfRanksAreLeftOut) {
  EXPECT_EQ(LastWords("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"x\"\n"
                      "[rank1]: ValueError: bad\n[rank1]:[W1127 01:02:03 x.cpp:1] not destroyed\n"),
            "ValueError: bad");
}

TEST(FailureClass, LastWordsAreTheErrorRatherThanTheLastLine) {
  EXPECT_EQ(LastWords(""), "");
  EXPECT_EQ(LastWords("step 1\nstep 2\n\n====\n"), "step 2");
  EXPECT_EQ(LastWords("Traceback (most recent call last):\n  File \"x\"\n"
                      "ValueError: bad shape\nclosing files\n"),
            "ValueError: bad shape");
  EXPECT_EQ(LastWords("sh: 1: trian.py: not found"), "sh: 1: trian.py: not found");
  EXPECT_EQ(LastWords("dd: error writing 'x': No space left on device\n1+0 records in\n0+0 records "
                      "out\n0 bytes copied, 4.6e-05 s, 0.0 kB/s\n"),
            "dd: error writing 'x': No space left on device");
  EXPECT_EQ(LastWords("cat: x: No such file or directory\n1\n2\n3\n4\n5\n"), "5")
      << "it continued after that";
  EXPECT_EQ(LastWords("\x1b[31mValueError: red\x1b[0m\x07\r\n"), "ValueError: red");
  const std::string words = LastWords("x" + std::string(350, 'a') + std::string(60, '\xC3'));
  EXPECT_LE(words.size(), 404u);
}

std::string SentenceOf(std::string_view status, std::string_view more = "") {
  const json::Value pod = Document(StrCat(
      "{metadata: {name: w-0", more,
      "}, spec: {nodeName: n1, containers: [{name: main, resources: {limits: {memory: 1Gi}}}],"
      " initContainers: [{name: fetch}, {name: sync, restartPolicy: Always}]}, status: ",
      status, "}"));
  const auto failure = FailureOf(pod, kNow);
  return failure ? failure->Sentence() : "";
}

TEST(Failure, ASentenceNamesMemberContainerEndLastLineAndWhatToDo) {
  EXPECT_EQ(SentenceOf("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 127, reason: Error, message: 'sh: trian.py: not found'}}}]}"),
            "w-0 failed: container main exited with 127; its last line: \"sh: trian.py: not "
            "found\"; check the "
            "command of container main, and whether its image has it");
  EXPECT_EQ(SentenceOf("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 137, reason: OOMKilled}}}]}"),
            "w-0 failed: container main was killed because it used more memory than allowed; raise "
            "its memory limit of 1Gi, or let it use less");
  const auto of_whole_pod = FailureOf(
      Document("{metadata: {name: w-0}, spec: {resources: {limits: {memory: 3Gi}}, containers: "
               "[{name: main}]}, status: {phase: Failed, containerStatuses: [{name: main, state: "
               "{terminated: {exitCode: 137, reason: OOMKilled}}}]}}"),
      kNow);
  ASSERT_TRUE(of_whole_pod.has_value());
  EXPECT_NE(of_whole_pod->Sentence().find("raise the memory limit of its pod, 3Gi, or"),
            std::string::npos);
  EXPECT_EQ(SentenceOf("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 139, reason: Error}}}]}"),
            "w-0 failed: container main was ended by signal 11 (SIGSEGV); its native code crashed: "
            "PYTHONFAULTHANDLER=1 in its environment prints where; more is in: swell logs w-0");
  EXPECT_EQ(SentenceOf("{phase: Failed, reason: Evicted, message: disk is full}"),
            "w-0 failed: Evicted: \"disk is full\"; raise the limit that the message names, or let "
            "it use less; more is in: swell logs w-0");
  EXPECT_EQ(SentenceOf("{phase: Failed, reason: Evicted, message: 'EmptyDir volume \"o\" exceeds "
                       "the limit \"5Mi\".'}"),
            "w-0 failed: Evicted: EmptyDir volume \"o\" exceeds the limit \"5Mi\"; raise the limit "
            "that the message names, or let it use less; more is in: swell logs w-0");
  EXPECT_EQ(
      SentenceOf("{phase: Failed, reason: DeadlineExceeded, message: too long, "
                 "containerStatuses: [{name: main, state: {terminated: "
                 "{exitCode: 143, reason: Error}}}]}"),
      "w-0 failed: DeadlineExceeded: \"too long\"; give it more time (activeDeadlineSeconds); "
      "more is in: swell logs w-0");
}

TEST(Failure, WordsThatAreKnownSayWhatToDo) {
  const auto advice = [](std::string_view said, std::string_view volume) {
    const json::Value pod = Document(
        StrCat("{metadata: {name: w-0}, spec: {volumes: [{name: out, ", volume,
               "}]}, status: {phase: Failed, containerStatuses: [{name: main, state: {terminated: "
               "{exitCode: 1, reason: Error, message: \"",
               said, "\"}}}]}}"));
    return FailureOf(pod, kNow)->advice;
  };
  const std::string more = "; more is in: swell logs w-0";
  const std::string denied = "PermissionError: [Errno 13] Permission denied: '/out/a'";
  EXPECT_EQ(advice(denied, "hostPath: {path: /srv}"),
            "root in a container has no rights of root in a directory of the machine: use a claim, "
            "or run the pod as a user that owns the directory (docs/troubleshooting.md)" +
                more);
  EXPECT_EQ(advice(denied, "emptyDir: {}"),
            "the container's user may not do that: check who owns the file, and runAsUser and "
            "fsGroup" +
                more);
  EXPECT_EQ(advice("KeyError: 'label'", "emptyDir: {}"),
            "correct the program or its arguments" + more);
  EXPECT_EQ(advice("curl: (6) Could not resolve host: data.example", "emptyDir: {}"),
            "check the name, and whether the node reaches it by the network" + more);
  EXPECT_EQ(advice("ddp.py: error: unrecognized arguments: --rdzv_backend=c10d", "emptyDir: {}"),
            "enableElastic puts --rdzv_backend and other options before the arguments of each "
            "container, and only torchrun and swell.launch take them: start the program with one "
            "of these" +
                more);
}

// The beginning of the advice for a program that ended with 1 and these words.
struct KnownWords {
  std::string_view said, advice;
};

TEST(Failure, WhatPeopleMeetMostOftenHasItsOwnAdvice) {
  const auto advice = [](std::string_view said, std::string_view resources) {
    const json::Value pod = Document(
        StrCat("{metadata: {name: w-0}, spec: {containers: [{name: main, resources: ", resources,
               "}]}, status: {phase: Failed, containerStatuses: [{name: main, state: {terminated: "
               "{exitCode: 1, reason: Error, message: \"",
               said, "\"}}}]}}"));
    return FailureOf(pod, kNow)->advice;
  };
  for (const KnownWords& one : std::initializer_list<KnownWords>{
           {"OSError: [Errno 28] No space left on device", "a disk or /dev/shm is full: make room"},
           {"RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error.",
            "give the pod a larger /dev/shm"},
           {"OSError: [Errno 30] Read-only file system: '/c/1.pt'", "write to a volume that is"},
           {"OSError: [Errno 98] Address already in use", "another process has that port"},
           {"OSError: [Errno 24] Too many open files", "let it keep fewer files open"},
           {"sh: 1: ./train: Exec format error", "its program is built for another processor"},
           {"urllib.error.HTTPError: HTTP Error 401: Unauthorized", "the other side refuses its"},
           {"_pickle.UnpicklingError: pickle data was truncated", "the file is damaged or of"},
           {"AttributeError: Can't pickle local object 'f'", "save state_dict() instead"},
           {"_pickle.UnpicklingError: Weights only load failed. This file", "the file holds more"},
           {"EOFError: Ran out of input", "the file is damaged"},
           {"RuntimeError: Distributed package doesn't have NCCL built in", "nccl needs GPUs"},
           {"RuntimeError: CUDA error: device-side assert triggered", "an index is out of range"},
           {"KeyError: 'LOCAL_RANK'", "the script expects torch's launcher"},
           {"t.py: error: unrecognized arguments: --local-rank=0",
            "torch.distributed.launch gives"},
           {"torchrun: error: unrecognized arguments: --nproc-per-node=2", "torchrun before torch"},
           {"torchrun: error: unrecognized arguments: --no-python", "torchrun before torch 2.0"},
           {"NameError: name 'get_ipython' is not defined", "the script comes from a notebook"},
           {"SyntaxError: invalid syntax", "correct the program; if it runs on another machine"},
           {R"(/t.sh: line 3: cd: $'/code\\r': No such file or directory)",
            "a script has the line"},
           {R"(/t.sh: line 2: syntax error near unexpected token `$'do\\r'')",
            "a script has the line"},
           {R"(python: can't open file '/t.py\\r': [Errno 2] No such file or directory)",
            "a script has the line"},
           {R"(ValueError: could not convert string to float: '1.0\\r')", "correct the program"},
           {"python: can't open file '//t.py': [Errno 2] No such file or directory",
            "the container has no such file: put it into the image"},
           {"FileNotFoundError: [Errno 2] No such file or directory: '/d'", "check the path"},
           {"git-sync: cannot sync https://h/x.git to /code/x: fatal: no", "check the address of"},
           {"RuntimeError: Socket Timeout", "another member ended or could not be reached"},
           {"AssertionError: Torch not compiled with CUDA enabled", "the torch of its image is"}}) {
    EXPECT_TRUE(advice(one.said, "{}").starts_with(one.advice)) << advice(one.said, "{}");
  }
  const std::string_view none = "RuntimeError: No CUDA GPUs are available";
  EXPECT_TRUE(advice(none, "{}").starts_with("its pod asks for no GPU")) << advice(none, "{}");
  const std::string asked = advice(none, "{limits: {nvidia.com/gpu: 1}}");
  EXPECT_TRUE(asked.starts_with("correct the program")) << asked;
}

TEST(Failure, AFileThatCannotBeRunIsToldApartFromAProgramThatIsMissing) {
  const auto advice = [](int code, std::string_view said) {
    const json::Value pod = Document(
        StrCat("{metadata: {name: w-0}, spec: {containers: [{name: main}]}, status: {phase: "
               "Failed, containerStatuses: [{name: main, state: {terminated: {exitCode: ",
               code, ", reason: ", code == 128 ? "StartError" : "Error", ", message: \"", said,
               "\"}}}]}}"));
    return FailureOf(pod, kNow)->advice;
  };
  constexpr std::string_view kFile = "mount the file (swell submit --volume)";
  constexpr std::string_view kLineEnds = "a script has the line ends of Windows";
  EXPECT_TRUE(advice(127, "sh: 1: /code/run.sh: not found").starts_with(kFile));
  EXPECT_TRUE(advice(127, "bash: /code/run.sh: No such file or directory").starts_with(kFile));
  EXPECT_TRUE(advice(127, "sh: 1: trian: not found").starts_with("check the command of"));
  EXPECT_TRUE(
      advice(127, R"(env: 'python3\\r': No such file or directory)").starts_with(kLineEnds));
  EXPECT_TRUE(advice(126, "bash: ./x.sh: /bin/bash^M: bad interpreter").starts_with(kLineEnds));
  EXPECT_TRUE(advice(127, "bash: ./x.sh: cannot execute: required file not found")
                  .starts_with("the first line of the script"));
  EXPECT_TRUE(advice(126, "sh: 1: /code/train: Exec format error")
                  .starts_with("its program is built for another processor"));
  EXPECT_TRUE(advice(126, "sh: 1: /code/run.sh: Permission denied").starts_with("chmod +x"));
  EXPECT_TRUE(advice(128, R"(exec: \"/a\": permission denied)").starts_with("chmod +x"));
  EXPECT_TRUE(
      advice(128, R"(exec: \"/a\": its first line names a program that is not there: '/b\\r')")
          .starts_with(kLineEnds));
}

TEST(Failure, WhatAProgramWroteDoesNotPassForSwellsWords) {
  const auto sentence = [](const std::string& said) {
    const json::Value text(said);
    return SentenceOf(StrCat(
        "{phase: Failed, containerStatuses: [{name: main, state: {terminated: {exitCode: 1, ",
        "reason: Error, message: ", json::Print(text), "}}}]}"));
  };
  const auto starts = [](std::string_view line) {
    return StrCat("w-0 failed: container main exited with 1; its last line: ", line, "; ");
  };
  for (const auto& [said, shown] : std::vector<std::pair<std::string, std::string>>{
           {"broken", "\"broken\""},
           {"\"; give it up", "'\"; give it up'"},
           {"E: \"a\" or 'b'", "`E: \"a\" or 'b'`"},
           {"E: \"a\", 'b', `c`", "\"E: 'a', 'b', `c`\""},
           // Right to left, a new line, and what is ESC [ to many terminals.
           {"a\u202eb\u2066c\u2028d\u009b31me", "\"abcd31me\""},
           {"caf\u00e9 \u2026", "\"caf\u00e9 \u2026\""}}) {
    EXPECT_TRUE(sentence(said).starts_with(starts(shown))) << sentence(said);
  }
}

TEST(Failure, ASignalThatNobodyExplainsSaysWhatItMostlyMeans) {
  const auto sentence = [](int code, std::string_view said, std::string_view reason = "Error") {
    return SentenceOf(
        StrCat("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
               "{exitCode: ",
               code, ", reason: ", reason, ", message: '", said, "'}}}]}"));
  };
  EXPECT_EQ(sentence(137, ""),
            "w-0 failed: container main was ended by signal 9 (SIGKILL); it was killed from "
            "outside, often because memory ran out on node n1: give it a memory limit, or let it "
            "use less; more is in: swell logs w-0");
  EXPECT_NE(sentence(132, "").find("its program is built for another processor"),
            std::string::npos);
  EXPECT_NE(sentence(135, "").find("give the pod a larger /dev/shm"), std::string::npos);
  EXPECT_NE(sentence(143, "").find("something other than Swell told it to stop"),
            std::string::npos);
  EXPECT_EQ(sentence(143, "its liveness probe failed", "LivenessProbeFailed"),
            "w-0 failed: container main was stopped because its liveness probe failed; check the "
            "probe's path, port and delays, and that the program answers it; its errors are in: "
            "swell events w-0");
  const std::string late = sentence(137, "still loading", "StartupProbeFailed");
  EXPECT_NE(late.find("was stopped because its startup probe failed; its last line: \"still "
                      "loading\"; check the probe's path"),
            std::string::npos)
      << late;
  // A program that writes these words was not stopped by its node.
  const std::string words = sentence(1, "its liveness probe failed");
  EXPECT_NE(
      words.find("container main exited with 1; its last line: \"its liveness probe failed\""),
      std::string::npos)
      << words;
  EXPECT_EQ(words.find("check the probe"), std::string::npos) << words;
}

TEST(Failure, APodThatItsNodeCannotPrepareSaysWhatIsMissing) {
  const auto sentence = [](std::string_view message) {
    return SentenceOf(
        StrCat("{phase: Pending, containerStatuses: [{name: main, state: {waiting: "
               "{reason: ContainerCreating",
               message.empty() ? "" : StrCat(", message: '", message, "'"), "}}}]}"));
  };
  EXPECT_EQ(sentence(""), "") << "it is being made";
  EXPECT_EQ(sentence("MountVolume.SetUp failed for volume \"c\" : configmap \"t\" not found"),
            "w-0 cannot start: MountVolume.SetUp failed for volume \"c\" : configmap \"t\" not "
            "found; create it, or correct its name; the node tries again by itself");
  EXPECT_EQ(sentence("Failed to create pod sandbox: volume \"d\": host path /srv/x does not exist "
                     "on the node"),
            "w-0 cannot start: Failed to create pod sandbox: volume \"d\": host path /srv/x does "
            "not exist on the node; make the directory on the node, or correct the path; the node "
            "tries again by itself");
}

TEST(Failure, AnEmptyLogIsNotWhereToLook) {
  Failure failure{.member = "w-0",
                  .container = "main",
                  .role = "container",
                  .exit_code = 5,
                  .advice = "correct the program; more is in: swell logs w-0"};
  failure.HasNoLog();
  EXPECT_EQ(failure.Sentence(),
            "w-0 failed: container main exited with 5; correct the program; it wrote nothing");
  failure.advice = "have the GPU checked";
  failure.HasNoLog();
  EXPECT_EQ(failure.advice, "have the GPU checked");
}

TEST(Failure, ACommandThatAStandInLacksIsExplainedOnce) {
  EXPECT_EQ(SentenceOf("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 128, reason: StartError, message: 'exec: \"x\": executable file "
                       "not found in $PATH; programs of this machine serve image i'}}}]}"),
            "w-0 failed: container main could not start: exec: \"x\": executable file not found in "
            "$PATH; programs of this machine serve image i; check the command of container main");
}

TEST(Failure, APackageThatTheMachinesPythonLacksIsToldApartFromOneThatAnImageLacks) {
  const auto sentence = [](std::string_view id) {
    return SentenceOf(StrCat(
        "{phase: Failed, containerStatuses: [{name: main, image: i, imageID: '', restartCount: 0, "
        "containerID: '",
        id, "', state: {terminated: {exitCode: 1, reason: Error, message: 'ModuleNotFoundError: ",
        "No module named x'}}}]}"));
  };
  EXPECT_NE(sentence("process://1").find("sees no packages of pip install --user"),
            std::string::npos)
      << sentence("process://1");
  EXPECT_NE(sentence("containerd://1").find("; correct the program or its arguments; "),
            std::string::npos)
      << sentence("containerd://1");
}

TEST(Failure, AVolumeThatHidesSwellsOwnPackageIsNamed) {
  const auto sentence = [](std::string_view module) {
    const auto failure = FailureOf(
        Document(StrCat("{metadata: {name: w-0}, spec: {containers: [{name: main, volumeMounts: [",
                        "{name: code, mountPath: /work}]}]}, status: {phase: Failed, ",
                        "containerStatuses: [{name: main, image: i, imageID: '', restartCount: 0, ",
                        "containerID: 'process://1', state: {terminated: {exitCode: 1, reason: ",
                        "Error, message: \"ModuleNotFoundError: No module named '", module,
                        "'\"}}}]}}")),
        kNow);
    return failure ? failure->Sentence() : "";
  };
  for (std::string_view module : {"swell", "swell.launch"}) {
    EXPECT_NE(sentence(module).find("mount it at another path than /work"), std::string::npos)
        << sentence(module);
  }
  EXPECT_NE(sentence("swellfoop").find("sees no packages"), std::string::npos);
}

TEST(Failure, ABatchScriptsPythonIsThatOfThePathOfSbatch) {
  const auto failure = FailureOf(
      Document("{metadata: {name: w-0}, spec: {containers: [{name: main, env: [{name: "
               "SWELL_SLURM_PATH, value: /opt/conda/bin}]}]}, status: {phase: Failed, "
               "containerStatuses: [{name: main, image: i, imageID: '', restartCount: 0, "
               "containerID: 'process://1', state: {terminated: {exitCode: 1, reason: Error, "
               "message: 'ModuleNotFoundError: No module named x'}}}]}}"),
      kNow);
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->Sentence().find("; the script's python3 is the first of the PATH that sbatch "
                                     "had: activate the environment"),
            std::string::npos)
      << failure->Sentence();
}

TEST(Failure, AVolumeThatCannotBeMountedIsNotTheCommandsFault) {
  EXPECT_EQ(SentenceOf("{phase: Failed, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 128, reason: StartError, message: 'volume: /data: No such file "
                       "or directory'}}}]}"),
            "w-0 failed: container main could not start: volume: /data: No such file or directory; "
            "check the pod's volumes and what they name");
}

TEST(Failure, ContainersThatStartAgainSayHowOften) {
  EXPECT_EQ(SentenceOf("{phase: Pending, initContainerStatuses: [{name: fetch, restartCount: 2, "
                       "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
                       "{exitCode: 4, reason: Error, message: no data}}}]}"),
            "w-0 fails again and again (2 restarts): init container fetch exited with 4; its last "
            "line: \"no data\"; "
            "more is in: swell logs w-0 --previous");
  EXPECT_EQ(SentenceOf("{phase: Running, initContainerStatuses: [{name: sync, restartCount: 1, "
                       "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
                       "{exitCode: 1, reason: Error}}}]}"),
            "w-0 failed and starts again (1 restart): sidecar sync exited with 1; correct the "
            "program or its arguments; more is in: swell logs w-0 --previous");
  EXPECT_EQ(SentenceOf("{phase: Pending, containerStatuses: [{name: main, state: {waiting: "
                       "{reason: ImagePullBackOff, message: no such image}}}]}"),
            "w-0 cannot start: container main waits with ImagePullBackOff: \"no such image\"; "
            "check the image of container main");
}

TEST(Failure, AProgramThatIsDoneAndStartedAgainIsNotOneThatCannotStart) {
  EXPECT_EQ(
      SentenceOf("{phase: Running, containerStatuses: [{name: main, restartCount: 3, state: "
                 "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
                 "{exitCode: 0, reason: Completed}}}]}"),
      "w-0 fails again and again (3 restarts): container main exited with 0; its "
      "restartPolicy Always starts it again after each end; use OnFailure for work that ends");
}

TEST(Failure, TheEndAfterRestartsSaysHowMany) {
  EXPECT_EQ(
      SentenceOf("{phase: Failed, containerStatuses: [{name: main, restartCount: 2, state: "
                 "{terminated: {exitCode: 3, reason: Error}}}]}"),
      "w-0 failed after 2 restarts: container main exited with 3; more is in: swell logs w-0");
}

TEST(Failure, AContainerThatRunsForAMinuteHasRecovered) {
  const auto running = [](std::string_view since) {
    return SentenceOf(
        StrCat("{phase: Running, containerStatuses: [{name: main, restartCount: 1, state: "
               "{running: {startedAt: '",
               since, "'}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}"));
  };
  EXPECT_NE(running("2026-01-01T12:09:30Z"), "");
  EXPECT_EQ(running("2026-01-01T12:08:30Z"), "");
}

TEST(Failure, WhatIsNoFailureHasNoSentence) {
  EXPECT_EQ(SentenceOf("{}"), "");
  EXPECT_EQ(SentenceOf("{phase: Pending, containerStatuses: [{name: main, state: {waiting: "
                       "{reason: ContainerCreating}}}]}"),
            "");
  EXPECT_EQ(SentenceOf("{phase: Succeeded, containerStatuses: [{name: main, state: {terminated: "
                       "{exitCode: 0, reason: Completed}}}]}"),
            "");
  // It was stopped because another member had failed.
  EXPECT_EQ(SentenceOf("{phase: Failed, reason: Stopped, containerStatuses: [{name: main, state: "
                       "{terminated: {exitCode: 143, reason: Error}}}]}",
                       ", annotations: {swell.dev/stop-requested: the job has failed}"),
            "");
  // Wrong types are read as absent.
  EXPECT_EQ(SentenceOf("{phase: 3, containerStatuses: {name: 1}}"), "");
}

json::SharedValue Ended(std::string_view name,
                        int code,
                        std::string_view time,
                        std::string_view said) {
  return std::make_shared<const json::Value>(Document(
      StrCat("{metadata: {name: ", name, "}, status: {phase: Failed, containerStatuses: [{name: ",
             "main, state: {terminated: {exitCode: ", code, ", reason: Error, finishedAt: '", time,
             "', message: '", said, "'}}}]}}")));
}

TEST(Failure, TheFirstCauseIsNamedNotThePeersThatMissedIt) {
  const auto first = FirstFailure(
      {Ended("w-0", 1, "2026-01-01T12:00:00Z", "RuntimeError: Connection reset by peer"),
       Ended("w-1", 143, "2026-01-01T12:00:00Z", ""),
       Ended("w-2", 1, "2026-01-01T12:00:03Z", "ValueError: later"),
       Ended("w-3", 1, "2026-01-01T12:00:02Z", "ValueError: bad shape")},
      kNow);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->member, "w-3");
  EXPECT_EQ(first->Word(), "exit 1");
  EXPECT_FALSE(FirstFailure({}, kNow).has_value());
}

TEST(Failure, AStatusKeepsItAsItWas) {
  const auto failure =
      FailureOf(*Ended("w-1", 134, "2026-01-01T12:00:00Z", "terminate called"), kNow);
  ASSERT_TRUE(failure.has_value());
  const auto again = Failure::FromJson(failure->ToJson());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->Sentence(), failure->Sentence());
  EXPECT_EQ(json::Print(again->ToJson()), json::Print(failure->ToJson()));
  EXPECT_EQ(again->Word(), "SIGABRT");
  EXPECT_FALSE(Failure::FromJson(Document("{member: 3}")).has_value());
}

TEST(FailureOutlook, OnlyErrorsThatEveryStartRepeatsAreNeverMended) {
  EXPECT_TRUE(NeverMends(UserError(127, "sh: trian.py: not found")));
  EXPECT_TRUE(NeverMends(UserError(1, "ModuleNotFoundError: No module named 'trainer'")));
  EXPECT_TRUE(NeverMends(UserError(1, "SyntaxError: invalid syntax")));
  EXPECT_TRUE(NeverMends(UserError(2, "python3: can't open file '/x.py'")));
  EXPECT_FALSE(NeverMends(UserError(1, "ValueError: bad shape")));
  EXPECT_FALSE(NeverMends(UserError(1, "FileNotFoundError: /data")));
  Failure start = UserError(128, "exec: \"trian.py\": executable file not found in $PATH");
  start.reason = "StartError";
  EXPECT_TRUE(NeverMends(start));
  // A node of Swell says more of a program that a stand-in for the image lacks.
  start.said =
      "there is no program pyhton3; did you mean python3? (executable file not found in $PATH; "
      "programs of this machine serve image python)";
  EXPECT_TRUE(NeverMends(start));
  start.said = "the control group cannot be made: no space left on device";
  EXPECT_FALSE(NeverMends(start));
  // Another node may have the library.
  EXPECT_FALSE(NeverMends(UserError(1, "ImportError: libcuda.so.1: cannot open shared object")));
  Failure other = UserError(127, "");
  other.which = FailureClass::kUnknown;
  EXPECT_FALSE(NeverMends(other));
  other = UserError(127, "");
  other.role = "sidecar";
  EXPECT_FALSE(NeverMends(other));
}

TEST(FailureOutlook, AnImageThatIsNotThereHasToBeCorrected) {
  Failure failure;
  failure.role = "container";
  failure.which = FailureClass::kCannotStart;
  failure.reason = "ErrImagePull";
  EXPECT_TRUE(NeedsCorrection(failure));
  EXPECT_TRUE(NeverRan(failure));
  EXPECT_FALSE(NeverMends(failure));
  failure.reason = "RunContainerError";
  EXPECT_FALSE(NeedsCorrection(failure));
  failure = UserError(127, "sh: trian.py: not found");
  EXPECT_TRUE(NeedsCorrection(failure));
  EXPECT_FALSE(NeverRan(failure));
}

}  // namespace
}  // namespace swell::api
