#pragma once

#include <string>

// What the stand-in finds wrong. The first finding since the last one was taken is kept, as a
// device keeps its first fault; every call of the runtime afterwards answers an error.

namespace switchyard::cuda_host {

enum class Fault {
  kNone,
  kOutOfRange,           // a kernel touched memory beyond a view, or a view beyond its allocation
  kMisaligned,           // a wide access at an address that is no multiple of its width
  kUseAfterFree,         // memory that was given back
  kUninitialisedShared,  // shared memory read before the block wrote it
  kRace,                 // two threads, one element, no barrier between
  kDivergence,           // a barrier or a warp operation that not all threads reached
  kLaunchLimit,          // more threads, blocks or shared memory than a device has
  kWrongCopy,            // a copy whose pointers are not what its kind says
  kWrongFree,            // memory freed that was not allocated so
  kWrongCapture,         // a call that a stream's capture does not allow
};

// Remembers it. Thread-safe.
void Report(Fault fault, const std::string& message);
// From a kernel: remembers it with kernel, block and thread, and never comes back.
[[noreturn]] void ReportFromKernel(Fault fault, const std::string& message);

Fault CurrentFault();
// "" when there is none.
std::string CurrentMessage();
// For tests: the fault, which is then forgotten.
Fault TakeFault();

}  // namespace switchyard::cuda_host
