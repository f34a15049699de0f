// Log: the logging facade. A line is a level, a component, a message and key=value pairs.
//
//   SWELL_LOG_INFO("agent", "container started", {"pod", key}, {"pid", std::to_string(pid)});
//
// An error is logged or returned, never both. Secrets are never logged.
//
// - Threads: any thread. The sink is set once in main(); before that, warnings and errors go to
//   standard error.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace swell {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogField = std::pair<std::string_view, std::string>;

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(LogLevel level,
                     std::string_view component,
                     std::string_view message,
                     std::initializer_list<LogField> fields) = 0;
};

// Text lines to a rotating file (8 MiB × 4), or to standard error when `path` is empty.
std::unique_ptr<LogSink> MakeFileLogSink(const std::string& path);

void SetLogSink(std::unique_ptr<LogSink> sink, LogLevel least);
bool LogEnabled(LogLevel level);
void Log(LogLevel level,
         std::string_view component,
         std::string_view message,
         std::initializer_list<LogField> fields);

}  // namespace swell

#define SWELL_LOG_AT(level, component, message, ...)          \
  do {                                                        \
    if (::swell::LogEnabled(level)) {                         \
      ::swell::Log(level, component, message, {__VA_ARGS__}); \
    }                                                         \
  } while (false)
#define SWELL_LOG_DEBUG(...) SWELL_LOG_AT(::swell::LogLevel::kDebug, __VA_ARGS__)
#define SWELL_LOG_INFO(...) SWELL_LOG_AT(::swell::LogLevel::kInfo, __VA_ARGS__)
#define SWELL_LOG_WARNING(...) SWELL_LOG_AT(::swell::LogLevel::kWarning, __VA_ARGS__)
#define SWELL_LOG_ERROR(...) SWELL_LOG_AT(::swell::LogLevel::kError, __VA_ARGS__)
