#include "ops/backup/backup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/pods/tar.h"
#include "kube/api/meta/meta.h"
#include "kube/store/backend.h"
#include "ops/access/secret_keys.h"
#include "ops/remote_process.h"

namespace swell::ops {
namespace {

namespace fs = std::filesystem;

constexpr char kFormat[] = "swell.dev/backup/v2";
// Its keys and Secrets are in plain text.
constexpr char kPlainFormat[] = "swell.dev/backup/v1";
constexpr char kSecretsKey[] = "secrets.key";
constexpr char kTop[] = "swell-backup";
constexpr size_t kPieceBytes = size_t{1} << 20;

// A path that is removed when it goes out of scope.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() {
    if (!path_.empty()) (void)RemoveTree(path_);  // a leftover does no harm
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

struct Copied {
  std::string file;
  int64_t version = 0;
  int64_t objects = 0;
  int64_t left_out = 0;  // Secrets
};

// A running cluster copies its database itself.
Result<Copied> CopyRunning(const DataDir& dir) {
  SWELL_ASSIGN_OR_RETURN(auto process,
                         RemoteProcess::Connect({.kubeconfig = dir.Kubeconfig()}, {}));
  SWELL_ASSIGN_OR_RETURN(json::SharedValue answer,
                         process->Call({.method = "POST", .path = "/swell/v1/backup"}));
  return Copied{std::string(json::GetString(*answer, {"file"})), json::GetInt(*answer, {"version"}),
                json::GetInt(*answer, {"objects"})};
}

Result<Copied> CopyStopped(const DataDir& dir, std::shared_ptr<const SecretKeys> keys) {
  SWELL_ASSIGN_OR_RETURN(auto snapshot, store::ReadDatabase(dir.Database(), keys));
  Copied copied{StrCat(dir.path, "/backup-", ::getpid(), ".db"),
                static_cast<int64_t>(snapshot.version),
                static_cast<int64_t>(snapshot.entries.size())};
  SWELL_RETURN_IF_ERROR(store::WriteDatabase(copied.file, snapshot, std::move(keys)));
  return copied;
}

// The copy without its Secrets, in its place.
Status DropSecrets(Copied& copied, std::shared_ptr<const SecretKeys> keys) {
  SWELL_ASSIGN_OR_RETURN(auto snapshot, store::ReadDatabase(copied.file, std::move(keys)));
  const size_t all = snapshot.entries.size();
  std::erase_if(snapshot.entries,
                [](const auto& entry) { return entry->key.resource == "secrets"; });
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    SWELL_RETURN_IF_ERROR(RemoveTree(copied.file + suffix));
  }
  SWELL_RETURN_IF_ERROR(store::WriteDatabase(copied.file, snapshot));
  copied.objects = static_cast<int64_t>(snapshot.entries.size());
  copied.left_out = static_cast<int64_t>(all - snapshot.entries.size());
  return Status::Ok();
}

Status CopyFile(const std::string& from, const std::string& to, int mode) {
  SWELL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from));
  return WriteFileAtomically(to, bytes, mode);
}

Status MoveFile(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return Status::Ok();
  return ErrnoStatus(errno, StrCat("rename ", from, " to ", to));
}

// Checksums of the parts. The database has its own, one per row.
Result<json::Object> Sums(const std::string& at) {
  std::vector<std::string> names{"port", "images.yaml", "cluster.json"};
  SWELL_ASSIGN_OR_RETURN(const auto keys, ListDir(at + "/pki"));
  for (const std::string& key : keys) names.push_back(StrCat("pki/", key));
  json::Object sums;
  for (const std::string& name : names) {
    const std::string path = StrCat(at, "/", name);
    if (!FileExists(path)) continue;
    SWELL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    sums[name] = std::to_string(StableHash(bytes));
  }
  return sums;
}

// A file of pki/: keys under the passphrase, where there is one.
Status CopyKey(const std::string& from,
               const std::string& to,
               bool key,
               const std::string& passphrase) {
  SWELL_ASSIGN_OR_RETURN(std::string bytes, ReadFile(from));
  if (key && !passphrase.empty()) {
    SWELL_ASSIGN_OR_RETURN(bytes, SealByPassphrase(bytes, passphrase));
  }
  return WriteFileAtomically(to, bytes, key ? 0600 : 0644);
}

