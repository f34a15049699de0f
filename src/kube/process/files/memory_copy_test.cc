#include "kube/process/files/memory_copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"
#include "kube/net/tls/sha256.h"

namespace swell::process {
namespace {

std::string U64(uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

// A copy as the SDK writes it: head, data, index.
std::string CopyFile(const std::string& data, const std::string& index, uint64_t whole = 1) {
  std::string head = StrCat("SWELLMEM", U64(whole), U64(64 + data.size()), U64(index.size()));
  head.resize(64, '\0');
  return StrCat(head, data, index);
}

std::string Index(std::string_view records, int step = 39, std::string_view codec = "tensors") {
  return StrCat(R"({"run": "abc", "step": )", step, R"(, "epoch": 3, "metrics": {"loss": 0.5}, )",
                R"("time": "2026-11-29T10:00:00.000000Z", "codec": ")", codec, R"(", "records": )",
                records, "}");
}

class MemoryCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = dir_.path() + "/memory";
    folder_ = dir_.path() + "/checkpoints";
    ASSERT_TRUE(MakeDirs(memory_ + "/swell-0-key").ok());
    ASSERT_TRUE(MakeDirs(folder_).ok());
    Write(folder_ + "/.run", "abc");
  }
  static void Write(const std::string& path, std::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  Status Persist(const std::string& bytes) {
    Write(memory_ + "/swell-0-key/a", bytes);
    auto copy = OpenMemoryCopy(memory_, "swell-0-key/a");
    return copy.ok() ? WriteCheckpoint(*copy, folder_, progress_) : copy.status();
  }
  std::string Message(const std::string& bytes) { return Persist(bytes).message(); }
  static void SetAge(const std::string& path, int64_t seconds) {
    const timespec past{::time(nullptr) - seconds, 0};
    const timespec times[] = {past, past};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  json::Value Manifest(const std::string& name) {
    auto text = ReadFile(StrCat(folder_, "/", name));
    return text.ok() ? *json::Parse(*text) : json::Value();
  }

  TempDir dir_;
  std::string memory_, folder_;
  WriteProgress progress_;
};

TEST_F(MemoryCopyTest, ACopyBecomesACheckpointOfTheSdksForm) {
  ASSERT_TRUE(
      Persist(CopyFile("tensorsPK", Index(R"([["data/0", 64, 7], ["data.pkl", 71, 2]])"))).ok());
  const json::Value manifest = Manifest("step-000000000039.json");
  EXPECT_EQ(json::GetInt(manifest, {"version"}), 1);
  EXPECT_EQ(json::GetInt(manifest, {"step"}), 39);
  EXPECT_EQ(json::GetInt(manifest, {"epoch"}), 3);
  EXPECT_EQ(json::GetString(manifest, {"codec"}), "tensors");
  EXPECT_EQ(json::GetString(manifest, {"time"}), "2026-11-29T10:00:00.000000Z");
  const std::string file(json::GetString(manifest, {"file"}));
  const auto state = ReadFile(StrCat(folder_, "/", file));
  ASSERT_TRUE(state.ok());
  net::Sha256 hash;
  hash.Add(*state);
  const std::string digest = hash.Hex();
  EXPECT_EQ(json::GetString(manifest, {"sha256"}), digest);
  EXPECT_EQ(file, StrCat("step-000000000039-", digest.substr(0, 12), ".state"));
  EXPECT_EQ(json::GetInt(manifest, {"size"}), static_cast<int64_t>(state->size()));
  EXPECT_EQ(ListDir(folder_)->size(), 4u) << "nothing half-made is left";
}

// Python's own reader of archives says whether the file is one.
TEST_F(MemoryCopyTest, PythonReadsTheArchive) {
  const std::string large(9 << 20, 'x');
  ASSERT_TRUE(Persist(CopyFile(large + "PK",
                               Index(StrCat(R"([["data/0", 64, )", large.size(),
                                            R"(], ["data.pkl", )", 64 + large.size(), ", 2]]"))))
                  .ok());
  const std::string file(json::GetString(Manifest("step-000000000039.json"), {"file"}));
  const std::string program =
      StrCat("import zipfile; z = zipfile.ZipFile('", folder_, "/", file,
             "'); assert z.testzip() is None; assert z.namelist() == ['archive/data/0', "
             "'archive/data.pkl']; assert z.read('archive/data/0') == b'x' * (9 << 20); "
             "assert z.read('archive/data.pkl') == b'PK'");
  if (!FileExists("/usr/bin/python3")) GTEST_SKIP() << "no Python";
  EXPECT_EQ(std::system(StrCat("/usr/bin/python3 -c \"", program, "\"").c_str()), 0);
}

TEST_F(MemoryCopyTest, AStateThatIsOneRecordIsWrittenAsItIs) {
  ASSERT_TRUE(Persist(CopyFile("state", Index(R"([["", 64, 5]])", 7, "pickle"))).ok());
  const std::string file(json::GetString(Manifest("step-000000000007.json"), {"file"}));
  EXPECT_EQ(*ReadFile(StrCat(folder_, "/", file)), "state");
  EXPECT_EQ(progress_.written, 5);
  EXPECT_EQ(progress_.bytes, 5);
}

TEST_F(MemoryCopyTest, ALargeStateReachesTheDiskWhole) {
  constexpr size_t kSize = (36 << 20) + 5;
  std::string data(kSize, '\0');
  for (size_t i = 0; i < kSize; i += 4096) data[i] = static_cast<char>('a' + i / 4096 % 26);
  ASSERT_TRUE(Persist(CopyFile(data, Index(StrCat(R"([["data", 64, )", kSize, "]]")))).ok());
  const json::Value manifest = Manifest("step-000000000039.json");
  const std::string file(json::GetString(manifest, {"file"}));
  const auto state = ReadFile(StrCat(folder_, "/", file), 64 << 20);
  ASSERT_TRUE(state.ok());
  EXPECT_NE(state->find(data), std::string::npos);
  net::Sha256 hash;
  hash.Add(*state);
  EXPECT_EQ(json::GetString(manifest, {"sha256"}), hash.Hex());
  EXPECT_EQ(progress_.written, progress_.bytes) << "the archive's own bytes are not the state's";
}

TEST_F(MemoryCopyTest, ARunThatWentBackDropsWhatWasLater) {
  Write(folder_ + "/step-000000000041.json", "{}");
  Write(folder_ + "/step-000000000030.json", "{}");
  SetAge(folder_ + "/step-000000000041.json", 60);
  ASSERT_TRUE(Persist(CopyFile("x", Index(R"([["", 64, 1]])"))).ok());
  EXPECT_FALSE(FileExists(folder_ + "/step-000000000041.json"));
  EXPECT_TRUE(FileExists(folder_ + "/step-000000000030.json")) << "the SDK prunes it";
}

// A job that did not wait for this pod trains on, and its checkpoints are newer than the copy.
TEST_F(MemoryCopyTest, WhatWasSavedSinceTheCopyStays) {
  Write(memory_ + "/swell-0-key/a", CopyFile("x", Index(R"([["", 64, 1]])")));
  SetAge(memory_ + "/swell-0-key/a", 60);
  Write(folder_ + "/step-000000000041.json", "{}");
  const auto copy = OpenMemoryCopy(memory_, "swell-0-key/a");
  ASSERT_TRUE(copy.ok());
  ASSERT_TRUE(WriteCheckpoint(*copy, folder_, progress_).ok());
  EXPECT_TRUE(FileExists(folder_ + "/step-000000000041.json"));
}

TEST_F(MemoryCopyTest, HolesAndEndlessIndexesDoNoHarm) {
  const std::string path = memory_ + "/swell-0-key/hollow";
  const std::string index = Index(R"([["", 64, 1099511627776]])");  // 1 TiB
  Write(path, StrCat("SWELLMEM", U64(1), U64(64 + (1ULL << 40)), U64(index.size())));
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), index.data(), index.size(), 64 + (1LL << 40)),
            static_cast<ssize_t>(index.size()));
  EXPECT_EQ(OpenMemoryCopy(memory_, "swell-0-key/hollow").status().message(),
            "the copy in memory: its file has holes");
  std::string many = "[0";
  for (int i = 0; i < 3 << 20; ++i) many += ",0";
  EXPECT_EQ(Message(CopyFile("x", Index(many + "]"))),
            "the copy in memory: JSON: more than the 2097152 values allowed");
  const std::string key(1 << 20, 'k');
  EXPECT_LT(Message(CopyFile("x", StrCat("{\"", key, "\":1,\"", key, "\":1}"))).size(), 400U);
  EXPECT_LT(Message(CopyFile("x", Index("[]", 1, key))).size(), 400U);
}

