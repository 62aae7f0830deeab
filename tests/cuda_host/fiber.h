#pragma once

#include <cstddef>

namespace switchyard::cuda_host {

// A stack of its own on which a function runs until it yields. Resumed and started by one thread.
class Fiber {
 public:
  using Body = void (*)(void*);

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs body(argument) from its begin at the next Resume(). A body that had not ended is dropped
  // where it stood: its locals are not destroyed.
  void Start(Body body, void* argument);
  // Runs until the body yields or ends; true when it has ended.
  bool Resume();
  // From inside the body: back to whoever resumed.
  void Yield();

 private:
  static void Enter(Fiber* fiber);
  void SwitchIn();

  struct Machine;  // what the processor or the sanitizers need
  Machine* machine_;
  unsigned char* stack_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace switchyard::cuda_host
