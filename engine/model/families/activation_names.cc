#include "engine/model/families/activation_names.h"

#include <map>
#include <string>

namespace switchyard {

ActivationKind ReadActivation(
    ConfigReader& config, std::initializer_list<const char*> names, const char* otherwise
) {
  static const std::map<std::string, ActivationKind> kKinds = {
      {"identity", ActivationKind::kIdentity},
      {"relu", ActivationKind::kRelu},
      {"silu", ActivationKind::kSilu},
      {"swish", ActivationKind::kSilu},
      {"gelu", ActivationKind::kGelu},
      {"gelu_new", ActivationKind::kGeluTanh},
      {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
      {"sigmoid", ActivationKind::kSigmoid},
  };
  const std::string name = config.TextOr(names, otherwise);
  const auto found = kKinds.find(name);
  if (found == kKinds.end()) {
    config.Fail(Concat(
        *names.begin(), " is ", name, "; known: identity, relu, silu, gelu, gelu_new, sigmoid"
    ));
    return ActivationKind::kIdentity;
  }
  return found->second;
}

}  // namespace switchyard
