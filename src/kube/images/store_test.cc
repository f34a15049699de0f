#include "kube/images/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <optional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/images/image_service.h"
#include "kube/images/pull.h"
#include "kube/images/reference.h"
#include "kube/images/tar_test_util.h"
#include "kube/images/unpack.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {
namespace {

std::string DigestOf(std::string_view bytes) {
  net::Sha256 hash;
  hash.Add(bytes);
  return StrCat("sha256:", hash.Hex());
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : store_(dir_.File("store")) { EXPECT_TRUE(store_.Prepare().ok()); }

  std::string AddBlob(const std::string& layout, const std::string& bytes) {
    const std::string digest = DigestOf(bytes);
    EXPECT_TRUE(MakeDirs(layout + "/blobs/sha256").ok());
    EXPECT_TRUE(
        WriteFileAtomically(StrCat(layout, "/blobs/sha256/", DigestHex(digest)), bytes).ok());
    return StrCat(R"("digest":")", digest, R"(","size":)", bytes.size());
  }

  // A directory in OCI's layout with these layers.
  std::string MakeLayout(const std::string& name, const std::vector<std::string>& layers) {
    const std::string layout = dir_.File(name);
    std::string list, ids;
    for (const std::string& layer : layers) {
      list += StrCat(list.empty() ? "" : ",", "{", AddBlob(layout, layer), "}");
      ids += StrCat(ids.empty() ? "" : ",", "\"", DigestOf(layer), "\"");
    }
    const std::string config =
        AddBlob(layout, StrCat(R"({"os":"linux","architecture":")", HostArchitecture(),
                               R"(","config":{"Cmd":["sh"]},"rootfs":{"diff_ids":[)", ids, "]}}"));
    const std::string manifest = AddBlob(
        layout, StrCat(R"({"schemaVersion":2,"config":{)", config, R"(},"layers":[)", list, "]}"));
    EXPECT_TRUE(
        WriteFileAtomically(layout + "/index.json",
                            StrCat(R"({"schemaVersion":2,"manifests":[{)", manifest,
                                   R"(,"annotations":{"org.opencontainers.image.ref.name":"test/)",
                                   name, R"(:1"}}]})"))
            .ok());
    return layout;
  }

  Result<StoredImage> Import(const std::string& source, const std::string& name = "") {
    PullProgress progress;
    return ImportImage(store_, source, name, progress, cancel_);
  }

  std::string Layer(const std::string& text) { return TarItem("file", '0', text) + TarEnd(); }

  TempDir dir_;
  ImageStore store_;
  Cancellation cancel_;
};

TEST_F(StoreTest, SaysWhatAFileThatIsNoImageLacks) {
  ASSERT_TRUE(MakeDirs(dir_.File("folder")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.File("text"), "root:x:0:0:root:/root:/bin/bash\n").ok());
  EXPECT_EQ(Import("oci:" + dir_.File("folder"), "app:1").status().message(),
            dir_.File("folder") + " is not a directory in OCI's layout: it has no index.json");
  EXPECT_EQ(Import(dir_.File("text"), "app:1").status().message(),
            dir_.File("text") + ": it is not a tar file");
}

TEST_F(StoreTest, NobodyElseReachesProgramsOfLayers) {
  ASSERT_EQ(::chmod(store_.dir().c_str(), 0755), 0);
  for (const char* sub : {"/layers", "/tmp", "/blobs"}) {
    const std::string path = store_.dir() + sub;
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    ASSERT_TRUE(store_.Prepare().ok());
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u) << sub;
  }
}

