// swell images list, pull, import, export, remove, explain.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "kube/images/image_service.h"
#include "kube/process/files/image_catalogue.h"
#include "ops/commands.h"
#include "ops/data_dir.h"
#include "ops/flags.h"

namespace swell::ops {
namespace {

using images::ImageStore;
using images::StoredImage;

constexpr std::chrono::milliseconds kQuiet(2000);  // before progress is shown
constexpr std::chrono::milliseconds kRedraw(250);

std::string SizeText(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1000 && unit + 1 < std::size(kUnits)) {
    amount /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || amount >= 100 ? "%.0f %s" : "%.1f %s", amount,
                kUnits[unit]);
  return text;
}

// A line on the terminal that tells how far a pull is, from its third second on.
class ProgressLine {
 public:
  explicit ProgressLine(const images::PullProgress& progress) : progress_(progress) {
    if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { Run(); });
  }
  ~ProgressLine() {
    end_.Cancel();
    if (thread_.joinable()) thread_.join();
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void Run() {
    for (auto pause = kQuiet; end_.Wait(pause); pause = kRedraw) {
      shown_ = true;
      std::fprintf(stderr, "\r\033[K%s of %s, %d of %d layers", SizeText(progress_.bytes).c_str(),
                   SizeText(progress_.bytes_total).c_str(), progress_.layers.load(),
                   progress_.layers_total.load());
    }
  }

  const images::PullProgress& progress_;
  images::Cancellation end_;
  bool shown_ = false;
  std::thread thread_;
};

class ImagesAction : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_flag_);
    flags.Text("--image-store", &store_flag_, "DIR",
               "directory of the images (default: the one that swell up of this data directory "
               "uses)");
  }

 protected:
  // What only reads finds a data directory; it makes none.
  Status OpenExisting() {
    if (!data_dir_flag_.empty() && !FileExists(FindDataDir(data_dir_flag_).path)) {
      return cli::Misuse(StrCat("--data-dir ", data_dir_flag_, ": there is no such directory"));
    }
    return Open();
  }
  Status Open() {
    dir_ = FindDataDir(data_dir_flag_);
    store_ = std::make_unique<ImageStore>(ImageStoreOf(dir_, store_flag_));
    return store_->Prepare();
  }
  void DeclareOutput(cli::Flags& flags) {
    flags.Choice("-o,--output", &output_, "FORMAT", {"json"}, "output format: json");
  }
  Result<process::ImageCatalogue> Catalogue() const {
    return process::ImageCatalogue::Load({.config_dir = dir_.path,
                                          .tools_dir = dir_.path + "/catalogue",
                                          .sdk_dir = FindSdk(),
                                          .writes_tools = false});
  }
  std::string RegistriesFile() const { return dir_.path + "/registries.yaml"; }
  // The name as the store has it.
  Result<StoredImage> FindStored(const std::string& text) const {
    SWELL_ASSIGN_OR_RETURN(const images::Reference name, images::ParseReference(text));
    return store_->Find(name.Name());
  }
  static json::Value ToJson(const StoredImage& image) {
    return json::Object{{"name", image.name},
                        {"digest", image.digest},
                        {"sizeBytes", image.size_bytes},
                        {"source", image.imported ? "import" : "registry"},
                        {"private", !image.credentials.empty()}};
  }

  DataDir dir_;
  std::unique_ptr<ImageStore> store_;
  std::string output_;

 private:
  std::string data_dir_flag_;
  std::string store_flag_;
};

