#include "tests/benchmarks/dnnl_product.h"

#ifdef SWITCHYARD_HAS_DNNL
#include <dnnl.hpp>

namespace switchyard {
namespace {

using Tag = dnnl::memory::format_tag;

dnnl::memory::desc Matrix(int64_t rows, int64_t columns, Tag tag) {
  return {{rows, columns}, dnnl::memory::data_type::f32, tag};
}

}  // namespace

struct DnnlProduct::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul::primitive_desc description;
  dnnl::matmul product;
  dnnl::memory weights;
};

bool DnnlProduct::IsAvailable() {
  return true;
}

DnnlProduct::DnnlProduct(
    int64_t rows, int64_t in_features, int64_t out_features, const float* weights
)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.description = dnnl::matmul::primitive_desc(
      {Matrix(rows, in_features, Tag::ab),
       Matrix(in_features, out_features, Tag::any),
       Matrix(rows, out_features, Tag::ab)},
      state.engine
  );
  state.product = dnnl::matmul(state.description);
  // [out, in] is the transpose of what oneDNN calls weights.
  dnnl::memory plain(
      Matrix(in_features, out_features, Tag::ba), state.engine, const_cast<float*>(weights)
  );
  state.weights = dnnl::memory(state.description.weights_desc(), state.engine);
  dnnl::reorder(plain, state.weights).execute(state.stream, plain, state.weights);
  state.stream.wait();
}

void DnnlProduct::Run(const float* input, float* out) {
  State& state = *state_;
  dnnl::memory source(state.description.src_desc(), state.engine, const_cast<float*>(input));
  dnnl::memory target(state.description.dst_desc(), state.engine, out);
  state.product.execute(
      state.stream,
      {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, state.weights}, {DNNL_ARG_DST, target}}
  );
  state.stream.wait();
}

DnnlProduct::~DnnlProduct() = default;

}  // namespace switchyard

#else

namespace switchyard {

struct DnnlProduct::State {};

bool DnnlProduct::IsAvailable() {
  return false;
}
DnnlProduct::DnnlProduct(int64_t, int64_t, int64_t, const float*) {}
void DnnlProduct::Run(const float*, float*) {}
DnnlProduct::~DnnlProduct() = default;

}  // namespace switchyard

#endif