TEST_F(StoreTest, ImportsALayoutUnderItsOwnOrAnotherName) {
  const std::string layout = MakeLayout("app", {Layer("one"), Layer("two"), Layer("one")});
  auto image = Import("oci:" + layout);
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->name, "docker.io/test/app:1");
  EXPECT_TRUE(Import(layout, "other:2").ok());
  EXPECT_EQ(store_.List()->size(), 2u);
  auto files = store_.FilesOf(image->manifest);
  ASSERT_TRUE(files.ok()) << files.status().message();
  // A layer that comes twice counts where it is uppermost.
  ASSERT_EQ(files->layers.size(), 2u);
  EXPECT_EQ(ReadFile(files->layers[0] + "/file").value(), "two");
  EXPECT_EQ(ReadFile(files->layers[1] + "/file").value(), "one");
  EXPECT_TRUE(ListDir(dir_.File("store/tmp"))->empty());
  EXPECT_EQ(store_.Find("docker.io/test/app@" + image->digest)->name, image->name);
  EXPECT_FALSE(store_.Find("docker.io/test/ap@" + image->digest).ok());
}

TEST_F(StoreTest, WhatIsExportedCanBeImportedAgain) {
  auto image = Import(MakeLayout("app", {Layer("one")}));
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE(ExportImage(store_, *image, dir_.File("out")).ok());
  EXPECT_EQ(ExportImage(store_, *image, dir_.File("out")).code(), Code::kAlreadyExists);
  ASSERT_TRUE(store_.Remove(image->name, false).ok());
  auto again = Import(dir_.File("out"));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->manifest, image->manifest);
}

TEST_F(StoreTest, WhatMayNotHaveReachedTheDiskGoesWhenTheMachineStartsAnew) {
  auto kept = Import(MakeLayout("kept", {Layer("shared"), Layer("one")}));
  auto lost = Import(MakeLayout("lost", {Layer("shared"), Layer("two")}));
  ASSERT_TRUE(kept.ok() && lost.ok());
  EXPECT_EQ(lost->boot, "");  // imports wait for the disk
  lost->boot = "an-earlier-start";
  ASSERT_TRUE(store_.Put(*lost).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.File("store/tmp/half.part"), "half").ok());
  // The same start: nothing was lost.
  ASSERT_TRUE(store_.Prepare().ok());
  EXPECT_TRUE(store_.Find(lost->name).ok());
  EXPECT_TRUE(FileExists(dir_.File("store/tmp/half.part")));
  ASSERT_TRUE(WriteFileAtomically(dir_.File("store/boot"), "an-earlier-start").ok());
  ASSERT_TRUE(store_.Prepare().ok());
  EXPECT_EQ(store_.Find(lost->name).status().code(), Code::kNotFound);
  EXPECT_TRUE(store_.FilesOf(kept->manifest).ok());
  EXPECT_EQ(ListDir(dir_.File("store/layers"))->size(), 2u);
  EXPECT_TRUE(ListDir(dir_.File("store/tmp"))->empty());
  EXPECT_EQ(ReadFile(dir_.File("store/boot")).value(), BootId());
}

TEST_F(StoreTest, ASettledImageSurvivesTheMachine) {
  auto image = Import(MakeLayout("app", {Layer("one")}));
  ASSERT_TRUE(image.ok());
  image->boot = BootId();
  if (image->boot.empty()) GTEST_SKIP() << "this machine does not say when it started";
  ASSERT_TRUE(store_.Put(*image).ok());
  ASSERT_TRUE(store_.Settle().ok());
  EXPECT_EQ(store_.Find(image->name)->boot, "");
  ASSERT_TRUE(WriteFileAtomically(dir_.File("store/boot"), "an-earlier-start").ok());
  ASSERT_TRUE(store_.Prepare().ok());
  EXPECT_TRUE(store_.Find(image->name).ok());
}

TEST_F(StoreTest, DamagedBlobsAreRefusedAndNothingIsLeft) {
  const std::string layer = Layer("one");
  const std::string layout = MakeLayout("app", {layer});
  const std::string blob = StrCat(layout, "/blobs/sha256/", DigestHex(DigestOf(layer)));
  std::string damaged = layer;
  damaged[600] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(blob, damaged).ok());
  auto image = Import(layout);
  ASSERT_FALSE(image.ok());
  EXPECT_NE(image.status().message().find("came with other content"), std::string::npos)
      << image.status().message();
  ASSERT_TRUE(WriteFileAtomically(blob, layer.substr(0, 700)).ok());
  EXPECT_FALSE(Import(layout).ok());
  ASSERT_TRUE(WriteFileAtomically(blob, layer + "more").ok());
  EXPECT_FALSE(Import(layout).ok());
  EXPECT_TRUE(store_.List()->empty());
  EXPECT_TRUE(ListDir(dir_.File("store/layers"))->empty());
}

