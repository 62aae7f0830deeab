#include "engine/threaded_engine.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "engine/answer.h"
#include "engine/request_check.h"

namespace switchyard {

StatusOr<std::unique_ptr<ThreadedEngine>> ThreadedEngine::Start(std::unique_ptr<EngineCore> core) {
  std::unique_ptr<ThreadedEngine> engine(new ThreadedEngine(std::move(core)));
  const MutexLock lock(engine->join_mutex_);
  try {
    engine->thread_ = std::thread(&ThreadedEngine::Run, engine.get());
  } catch (const std::system_error& error) {
    return ResourceExhausted(
        "no thread for the engine: ", error.what(), "; raise the limit of threads"
    );
  }
  return engine;
}

ThreadedEngine::ThreadedEngine(std::unique_ptr<EngineCore> core) : core_(std::move(core)) {}

ThreadedEngine::~ThreadedEngine() {
  Stop(Clock::now());
}

Status ThreadedEngine::WarmUp() {
  const auto answer = std::make_shared<Answer<Status>>();
  RETURN_IF_ERROR(Post([answer](EngineCore& core) { answer->Give(core.WarmUp()); }));
  return *answer->WaitUntil(Clock::time_point::max());
}

StatusOr<RequestId> ThreadedEngine::Submit(GenerationRequest request) {
  RequestId id = {};
  {
    const MutexLock lock(mutex_);
    id = RequestId{++last_id_};
  }
  ASSIGN_OR_RETURN(auto sequence, core_->Accept(id, std::move(request)));
  const MutexLock lock(mutex_);
  if (stop_deadline_.has_value()) {
    return Unavailable("the engine is stopping and takes no more requests; try another server");
  }
  const auto waiting = static_cast<int64_t>(submitted_.size()) + core_->Load().waiting_requests;
  RETURN_IF_ERROR(CheckQueue(waiting, options().max_queued_requests));
  submitted_.push_back(std::move(sequence));
  mail_arrived_.NotifyAll();
  return id;
}

void ThreadedEngine::Cancel(RequestId id) {
  const MutexLock lock(mutex_);
  if (!is_closed_) {
    cancelled_.push_back(id);
    mail_arrived_.NotifyAll();
  }
}

void ThreadedEngine::Stop(Clock::time_point deadline) {
  {
    const MutexLock lock(mutex_);
    stop_deadline_ = std::min(deadline, stop_deadline_.value_or(deadline));
    mail_arrived_.NotifyAll();
  }
  const MutexLock lock(join_mutex_);
  if (thread_.joinable()) {
    thread_.join();
  }
}

StatusOr<ExpertStatistics> ThreadedEngine::SnapshotExpertStatistics(
    std::chrono::milliseconds timeout
) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const auto answer = std::make_shared<Answer<ExpertStatistics>>();
  RETURN_IF_ERROR(Post([answer](EngineCore& core) { answer->Give(core.ReadExpertStatistics()); }));
  std::optional<ExpertStatistics> statistics = answer->WaitUntil(deadline);
  if (!statistics.has_value()) {
    return Status(
        StatusCode::kDeadlineExceeded,
        Concat(
            "the engine did not answer within ",
            timeout.count(),
            " ms: a step takes longer; allow more"
        )
    );
  }
  return *std::move(statistics);
}

EngineLoad ThreadedEngine::Load() const {
  const MutexLock lock(mutex_);
  EngineLoad load = core_->Load();
  load.waiting_requests += static_cast<int32_t>(submitted_.size());
  load.heartbeats = heartbeats_.load(std::memory_order_relaxed);
  return load;
}

Status ThreadedEngine::Post(Task task) {
  const MutexLock lock(mutex_);
  if (is_closed_) {
    return Unavailable("the engine has stopped");
  }
  tasks_.push_back(std::move(task));
  mail_arrived_.NotifyAll();
  return OkStatus();
}

void ThreadedEngine::Run() {
  bool has_runnable_work = false;
  while (TakeMail(has_runnable_work)) {
    for (const RequestId id : taken_cancelled_) {
      core_->Cancel(id);
    }
    RunTasks();
    has_runnable_work = core_->Step();
    heartbeats_.fetch_add(1, std::memory_order_relaxed);
  }
  core_->CancelAll();
  RunTasks();
  LogInfo("event=engine_stopped");
}

bool ThreadedEngine::TakeMail(bool has_runnable_work) {
  const MutexLock lock(mutex_);
  if (!has_runnable_work && !HasMail()) {
    Sleep();
  }
  // Under the lock, so that a request is always counted in one place or the other.
  for (std::unique_ptr<Sequence>& sequence : submitted_) {
    core_->Add(std::move(sequence));
  }
  submitted_.clear();
  taken_cancelled_.clear();
  std::swap(taken_cancelled_, cancelled_);
  std::swap(taken_tasks_, tasks_);
  is_closed_ = MustEnd();
  return !is_closed_;
}

void ThreadedEngine::Sleep() {
  while (!HasMail() && !MustEnd()) {
    std::optional<Clock::time_point> wake_at = core_->NearestDeadline();
    if (stop_deadline_.has_value()) {
      wake_at = std::min(*stop_deadline_, wake_at.value_or(*stop_deadline_));
    }
    if (!wake_at.has_value()) {
      mail_arrived_.Wait(mutex_);
    } else if (!mail_arrived_.WaitUntil(mutex_, *wake_at)) {
      return;
    }
  }
}

bool ThreadedEngine::MustEnd() const {
  return stop_deadline_.has_value() && (!core_->HasWork() || *stop_deadline_ <= Clock::now());
}

bool ThreadedEngine::HasMail() const {
  return !submitted_.empty() || !cancelled_.empty() || !tasks_.empty();
}

void ThreadedEngine::RunTasks() {
  for (const Task& task : taken_tasks_) {
    task(*core_);
  }
  taken_tasks_.clear();
}

}  // namespace switchyard
