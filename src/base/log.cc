#include "base/log.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <mutex>

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace swell {
namespace {

spdlog::level::level_enum SpdLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// One line stays one line, and no terminal escape passes: log text may come from users.
void AppendClean(std::string& out, std::string_view text) {
  for (char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
}

class SpdSink final : public LogSink {
 public:
  explicit SpdSink(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {
    logger_->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %^%l%$ %v", spdlog::pattern_time_type::utc);
    logger_->set_level(spdlog::level::debug);
    logger_->flush_on(spdlog::level::info);
  }

  void Write(LogLevel level,
             std::string_view component,
             std::string_view message,
             std::initializer_list<LogField> fields) override {
    std::string line;
    AppendClean(line, component);
    line += ": ";
    AppendClean(line, message);
    for (const LogField& field : fields) {
      line += ' ';
      line += field.first;
      line += '=';
      AppendClean(line, field.second);
    }
    logger_->log(SpdLevel(level), "{}", line);
  }

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

struct Sinks {
  std::mutex mutex;
  std::unique_ptr<LogSink> sink = MakeFileLogSink("");
  std::atomic<LogLevel> least{LogLevel::kWarning};
};

// Logging is the one global: it never feeds back into what the program decides.
Sinks& GlobalSinks() {
  static Sinks sinks;
  return sinks;
}

}  // namespace

std::unique_ptr<LogSink> MakeFileLogSink(const std::string& path) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (path.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    // Commands and names of everybody's jobs are in it.
    spdlog::file_event_handlers handlers;
    handlers.after_open = [](const spdlog::filename_t&, std::FILE* file) {
      ::fchmod(::fileno(file), 0600);
    };
    sink =
        std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, 8 << 20, 4, false, handlers);
  }
  return std::make_unique<SpdSink>(std::make_shared<spdlog::logger>("swell", std::move(sink)));
}

void SetLogSink(std::unique_ptr<LogSink> sink, LogLevel least) {
  Sinks& sinks = GlobalSinks();
  std::lock_guard lock(sinks.mutex);
  sinks.sink = std::move(sink);
  sinks.least = least;
}

bool LogEnabled(LogLevel level) { return level >= GlobalSinks().least.load(); }

void Log(LogLevel level,
         std::string_view component,
         std::string_view message,
         std::initializer_list<LogField> fields) {
  Sinks& sinks = GlobalSinks();
  std::lock_guard lock(sinks.mutex);
  if (sinks.sink) sinks.sink->Write(level, component, message, fields);
}

}  // namespace swell