TEST_F(StoreTest, ALayerForWhichThereIsNoRoomIsNotFetched) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  if (CheckRoom(dir_.path(), kLarge).ok()) GTEST_SKIP() << "this disk has room for everything";
  const std::string layout = dir_.File("large");
  const std::string digest = DigestOf(Layer("one"));
  AddBlob(layout, Layer("one"));
  const std::string config =
      AddBlob(layout, StrCat(R"({"rootfs":{"diff_ids":[")", digest, R"("]}})"));
  const std::string manifest =
      AddBlob(layout, StrCat(R"({"config":{)", config, R"(},"layers":[{"digest":")", digest,
                             R"(","size":)", kLarge, "}]}"));
  ASSERT_TRUE(
      WriteFileAtomically(layout + "/index.json", StrCat(R"({"manifests":[{)", manifest, "}]}"))
          .ok());
  auto image = Import(layout, "large");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), Code::kNoSpace);
  EXPECT_NE(image.status().message().find("has no room for a layer of 1048576 MiB"),
            std::string::npos)
      << image.status().message();
  EXPECT_TRUE(ListDir(dir_.File("store/tmp"))->empty());
  EXPECT_TRUE(ListDir(dir_.File("store/layers"))->empty());
}

TEST_F(StoreTest, ALayerThatUnpacksToSomethingElseIsRefused) {
  const std::string layout = dir_.File("bad");
  const std::string layer = AddBlob(layout, Layer("one"));
  const std::string config =
      AddBlob(layout, StrCat(R"({"rootfs":{"diff_ids":[")", DigestOf("another"), R"("]}})"));
  const std::string manifest =
      AddBlob(layout, StrCat(R"({"config":{)", config, R"(},"layers":[{)", layer, "}]}"));
  ASSERT_TRUE(
      WriteFileAtomically(layout + "/index.json", StrCat(R"({"manifests":[{)", manifest, "}]}"))
          .ok());
  auto image = Import(layout, "bad");
  ASSERT_FALSE(image.ok());
  EXPECT_NE(image.status().message().find("where the config says"), std::string::npos)
      << image.status().message();
  EXPECT_TRUE(ListDir(dir_.File("store/layers"))->empty());
  EXPECT_TRUE(ListDir(dir_.File("store/tmp"))->empty());
}

TEST_F(StoreTest, ReadsWhatDockerSaves) {
  const std::string layer = Layer("saved");
  const std::string config = StrCat(R"({"os":"linux","architecture":")", HostArchitecture(),
                                    R"(","rootfs":{"diff_ids":[")", DigestOf(layer), R"("]}})");
  const std::string list =
      R"([{"Config":"c.json","RepoTags":["saved:3"],"Layers":["a/layer.tar"]}])";
  ASSERT_TRUE(WriteFileAtomically(dir_.File("saved.tar"), TarItem("c.json", '0', config) +
                                                              TarItem("a/layer.tar", '0', layer) +
                                                              TarItem("manifest.json", '0', list) +
                                                              TarEnd())
                  .ok());
  auto image = Import("docker-archive:" + dir_.File("saved.tar"));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->name, "docker.io/library/saved:3");
  EXPECT_TRUE(store_.FilesOf(image->manifest).ok());
  // As a shell gives <(docker save saved:3): a link to what is open.
  const UniqueFd open = OpenToRead(dir_.File("saved.tar")).value();
  EXPECT_TRUE(Import(StrCat("docker-archive:/dev/fd/", open.get()), "again").ok());
  EXPECT_TRUE(ListDir(dir_.File("store/tmp"))->empty());
  // A layer that the image has twice is a link to the first.
  const std::string twice =
      StrCat(R"({"os":"linux","architecture":")", HostArchitecture(),
             R"(","rootfs":{"diff_ids":[")", DigestOf(layer), R"(",")", DigestOf(layer), R"("]}})");
  ASSERT_TRUE(WriteFileAtomically(
                  dir_.File("twice.tar"),
                  TarItem("c.json", '0', twice) +
                      TarItem("a/layer.tar", '2', "", "../b/layer.tar") +
                      TarItem("b/layer.tar", '0', layer) +
                      TarItem("manifest.json", '0',
                              R"([{"Config":"c.json","Layers":["b/layer.tar","a/layer.tar"]}])") +
                      TarEnd())
                  .ok());
  image = Import(dir_.File("twice.tar"), "twice");
  EXPECT_TRUE(image.ok()) << image.status().message();
  const std::string evil = R"([{"Config":"../../secret","Layers":[]}])";
  ASSERT_TRUE(
      WriteFileAtomically(dir_.File("evil.tar"), TarItem("manifest.json", '0', evil) + TarEnd())
          .ok());
  EXPECT_FALSE(Import(dir_.File("evil.tar"), "evil").ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.File("other.tar"), TarItem("x") + TarEnd()).ok());
  EXPECT_FALSE(Import(dir_.File("other.tar"), "other").ok());
  EXPECT_EQ(Import(dir_.File("missing")).status().code(), Code::kNotFound);
}

