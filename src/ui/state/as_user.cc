#include "ui/state/as_user.h"

#include <utility>

namespace swell::ui {
namespace {

class AsUser final : public api::RestHandler {
 public:
  AsUser(std::shared_ptr<api::RestHandler> server, api::Credentials credentials)
      : server_(std::move(server)), credentials_(std::move(credentials)) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    request.credentials = credentials_;
    request.user = {};
    return server_->Handle(std::move(request), std::move(sink));
  }

 private:
  std::shared_ptr<api::RestHandler> server_;
  const api::Credentials credentials_;
};

}  // namespace

std::shared_ptr<api::RestHandler> MakeAsUser(std::shared_ptr<api::RestHandler> server,
                                             api::Credentials credentials) {
  return std::make_shared<AsUser>(std::move(server), std::move(credentials));
}

}  // namespace swell::ui
