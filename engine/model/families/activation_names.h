#pragma once

#include <initializer_list>

#include "engine/model/config_reader.h"
#include "kernels/ops.h"

namespace switchyard {

// The activation that a config field names: relu, silu, gelu (exact), gelu_new or
// gelu_pytorch_tanh, sigmoid, identity. Fails the reader on any other word.
ActivationKind ReadActivation(
    ConfigReader& config, std::initializer_list<const char*> names, const char* otherwise
);

}  // namespace switchyard