class ListAction final : public ImagesAction {
 public:
  void Declare(cli::Flags& flags) override {
    ImagesAction::Declare(flags);
    DeclareOutput(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_RETURN_IF_ERROR(OpenExisting());
    SWELL_ASSIGN_OR_RETURN(const std::vector<StoredImage> all, store_->List());
    SWELL_ASSIGN_OR_RETURN(const process::ImageCatalogue catalogue, Catalogue());
    output_ == "json" ? PrintJson(session, all, catalogue) : PrintTable(session, all, catalogue);
    return 0;
  }

 private:
  // Sorted. Several entries may have a name in common.
  static std::set<std::string> NamesOf(const process::ImageCatalogue& catalogue) {
    std::set<std::string> names;
    for (const process::ImageEntry& entry : catalogue.entries()) {
      names.insert(entry.match.begin(), entry.match.end());
    }
    return names;
  }
  void PrintJson(cli::Session& session,
                 const std::vector<StoredImage>& all,
                 const process::ImageCatalogue& catalogue) {
    json::Array list, names;
    for (const StoredImage& image : all) list.push_back(ToJson(image));
    for (const std::string& pattern : NamesOf(catalogue)) names.push_back(json::Value(pattern));
    session.OutLine(json::PrintPretty(
        json::Object{{"images", std::move(list)}, {"catalogue", std::move(names)}}));
  }
  void PrintTable(cli::Session& session,
                  const std::vector<StoredImage>& all,
                  const process::ImageCatalogue& catalogue) {
    cli::TextTable table({"NAME", "DIGEST", "SIZE", "SOURCE"});
    for (const StoredImage& image : all) {
      const std::string source = image.imported              ? "import"
                                 : image.credentials.empty() ? "registry"
                                                             : "registry, private";
      table.Add({image.name, std::string(images::DigestHex(image.digest).substr(0, 12)),
                 SizeText(image.size_bytes), source});
    }
    for (const std::string& pattern : NamesOf(catalogue)) {
      table.Add({pattern, "-", "-", "catalogue"});
    }
    session.Out(table.ToString());
  }
};

class PullAction final : public ImagesAction {
 public:
  void Declare(cli::Flags& flags) override {
    ImagesAction::Declare(flags);
    flags.Text("--docker-config", &config_, "FILE",
               "credentials, as docker login writes them (default ~/.docker/config.json if there "
               "is one)");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.empty()) return cli::Misuse("expected NAME...");
    SWELL_RETURN_IF_ERROR(Open());
    SWELL_ASSIGN_OR_RETURN(const std::vector<images::Credential> credentials, Credentials());
    SWELL_ASSIGN_OR_RETURN(const auto registries, images::RegistriesConfig::Load(RegistriesFile()));
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(const images::Reference name, images::ParseReference(word));
      images::PullProgress progress;
      const images::Cancellation cancel;
      const ProgressLine line(progress);
      auto pulled = images::PullByName(*store_, name, registries, credentials,
                                       {.puller = images::Puller::kPerson}, progress, cancel);
      if (!pulled.ok()) return Advise(pulled.status()).WithContext(Quote(word));
      SWELL_RETURN_IF_ERROR(store_->Settle());
      session.OutLine(
          StrCat(pulled->name, " ", pulled->digest, " (", SizeText(pulled->size_bytes), ")"));
    }
    return 0;
  }

 private:
  Result<std::vector<images::Credential>> Credentials() {
    std::string file = config_;
    if (file.empty()) file = Environment("HOME") + "/.docker/config.json";
    if (config_.empty() && !FileExists(file)) return std::vector<images::Credential>();
    SWELL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, 4 << 20));
    auto read = images::ParseDockerConfig(text);
    if (!read.ok()) return read.status().WithContext(file);
    const auto config = json::Parse(text);
    const bool helped = config.ok() && (json::Find(*config, {"credsStore"}) != nullptr ||
                                        json::Find(*config, {"credHelpers"}) != nullptr);
    if (helped) with_helper_ = file;
    return read;
  }

  Status Advise(const Status& status) const {
    const bool refused = status.code() == Code::kUnauthorized || status.code() == Code::kForbidden;
    if (!refused || with_helper_.empty()) return status;
    return Status(status.code(),
                  StrCat(status.message(), ". ", with_helper_,
                         " leaves credentials to a helper (credsStore), which is not asked"),
                  status.details());
  }

  std::string config_;
  std::string with_helper_;  // the file with credentials, if it names a helper that has more
};

