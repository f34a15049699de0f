// swell backup, restore.
#include "base/strings.h"
#include "cli/session.h"
#include "ops/backup.h"
#include "ops/commands.h"
#include "ops/flags.h"

namespace swell {
namespace {

class BackupAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { AddDataDir(flags, data_dir_); }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("one FILE expected");
    SWELL_RETURN_IF_ERROR(Backup(ChooseDataDir(data_dir_), words[0],
                                 [&](std::string_view line) { session.OutLine(line); }));
    return 0;
  }

 private:
  std::string data_dir_;
};

class RestoreAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_);
    flags.Switch("--force", &force_,
                 "replace an existing cluster; it is kept as swell.db.before-restore, "
                 "pki.before-restore and so on");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("one FILE expected");
    SWELL_RETURN_IF_ERROR(Restore(ChooseDataDir(data_dir_), words[0], force_,
                                  [&](std::string_view line) { session.OutLine(line); }));
    return 0;
  }

 private:
  std::string data_dir_;
  bool force_ = false;
};

}  // namespace

cli::Command BackupCommand() {
  return {
      .name = "backup",
      .group = "Cluster",
      .summary = "Write the cluster of this machine to a file. The cluster may keep running.",
      .usage = "FILE",
      .examples = {{"All objects, keys and certificates", "swell backup cluster.tar"},
                   {"Every night, from a cron job",
                    "swell backup --data-dir /var/lib/swell /srv/backup/swell-$(date +%F).tar"}},
      .notes =
          "The file contains the cluster's keys and Secrets, so only its owner can read it (mode "
          "0600). It does not contain data that pods wrote.",
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

}  // namespace swell
