#include "kube/process/streams/log_reader.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/api/meta/meta.h"
#include "kube/process/shim/log_pump.h"

namespace swell::process {
namespace {

constexpr std::string_view kOld = "2026-01-01T00:00:00.000000000Z stdout F old\n";
constexpr std::string_view kNew = "2026-01-02T00:00:00.000000000Z stdout F new\n";

class LogReaderTest : public testing::Test {
 protected:
  LogReader SinceTheSecond(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    node::LogOptions options;
    options.since = api::ParseTime("2026-01-02T00:00:00Z");
    auto reader = LogReader::Open(path_, options);
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return std::move(*reader);
  }

  TempDir dir_;
  const std::string path_ = dir_.File("0.log");
};

TEST_F(LogReaderTest, LinesBeforeTheTimeAreLeftOut) {
  LogReader reader = SinceTheSecond(StrCat(kOld, kNew));
  EXPECT_EQ(reader.Read(), "new\n");
  EXPECT_EQ(reader.Read(), "");
  EXPECT_FALSE(reader.skipped());
}

TEST_F(LogReaderTest, PiecesAreOneLineWithOneTimeUntilTheOtherStreamWrites) {
  ASSERT_TRUE(WriteFileAtomically(path_,
                                  "T1 stderr P  1/9\rT\nT2 stderr P  2/9\r\n"
                                  "T3 stdout F step 2\nT4 stderr P  3/9\r\n"
                                  "T5 stderr F  4/9\nT6 stdout F end\n")
                  .ok());
  node::LogOptions options;
  options.timestamps = true;
  auto reader = LogReader::Open(path_, options);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ(reader->Read(), "T1  1/9\rT 2/9\r\nT3 step 2\nT4  3/9\r 4/9\nT6 end\n");
}

// A container may write lines that nobody wants faster than they are passed over.
TEST_F(LogReaderTest, AReadEndsWhereNobodyWantsWhatItReads) {
  std::string text;
  while (text.size() < (4 << 20)) text += kOld;
  LogReader reader = SinceTheSecond(StrCat(text, kNew));
  std::string found;
  int reads = 0;
  do {
    found = reader.Read();
    ++reads;
  } while (found.empty() && reader.skipped());
  EXPECT_EQ(found, "new\n");
  EXPECT_GE(reads, 16);
  EXPECT_LE(reads, 20);
  EXPECT_EQ(reader.Read(), "");
  EXPECT_FALSE(reader.skipped()) << "it has read to the end";
}

// A log of small files, of which the writer keeps four.
class RotatedLogTest : public testing::Test {
 protected:
  // Each of these fills a file.
  void Write(int from, int to) {
    for (int i = from; i <= to; ++i) {
      pump_.Feed("stdout", StrCat(i, "\n"), WallTime{0});
      pump_.Flush();
    }
  }
  LogReader Open(int64_t tail_lines = -1) {
    node::LogOptions options;
    options.tail_lines = tail_lines;
    auto reader = LogReader::Open(path_, options);
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return std::move(*reader);
  }
  static std::string ReadAll(LogReader& reader) {
    std::string out;
    for (std::string piece = reader.Read(); !piece.empty(); piece = reader.Read()) out += piece;
    return out;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("0.log");
  LogPump pump_{path_, 1, 4};
};

TEST_F(RotatedLogTest, ASlowReaderMissesNoFileThatIsThere) {
  Write(1, 1);
  LogReader reader = Open();
  EXPECT_EQ(reader.Read(), "1\n");
  Write(2, 3);
  EXPECT_EQ(ReadAll(reader), "2\n3\n");
}

TEST_F(RotatedLogTest, FilesThatAreRenamedWhileOlderOnesAreReadAreReadOnce) {
  Write(1, 3);
  LogReader reader = Open();
  EXPECT_EQ(reader.Read(), "1\n");
  Write(4, 4);
  EXPECT_EQ(ReadAll(reader), "2\n3\n4\n");
}

TEST_F(RotatedLogTest, AReaderWhoseFileWasRemovedReadsTheOldestThatIsLeft) {
  Write(1, 1);
  LogReader reader = Open();
  EXPECT_EQ(reader.Read(), "1\n");
  Write(2, 9);
  EXPECT_EQ(ReadAll(reader), "7\n8\n9\n");
}

TEST_F(RotatedLogTest, ATailReachesIntoOlderFiles) {
  Write(1, 3);
  LogReader reader = Open(2);
  EXPECT_EQ(ReadAll(reader), "2\n3\n");
  LogReader newest = Open(0);
  Write(4, 4);
  EXPECT_EQ(ReadAll(newest), "4\n");
}

// The writer died between two files.
TEST_F(RotatedLogTest, ALogWithoutItsNewestFileIsRead) {
  Write(1, 2);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  LogReader reader = Open();
  EXPECT_EQ(ReadAll(reader), "1\n2\n");
}

}  // namespace
}  // namespace swell::process