// Everything that goes into the archive, in one directory.
Status Gather(const DataDir& dir,
              const Copied& copied,
              const std::string& passphrase,
              const std::string& to) {
  SWELL_RETURN_IF_ERROR(MakeDirs(to + "/pki", 0700));
  SWELL_RETURN_IF_ERROR(MoveFile(copied.file, to + "/swell.db"));
  SWELL_ASSIGN_OR_RETURN(auto names, ListDir(dir.path + "/pki"));
  for (const std::string& name : names) {
    if (name == kSecretsKey && passphrase.empty()) continue;
    SWELL_RETURN_IF_ERROR(CopyKey(StrCat(dir.path, "/pki/", name), StrCat(to, "/pki/", name),
                                  name.ends_with(".key"), passphrase));
  }
  for (const std::string& file :
       {dir.PortFile(), dir.ImageCatalogue(), dir.path + "/cluster.json"}) {
    if (!FileExists(file)) continue;
    const std::string name = file.substr(file.rfind('/') + 1);
    SWELL_RETURN_IF_ERROR(CopyFile(file, StrCat(to, "/", name), 0644));
  }
  SWELL_ASSIGN_OR_RETURN(json::Object sums, Sums(to));
  const json::Value what = json::Object{{"format", kFormat},
                                        {"version", cli::Version()},
                                        {"created", api::FormatTime(RealClock().Now())},
                                        {"resourceVersion", copied.version},
                                        {"objects", copied.objects},
                                        {"sums", std::move(sums)}};
  return WriteFileAtomically(to + "/backup.json", json::PrintPretty(what) + "\n");
}

Status WriteArchive(const std::string& from, const std::string& file) {
  const std::string partial = file + ".partial";
  std::FILE* out = std::fopen(partial.c_str(), "wbe");
  if (out == nullptr) return ErrnoStatus(errno, "create " + partial);
  Status status =
      ::fchmod(::fileno(out), 0600) == 0 ? Status::Ok() : ErrnoStatus(errno, "chmod " + partial);
  cli::TarWriter writer(from, kTop);
  while (status.ok()) {
    auto piece = writer.Next();
    if (!piece.ok()) status = piece.status();
    if (!status.ok() || piece->empty()) break;
    if (std::fwrite(piece->data(), 1, piece->size(), out) != piece->size()) {
      status = ErrnoStatus(errno, "write " + partial);
    }
  }
  if (status.ok() && (std::fflush(out) != 0 || ::fsync(::fileno(out)) != 0)) {
    status = ErrnoStatus(errno, "write " + partial);
  }
  std::fclose(out);
  if (status.ok()) status = MoveFile(partial, file);
  if (!status.ok()) (void)RemoveTree(partial);  // the first error says it all
  return status;
}

}  // namespace

Status Backup(const DataDir& dir,
              const std::string& file,
              const std::string& passphrase,
              const PrintLine& print) {
  if (!FileExists(dir.Database())) {
    return Status(Code::kNotFound,
                  StrCat("there is no cluster in ", dir.path, "; --data-dir names its directory"));
  }
  if (fs::path(file).filename().empty() || fs::is_directory(file)) {
    return Status(Code::kInvalid, StrCat(file, " is a directory; expected the name of a file"));
  }
  const bool running = FindRunning(dir).has_value();
  SWELL_ASSIGN_OR_RETURN(const auto keys, LoadOrMakeSecretKeys(dir));
  SWELL_ASSIGN_OR_RETURN(Copied copied, running ? CopyRunning(dir) : CopyStopped(dir, keys));
  const Scratch database(copied.file);
  if (passphrase.empty()) SWELL_RETURN_IF_ERROR(DropSecrets(copied, keys));
  const Scratch scratch(StrCat(dir.path, "/backup-", ::getpid(), ".tmp"));
  SWELL_RETURN_IF_ERROR(Gather(dir, copied, passphrase, scratch.path()));
  SWELL_RETURN_IF_ERROR(WriteArchive(scratch.path(), file));
  print(StrCat(file, ": ", copied.objects, " objects of the ", running ? "running" : "stopped",
               " cluster in ", dir.path, ", as of resourceVersion ", copied.version));
  if (copied.left_out > 0) {
    print(
        StrCat(copied.left_out,
               " Secrets are left out, users among them; --passphrase-file FILE takes them along, "
               "encrypted"));
  }
  return Status::Ok();
}

