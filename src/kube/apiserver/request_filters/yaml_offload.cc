#include "kube/apiserver/request_filters/yaml_offload.h"

#include "base/strings.h"
#include "kube/apiserver/codec.h"

namespace swell::apiserver {
namespace {

constexpr size_t kLargeBytes = 16 << 10;

// The other thread has the text alone; the call, which it carries along, dies on the core executor.
struct Reading {
  std::string text;
  Status status;
  Duplicates duplicates;
  CallPtr call;
  std::function<void(Core&)> then;
};

void Read(Reading& reading, size_t limit) {
  auto document = DecodeYaml(reading.text, limit, &reading.duplicates);
  if (document.ok()) {
    reading.text = json::Print(*document);
  } else {
    reading.status = document.status();
  }
}

// What members named twice come to: the text that is read on has them once.
Status TellDuplicates(Call& call, const Duplicates& duplicates) {
  const std::string_view validation = call.query.Get("fieldValidation");
  if (duplicates.empty() || validation == "Ignore") return Status::Ok();
  if (validation == "Strict") {
    return call.request.method == "PATCH" ? NamedTwice(duplicates)
                                          : DecodeError(*call.kind, StrictText(duplicates));
  }
  for (const std::string& duplicate : duplicates) call.AddWarning(duplicate);
  return Status::Ok();
}

void Finish(Core& core, Reading reading) {
  Call& call = *reading.call;
  if (call.finished()) return;
  if (reading.status.ok()) {
    const Status told = TellDuplicates(call, reading.duplicates);
    if (!told.ok()) return call.Fail(told);
    call.request.body = std::move(reading.text);
    return reading.then(core);
  }
  const bool patch = call.request.method == "PATCH";
  call.Fail(patch ? reading.status.WithContext("error decoding YAML")
                  : UnreadableBody(*call.kind, reading.text, reading.status));
}

}  // namespace

bool OffloadYaml(Core& core, const CallPtr& call, std::function<void(Core&)> then) {
  const size_t bytes = call->request.body.size();
  const size_t limit = core.options.body_limit_bytes;
  const std::string media = MediaType(call->request.content_type);
  const bool yaml = IsYaml(media) || media == kApplyPatch;
  if (!core.options.offload || !yaml || bytes <= kLargeBytes || bytes > limit) return false;
  auto reading = std::make_shared<Reading>(
      Reading{std::move(call->request.body), Status::Ok(), {}, call, std::move(then)});
  auto work = [weak = core.weak_from_this(), &executor = core.executor, limit, reading] {
    Read(*reading, limit);
    executor.Post([weak, reading = std::make_shared<Reading>(std::move(*reading))] {
      if (const auto alive = weak.lock()) Finish(*alive, std::move(*reading));
    });
  };
  if (core.options.offload(std::move(work), bytes)) return true;
  call->Fail(
      Status(Code::kTooManyRequests, "too many large YAML bodies wait to be read; try again"));
  return true;
}

}  // namespace swell::apiserver