class ImportAction final : public ImagesAction {
 public:
  void Declare(cli::Flags& flags) override {
    ImagesAction::Declare(flags);
    flags.Text("--name", &name_, "NAME", "name that pods use (default: the one in the file)");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one SOURCE");
    SWELL_RETURN_IF_ERROR(Open());
    images::PullProgress progress;
    const images::Cancellation cancel;
    const ProgressLine line(progress);
    SWELL_ASSIGN_OR_RETURN(const StoredImage image,
                           images::ImportImage(*store_, words[0], name_, progress, cancel));
    session.OutLine(StrCat(image.name, " ", image.digest, " (", SizeText(image.size_bytes), ")"));
    return 0;
  }

 private:
  std::string name_;
};

class ExportAction final : public ImagesAction {
 public:
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 2) return cli::Misuse("expected NAME and DIR");
    SWELL_RETURN_IF_ERROR(OpenExisting());
    SWELL_ASSIGN_OR_RETURN(const StoredImage image, FindStored(words[0]));
    std::string dir = words[1];
    if (dir.starts_with("oci:")) dir.erase(0, 4);
    SWELL_RETURN_IF_ERROR(images::ExportImage(*store_, image, dir));
    session.OutLine(StrCat(image.name, " written to ", dir));
    return 0;
  }
};

class RemoveAction final : public ImagesAction {
 public:
  void Declare(cli::Flags& flags) override {
    ImagesAction::Declare(flags);
    flags.Switch("--force", &force_, "even if containers use the image; they keep its files");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.empty()) return cli::Misuse("expected NAME...");
    SWELL_RETURN_IF_ERROR(OpenExisting());
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(const StoredImage image, FindStored(word));
      SWELL_RETURN_IF_ERROR(store_->Remove(image.name, force_));
      session.OutLine(StrCat(image.name, " removed"));
    }
    return 0;
  }

 private:
  bool force_ = false;
};

class ExplainAction final : public ImagesAction {
 public:
  void Declare(cli::Flags& flags) override {
    ImagesAction::Declare(flags);
    DeclareOutput(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one NAME");
    SWELL_RETURN_IF_ERROR(OpenExisting());
    SWELL_ASSIGN_OR_RETURN(const process::ImageCatalogue catalogue, Catalogue());
    const auto entry = catalogue.Find(words[0]);
    const bool in_catalogue = entry.ok();
    const std::string python = in_catalogue ? entry->python : "";
    auto name = images::ParseReference(words[0]);
    if (!name.ok() && !in_catalogue) return name.status();
    std::string full = words[0];
    std::optional<StoredImage> stored;
    std::vector<std::string> places;
    if (name.ok()) {
      full = name->Name();
      auto found = store_->Find(full);
      if (found.ok()) stored = std::move(*found);
      SWELL_ASSIGN_OR_RETURN(const auto registries,
                             images::RegistriesConfig::Load(RegistriesFile()));
      for (const images::Endpoint& place : registries.EndpointsOf(name->host)) {
        places.push_back(place.url);
      }
    }
    if (output_ == "json") {
      PrintJson(session, full, stored, in_catalogue, python, places);
      return 0;
    }
    session.OutLine(StrCat(words[0], " is ", full, "."));
    if (stored) {
      session.OutLine(StrCat("Pods run the image in the store: ", stored->digest, ", ",
                             SizeText(stored->size_bytes), ", from ",
                             stored->imported ? "an import." : "its registry."));
      if (!stored->credentials.empty()) {
        session.OutLine("It is private: a pod needs an imagePullSecret that the registry accepts.");
      }
    } else if (in_catalogue) {
      session.OutLine("Pods run this machine's own programs: the catalogue serves the name.");
      if (!python.empty()) session.OutLine(StrCat("Their Python is ", python, "."));
      session.OutLine(StrCat("For the image itself: swell images pull ", words[0]));
    } else {
      session.OutLine(StrCat("Neither the store nor the catalogue has it: it is pulled from ",
                             Join(places, ", then "), "."));
      const std::string nearest = catalogue.Nearest(words[0]);
      if (!nearest.empty()) session.OutLine(StrCat("Did you mean ", nearest, "?"));
    }
    return 0;
  }

 private:
  void PrintJson(cli::Session& session,
                 const std::string& full,
                 const std::optional<StoredImage>& stored,
                 bool in_catalogue,
                 const std::string& python,
                 const std::vector<std::string>& places) {
    json::Array list;
    for (const std::string& place : places) list.push_back(json::Value(place));
    json::Value out = json::Object{{"name", full},
                                   {"servedBy", stored         ? "store"
                                                : in_catalogue ? "catalogue"
                                                               : "registry"},
                                   {"registries", std::move(list)}};
    if (stored) json::Set(out, {"image"}, ToJson(*stored));
    if (!stored && !python.empty()) json::Set(out, {"python"}, python);
    session.OutLine(json::PrintPretty(out));
  }
};

bool IsThisMachine(std::string_view url) {
  for (std::string_view prefix : {"https://127.", "https://localhost:", "https://[::1]:"}) {
    if (url.starts_with(prefix)) return true;
  }
  return false;
}

// Whether the store has the image. True also if that cannot be known, because the user may not read
// the store.
bool MayBeStored(const DataDir& dir, const std::string& image) {
  const std::string store = ImageStoreOf(dir, "");
  if (!FileExists(store)) return false;
  const auto name = images::ParseReference(image);
  return !name.ok() || !ListDir(store).ok() || ImageStore(store).Find(name->Name()).ok();
}

}  // namespace