TEST_F(StoreTest, AnImageThatRunsIsKept) {
  auto image = Import(MakeLayout("app", {Layer("one")}));
  ASSERT_TRUE(image.ok());
  const std::string container = dir_.File("container");
  ASSERT_TRUE(MakeDirs(container).ok());
  ASSERT_TRUE(WriteFileAtomically(container + "/spec.json", "{}").ok());
  ASSERT_TRUE(store_.MarkUsed(image->manifest, "c1", container).ok());
  EXPECT_TRUE(store_.InUse(image->manifest));
  EXPECT_EQ(store_.Remove(image->name, false).code(), Code::kConflict);
  ASSERT_TRUE(store_.Remove(image->name, true).ok());
  EXPECT_TRUE(store_.FilesOf(image->manifest).ok());
  ASSERT_TRUE(WriteFileAtomically(container + "/exit.json", "{}").ok());
  EXPECT_FALSE(store_.InUse(image->manifest));
}

TEST_F(StoreTest, RemovingAnImageKeepsWhatOthersShare) {
  auto one = Import(MakeLayout("one", {Layer("base"), Layer("one")}));
  auto two = Import(MakeLayout("two", {Layer("base"), Layer("two")}));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(ListDir(dir_.File("store/layers"))->size(), 3u);
  ASSERT_TRUE(store_.Remove(one->name, false).ok());
  EXPECT_EQ(ListDir(dir_.File("store/layers"))->size(), 2u);
  EXPECT_TRUE(store_.FilesOf(two->manifest).ok());
  EXPECT_EQ(store_.Remove(one->name, false).code(), Code::kNotFound);
}

TEST_F(StoreTest, NothingIsSweptWhileSomebodyPulls) {
  ASSERT_TRUE(MakeDirs(store_.LayerDir("sha256:" + std::string(64, 'b'))).ok());
  {
    auto pulls = store_.HoldPulls();
    ASSERT_TRUE(pulls.ok());
    ASSERT_TRUE(store_.Sweep().ok());
    EXPECT_EQ(ListDir(dir_.File("store/layers"))->size(), 1u);
  }
  ASSERT_TRUE(store_.Sweep().ok());
  EXPECT_TRUE(ListDir(dir_.File("store/layers"))->empty());
}

// As if a registry had given the image, at that time.
void PulledAt(const ImageStore& store, const StoredImage& image, int64_t at) {
  StoredImage changed = image;
  changed.pulled_s = at;
  changed.imported = false;
  ASSERT_TRUE(store.Put(changed).ok());
  const struct timespec times[] = {{at, 0}, {at, 0}};
  const std::string used = StrCat(store.dir(), "/used/", DigestHex(image.manifest));
  ASSERT_EQ(::utimensat(AT_FDCWD, used.c_str(), times, 0), 0);
}

