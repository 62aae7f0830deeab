# The fast CPU backend. SIMD lives in the *_kernels.cc leaves, compiled once for each instruction set and chosen at run time.
target_sources(switchyard_kernels PRIVATE
  cpu/activate.cc
  cpu/add.cc
  cpu/attention_kernels.cc
  cpu/attention_task.cc
  cpu/cpu_ops.cc
  cpu/embed.cc
  cpu/expert_matmul.cc
  cpu/in_out_kernels.cc
  cpu/matmul.cc
  cpu/normalize.cc
  cpu/out_in_input.cc
  cpu/out_in_kernels.cc
  cpu/paged_attention.cc
  cpu/panel_kernels.cc
  cpu/product.cc
  cpu/rope.cc
  cpu/row_kernels.cc
  cpu/scratch.cc
  cpu/select_tokens.cc
  cpu/thread_pool.cc)
# SVE and RVV vectors have no size and cannot be kept in arrays, as the register tiles do; SSSE3 alone is long extinct.
set_property(TARGET switchyard_kernels APPEND PROPERTY COMPILE_DEFINITIONS
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV)")
target_link_libraries(switchyard_kernels PRIVATE hwy::hwy Threads::Threads)
