#include "engine/waiting_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {

void WaitingQueue::Push(std::unique_ptr<Sequence> sequence) {
  Level& level = levels_[sequence->request.priority];
  const auto place = std::upper_bound(
      level.begin(),
      level.end(),
      sequence->arrival,
      [](uint64_t arrival, const auto& other) { return arrival < other->arrival; }
  );
  level.insert(place, std::move(sequence));
  ++size_;
}

void WaitingQueue::VisitInOrder(Clock::time_point now, absl::FunctionRef<bool(Sequence&)> visit) {
  cursors_.clear();
  for (const auto& [priority, level] : levels_) {
    cursors_.push_back({.priority = priority, .level = &level});
  }
  while (!cursors_.empty()) {
    const auto comes_later = [this, now](const Cursor& a, const Cursor& b) {
      const int64_t a_priority = AgedPriority(a, now);
      const int64_t b_priority = AgedPriority(b, now);
      return a_priority != b_priority ? a_priority < b_priority
                                      : (*a.level)[a.next]->arrival > (*b.level)[b.next]->arrival;
    };
    const auto first = std::max_element(cursors_.begin(), cursors_.end(), comes_later);
    if (!visit(*(*first->level)[first->next])) {
      return;
    }
    if (++first->next == first->level->size()) {
      cursors_.erase(first);
    }
  }
}

int64_t WaitingQueue::AgedPriority(const Cursor& cursor, Clock::time_point now) const {
  const Sequence& sequence = *(*cursor.level)[cursor.next];
  const int64_t aged = ageing_.count() > 0 ? (now - sequence.submitted_at) / ageing_ : 0;
  return cursor.priority + aged;
}

std::unique_ptr<Sequence> WaitingQueue::Take(RequestId id) {
  for (auto level = levels_.begin(); level != levels_.end(); ++level) {
    Level& sequences = level->second;
    const auto place = std::find_if(sequences.begin(), sequences.end(), [id](const auto& other) {
      return other->id == id;
    });
    if (place != sequences.end()) {
      std::unique_ptr<Sequence> taken = std::move(*place);
      sequences.erase(place);
      --size_;
      if (sequences.empty()) {
        levels_.erase(level);
      }
      return taken;
    }
  }
  CHECK(id == RequestId{}) << "request " << static_cast<uint64_t>(id) << " does not wait";
  return nullptr;
}

void WaitingQueue::ForEach(absl::FunctionRef<void(Sequence&)> visit) const {
  for (const auto& [priority, level] : levels_) {
    for (const auto& sequence : level) {
      visit(*sequence);
    }
  }
}

void WaitingQueue::RemoveFinished() {
  size_ = 0;
  for (auto level = levels_.begin(); level != levels_.end();) {
    std::erase_if(level->second, [](const auto& sequence) {
      return sequence->state == SequenceState::kFinished;
    });
    size_ += level->second.size();
    level = level->second.empty() ? levels_.erase(level) : std::next(level);
  }
}

}  // namespace switchyard
