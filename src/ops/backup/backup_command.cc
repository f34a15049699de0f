// swell backup, restore.
#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "ops/backup/backup.h"
#include "ops/commands.h"
#include "ops/flags.h"

namespace swell::ops {
namespace {

constexpr size_t kPassphraseBytesMax = 4096;

void AddPassphrase(cli::Flags& flags, std::string& to) {
  flags.Text("--passphrase-file", &to, "FILE",
             "file whose first line is the passphrase that keys and Secrets are encrypted with");
}

// Empty: no file is named.
Result<std::string> ReadPassphrase(const std::string& file) {
  if (file.empty()) return std::string();
  auto text = ReadFile(file, kPassphraseBytesMax);
  if (!text.ok()) return text.status().WithContext("--passphrase-file");
  const std::string line(Trim(std::string_view(*text).substr(0, text->find('\n'))));
  if (line.empty()) {
    return Status(Code::kInvalid, StrCat("--passphrase-file ", file, ": its first line is empty"));
  }
  return line;
}

class BackupAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_);
    AddPassphrase(flags, passphrase_file_);
    flags.Switch("--force", &force_, "replace FILE if it is there");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one FILE");
    if (!force_ && FileExists(words[0])) {
      return Status(Code::kConflict,
                    StrCat(words[0], " is there already; name another file, or add --force"));
    }
    SWELL_ASSIGN_OR_RETURN(const std::string passphrase, ReadPassphrase(passphrase_file_));
    SWELL_RETURN_IF_ERROR(Backup(ChooseDataDir(data_dir_), words[0], passphrase,
                                 [&](std::string_view line) { session.OutLine(line); }));
    if (passphrase.empty()) {
      session.ErrLine(
          "The file contains the cluster's keys in plain text. A user who reads it can act as its "
          "administrator. --passphrase-file encrypts them.");
    }
    return 0;
  }

 private:
  std::string data_dir_;
  std::string passphrase_file_;
  bool force_ = false;
};

class RestoreAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_);
    flags.Switch("--force", &force_,
                 "replace an existing cluster; it is kept as swell.db.before-restore, "
                 "pki.before-restore and so on");
    AddPassphrase(flags, passphrase_file_);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one FILE");
    SWELL_ASSIGN_OR_RETURN(const std::string passphrase, ReadPassphrase(passphrase_file_));
    SWELL_RETURN_IF_ERROR(Restore(ChooseDataDir(data_dir_), words[0],
                                  force_ ? ClusterThere::kIsReplaced : ClusterThere::kIsKept,
                                  passphrase,
                                  [&](std::string_view line) { session.OutLine(line); }));
    return 0;
  }

 private:
  std::string data_dir_;
  std::string passphrase_file_;
  bool force_ = false;
};

}  // namespace

cli::Command BackupCommand() {
  return {
      .name = "backup",
      .group = "Cluster",
      .summary = "Write the cluster of this machine to a file. The cluster may keep running.",
      .usage = "FILE",
      .examples = {{"All objects except Secrets, and keys in plain text",
                    "swell backup cluster.tar"},
                   {"Secrets and users too, encrypted",
                    "swell backup --passphrase-file /root/backup.pass cluster.tar"},
                   {"Every night, from a cron job",
                    "swell backup --data-dir /var/lib/swell --passphrase-file /root/backup.pass "
                    "/srv/backup/swell-$(date +%F).tar"}},
      .notes =
          "With a passphrase, the file contains the cluster's keys and Secrets, encrypted. Without "
          "one it contains no Secrets (users are Secrets, too), but keys in plain text. Only its "
          "owner can read it (mode 0600). It does not contain data that pods wrote.",
      .standalone = true,
      .make = cli::Makes<BackupAction>()};
}

cli::Command RestoreCommand() {
  return {
      .name = "restore",
      .group = "Cluster",
      .summary = "Restore a cluster from a file written by swell backup.",
      .usage = "FILE",
      .examples = {{"On this machine or another", "swell restore cluster.tar && swell up --detach"},
                   {"Into another directory", "swell restore --data-dir /tmp/copy cluster.tar"}},
      .standalone = true,
      .make = cli::Makes<RestoreAction>()};
}

}  // namespace swell::ops