TEST_F(MemoryCopyTest, AFileThatShrinksMeanwhileLeavesNothing) {
  const std::string path = memory_ + "/swell-0-key/a";
  Write(path, CopyFile(std::string(1 << 20, 'x'), Index(R"([["", 64, 1048576]])")));
  const auto copy = OpenMemoryCopy(memory_, "swell-0-key/a");
  ASSERT_TRUE(copy.ok());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(WriteCheckpoint(*copy, folder_, progress_).message(),
            "the copy in memory: it is shorter than it says");
  EXPECT_EQ(*ListDir(folder_), (std::vector<std::string>{".lock", ".run"}));
}

// The agent's own file must not stay where nobody looks for it.
TEST_F(MemoryCopyTest, AFolderThatTakesNoFileOfThatNameKeepsNothing) {
  const std::string copy = CopyFile("x", Index(R"([["", 64, 1]])"));
  ASSERT_TRUE(Persist(copy).ok());
  const std::string file(json::GetString(Manifest("step-000000000039.json"), {"file"}));
  ASSERT_TRUE(RemoveTree(StrCat(folder_, "/", file)).ok());
  ASSERT_TRUE(MakeDirs(StrCat(folder_, "/", file, "/in")).ok());
  EXPECT_FALSE(Persist(copy).ok());
  EXPECT_FALSE(FileExists(folder_ + "/.swell-persist-step-000000000039"));
}

