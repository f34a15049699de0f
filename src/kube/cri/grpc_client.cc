#include "kube/cri/grpc_client.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/percent.h"
#include "base/strings.h"
#include "kube/images/curl_library.h"

namespace swell::cri {
namespace {

// What the kubelet's client takes at most.
constexpr size_t kMessageMax = 16 << 20;
constexpr size_t kErrorTextMax = 4 << 10;
constexpr size_t kFrameHead = 5;
constexpr long kConnectSeconds = 5;
constexpr int kPollMs = 1000;

Code CodeOf(int64_t grpc_status) {
  switch (grpc_status) {
    case 3:
      return Code::kInvalid;
    case 4:
      return Code::kTimeout;
    case 5:
      return Code::kNotFound;
    case 6:
      return Code::kAlreadyExists;
    case 12:
      return Code::kMethodNotAllowed;
    case 14:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

std::string Frame(const std::string& message) {
  std::string out(1, '\0');
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(message.size() >> shift);
  return out + message;
}

// The message of an answer that has one frame; a status where it has another form.
Result<std::string> Unframe(std::string body) {
  if (body.size() < kFrameHead || body[0] != '\0') {
    return Status(Code::kInternal, "the answer is not a gRPC message");
  }
  size_t size = 0;
  for (size_t i = 1; i < kFrameHead; ++i) size = size << 8 | static_cast<uint8_t>(body[i]);
  if (size != body.size() - kFrameHead) {
    return Status(Code::kInternal, "the answer is cut off");
  }
  return body.erase(0, kFrameHead);
}

// One call under way.
struct Transfer {
  Transfer(const images::Curl& loaded, GrpcCall what, GrpcClient::Done then)
      : curl(loaded), call(std::move(what)), frame(Frame(call.message)), done(std::move(then)) {}
  ~Transfer() {
    if (easy != nullptr) curl.cleanup(easy);
    curl.slist_free_all(headers);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Result<std::string> Answer(CURLcode code, const std::string& socket);

  const images::Curl& curl;
  GrpcCall call;
  std::string frame;
  GrpcClient::Done done;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string body;
  std::optional<int64_t> status;
  std::string message;
  bool too_large = false;
  char detail[CURL_ERROR_SIZE] = "";
};

Result<std::string> Transfer::Answer(CURLcode code, const std::string& socket) {
  if (too_large) {
    return Status(Code::kTooLarge, StrCat("the answer has more than ", kMessageMax, " bytes"));
  }
  if (status && *status != 0)
    return Status(CodeOf(*status), PercentDecode(message).value_or(message));
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Status(Code::kTimeout, StrCat("no answer from ", socket, " to ", call.method));
  }
  // libcurl's own words name a host and a port, which a socket of the machine has not.
  if (code == CURLE_COULDNT_CONNECT) {
    return Status(Code::kUnavailable, StrCat("no program answers at the socket ", socket));
  }
  if (code != CURLE_OK) {
    const std::string why = *detail != '\0' ? std::string(detail) : curl.strerror(code);
    return Status(Code::kUnavailable, StrCat(socket, ": ", why));
  }
  if (!status) return Status(Code::kUnavailable, StrCat(socket, ": the server speaks no gRPC"));
  return Unframe(std::move(body));
}

// Headers and trailers alike: an error may come with either.
size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  const std::string name = ToLower(Trim(line.substr(0, colon)));
  const std::string_view value = Trim(line.substr(colon + 1));
  if (name == "grpc-status") transfer.status = ParseInt(value).value_or(2);
  if (name == "grpc-message") transfer.message = value.substr(0, kErrorTextMax);
  return size;
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.too_large = transfer.body.size() + size > kMessageMax + kFrameHead;
  if (transfer.too_large) return 0;
  transfer.body.append(data, size);
  return size;
}

}  // namespace

class GrpcClient::Worker {
 public:
  Worker(const images::Curl& curl, std::string socket)
      : curl_(curl), socket_(std::move(socket)), multi_(curl_.multi_init()) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Worker() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    curl_.multi_wakeup(multi_);
    thread_.join();
    curl_.multi_cleanup(multi_);
  }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Call(GrpcCall call, Done done) {
    {
      MutexLock lock(mutex_);
      waiting_.push_back(std::make_unique<Transfer>(curl_, std::move(call), std::move(done)));
    }
    curl_.multi_wakeup(multi_);
  }

 private:
  void Run();
  // False: the client is being destroyed.
  bool TakeWaiting();
  void Begin(std::unique_ptr<Transfer> transfer);
  void EndFinished();

