#include "tests/cuda_host/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWITCHYARD_SANITIZED 1
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__) && !defined(SWITCHYARD_SANITIZED)
#define SWITCHYARD_FAST_SWITCH 1
// swapcontext makes a system call each time, and a warp shuffle is 32 switches. This keeps what the
// calling convention says a function must keep, and nothing else.
extern "C" void switchyard_cuda_host_switch(void** save, void* load);
asm(R"(
.text
.type switchyard_cuda_host_switch,@function
switchyard_cuda_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size switchyard_cuda_host_switch,.-switchyard_cuda_host_switch
.type switchyard_cuda_host_enter,@function
switchyard_cuda_host_enter:
  movq %rbx, %rdi
  call *%rbp
  ud2
.size switchyard_cuda_host_enter,.-switchyard_cuda_host_enter
)");
extern "C" void switchyard_cuda_host_enter();
#endif

namespace switchyard::cuda_host {
namespace {

constexpr size_t kStackBytes = size_t{128} * 1024;

}  // namespace

struct Fiber::Machine {
#if defined(SWITCHYARD_FAST_SWITCH)
  void* own = nullptr;
  void* resumer = nullptr;
#else
  ucontext_t own = {};
  ucontext_t resumer = {};
#endif
#if defined(__SANITIZE_THREAD__)
  void* own_thread = __tsan_create_fiber(0);
  void* resumer_thread = nullptr;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* resumer_stack = nullptr;
  size_t resumer_stack_bytes = 0;
#endif
};

Fiber::Fiber() : machine_(new Machine) {
  void* memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED) << "no memory for a stack of " << kStackBytes << " bytes";
  stack_ = static_cast<unsigned char*>(memory);
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(machine_->own_thread);
#endif
  munmap(stack_, kStackBytes);
  delete machine_;
}

void Fiber::Enter(Fiber* fiber) {
#if defined(__SANITIZE_ADDRESS__)
  Machine& machine = *fiber->machine_;
  __sanitizer_finish_switch_fiber(nullptr, &machine.resumer_stack, &machine.resumer_stack_bytes);
#endif
  fiber->body_(fiber->argument_);
  fiber->ended_ = true;
  fiber->Yield();
  std::abort();  // an ended fiber is never resumed
}

#if defined(SWITCHYARD_FAST_SWITCH)

void Fiber::Start(Body body, void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  // What the switch pops, then the address it returns to, which calls rbp with rbx. Before a call
  // the stack pointer is a multiple of 16, so that address lies 8 below one.
  auto* top = reinterpret_cast<uint64_t*>(stack_ + kStackBytes);
  *--top = reinterpret_cast<uint64_t>(&switchyard_cuda_host_enter);
  *--top = reinterpret_cast<uint64_t>(&Enter);  // rbp
  *--top = reinterpret_cast<uint64_t>(this);    // rbx
  for (int i = 0; i < 4; ++i) {
    *--top = 0;  // r12 to r15
  }
  machine_->own = top;
}

void Fiber::SwitchIn() {
  switchyard_cuda_host_switch(&machine_->resumer, machine_->own);
}

void Fiber::Yield() {
  switchyard_cuda_host_switch(&machine_->own, machine_->resumer);
}

#else

void Fiber::Start(Body body, void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  getcontext(&machine_->own);
  machine_->own.uc_stack.ss_sp = stack_;
  machine_->own.uc_stack.ss_size = kStackBytes;
  machine_->own.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  // makecontext passes ints only.
  void (*const entry)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    Enter(reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low));
  };
  makecontext(
      &machine_->own,
      reinterpret_cast<void (*)()>(entry),
      2,
      static_cast<unsigned>(self >> 32),
      static_cast<unsigned>(self)
  );
}

void Fiber::SwitchIn() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  machine_->resumer_thread = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(machine_->own_thread, 0);
#endif
  swapcontext(&machine_->resumer, &machine_->own);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::Yield() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(
      ended_ ? nullptr : &fake_stack, machine_->resumer_stack, machine_->resumer_stack_bytes
  );
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(machine_->resumer_thread, 0);
#endif
  swapcontext(&machine_->own, &machine_->resumer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(
      fake_stack, &machine_->resumer_stack, &machine_->resumer_stack_bytes
  );
#endif
}

#endif

bool Fiber::Resume() {
  SwitchIn();
  return ended_;
}

}  // namespace switchyard::cuda_host
