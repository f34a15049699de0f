#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/images/pull.h"
#include "kube/images/source.h"
#include "kube/images/tar_test_util.h"
#include "kube/images/write_at.h"

namespace swell::images {
namespace {

std::string DigestOf(std::string_view bytes) {
  net::Sha256 hash;
  hash.Add(bytes);
  return StrCat("sha256:", hash.Hex());
}

Descriptor BlobOf(const std::string& bytes) {
  Descriptor out;
  out.digest = DigestOf(bytes);
  out.size = static_cast<int64_t>(bytes.size());
  return out;
}

std::string Noise(size_t size) {
  std::string out;
  while (out.size() < size) out += StrCat(out.size() * 7919 % 10007, "\n");
  out.resize(size);
  return out;
}

Status AppendInSteps(PartFile& part, std::string_view bytes, size_t step) {
  while (!bytes.empty()) {
    SWELL_RETURN_IF_ERROR(part.Append(bytes.substr(0, step)));
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  return Status::Ok();
}

class PartFileTest : public testing::Test {
 protected:
  std::string Content() { return ReadFile(path_).value(); }

  TempDir dir_;
  const std::string path_ = dir_.File("part");
  std::atomic<int64_t> arrived_{0};
};

TEST_F(PartFileTest, PiecesOfAnySizeMakeTheBlob) {
  const std::string bytes = Noise(3'000'001);
  for (const size_t step : {size_t{997}, size_t{16'384}, size_t{1'000'000}, bytes.size()}) {
    const std::string path = dir_.File(StrCat("part-", step));
    auto part = PartFile::Open(path, nullptr);
    ASSERT_TRUE(part.ok());
    std::vector<int64_t> sizes;
    part->OnWritten([&](int64_t size) { sizes.push_back(size); });
    ASSERT_TRUE(AppendInSteps(*part, bytes, step).ok());
    EXPECT_EQ(part->size(), static_cast<int64_t>(bytes.size()));
    ASSERT_TRUE(part->Flush().ok());
    EXPECT_TRUE(part->Verify(BlobOf(bytes)).ok()) << step;
    EXPECT_TRUE(ReadFile(path).value() == bytes) << step;
    EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
    EXPECT_EQ(sizes.back(), static_cast<int64_t>(bytes.size()));
    EXPECT_LE(sizes.size(), 13u) << "a write for each piece";
  }
}

TEST_F(PartFileTest, ContinuesBehindWhatWasFlushed) {
  const std::string bytes = Noise(700'000);
  {
    auto part = PartFile::Open(path_, &arrived_);
    ASSERT_TRUE(AppendInSteps(*part, bytes.substr(0, 300'001), 16'384).ok());
    EXPECT_EQ(arrived_, 300'001);
    ASSERT_TRUE(part->Flush().ok());
  }
  arrived_ = 0;
  auto part = PartFile::Open(path_, &arrived_);
  EXPECT_EQ(part->size(), 300'001);
  EXPECT_EQ(arrived_, 300'001);
  ASSERT_TRUE(AppendInSteps(*part, bytes.substr(300'001), 16'384).ok());
  ASSERT_TRUE(part->Flush().ok());
  EXPECT_TRUE(part->Verify(BlobOf(bytes)).ok());
}

TEST_F(PartFileTest, RestartForgetsAlsoWhatIsNotWrittenYet) {
  auto part = PartFile::Open(path_, &arrived_);
  ASSERT_TRUE(AppendInSteps(*part, Noise(300'001), 16'384).ok());
  ASSERT_TRUE(part->Restart().ok());
  EXPECT_EQ(part->size(), 0);
  EXPECT_EQ(arrived_, 0);
  ASSERT_TRUE(part->Append("other").ok());
  ASSERT_TRUE(part->Flush().ok());
  EXPECT_EQ(Content(), "other");
  EXPECT_TRUE(part->Verify(BlobOf("other")).ok());
}

TEST_F(PartFileTest, OtherContentIsFoundAndCanBeFetchedAnew) {
  auto part = PartFile::Open(path_, nullptr);
  ASSERT_TRUE(part->Append("other").ok());
  ASSERT_TRUE(part->Flush().ok());
  const Status verified = part->Verify(BlobOf("whole"));
  EXPECT_EQ(verified.code(), Code::kInvalid);
  ASSERT_TRUE(part->Restart().ok());
  ASSERT_TRUE(part->Append("whole").ok());
  ASSERT_TRUE(part->Flush().ok());
  EXPECT_TRUE(part->Verify(BlobOf("whole")).ok());
  EXPECT_EQ(Content(), "whole");
  part->Remove();
  EXPECT_FALSE(FileExists(path_));
}

// ---- files ----

TEST_F(PartFileTest, ADirectorysIndexIsAPlainFile) {
  const ImageStore store(dir_.File("store"));
  const std::string index = dir_.File("index.json"), other = dir_.File("other");
  const auto open = [&] {
    return OpenImageFile(StrCat("oci:", dir_.path()), store, Cancellation()).status();
  };
  // Reading a pipe would wait for somebody to write.
  ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
  EXPECT_EQ(open().message(), index + " is not a plain file");
  ASSERT_EQ(::unlink(index.c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(other, "a text that is nobody else's").ok());
  ASSERT_EQ(::symlink(other.c_str(), index.c_str()), 0);
  EXPECT_FALSE(open().ok());
  EXPECT_EQ(open().message().find("JSON"), std::string::npos) << open().message();
}

// ---- pulls ----

// A registry whose layer ends in the middle the first time.
class CutSource final : public ImageSource {
 public:
  explicit CutSource(std::string layer) : layer_(std::move(layer)) {
    config_ = StrCat(R"({"os":"linux","architecture":")", HostArchitecture(),
                     R"(","rootfs":{"diff_ids":[")", DigestOf(layer_), "\"]}}");
  }

  Result<std::string> Top() override {
    return StrCat(R"({"schemaVersion":2,"config":{"digest":")", DigestOf(config_), R"(","size":)",
                  config_.size(), R"(},"layers":[{"digest":")", DigestOf(layer_), R"(","size":)",
                  layer_.size(), "}]}");
  }
  Result<std::string> ManifestOf(const Descriptor& item) override {
    return Status(Code::kNotFound, item.digest);
  }
  Status Fetch(const Descriptor& blob, PartFile& part) override {
    if (blob.digest == DigestOf(config_)) return part.Append(config_);
    found = part.size();
    const auto begin = static_cast<size_t>(found);
    if (begin > 0) return AppendInSteps(part, layer_.substr(begin), 16'384);
    SWELL_RETURN_IF_ERROR(AppendInSteps(part, layer_.substr(0, layer_.size() / 2), 16'384));
    return Status(Code::kUnavailable, "the connection ended");
  }

  int64_t found = -1;  // of the layer, when it was asked for

 private:
  std::string layer_;
  std::string config_;
};

TEST_F(PartFileTest, TheNextPullContinuesBehindAllThatCame) {
  const std::string text = Noise(900'000);
  const std::string layer = TarItem("file", '0', text) + TarEnd();
  CutSource source(layer);
  const ImageStore store(dir_.File("store"));
  ASSERT_TRUE(store.Prepare().ok());
  Cancellation cancel;
  PullProgress first, second;
  const auto cut = PullImage(store, source, first, cancel);
  EXPECT_EQ(cut.status().code(), Code::kUnavailable);
  EXPECT_TRUE(ListDir(dir_.File("store/layers"))->empty());
  const auto pulled = PullImage(store, source, second, cancel);
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_EQ(source.found, static_cast<int64_t>(layer.size() / 2));
  EXPECT_EQ(second.bytes, static_cast<int64_t>(layer.size()));
  EXPECT_TRUE(ReadFile(store.LayerDir(DigestOf(layer)) + "/file").value() == text);
}

// ---- writing ----

TEST_F(PartFileTest, AFileKeepsItsHoles) {
  const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::string bytes = Noise(256 << 10);
  constexpr int64_t kFar = 64 << 20;
  ASSERT_TRUE(WriteAt(file.get(), bytes, kFar));
  struct stat info;
  ASSERT_EQ(::fstat(file.get(), &info), 0);
  EXPECT_EQ(info.st_size, kFar + static_cast<int64_t>(bytes.size()));
  EXPECT_LT(info.st_blocks * 512, 8 << 20);
  EXPECT_TRUE(Content().substr(kFar) == bytes);
}

TEST_F(PartFileTest, WhatCannotBeWrittenIsAnError) {
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(WriteAt(file.get(), Noise(256 << 10), 0));
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(Content(), "");
}

}  // namespace
}  // namespace swell::images
