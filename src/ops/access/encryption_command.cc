// swell encryption status, rotate: the key that Secrets are encrypted with on disk.
#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "ops/access/secret_keys.h"
#include "ops/commands.h"
#include "ops/flags.h"

namespace swell::ops {
namespace {

class EncryptionAction : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { AddDataDir(flags, data_dir_); }

 protected:
  DataDir Dir() const { return FindDataDir(data_dir_); }

 private:
  std::string data_dir_;
};

class StatusAction final : public EncryptionAction {
 public:
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    const DataDir dir = Dir();
    if (!FileExists(dir.Database())) {
      return Status(Code::kNotFound, StrCat("there is no cluster in ", dir.path,
                                            "; --data-dir names its directory"));
    }
    SWELL_ASSIGN_OR_RETURN(const auto keys, LoadOrMakeSecretKeys(dir));
    session.OutLine(StrCat("Secrets in ", dir.Database(), " are encrypted with AES-256-GCM, key ",
                           keys->current(), " of ", dir.path, "/pki/secrets.key"));
    if (keys->count() > 1) {
      session.OutLine(
          "A rotation was interrupted; the next start of the cluster, or swell "
          "encryption rotate, ends it");
    }
    return 0;
  }
};

class RotateAction final : public EncryptionAction {
 public:
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    const DataDir dir = Dir();
    if (const auto running = FindRunning(dir)) {
      return Status(Code::kConflict,
                    StrCat("a cluster runs in ", dir.path, " (process ", running->pid,
                           "); stop it first: swell down --data-dir ", dir.path));
    }
    SWELL_ASSIGN_OR_RETURN(const std::string id, RotateSecretKeys(dir));
    session.OutLine(StrCat("Secrets in ", dir.Database(), " are now encrypted with key ", id,
                           "; the old key is removed. Backups of before need their own passphrase "
                           "and keep the old key"));
    return 0;
  }
};

}  // namespace

cli::Command EncryptionCommand() {
  cli::Command status{.name = "status",
                      .summary = "Show which key Secrets are encrypted with.",
                      .standalone = true,
                      .make = cli::Makes<StatusAction>()};
  cli::Command rotate{.name = "rotate",
                      .summary = "Encrypt all Secrets of a stopped cluster with a new key.",
                      .standalone = true,
                      .make = cli::Makes<RotateAction>()};
  return {.name = "encryption",
          .group = "Cluster",
          .summary = "Manage the key that Secrets are encrypted with on disk.",
          .examples = {{"Change the key",
                        "swell down && swell encryption rotate && swell up --detach"}},
          .standalone = true,
          .children = {std::move(status), std::move(rotate)}};
}

}  // namespace swell::ops