  const images::Curl& curl_;
  const std::string socket_;
  CURLM* multi_;
  std::map<CURL*, std::unique_ptr<Transfer>> transfers_;  // the thread's
  Mutex mutex_;
  bool stopping_ SWELL_GUARDED_BY(mutex_) = false;
  std::deque<std::unique_ptr<Transfer>> waiting_ SWELL_GUARDED_BY(mutex_);
  std::thread thread_;
};

void GrpcClient::Worker::Run() {
  while (TakeWaiting()) {
    int running = 0;
    curl_.multi_perform(multi_, &running);
    EndFinished();
    curl_.multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
  std::deque<std::unique_ptr<Transfer>> left;
  {
    MutexLock lock(mutex_);
    left.swap(waiting_);
  }
  for (auto& [easy, transfer] : transfers_) {
    curl_.multi_remove(multi_, easy);
    left.push_back(std::move(transfer));
  }
  transfers_.clear();
  for (const auto& transfer : left)
    transfer->done(Status(Code::kUnavailable, "swell is shutting down"));
}

bool GrpcClient::Worker::TakeWaiting() {
  std::deque<std::unique_ptr<Transfer>> taken;
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    taken.swap(waiting_);
  }
  for (auto& transfer : taken) Begin(std::move(transfer));
  return true;
}

void GrpcClient::Worker::Begin(std::unique_ptr<Transfer> transfer) {
  CURL* easy = transfer->easy = curl_.init();
  if (easy == nullptr) {
    return transfer->done(Status(Code::kUnavailable, "libcurl cannot be started"));
  }
  constexpr Duration kMillisecond = std::chrono::milliseconds(1);
  const auto deadline_ms = static_cast<long>(transfer->call.deadline / kMillisecond);
  for (const std::string& header :
       {std::string("content-type: application/grpc"), std::string("te: trailers"),
        std::string("user-agent: swell"),
        StrCat("grpc-timeout: ", GrpcTimeout(transfer->call.deadline))}) {
    transfer->headers = curl_.slist_append(transfer->headers, header.c_str());
  }
  auto set = [&](CURLoption option, auto value) { curl_.setopt(easy, option, value); };
  // An authority that is a path is refused by servers in Go.
  set(CURLOPT_URL, StrCat("http://localhost/", transfer->call.method).c_str());
  set(CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
  // libcurl 7.88 fails at the second request of a connection without TLS; a new one costs less than
  // a millisecond here.
  set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTPHEADER, transfer->headers);
  set(CURLOPT_POSTFIELDS, transfer->frame.data());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->frame.size()));
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_TIMEOUT_MS, deadline_ms);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(transfer->detail));
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, transfer.get());
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, transfer.get());
  if (curl_.multi_add(multi_, easy) != CURLM_OK) {
    return transfer->done(Status(Code::kUnavailable, "libcurl cannot send a request"));
  }
  transfers_[easy] = std::move(transfer);
}

void GrpcClient::Worker::EndFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    curl_.multi_remove(multi_, easy);  // `message` is gone with it
    auto transfer = transfers_.extract(easy);
    if (transfer.empty()) continue;
    transfer.mapped()->done(transfer.mapped()->Answer(code, socket_));
  }
}

std::string GrpcTimeout(Duration deadline) {
  constexpr int64_t kDigitsMax = 99'999'999;
  const int64_t milliseconds = deadline / std::chrono::milliseconds(1);
  if (milliseconds <= kDigitsMax) return StrCat(milliseconds, "m");
  return StrCat(std::min<int64_t>(deadline / std::chrono::seconds(1), kDigitsMax), "S");
}

GrpcClient::GrpcClient(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
GrpcClient::~GrpcClient() = default;

Result<std::unique_ptr<GrpcClient>> GrpcClient::Create(const std::string& socket) {
  const Result<images::Curl>& curl = images::LoadedCurl();
  if (!curl.ok()) return curl.status();
  return std::unique_ptr<GrpcClient>(new GrpcClient(std::make_unique<Worker>(*curl, socket)));
}

void GrpcClient::Call(GrpcCall call, Done done) { worker_->Call(std::move(call), std::move(done)); }

void GrpcClient::CallOn(Executor& executor, GrpcCall call, Done done) {
  // What `done` holds must not end on the client's thread.
  auto held = std::make_shared<Done>(std::move(done));
  Call(std::move(call), [&executor, held](Result<std::string> answer) {
    executor.Post([done = std::move(*held), answer = std::move(answer)] { done(answer); });
  });
}

Result<std::string> GrpcClient::CallAndWait(GrpcCall call) {
  Mutex mutex;
  CondVar changed;
  std::optional<Result<std::string>> answer;
  Call(std::move(call), [&](Result<std::string> result) {
    MutexLock lock(mutex);
    answer = std::move(result);
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!answer) changed.Wait(mutex);
  return std::move(*answer);
}

}  // namespace swell::cri
