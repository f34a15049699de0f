// Tests of the vocabulary: statuses, strings, virtual time, files.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/callback_scope.h"
#include "base/file.h"
#include "base/fuzz_test_util.h"
#include "base/log.h"
#include "base/median.h"
#include "base/random.h"
#include "base/record_ring.h"
#include "base/result.h"
#include "base/sim_executor.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "base/time_zone.h"
#include "base/timer.h"
#include "base/words.h"

namespace swell {
namespace {

using std::chrono::seconds;

TEST(Status, MapsToKubernetesReasonsAndBack) {
  Status status(Code::kNotFound, "pods \"x\" not found");
  EXPECT_EQ(HttpStatus(status.code()), 404);
  EXPECT_EQ(Reason(status.code()), "NotFound");
  EXPECT_EQ(CodeFromReason("AlreadyExists", 409), Code::kAlreadyExists);
  EXPECT_EQ(CodeFromReason("", 409), Code::kAlreadyExists);
  EXPECT_EQ(CodeFromReason("SomethingNew", 503), Code::kUnavailable);
  EXPECT_EQ(status.WithContext("bind").message(), "bind: pods \"x\" not found");
}

TEST(SimExecutor, TimersOfOneInstantRunInTheOrderTheyWereSet) {
  SimExecutor executor;
  std::string order;
  executor.After(seconds(2), [&] { order += 'c'; });
  executor.After(seconds(1), [&] { order += 'a'; });
  TimerId cancelled = executor.After(seconds(1), [&] { order += 'x'; });
  executor.After(seconds(1), [&] { executor.Post([&] { order += 'b'; }); });
  executor.Cancel(cancelled);
  executor.Advance(seconds(3));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(executor.Steady().ns, 3'000'000'000);
}

TEST(SimExecutor, RunUntilStopsAtTheLimit) {
  SimExecutor executor;
  EXPECT_FALSE(executor.RunUntil([] { return false; }, seconds(5)));
  EXPECT_EQ(executor.Steady().ns, 5'000'000'000);
}

TEST(Strings, ContainsComparesWholeTexts) {
  EXPECT_TRUE(Contains({"a", "bc"}, "bc"));
  EXPECT_FALSE(Contains({"a", "bc"}, "b"));
  EXPECT_FALSE(Contains({}, ""));
}

TEST(Strings, WordsAreWhatIsBetweenBlanks) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(SplitWords(" a\t b,c  "), (Words{"a", "b,c"}));
  EXPECT_EQ(SplitWords("a"), Words{"a"});
  EXPECT_EQ(SplitWords(" \t"), Words{});
}

TEST(Strings, Base64RoundTripsEveryLength) {
  Random random(7);
  for (size_t length = 0; length < 50; ++length) {
    std::string bytes;
    for (size_t i = 0; i < length; ++i) bytes += static_cast<char>(random.Next());
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)), bytes);
  }
  EXPECT_FALSE(Base64Decode("a==="));
  EXPECT_FALSE(Base64Decode("ab=c"));
}

TEST(Strings, QuoteKeepsHostileTextOnOneLine) {
  EXPECT_EQ(Quote("a\"b\n\x1b[31m"), "\"a\\\"b\\n\\x1b[31m\"");
  EXPECT_EQ(Quote("\xff\xc3\xa9"), "\"\\xff\xc3\xa9\"");
}

