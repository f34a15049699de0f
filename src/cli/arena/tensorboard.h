// TensorBoard beside a job: a Deployment and a Service, as Arena makes them, and the folder of logs
// that they share. All of it belongs to the job and ends with it.
// - Threads: as Api.
#pragma once

#include <optional>
#include <string>

#include "cli/jobs/pytorch_spec.h"
#include "cli/session.h"

namespace swell::cli::arena {

struct TensorboardSpec {
  bool wanted = false;
  // Empty: the job's image, and where that has no TensorBoard, this machine's.
  std::string image;
  std::string log_dir = "/training_logs";
};

// Before the job is made: gives its instances the folder of logs, and the SDK its part of it.
// kBadRequest (misuse) naming the flag.
Status ShareLogs(Api& api, const TensorboardSpec& tensorboard, PyTorchSpec& job);

// Makes the folder, without which the job's pods would wait. RemoveLogs: the job was refused.
Status CreateLogs(Api& api, const PyTorchSpec& job);
void RemoveLogs(Api& api, const PyTorchSpec& job);

// Starts it for the job that the server has, and waits some seconds for it. Whatever is wrong with
// it is reported and no error: the job trains on.
void StartTensorboard(Session& session,
                      Api& api,
                      const TensorboardSpec& tensorboard,
                      const PyTorchSpec& job,
                      const json::Value& made);

struct TensorboardView {
  std::string service;
  std::string url;   // http://192.0.2.7:30670; empty: it has no address
  int64_t port = 0;  // of every node; 0: none
  std::string image;
  bool ready = false;
  bool missing = false;  // the image has no TensorBoard
  std::string wrong;     // a sentence; empty: nothing
};
// Empty: the job has none.
std::optional<TensorboardView> ViewTensorboard(Session& session,
                                               Api& api,
                                               const std::string& ns,
                                               const std::string& job);

// The peers that reach a TensorBoard.
enum class Reach {
  kNodePort,  // everybody on the nodes' network, as Arena's
  kCluster,   // pods, and people with the right to forward ports
};

// Makes what is not there of it, and does not wait: who wants to know how it fares asks again.
// Where the job's image turns out to have no TensorBoard, this machine's takes its place, if it
// lends one.
Result<TensorboardView> EnsureTensorboard(Session& session,
                                          Api& api,
                                          const PyTorchSpec& job,
                                          const std::string& log_dir,
                                          const json::Value& owner,
                                          Reach reach);

// Removes what StartTensorboard made; missing is fine. True when there was one.
Result<bool> DeleteTensorboard(Session& session,
                               Api& api,
                               const std::string& ns,
                               const std::string& job);

}  // namespace swell::cli::arena