std::string MeantImage(std::string_view url, const std::string& image) {
  if (!IsThisMachine(url)) return "";
  const DataDir dir = FindDataDir("");
  const auto catalogue = process::ImageCatalogue::Load({.config_dir = dir.path,
                                                        .tools_dir = dir.path + "/catalogue",
                                                        .sdk_dir = "",
                                                        .writes_tools = false});
  if (!catalogue.ok() || catalogue->Find(image).ok()) return "";
  std::string nearest = catalogue->Nearest(image);
  return nearest.empty() || MayBeStored(dir, image) ? "" : nearest;
}

cli::Command ImagesCommand() {
  cli::Command images{.name = "images",
                      .group = "Cluster",
                      .summary = "Manage container images on this machine.",
                      .standalone = true};
  images.notes =
      "A name means the first of these that exists: the image in the store, the entry of the "
      "catalogue, the image in its registry. See docs/images.md.";
  images.children = {
      {.name = "list",
       .aliases = {"ls"},
       .summary = "List the images in the store and the names in the catalogue.",
       .examples = {{"As a table", "swell images list"}},
       .standalone = true,
       .make = cli::Makes<ListAction>()},
      {.name = "pull",
       .summary = "Pull images from their registries.",
       .usage = "NAME...",
       .examples = {{"Before the first pod needs it", "swell images pull python:3.12-slim"}},
       .standalone = true,
       .make = cli::Makes<PullAction>()},
      {.name = "import",
       .summary = "Import an image from a file or directory.",
       .usage = "SOURCE",
       .examples = {{"A directory in OCI's layout", "swell images import oci:./app --name app:1"},
                    {"What docker save wrote", "swell images import docker-archive:app.tar"}},
       .standalone = true,
       .make = cli::Makes<ImportAction>()},
      {.name = "export",
       .summary = "Write an image as a directory in OCI's layout.",
       .usage = "NAME DIR",
       .examples = {{"For another machine", "swell images export app:1 ./app"}},
       .standalone = true,
       .make = cli::Makes<ExportAction>()},
      {.name = "remove",
       .aliases = {"rm"},
       .summary = "Remove images from the store.",
       .usage = "NAME...",
       .examples = {{"One image", "swell images remove app:1"}},
       .standalone = true,
       .make = cli::Makes<RemoveAction>()},
      {.name = "explain",
       .summary = "Show what the name of an image means on this machine.",
       .usage = "NAME",
       .examples = {{"Whether pods run the catalogue's entry", "swell images explain python"}},
       .standalone = true,
       .make = cli::Makes<ExplainAction>()}};
  return images;
}

}  // namespace swell::ops
