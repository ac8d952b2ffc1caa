#include "appliance/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "appliance/progress.h"

namespace holdfast {
namespace {

// Whether standard error leads into the journal (systemd.exec(5), JOURNAL_STREAM: "device:inode").
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat facts {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &facts) != 0) return false;
  return std::to_string(facts.st_dev) + ':' + std::to_string(facts.st_ino) == stream;
}

LineForm form_for(LogFormat format) {
  if (format == LogFormat::json) return LineForm::json;
  if (format == LogFormat::automatic && stderr_is_journal()) return LineForm::journal;
  return LineForm::text;
}

}  // namespace

struct Log::Parts {
  Parts(LogLevel least_level, LogFormat format)
      : least(least_level),
        form(form_for(format)),
        logger("holdfast", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%v");
    logger.set_level(spdlog::level::trace);
    logger.set_error_handler([](const std::string&) {});
  }

  const LogLevel least;
  const LineForm form;
  spdlog::logger logger;
  std::mutex mutex;
  RepeatLimit limit;
};

Log::Log(LogLevel least, LogFormat format) : parts_(std::make_unique<Parts>(least, format)) {}
Log::~Log() = default;

void Log::say(LogLevel level, Fixed text, LogFields fields) {
  if (level < parts_->least) return;
  RepeatLimit::Admission admission;
  {
    const std::lock_guard lock(parts_->mutex);
    admission = parts_->limit.admit(Progress::now(), text, fields);
  }
  if (!admission.admitted) return;
  const std::int64_t wall_ns = system_clock().wall().since_1970.count();
  if (admission.held_back > 0) {
    const LogFields about{{"lines", admission.held_back}, {"text", OwnWords{text.text}}};
    parts_->logger.log(spdlog::level::info,
                       render_line(parts_->form, LogLevel::info, wall_ns, "lines held back that repeat", about));
  }
  parts_->logger.log(spdlog::level::info, render_line(parts_->form, level, wall_ns, text, fields));
}

}  // namespace holdfast