namespace {

Status Unpack(const std::string& file, const std::string& to) {
  SWELL_ASSIGN_OR_RETURN(UniqueFd fd, OpenToRead(file));
  std::FILE* in = ::fdopen(fd.get(), "rb");
  if (in == nullptr) return ErrnoStatus(errno, "open " + file);
  // The stream closes it.
  [[maybe_unused]] const int streamed = fd.Release();
  cli::TarReader reader(kTop, to, [](std::string_view) {});
  Status status;
  std::string piece(kPieceBytes, '\0');
  while (status.ok()) {
    const size_t n = std::fread(piece.data(), 1, piece.size(), in);
    if (n == 0) break;
    status = reader.Feed(std::string_view(piece).substr(0, n));
  }
  if (status.ok() && std::ferror(in) != 0) status = ErrnoStatus(EIO, "read " + file);
  std::fclose(in);
  if (status.ok()) status = reader.Finish();
  return status.WithContext(file);
}

// Decrypts the keys, in their place.
Status OpenKeys(const std::string& file, const std::string& at, const std::string& passphrase) {
  SWELL_ASSIGN_OR_RETURN(const auto names, ListDir(at + "/pki"));
  for (const std::string& name : names) {
    const std::string path = StrCat(at, "/pki/", name);
    SWELL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    if (!IsSealedByPassphrase(bytes)) continue;
    if (passphrase.empty()) {
      return Status(Code::kUnauthorized, StrCat(file,
                                                " was written with a passphrase; name the "
                                                "file that has it: --passphrase-file FILE"));
    }
    auto plain = OpenByPassphrase(bytes, passphrase);
    if (!plain.ok()) {
      return Status(Code::kUnauthorized,
                    StrCat(file, ": the passphrase is not the one that it was written with"));
    }
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(path, *plain, 0600));
  }
  return Status::Ok();
}

// The keys of the archive's Secrets; null: it has none.
Result<std::shared_ptr<const SecretKeys>> KeysIn(const std::string& at) {
  const std::string path = StrCat(at, "/pki/", kSecretsKey);
  if (!FileExists(path)) return std::shared_ptr<const SecretKeys>();
  SWELL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return SecretKeys::Parse(text, path);
}

// Checks the archive before anything is replaced.
Result<json::Value> Examine(const std::string& file,
                            const std::string& at,
                            const std::string& passphrase) {
  auto text = ReadFile(at + "/backup.json", 1 << 16);
  auto what = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
  const std::string format(what.ok() ? json::GetString(*what, {"format"}) : "");
  if (format.empty()) {
    return Status(Code::kInvalid, StrCat(file, ": not a file written by swell backup"));
  }
  if (format != kFormat && format != kPlainFormat) {
    return Status(Code::kInvalid, StrCat(file, ": unknown format ", Quote(format), "; swell ",
                                         cli::Version(), " reads ", Quote(kFormat)));
  }
  for (const char* part : {"swell.db", "pki/ca.crt", "pki/ca.key", "pki/sa.key"}) {
    if (!FileExists(StrCat(at, "/", part))) {
      return Status(Code::kInvalid,
                    StrCat(file, ": the backup is incomplete: ", part, " is missing"));
    }
  }
  SWELL_ASSIGN_OR_RETURN(const json::Object sums, Sums(at));
  for (const auto& [name, sum] : json::GetObject(*what, {"sums"})) {
    const json::Value* found = sums.if_contains(name);
    if (found != nullptr && *found == sum) continue;
    return Status(Code::kInvalid,
                  StrCat(file, ": ", std::string_view(name), " is missing or damaged"));
  }
  SWELL_RETURN_IF_ERROR(OpenKeys(file, at, passphrase));
  SWELL_ASSIGN_OR_RETURN(auto keys, KeysIn(at));
  auto snapshot = store::ReadDatabase(at + "/swell.db", std::move(keys));
  if (!snapshot.ok()) return snapshot.status().WithContext(file);
  const auto objects = static_cast<int64_t>(snapshot->entries.size());
  if (objects != json::GetInt(*what, {"objects"})) {
    return Status(Code::kInvalid, StrCat(file, ": expected ", json::GetInt(*what, {"objects"}),
                                         " objects, found ", objects));
  }
  SWELL_RETURN_IF_ERROR(RemoveTree(at + "/swell.db.lock"));
  return std::move(*what);
}

