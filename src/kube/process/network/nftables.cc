#include "kube/process/network/nftables.h"

#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/images/shared_library.h"

namespace swell::process {
namespace {

constexpr size_t kReasonBytesMax = 400;
// close_range's flag; older headers lack the name.
constexpr unsigned kUnshare = 1U << 1;

// The functions of libnftables that are called. The package with its headers is not needed.
struct Library {
  void* (*make)(uint32_t flags) = nullptr;
  void (*free)(void* context) = nullptr;
  int (*buffer_errors)(void* context) = nullptr;
  int (*buffer_output)(void* context) = nullptr;
  const char* (*output)(void* context) = nullptr;
  const char* (*errors)(void* context) = nullptr;
  int (*run)(void* context, const char* commands) = nullptr;
};

Result<Library> OpenLibrary() {
  SWELL_ASSIGN_OR_RETURN(images::SharedLibrary file,
                         images::SharedLibrary::Open("libnftables.so.1", "libnftables1"));
  Library library;
  file.Find("nft_ctx_new", library.make);
  file.Find("nft_ctx_free", library.free);
  file.Find("nft_ctx_buffer_error", library.buffer_errors);
  file.Find("nft_ctx_get_error_buffer", library.errors);
  file.Find("nft_ctx_buffer_output", library.buffer_output);
  file.Find("nft_ctx_get_output_buffer", library.output);
  file.Find("nft_run_cmd_from_buffer", library.run);
  SWELL_RETURN_IF_ERROR(file.Check());
  return library;
}

// From here on the thread has descriptors of its own: the first three of the process, and no more.
Status LeaveDescriptorsOfProcess() {
  if (::syscall(SYS_close_range, 3U, UINT_MAX, kUnshare) == 0) return Status::Ok();
  const Status failed = ErrnoStatus(errno, "close_range");
  // Before Linux 5.9 the thread has to do with what the process leaves below the limit.
  const UniqueFd next(::dup(0));
  if (next.valid() && next.get() + 1 < FD_SETSIZE) return Status::Ok();
  return Status(Code::kUnavailable,
                StrCat("nftables: more than ", FD_SETSIZE, " files are open: ", failed.message()));
}

Result<std::string> Ask(const Library& library, const std::string& commands) {
  SWELL_RETURN_IF_ERROR(LeaveDescriptorsOfProcess());
  void* context = library.make(0);
  if (context == nullptr) return Status(Code::kUnavailable, "nftables cannot be used");
  library.buffer_errors(context);
  library.buffer_output(context);
  Status status;
  std::string printed;
  if (library.run(context, commands.c_str()) != 0) {
    const char* reason = library.errors(context);
    const std::string text(Trim(reason == nullptr ? "" : reason));
    status = Status(Code::kUnavailable,
                    StrCat("nftables refuses the rules: ", text.substr(0, kReasonBytesMax)));
  } else if (const char* output = library.output(context); output != nullptr) {
    printed = output;
  }
  library.free(context);
  if (!status.ok()) return status;
  return printed;
}

}  // namespace

// The library waits for the kernel with select(), which ends the process at a descriptor beyond
// FD_SETSIZE. A server with a thousand connections has no lower one to give.
Result<std::string> AskNftables(const std::string& commands) {
  static const Result<Library> library = OpenLibrary();
  if (!library.ok()) return library.status();
  Result<std::string> answer = Status(Code::kInternal, "nftables: not asked");
  try {
    std::thread([&answer, &commands] { answer = Ask(*library, commands); }).join();
  } catch (const std::system_error& error) {
    return Status(Code::kUnavailable, StrCat("nftables: no thread: ", error.what()));
  }
  return answer;
}

Status RunNftables(const std::string& commands) { return AskNftables(commands).status(); }

}  // namespace swell::process
