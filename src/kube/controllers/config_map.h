// ConfigMap: writes a ConfigMap that belongs to one component; creates it and its namespace if they
// do not exist.
// - Threads: core executor only.
#pragma once

#include "kube/client/client.h"

namespace swell::controllers {

// Creates or overwrites the ConfigMap that `map` names, with the data of `map`. If another
// component creates it meanwhile, `done` gets kAlreadyExists, and the caller tries again.
// Destroying `client` forgets `done`.
void PutConfigMap(client::Client& client, json::Value map, client::ObjectCallback done);

}  // namespace swell::controllers