// Renames the parts of the old cluster to NAME.before-restore, replacing those of an earlier
// restore. The last writes of a killed cluster are in the log beside its database; SQLite finds it
// by name.
Status PutAside(const DataDir& dir, const PrintLine& print) {
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"swell.db", ""}, {"swell.db", "-wal"}, {"pki", ""},
      {"port", ""},     {"images.yaml", ""},  {"cluster.json", ""}};
  for (const auto& [name, suffix] : kParts) {
    const std::string path = StrCat(dir.path, "/", name, suffix);
    const std::string aside = StrCat(dir.path, "/", name, ".before-restore", suffix);
    SWELL_RETURN_IF_ERROR(RemoveTree(aside));
    if (!FileExists(path)) continue;
    SWELL_RETURN_IF_ERROR(MoveFile(path, aside));
    print(StrCat(path, " is now ", aside));
  }
  return MakeDirs(dir.path + "/pki", 0700);
}

}  // namespace

Status Restore(const DataDir& dir,
               const std::string& file,
               ClusterThere there,
               const std::string& passphrase,
               const PrintLine& print) {
  SWELL_RETURN_IF_ERROR(PrepareDataDir(dir));
  if (FindRunning(dir)) {
    return Status(Code::kConflict, StrCat("a cluster runs in ", dir.path,
                                          "; stop it first: swell down --data-dir ", dir.path));
  }
  if (FileExists(dir.Database()) && there == ClusterThere::kIsKept) {
    return Status(Code::kConflict,
                  StrCat(dir.path, " already holds a cluster; --force renames it"));
  }
  SWELL_RETURN_IF_ERROR(LockDataDir(dir));
  const Scratch scratch(StrCat(dir.path, "/restore-", ::getpid(), ".tmp"));
  SWELL_RETURN_IF_ERROR(MakeDirs(scratch.path(), 0700));
  SWELL_RETURN_IF_ERROR(Unpack(file, scratch.path()));
  SWELL_ASSIGN_OR_RETURN(const json::Value what, Examine(file, scratch.path(), passphrase));
  if (FileExists(dir.Database())) SWELL_RETURN_IF_ERROR(PutAside(dir, print));
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    SWELL_RETURN_IF_ERROR(RemoveTree(dir.Database() + suffix));
  }
  // An earlier key is not a key of this database.
  SWELL_RETURN_IF_ERROR(RemoveTree(StrCat(dir.path, "/pki/", kSecretsKey)));
  SWELL_ASSIGN_OR_RETURN(auto keys, ListDir(scratch.path() + "/pki"));
  for (const std::string& name : keys) {
    SWELL_RETURN_IF_ERROR(
        MoveFile(StrCat(scratch.path(), "/pki/", name), StrCat(dir.path, "/pki/", name)));
  }
  // Another cluster's record would refuse this one's keys.
  SWELL_RETURN_IF_ERROR(RemoveTree(dir.path + "/cluster.json"));
  for (const char* name : {"port", "images.yaml", "cluster.json"}) {
    const std::string from = StrCat(scratch.path(), "/", name);
    if (FileExists(from)) SWELL_RETURN_IF_ERROR(MoveFile(from, StrCat(dir.path, "/", name)));
  }
  // Last: from now on the cluster exists.
  SWELL_RETURN_IF_ERROR(MoveFile(scratch.path() + "/swell.db", dir.Database()));
  print(StrCat(json::GetInt(what, {"objects"}), " objects of ", json::GetString(what, {"created"}),
               " are in ", dir.path, "\nStart the cluster with: swell up --detach --data-dir ",
               dir.path));
  return Status::Ok();
}

}  // namespace swell::ops
