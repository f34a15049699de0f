// ConfigMap: writes a ConfigMap that belongs to one component; creates it and its namespace if they
// do not exist.
// - Threads: core executor only.
#pragma once

#include "kube/client/client.h"

namespace swell::controllers {

// Puts the data of `map`, which names itself and its namespace, over what is there. `client`
// outlives the call; one that goes forgets `done`. What other components made meanwhile is a
// conflict (kAlreadyExists) for the caller's next try.
void PutConfigMap(client::Client& client, json::Value map, client::ObjectCallback done);

}  // namespace swell::controllers
