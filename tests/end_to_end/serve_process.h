#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace switchyard {

// `switchyard serve` as a process of its own, on a free loopback port.
class ServeProcess {
 public:
  // `flags` besides --model and --listen, each as --name=value.
  explicit ServeProcess(
      const std::filesystem::path& model_folder, const std::vector<std::string>& flags = {}
  );
  // Kills what still runs.
  ~ServeProcess();
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  // Reads its log up to the line with `text`, which it returns; empty when the log ends before.
  std::string WaitForLog(const std::string& text);
  // The number after port= of the line that says it listens.
  std::string Port();
  void Signal(int signal) const;
  // Waits for its end; the exit code, or minus the signal that ended it.
  int Wait();

 private:
  int process_id_ = -1;
  int log_ = -1;
  std::string unread_;
};

}  // namespace switchyard
