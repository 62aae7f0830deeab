#include "tests/end_to_end/serve_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/check.h"
#include "base/status.h"

namespace switchyard {

ServeProcess::ServeProcess(
    const std::filesystem::path& model_folder, const std::vector<std::string>& flags
) {
  std::array<int, 2> pipe_ends = {};
  CHECK(pipe2(pipe_ends.data(), O_CLOEXEC) == 0);
  log_ = pipe_ends[0];

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  std::vector<std::string> words = {
      SWITCHYARD_PROGRAM,
      "serve",
      Concat("--model=", model_folder.string()),
      "--listen=127.0.0.1:0"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(&process_id_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  CHECK(error == 0) << words[0];
}

ServeProcess::~ServeProcess() {
  if (process_id_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  close(log_);
}

std::string ServeProcess::WaitForLog(const std::string& text) {
  std::array<char, 4096> buffer = {};
  while (true) {
    const size_t line_end = unread_.find('\n');
    if (line_end != std::string::npos) {
      const std::string line = unread_.substr(0, line_end);
      unread_.erase(0, line_end + 1);
      if (line.find(text) != std::string::npos) {
        return line;
      }
      continue;
    }
    const ssize_t bytes = read(log_, buffer.data(), buffer.size());
    if (bytes <= 0) {
      return "";
    }
    unread_.append(buffer.data(), static_cast<size_t>(bytes));
  }
}

std::string ServeProcess::Port() {
  const std::string line = WaitForLog("event=listening");
  return line.substr(line.rfind('=') + 1);
}

void ServeProcess::Signal(int signal) const {
  kill(process_id_, signal);
}

int ServeProcess::Wait() {
  int status = 0;
  waitpid(process_id_, &status, 0);
  process_id_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace switchyard