TEST_F(StoreTest, OldImagesGoWhenTheDiskFills) {
  auto one = Import(MakeLayout("one", {Layer("one")}));
  auto two = Import(MakeLayout("two", {Layer("two")}));
  auto three = Import(MakeLayout("three", {Layer("three")}));
  ASSERT_TRUE(one.ok() && two.ok() && three.ok());
  PulledAt(store_, *one, 3000);
  PulledAt(store_, *two, 2000);
  PulledAt(store_, *three, 1000);
  std::vector<int> readings{70};
  auto percent = [&readings] {
    const int now = readings.front();
    if (readings.size() > 1) readings.erase(readings.begin());
    return now;
  };
  ImageStore::GcPolicy policy;
  policy.used_percent = percent;
  EXPECT_TRUE(store_.CollectGarbage(policy, 10'000)->empty());
  readings = {90, 90, 79};
  EXPECT_EQ(store_.CollectGarbage(policy, 10'000).value(),
            std::vector<std::string>{"docker.io/test/three:1"});
  readings = {99};
  // The youngest is too young, whatever the disk says.
  EXPECT_EQ(store_.CollectGarbage(policy, 3060).value(),
            std::vector<std::string>{"docker.io/test/two:1"});
  EXPECT_EQ(store_.List()->size(), 1u);
}

TEST_F(StoreTest, ImportedImagesStayWhenTheDiskFills) {
  ASSERT_TRUE(Import(MakeLayout("one", {Layer("one")})).ok());
  ImageStore::GcPolicy policy;
  policy.used_percent = [] { return 99; };
  EXPECT_TRUE(store_.CollectGarbage(policy, INT64_MAX)->empty());
  EXPECT_EQ(store_.List()->size(), 1u);
}

TEST_F(StoreTest, TheServiceLooksAtTheDiskFromTimeToTime) {
  auto one = Import(MakeLayout("one", {Layer("one")}));
  auto two = Import(MakeLayout("two", {Layer("two")}));
  ASSERT_TRUE(one.ok() && two.ok());
  PulledAt(store_, *one, 1000);
  PulledAt(store_, *two, 2000);
  std::atomic<bool> full{false};  // others than pulls fill the disk, too
  int looks = 0;
  std::promise<void> removed;
  ImageStore::GcPolicy policy;
  policy.used_percent = [&] {
    if (!full) return 70;
    if (++looks == 3) removed.set_value();
    return looks <= 2 ? 90 : 70;
  };
  ImageService service({.store_dir = store_.dir(),
                        .registries_file = "",
                        .registry = {},
                        .garbage = policy,
                        .tidy_interval = std::chrono::milliseconds(1)});
  // Once it answers, its start is over.
  std::promise<void> started;
  service.Ensure({.image = "absent", .policy = PullPolicy::kNever},
                 {.on_pull = {}, .done = [&started](const auto&) { started.set_value(); }});
  started.get_future().wait();
  full = true;
  removed.get_future().wait();
  auto left = store_.List();
  ASSERT_TRUE(left.ok());
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().name, two->name);
}

TEST_F(StoreTest, PreloadedFilesAreImportedOnce) {
  const std::string layout = MakeLayout("app", {Layer("one")});
  std::error_code error;
  std::filesystem::rename(layout, store_.PreloadDir() + "/app", error);
  ASSERT_FALSE(error);
  ASSERT_TRUE(WriteFileAtomically(store_.PreloadDir() + "/junk.tar", "junk").ok());
  EXPECT_EQ(ImportPreloaded(store_, cancel_).size(), 1u);  // junk
  ASSERT_TRUE(store_.Remove("docker.io/test/app:1", false).ok());
  EXPECT_EQ(ImportPreloaded(store_, cancel_).size(), 1u);
  EXPECT_TRUE(store_.List()->empty());  // removed on purpose: it stays removed
}

// ---- the service ----

class ServiceTest : public StoreTest {
 protected:
  Result<EnsuredImage> Ensure(EnsureRequest request) {
    Mutex mutex;
    CondVar changed;
    std::optional<Result<EnsuredImage>> answer;
    ImageService service({.store_dir = store_.dir(),
                          .registries_file = dir_.File("registries.yaml"),
                          .registry = {.stall = std::chrono::seconds(1), .attempts = 1}});
    service.Ensure(std::move(request), {.done = [&](Result<EnsuredImage> result) {
                     MutexLock lock(mutex);
                     answer = std::move(result);
                     changed.NotifyAll();
                   }});
    MutexLock lock(mutex);
    while (!answer) changed.Wait(mutex);
    return *answer;
  }
};

TEST_F(ServiceTest, TheStoreComesBeforeTheCatalogueAndBothBeforeTheRegistry) {
  ASSERT_TRUE(Import(MakeLayout("app", {Layer("one")}), "busybox").ok());
  auto stored = Ensure({.image = "busybox", .policy = PullPolicy::kAlways, .in_catalogue = true});
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_FALSE(stored->manifest.empty());
  EXPECT_FALSE(stored->pulled);
  EXPECT_TRUE(stored->id.starts_with("docker.io/library/busybox@sha256:")) << stored->id;
  auto catalogue = Ensure({.image = "python:3", .in_catalogue = true});
  ASSERT_TRUE(catalogue.ok());
  EXPECT_TRUE(catalogue->manifest.empty());
  // Port 9 of the loopback answers nobody.
  auto missing = Ensure({.image = "127.0.0.1:9/app"});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("swell images import"), std::string::npos)
      << missing.status().message();
}

TEST_F(ServiceTest, FailuresAreTold) {
  EXPECT_EQ(Ensure({.image = "Bad Name"}).status().code(), Code::kInvalid);
  EXPECT_EQ(Ensure({.image = "absent", .policy = PullPolicy::kNever}).status().code(),
            Code::kMethodNotAllowed);
}

TEST_F(ServiceTest, OnlyABadNameIsCalledOne) {
  ASSERT_TRUE(
      WriteFileAtomically(dir_.File("registries.yaml"), "registries: [{host: 'https://a'}]").ok());
  const Status why = Ensure({.image = "127.0.0.1:9/app"}).status();
  EXPECT_EQ(why.code(), Code::kInternal);
  EXPECT_NE(why.message().find("an administrator must mend registries.yaml"), std::string::npos)
      << why.message();
}

TEST_F(ServiceTest, APrivateImageIsForPodsWithItsCredential) {
  auto image = Import(MakeLayout("app", {Layer("one")}), "127.0.0.1:9/app");
  ASSERT_TRUE(image.ok());
  const Credential mine{"127.0.0.1:9", "me", "secret", ""};
  image->imported = false;
  image->credentials = {mine.Fingerprint()};
  ASSERT_TRUE(store_.Put(*image).ok());
  EXPECT_TRUE(Ensure({.image = "127.0.0.1:9/app", .credentials = {mine}}).ok());
  EXPECT_FALSE(Ensure({.image = "127.0.0.1:9/app"}).ok());
  Credential other = mine;
  other.password = "guess";
  EXPECT_FALSE(Ensure({.image = "127.0.0.1:9/app", .credentials = {other}}).ok());
  auto never = Ensure({.image = "127.0.0.1:9/app", .policy = PullPolicy::kNever});
  EXPECT_EQ(never.status().code(), Code::kMethodNotAllowed);
}

TEST(StoredImage, KeepsTheLatestCredentials) {
  StoredImage image;
  for (size_t i = 0; i < StoredImage::kCredentialsMax; ++i) image.AddCredential(StrCat(i));
  image.AddCredential("0");
  EXPECT_EQ(image.credentials.size(), StoredImage::kCredentialsMax);
  EXPECT_EQ(image.credentials.front(), "1");
  EXPECT_EQ(image.credentials.back(), "0");
  image.AddCredential("new");
  EXPECT_EQ(image.credentials.size(), StoredImage::kCredentialsMax);
  EXPECT_EQ(image.credentials.front(), "2");
  EXPECT_EQ(image.credentials.back(), "new");
}

}  // namespace
}  // namespace swell::images