// The folder on a disk of one MiB. Only root may mount one.
class SmallDiskTest : public MemoryCopyTest {
 protected:
  void SetUp() override {
    MemoryCopyTest::SetUp();
    mounted_ = ::mount("swell", folder_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) GTEST_SKIP() << "no file system of its own";
    Write(folder_ + "/.run", "abc");
  }
  void TearDown() override {
    if (mounted_) ::umount(folder_.c_str());
  }
  static std::string Large(int step = 39) {
    return CopyFile(std::string(3 << 20, 'x'), Index(R"([["", 64, 3145728]])", step));
  }
  bool mounted_ = false;
};

TEST_F(SmallDiskTest, ADiskThatIsTooSmallSaysWhatIsMissingAndIsLeftAsItWas) {
  Write(folder_ + "/.swell-persist-step-000000000012", std::string(300'000, 'x'));
  const Status status = Persist(Large());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_EQ(status.message(), StrCat("no space left in ", folder_,
                                     " for a checkpoint of 3145728 bytes: 3 MiB are missing"));
  EXPECT_EQ(*ListDir(folder_), (std::vector<std::string>{".lock", ".run"}))
      << "nor does an agent that was killed leave its half";
  ASSERT_EQ(::mount("swell", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  EXPECT_TRUE(Persist(Large()).ok());
  EXPECT_TRUE(FileExists(folder_ + "/step-000000000039.json"));
}

TEST_F(MemoryCopyTest, NobodyElseWritesMeanwhile) {
  const std::string copy = CopyFile("x", Index(R"([["", 64, 1]])"));
  const std::string path = folder_ + "/.lock";
  {
    const UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    EXPECT_EQ(Persist(copy).code(), Code::kConflict) << "it does not wait for a user's process";
    EXPECT_FALSE(FileExists(folder_ + "/step-000000000039.json"));
  }
  EXPECT_TRUE(Persist(copy).ok());
  // The job's user makes it something else.
  ASSERT_TRUE(RemoveTree(path).ok());
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  EXPECT_EQ(Message(copy), path + ": not a plain file");
  ASSERT_TRUE(RemoveTree(path).ok());
  ASSERT_EQ(::symlink("../victim", path.c_str()), 0);
  EXPECT_FALSE(Persist(copy).ok());
  EXPECT_FALSE(FileExists(dir_.path() + "/victim"));
}

TEST_F(MemoryCopyTest, WhatIsNotAWholeCopyOfThisRunIsRefused) {
  const std::string one = R"([["", 64, 1]])";
  EXPECT_EQ(Message("short"), "the copy in memory: it is shorter than it says");
  EXPECT_EQ(Message(CopyFile("x", Index(one), 0)), "the copy in memory: it is not whole");
  EXPECT_EQ(Message(CopyFile("x", "[]")), "the copy in memory: its index is not an object");
  EXPECT_EQ(Message(CopyFile("x", Index(one, -1))), "the copy in memory: it has no step");
  EXPECT_EQ(Message(CopyFile("x", Index(one, 1, "code"))),
            "the copy in memory: codec \"code\" is not known");
  EXPECT_EQ(Message(CopyFile("x", Index("[]"))),
            "the copy in memory: a record without a name is not alone");
  EXPECT_EQ(Message(CopyFile("x", Index(R"([["a", 64, 1], ["", 64, 1]])"))),
            "the copy in memory: a record without a name is not alone");
  EXPECT_EQ(Message(CopyFile("x", Index(R"([["a", 64, 9999999]])"))),
            "the copy in memory: record \"a\" is not in its file");
  EXPECT_EQ(Message(CopyFile("x", Index(R"([["a", -1, 1]])"))),
            "the copy in memory: record \"a\" is not in its file");
  EXPECT_EQ(Message(CopyFile("x", Index(R"([["a", 0, 200], ["b", 0, 200]])"))),
            "the copy in memory: its records are longer than its file");
  Write(folder_ + "/.run", "other");
  EXPECT_EQ(Message(CopyFile("x", Index(one))),
            "the copy in memory: it belongs to another run of the job");
}

TEST_F(MemoryCopyTest, NoLinkIsFollowed) {
  Write(dir_.path() + "/secret", CopyFile("x", Index(R"([["", 64, 1]])")));
  ASSERT_EQ(::symlink("../../secret", (memory_ + "/swell-0-key/b").c_str()), 0);
  EXPECT_FALSE(OpenMemoryCopy(memory_, "swell-0-key/b").ok());
  EXPECT_EQ(
      OpenMemoryCopy(memory_, "../secret").status().message(),
      "the copy in memory: \"../secret\" is not in /dev/shm: the request must name a file there");
  // The job's user makes the names that the checkpoint will have into links to a file of others.
  Write(dir_.path() + "/victim", "kept");
  for (const char* name : {".swell-persist-step-000000000039", "step-000000000039.json",
                           ".swell-persist-step-000000000039.json"}) {
    ASSERT_EQ(::symlink("../victim", StrCat(folder_, "/", name).c_str()), 0);
  }
  EXPECT_TRUE(Persist(CopyFile("x", Index(R"([["", 64, 1]])"))).ok());
  EXPECT_EQ(*ReadFile(dir_.path() + "/victim"), "kept");
  ASSERT_EQ(::unlink((folder_ + "/.run").c_str()), 0);
  ASSERT_EQ(::symlink("../victim", (folder_ + "/.run").c_str()), 0);
  EXPECT_FALSE(Persist(CopyFile("x", Index(R"([["", 64, 1]])"))).ok());
}

}  // namespace
}  // namespace swell::process
