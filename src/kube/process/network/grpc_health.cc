#include "kube/process/network/grpc_health.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/kubernetes_version.h"

namespace swell::process {
namespace {

constexpr size_t kFrameHead = 9;
constexpr size_t kFrameMax = 16 << 10;  // the largest that a server may send without asking
constexpr size_t kMessageMax = 1 << 10;
constexpr uint32_t kStream = 1;
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kBye = 7
};
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4, kPadded = 8;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out.append(payload);
}

// Below 127, which one byte says in HPACK and protobuf alike.
std::string Sized(std::string_view text) {
  std::string out(1, static_cast<char>(text.size()));
  return out.append(text);
}

// A text of any size, with HPACK's continuation.
std::string HeaderText(std::string_view text) {
  if (text.size() < 127) return Sized(text);
  std::string out(1, '\x7f');
  size_t rest = text.size() - 127;
  for (; rest >= 128; rest >>= 7) out += static_cast<char>((rest & 127) | 128);
  out += static_cast<char>(rest);
  return out.append(text);
}

std::string Header(std::string_view name, std::string_view value) {
  return StrCat(std::string(1, '\0'), HeaderText(name), HeaderText(value));
}

std::string Varint(size_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out += static_cast<char>(value);
}

uint8_t Byte(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint32_t Number(std::string_view bytes, size_t at, size_t size) {
  uint32_t out = 0;
  for (size_t i = 0; i < size; ++i) out = out << 8 | Byte(bytes, at + i);
  return out;
}

// The status of a HealthCheckResponse; 0, UNKNOWN, where it says none.
uint8_t StatusOf(std::string_view message) {
  return message.size() >= 2 && message[0] == '\x08' ? Byte(message, 1) : 0;
}

}  // namespace

std::string GrpcHealthRequest(std::string_view authority, std::string_view service) {
  const std::string headers =
      StrCat(Header(":method", "POST"), Header(":scheme", "http"),
             Header(":path", "/grpc.health.v1.Health/Check"), Header(":authority", authority),
             Header("content-type", "application/grpc"), Header("te", "trailers"),
             Header("user-agent", StrCat("kube-probe/", api::kKubernetesMinorVersion)));
  std::string message;
  if (!service.empty()) message = StrCat("\x0a", Varint(service.size()), service);
  std::string sized(1, '\0');  // not packed
  for (const int shift : {24, 16, 8, 0}) sized += static_cast<char>(message.size() >> shift);
  return StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(kSettings, 0, 0, ""),
                Frame(kHeaders, kEndHeaders, kStream, headers),
                Frame(kData, kEndStream, kStream, sized + message));
}

std::optional<node::ProbeResult> GrpcHealthAnswer::Add(std::string_view bytes) {
  bytes_.append(bytes);
  while (bytes_.size() >= kFrameHead) {
    const size_t size = Number(bytes_, 0, 3);
    const uint8_t type = Byte(bytes_, 3);
    // A server speaks of its settings first.
    if (size > kFrameMax || (!spoke_http2_ && type != kSettings)) {
      return node::ProbeResult{false, "the answer is not HTTP/2"};
    }
    spoke_http2_ = true;
    if (bytes_.size() < kFrameHead + size) break;
    auto verdict = OnFrame(type, Byte(bytes_, 4), Number(bytes_, 5, 4) & 0x7fffffff,
                           std::string_view(bytes_).substr(kFrameHead, size));
    bytes_.erase(0, kFrameHead + size);
    if (verdict) return verdict;
  }
  return std::nullopt;
}

std::optional<node::ProbeResult> GrpcHealthAnswer::OnFrame(uint8_t type,
                                                           uint8_t flags,
                                                           uint32_t stream,
                                                           std::string_view payload) {
  if (type == kSettings && (flags & kAck) == 0) reply_ += Frame(kSettings, kAck, 0, "");
  if (type == kPing && (flags & kAck) == 0) reply_ += Frame(kPing, kAck, 0, payload);
  if (type == kBye) return End();
  if (stream != kStream) return std::nullopt;
  if (type == kData) {
    if ((flags & kPadded) != 0) {
      const size_t padding = payload.empty() ? 0 : Byte(payload, 0) + size_t{1};
      if (padding > payload.size()) return End();
      payload = payload.substr(1, payload.size() - padding);
    }
    if (auto verdict = OnData(payload)) return verdict;
  }
  const bool ends =
      type == kReset || ((type == kData || type == kHeaders) && (flags & kEndStream) != 0);
  if (ends) return End();
  return std::nullopt;
}

std::optional<node::ProbeResult> GrpcHealthAnswer::OnData(std::string_view data) {
  message_.append(data.substr(0, kMessageMax));
  if (message_.size() < 5) return std::nullopt;
  const size_t size = Number(message_, 1, 4);
  if (size > kMessageMax) return node::ProbeResult{false, "the answer is not a health status"};
  if (message_.size() < 5 + size) return std::nullopt;
  static constexpr std::string_view kNames[] = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                "SERVICE_UNKNOWN"};
  const uint8_t status = StatusOf(std::string_view(message_).substr(5, size));
  if (status == 1) return node::ProbeResult{true, ""};
  const std::string_view name = status < 4 ? kNames[status] : "UNKNOWN";
  return node::ProbeResult{false, StrCat("service unhealthy (responded with ", Quote(name), ")")};
}

node::ProbeResult GrpcHealthAnswer::End() const {
  if (!spoke_http2_) return {false, "the answer is not HTTP/2"};
  return {false,
          "the server gave no status: it may not implement the gRPC health protocol "
          "(grpc.health.v1.Health), or not know the service"};
}

std::string GrpcHealthAnswer::TakeReply() { return std::exchange(reply_, {}); }

}  // namespace swell::process
