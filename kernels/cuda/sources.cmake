# The CUDA backend. Every file is compiled by nvcc for devices and by the host compiler for the stand-in of tests/cuda_host.
set(SWITCHYARD_CUDA_SOURCES
  activate.cu
  add.cu
  cuda_ops.cu
  device_memory.cc
  embed.cu
  expert_matmul.cu
  graph_failure.cc
  graph_recorder.cu
  group_by_expert.cu
  matmul.cu
  normalize.cu
  pack.cu
  paged_attention.cu
  product_lanes.cu
  product_matrix.cu
  rope.cu
  select_experts.cu
  select_tokens.cu
  staging.cc
  store_kv.cu
  weights.cu)
list(TRANSFORM SWITCHYARD_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

# -fmad=false: sums are fused where the source says so and nowhere else, or two kernels that have to give the same bits
# would depend on the compiler.
set(SWITCHYARD_NVCC_FLAGS -std=c++20 -fmad=false --extended-lambda -Werror=all-warnings)
