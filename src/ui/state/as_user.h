// AsUser: an API server that is asked with one user's credentials, whatever a request says.
// - Threads: that of the handler behind it.
// - Ownership: shares the handler.
#pragma once

#include <memory>

#include "kube/api/rest/rest.h"

namespace swell::ui {

std::shared_ptr<api::RestHandler> MakeAsUser(std::shared_ptr<api::RestHandler> server,
                                             api::Credentials credentials);

}  // namespace swell::ui