TEST(Strings, Utf8RejectsOverlongAndSurrogates) {
  EXPECT_TRUE(IsValidUtf8("h\xc3\xa9llo \xf0\x9f\x98\x80"));
  EXPECT_FALSE(IsValidUtf8("\xc0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));
}

TEST(File, WriteIsWholeAndReadBack) {
  const TempDir temporary;
  const std::string dir = temporary.File("new");
  ASSERT_TRUE(MakeDirs(dir + "/a/b").ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/a/b/f", "hello").ok());
  EXPECT_EQ(ReadFile(dir + "/a/b/f").value(), "hello");
  EXPECT_EQ(ReadFile(dir + "/nope").status().code(), Code::kNotFound);
  EXPECT_EQ(ListDir(dir + "/a/b").value(), std::vector<std::string>{"f"});
  EXPECT_TRUE(RemoveTree(dir).ok());
  EXPECT_FALSE(FileExists(dir));
}

// Nobody writes to the one, and the others would never end.
TEST(File, ReadsNeitherNamedPipesNorDevices) {
  const TempDir temporary;
  const std::string pipe = temporary.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refusal = [](const std::string& path) { return ReadFile(path).status().message(); };
  EXPECT_EQ(refusal(pipe), pipe + " is a named pipe, not a file");
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero is a device, not a file");
  EXPECT_EQ(refusal("/dev"), "/dev is a directory, not a file");
  EXPECT_EQ(ReadFile("/dev/null").value(), "");
}

// As a shell gives <(command): what is written later is read, too.
TEST(File, ReadsAPipeThatIsOpen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string path = StrCat("/dev/fd/", ends[0]);
  std::thread writer([&ends] {
    EXPECT_TRUE(WriteAll(ends[1], std::string(300'000, 'x'), "pipe").ok());
    ::close(ends[1]);
  });
  const auto text = ReadFile(path);
  writer.join();
  ::close(ends[0]);
  EXPECT_EQ(text.value(), std::string(300'000, 'x'));
}

TEST(File, ReadsNoMoreThanItMay) {
  const TempDir temporary;
  const std::string path = temporary.File("f");
  ASSERT_TRUE(WriteFileAtomically(path, "12345").ok());
  EXPECT_EQ(ReadFile(path, 5).value(), "12345");
  EXPECT_EQ(ReadFile(path, 4).status().code(), Code::kTooLarge);
}

TEST(Timer, RunsItsNewestCallUnlessItIsDestroyed) {
  SimExecutor executor;
  std::string order;
  Timer kept(executor);
  kept.Start(seconds(1), [&] { order += 'x'; });
  kept.Start(seconds(2), [&] { order += 'a'; });
  {
    Timer destroyed(executor);
    destroyed.Start(seconds(1), [&] { order += 'x'; });
  }
  EXPECT_TRUE(kept.pending());
  executor.Advance(seconds(3));
  EXPECT_FALSE(kept.pending());
  EXPECT_EQ(order, "a");
}

TEST(CallbackScope, StopsCallbacksOnceItIsClosed) {
  int sum = 0;
  CallbackScope scope;
  std::function<void(int)> add = scope.Wrap([&](int n) { sum += n; });
  add(1);
  scope.Close();
  add(2);
  EXPECT_EQ(sum, 1);
}

TEST(Log, WhatUsersSayStaysOnItsLine) {
  const std::string path = StrCat(testing::TempDir(), "swell_log_test_", ::getpid());
  MakeFileLogSink(path)->Write(LogLevel::kInfo, "part", "said\nforged line\r",
                               {{"name", "x\x1b[2J\ny"}});
  const std::string text = ReadFile(path).value();
  EXPECT_TRUE(text.ends_with(" info part: said forged line  name=x [2J y\n")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_TRUE(RemoveTree(path).ok());
}

// Pods make such trees; each level on the way down costs a descriptor.
TEST(Files, ATreeOfAnyDepthIsRemoved) {
  const std::string top = StrCat(testing::TempDir(), "swell_deep_", ::getpid());
  ASSERT_TRUE(MakeDirs(top).ok());
  int dir = ::open(top.c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 600 && dir >= 0; ++i) {
    ASSERT_EQ(::mkdirat(dir, "d", 0755), 0);
    ASSERT_EQ(::symlinkat("/", dir, "link"), 0);
    const int below = ::openat(dir, "d", O_RDONLY | O_DIRECTORY);
    ::close(dir);
    dir = below;
  }
  ASSERT_GE(dir, 0);
  ::close(dir);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status removed = RemoveTree(top);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(removed.ok()) << removed.ToString();
  EXPECT_FALSE(FileExists(top));
  EXPECT_TRUE(RemoveTree(top).ok()) << "what is not there is removed already";
}

std::vector<std::string>& Given() {
  static std::vector<std::string> inputs;
  return inputs;
}

TEST(FuzzSeedsOfATarget, AreItsCorpusAndTheSameMutationsEachTime) {
  const std::string corpus = StrCat(testing::TempDir(), "swell_corpus_", ::getpid());
  ASSERT_TRUE(MakeDirs(corpus).ok());
  ASSERT_TRUE(WriteFileAtomically(corpus + "/a", "one").ok());
  ASSERT_TRUE(WriteFileAtomically(corpus + "/b", "another").ok());
  auto run = [&corpus] {
    Given().clear();
    FuzzSeeds(corpus, [](const uint8_t* data, size_t size) {
      Given().emplace_back(reinterpret_cast<const char*>(data), size);
      return 0;
    }).Run();
    return Given();
  };
  const std::vector<std::string> first = run();
  ASSERT_GT(first.size(), 3u);
  EXPECT_EQ(std::vector(first.begin(), first.begin() + 3),
            (std::vector<std::string>{"", "one", "another"}));
  EXPECT_NE(first[3], first[4]);
  EXPECT_EQ(run(), first);
  EXPECT_TRUE(RemoveTree(corpus).ok());
}

class Ring : public testing::Test {
 protected:
  Ring() { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  ~Ring() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::vector<std::string> Paths() const { return RecordRing::Segments(dir_).value(); }

  const std::string dir_ = StrCat(testing::TempDir(), "swell_ring_test_", ::getpid());
};

TEST_F(Ring, GivesBackWhatWasAppended) {
  {
    auto ring = RecordRing::Open(dir_, 1 << 20).value();
    EXPECT_FALSE(ring->Append("before any segment").ok());
    ASSERT_TRUE(ring->Begin().ok());
    ASSERT_TRUE(ring->Append("one").ok());
    ASSERT_TRUE(ring->Append("").ok());
    ASSERT_TRUE(ring->Append(std::string(100'000, 'x')).ok());
  }
  auto ring = RecordRing::Open(dir_, 1 << 20).value();
  ASSERT_TRUE(ring->Begin().ok());
  ASSERT_TRUE(ring->Append("of the next process").ok());
  ASSERT_EQ(Paths().size(), 2u);
  const RecordRing::Segment first = RecordRing::Read(Paths()[0]).value();
  EXPECT_EQ(first.records, (std::vector<std::string>{"one", "", std::string(100'000, 'x')}));
  EXPECT_FALSE(first.torn);
  const RecordRing::Segment second = RecordRing::Read(Paths()[1]).value();
  EXPECT_EQ(second.records, std::vector<std::string>{"of the next process"});
}

TEST_F(Ring, KeepsTheNewestWithinItsBound) {
  auto ring = RecordRing::Open(dir_, 10'000).value();
  for (int segment = 0; segment < 20; ++segment) {
    ASSERT_TRUE(ring->Begin().ok());
    ASSERT_TRUE(ring->Append(StrCat(segment, std::string(2'000, '.'))).ok());
  }
  const std::vector<std::string> paths = Paths();
  EXPECT_LE(paths.size(), 6u);
  EXPECT_GE(paths.size(), 4u);
  EXPECT_TRUE(RecordRing::Read(paths.back()).value().records[0].starts_with("19"));
  // One larger than all of the room stays until another is whole.
  ASSERT_TRUE(ring->Begin().ok());
  ASSERT_TRUE(ring->Append(std::string(50'000, '.')).ok());
  ASSERT_TRUE(ring->Begin().ok());
  EXPECT_EQ(Paths().size(), 2u);
}

TEST_F(Ring, FindsWhatACrashTore) {
  auto ring = RecordRing::Open(dir_, 1 << 20).value();
  ASSERT_TRUE(ring->Begin().ok());
  for (const char* record : {"first", "second", "third"}) ASSERT_TRUE(ring->Append(record).ok());
  const std::string path = Paths()[0];
  const std::string whole = ReadFile(path).value();
  for (size_t size = 0; size <= whole.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, size)).ok());
    const RecordRing::Segment read = RecordRing::Read(path).value();
    EXPECT_LE(read.records.size(), 3u);
    const size_t there = size < 17 ? 0 : size < 35 ? 1 : size < 52 ? 2 : 3;
    EXPECT_EQ(read.records.size(), there) << size;
    EXPECT_EQ(read.torn, size != 0 && size != 17 && size != 35 && size != 52) << size;
  }
  std::string flipped = whole;
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(path, flipped).ok());
  EXPECT_EQ(RecordRing::Read(path).value().records, std::vector<std::string>{"first"});
}

TEST(TimeZoneTest, ReadsZoneFilesAndRefusesOthers) {
  EXPECT_EQ(TimeZone::Load("UTC")->OffsetAt(0), 0);
  for (const char* none : {"", "Mars/X", "../passwd", "/etc/passwd", "Europe", "posixrules x"}) {
    EXPECT_EQ(TimeZone::Load(none).status().code(), Code::kNotFound) << none;
  }
  const auto file = ReadFile("/usr/share/zoneinfo/America/New_York");
  ASSERT_TRUE(file.ok()) << "install the package tzdata";
  const auto zone = TimeZone::FromFile(*file);
  ASSERT_TRUE(zone.ok());
  EXPECT_EQ(zone->OffsetAt(1'767'225'600), -5 * 3600);  // January 2026
  EXPECT_EQ(zone->OffsetAt(1'782'864'000), -4 * 3600);  // July 2026
  for (size_t bytes = 0; bytes < file->size(); bytes += 7) {
    (void)TimeZone::FromFile(file->substr(0, bytes));
    std::string other = *file;
    other[bytes] = '\xFF';
    (void)TimeZone::FromFile(other);
  }
  EXPECT_FALSE(TimeZone::FromFile(file->substr(0, 60)).ok());
}

TEST(ShellWords, AreThoseThatAShellWouldPass) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(ShellWords("a  \t b"), (Words{"a", "b"}));
  EXPECT_EQ(ShellWords(R"(sh -c 'a "b" c' "d \" e" f\ g '' $X)"),
            (Words{"sh", "-c", R"(a "b" c)", R"(d " e)", "f g", "", "$X"}));
  EXPECT_EQ(ShellWords("a # the first\nb \\\n  c#d\n"), (Words{"a", "b", "c#d"}));
  EXPECT_EQ(ShellWords(R"("a\nb" "\\ \$x \`" a\nb '\"' c\)"),
            (Words{R"(a\nb)", R"(\ $x `)", "anb", R"(\")", R"(c\)"}))
      << "a backslash between quotes is itself before most characters";
  EXPECT_EQ(ShellWords("\"a\\\nb\" 'a\\\nb'"), (Words{"ab", "a\\\nb"}));
  EXPECT_EQ(ShellWords(""), Words());
  EXPECT_EQ(ShellWords("a 'b"), std::nullopt);
}

TEST(Median, IsTheValueInTheMiddle) {
  EXPECT_EQ(UpperMedian({}), 0);
  EXPECT_EQ(UpperMedian({7}), 7);
  EXPECT_EQ(UpperMedian({9, 1, 5}), 5);
  EXPECT_EQ(UpperMedian({4, 1, 3, 2}), 3);
}

}  // namespace
}  // namespace swell
